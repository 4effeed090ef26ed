"""`arq-graph demo`: the shipped order desk in a conversation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from arq_graph.apps.arms import arms
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import Setup, opened_dialogue
from arq_graph.cli.evaluate import chosen, quiet_callbacks, shown
from arq_graph.cli.explanation import LEGEND
from arq_graph.cli.failures import leaving_on_ctrl_c, note, warn
from arq_graph.cli.figures import columns, counted, number_between, share_between
from arq_graph.cli.run import read_customer_turns
from arq_graph.cli.screen import command, output, sentence, words
from arq_graph.cli.settings import OFFLINE, ModelChoice
from arq_graph.cli.threads import DEFAULT_FILE
from arq_graph.cli.turn_view import customer_said, heading, outcome_of
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.figures import Summary
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.transcript import Transcript

_KINDS = {
    "helpful": "helpful: says what is asked",
    "perturbed": "perturbed: has no numbers",
    "unhelpful": "unhelpful: guesses wrongly",
}
_HEADINGS = ("goal reached", "share", "progress rate")
_STAND_IN = (
    "The offline model stands in for a real one, to show how the graph runs. It compares the stems of words, finds "
    "values by their shape, and says what stands between quotes in the guidelines and what the tools told."
)


def demo_folder() -> Path:
    """Where the order desk's files are."""
    return Path(str(files("arq_graph.examples.order_desk")))


def hold_demo(setup: Setup, *, evaluation: bool | None = None) -> None:
    """Hold the order desk's conversation, print every turn, and try the desk on simulated users."""
    _hold(setup)
    console = output()
    if evaluation is None and setup.choice.spec != OFFLINE:
        console.print(
            words("Not tried on simulated users, which takes many calls: --evaluation does it.", "dim")
        )
    elif evaluation is not False:
        guided = "guided" if setup.mode == "arq" else f"guided:{setup.mode}"
        console.print()
        evaluate_demo(
            setup.file.with_name("suite.yaml"), setup.choice, page_beside(setup.db), tried=(guided, "pre-act")
        )


def _hold(setup: Setup) -> None:
    console = output()
    with opened_dialogue(setup, operator=approve_all) as dialogue:
        title = f" · {setup.choice.name} · thread {dialogue.thread}"
        console.print(sentence(words(dialogue.agent.name, "bold"), title))
        console.print(words(dialogue.agent.profile.strip(), "dim"))
        console.print(words(LEGEND, "dim"))
        if setup.choice.spec == OFFLINE:
            console.print(words(_STAND_IN, "dim"))
        dialogue.finish()
        for text in read_customer_turns(setup.file.with_name("conversation.txt")):
            console.print()
            console.print(heading(len(dialogue.said()) + 1))
            console.print(customer_said(text))
            console.print()
            for part in outcome_of(dialogue.say(text), dialogue.agent):
                console.print(part)
        console.print()
        if dialogue.way_on:
            console.print(words("Why did it say that?"))
            console.print(command("arq-graph", "explain", *setup.db_option), soft_wrap=True)
        console.print(words("Talk to it yourself:"))
        console.print(
            command("arq-graph", "chat", setup.file, *setup.db_option, *setup.graph_options), soft_wrap=True
        )


def page_beside(db: Path | None) -> Path:
    """Where the demo's page goes: beside the file of threads."""
    # A folder that somebody named may hold a demo.html of theirs.
    return DEFAULT_FILE.with_name("demo.html") if db is None else db.with_name(f"{db.stem}.demo.html")


def evaluate_demo(
    suite_file: Path,
    choice: ModelChoice,
    page: Path,
    *,
    tried: tuple[str, ...] = ("guided", "pre-act"),
    scenarios: tuple[str, ...] = (),
) -> Report:
    """Hold each conversation of a suite once with each arm, print a table, and write the page."""
    suite = chosen(Suite.from_yaml(suite_file), scenarios)
    folder = suite_file.absolute().parent
    count = len(suite.scenarios)
    console = output()
    console.print(
        words(
            f"{counted(count, 'simulated customer')}, each with the desk as {' and as '.join(tried)}", "bold"
        )
    )
    with tempfile.TemporaryDirectory() as kept:
        file = Path(kept) / "results.jsonl"
        with (
            quiet_callbacks(),
            leaving_on_ctrl_c(lambda: note("Interrupted.")),
            shown(count * len(tried)) as done,
        ):
            report = evaluate(
                suite, arms(list(tried), folder=folder), model=choice.chat_model(), results=file, done=done
            )
        for one in report.broken:
            warn(one.error)
        if not report.conversations:
            raise InputError("nothing could be measured")
        _write(page, report, file)
    for arm in tried:
        if arm in report.summary.arms:
            console.print()
            console.print(columns(arm, _HEADINGS, _rows(report, arm), name_width=36))
    console.print()
    console.print(
        words(
            "Goal reached: the customer got what they came for. Progress rate: the mean share of the way to the end of "
            "the milestone graph that was covered, by calls that succeeded and words that were said. […] are 95% "
            "intervals.",
            "dim",
        )
    )
    console.print(words("Who stopped where, and every conversation to read:"))
    console.print(words(f"  {page}", "bold"), soft_wrap=True)
    console.print(words("More runs:"))
    console.print(
        command(
            *("arq-graph", "evaluate", suite_file, "--arms", ",".join(tried), "--runs", 3),
            *("--results", page.with_name("evaluation.jsonl")),
        ),
        soft_wrap=True,
    )
    return report


def _rows(report: Report, arm: str) -> Iterator[tuple[str, list[str]]]:
    for kind, cell in report.summary.arms_by_user.get(arm, {}).items():
        yield _KINDS.get(kind, kind), _figures(cell)
    yield "all", _figures(report.summary.arms[arm])


def _figures(summary: Summary) -> list[str]:
    goal, rate = summary.goal_reached or summary.goal_completion, summary.progress_rate
    return [
        f"{goal.count:,} of {goal.n:,}",
        share_between(goal.rate, goal.low, goal.high),
        number_between(rate.mean, rate.low, rate.high),
    ]


def _write(page: Path, report: Report, results: Path) -> None:
    positions = {(one.arm, one.scenario, one.run): index for index, one in enumerate(report.conversations)}
    said: dict[int, Transcript] = {
        positions[record.arm, record.scenario, record.run]: transcript
        for record, transcript in read_results(results)
    }
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the page {page} cannot be written: {error.strerror}") from error
    write_html(page, report, said, title="The order desk and its simulated customers")
