"""`arq-graph demo`: the shipped order desk in a conversation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from arq_graph.apps.arms import arms
from arq_graph.cli import options
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import Setup, opened_dialogue
from arq_graph.cli.evaluate import quiet_callbacks, said_in, shown
from arq_graph.cli.failures import leaving_on_ctrl_c, note, warn
from arq_graph.cli.figures import columns, counted, number_between, share_between
from arq_graph.cli.run import read_customer_turns
from arq_graph.cli.screen import command, output, sentence, words
from arq_graph.cli.settings import OFFLINE, ModelChoice, choose_model
from arq_graph.cli.threads import DEFAULT_FILE
from arq_graph.cli.turn_view import LEGEND, customer_said, heading, outcome_of
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.figures import Summary
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.report import Report

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


def demo(
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: options.StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    thread: options.Thread = None,
    db: options.Database = None,
    evaluation: Annotated[
        bool | None,
        typer.Option(
            "--evaluation/--no-evaluation",
            help="End with an evaluation against simulated users. Else with the offline model alone.",
        ),
    ] = None,
) -> None:
    """Watch the shipped order desk in a conversation, then with simulated users; needs no key."""
    folder, choice = demo_folder(), choose_model(model, base_url)
    milestones = milestones or folder / "milestones.yaml"
    setup = Setup(folder / "agent.yaml", choice, mode, thread, db, strategy, milestones)
    _hold(setup)
    console = output()
    if evaluation is None and choice.spec != OFFLINE:
        console.print(
            words("Not tried on simulated users, which takes many calls: --evaluation does it.", "dim")
        )
    elif evaluation is not False:
        # A folder that somebody named may hold a demo.html of theirs.
        page = db.with_name(f"{db.stem}.demo.html") if db else DEFAULT_FILE.with_name("demo.html")
        console.print()
        _evaluate(
            folder / "suite.yaml", choice, page, ("guided" if mode == "arq" else f"guided:{mode}", "pre-act")
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


def _evaluate(suite_file: Path, choice: ModelChoice, page: Path, tried: tuple[str, ...]) -> None:
    """Hold each conversation of a suite once with each arm, print a table, and write the page."""
    suite = Suite.from_yaml(suite_file)
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
        page.parent.mkdir(parents=True, exist_ok=True)
        title = "The order desk and its simulated customers"
        write_html(page, report, said_in(report, file), title=title)
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
