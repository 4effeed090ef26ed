"""What `evaluate` and `experiment` do alike: choose models and arms, run conversations, and say how that went."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, product
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from typer import BadParameter

from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.progress_display import resumable_progress_bar
from arq_graph.cli.report_view import format_count, incomplete_exit, list_names, show_broken, show_report
from arq_graph.cli.screen import note, warn
from arq_graph.errors import InputError, SpecError, suggestion
from arq_graph.experiments.ablations import parse_ablation
from arq_graph.experiments.arms import ARMS, load_arms
from arq_graph.milestones.evaluation.arms import Arm, Arms, PreparedApp
from arq_graph.milestones.evaluation.harness import OnConversation
from arq_graph.milestones.evaluation.results import JUDGE_VOTES, read_results
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.shown import Table
from arq_graph.milestones.reports.tables import table
from arq_graph.milestones.store import MODEL_ROLES
from arq_graph.milestones.transcript import Result, Transcript
from arq_graph.milestones.users.user_spec import KINDS
from arq_graph.models.offline.model import is_offline

_Words = str | None
_NOT_REPEATED = (
    "--resume does not repeat a conversation that ended in an error: to ask the model again, delete its line from the "
    "results, or start with new results."
)


def asked_of(
    model: _Words,
    model_arg: Sequence[str] | None,
    user_model: _Words,
    judge: _Words,
    votes: int,
    base_url: _Words,
) -> dict[str, Any]:
    """The models that the options choose, and what results depend on."""
    if votes > 1 and not judge:
        raise BadParameter("--votes says how often to ask the judge: name one with --judge")
    choices = {"model": choose_model(model, base_url, model_arg)}
    named = {"user_model": user_model, "judge": judge}
    choices |= {role: choose_model(name, base_url) for role, name in named.items() if name}
    names = {MODEL_ROLES[role]: each.name for role, each in choices.items()}
    return {role: each.chat_model() for role, each in choices.items()} | {"depends_on": names}


def judged(asked: Mapping[str, Any], votes: int) -> dict[str, Any]:
    """The same as settings of `aevaluate`: with the judge that its model makes."""
    if "judge" not in asked:
        return dict(asked)
    depends_on = asked["depends_on"] | ({JUDGE_VOTES: str(votes)} if votes > 1 else {})
    return {**asked, "judge": LLMJudge(asked["judge"], votes=votes), "depends_on": depends_on}


def read_prices(text: str | None, max_cost: float | None) -> dict[str, tuple[float, float]]:
    """Parse --prices: what a million input and output tokens cost, by model.

    Raises:
        BadParameter: The prices are written in another way, or --max-cost has none.
    """
    if max_cost is not None and not (text and max_cost > 0):
        raise BadParameter("--max-cost needs --prices, such as --prices gpt-4o=2.5/10, and more than 0")
    prices: dict[str, tuple[float, float]] = {}
    if not text:
        return prices
    for entry in text.split(","):
        match = re.fullmatch(r"(.+)=(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", entry.strip())
        if match is None:
            raise BadParameter(f"--prices {entry}: it must be written MODEL=IN/OUT, such as gpt-4o=2.5/10")
        prices[match[1]] = (float(match[2]), float(match[3]))
    return prices


def refuse_useless(why: str, given: Mapping[str, object]) -> None:
    """Refuse options that would change nothing; a value that is false was not given."""
    if useless := [name for name, value in given.items() if value]:
        raise BadParameter(f"{why}: leave out {', '.join(useless)}, which would change nothing")


def way_on_from(kept: Path) -> str:
    """How to continue a run whose conversations are saved there."""
    return f"What ended is saved in {kept}: the same command with --resume continues from there."


def refuse_arms(given: Iterable[Path | str]) -> None:
    """Refuse the name of an arm that stands where a file's should: it was meant for `--arms`."""
    if wrong := [str(each) for each in given if str(each) in ARMS and not Path(each).is_file()]:
        raise InputError(f"{wrong[0]!r} is an arm: separate arms with commas, as in --arms arq,cot")


def narrowed(suites: Sequence[Suite], wanted: Sequence[str]) -> list[Suite]:
    """The suites with the scenarios of these categories and kinds of users; one without any is left out, which is said.

    Raises:
        InputError: A name is neither, or nothing is left.
    """
    known = sorted({one.use_case for suite in suites for one in suite.scenarios if one.use_case})
    kinds = [name for name in wanted if name in KINDS and name not in known]
    categories = [name for name in wanted if name not in kinds]
    for name in categories:
        if name not in known:
            there = suggestion(name, [*known, *KINDS]) or f"; there are {list_names([*known, *KINDS])}"
            raise InputError(f"there is no category (`use_case`) and no kind of user {name!r}{there}")

    def fits(one: Scenario) -> bool:
        return (not categories or one.use_case in categories) and (not kinds or one.kind in kinds)

    found = []
    for suite in suites:
        if some := [one for one in suite.scenarios if fits(one)]:
            found.append(suite.replace(scenarios=some))
        else:
            note(f"{suite.name} is left out: it has no scenario of {', '.join(wanted)}.")
    if not found:
        raise InputError(f"no scenario is left: --only {','.join(wanted)} fits none")
    return found


def tried_on(
    suite: Suite, names: list[str], folder: Path, model: BaseChatModel
) -> tuple[Suite, dict[str, Arm]]:
    """The scenarios that all arms can be tried on, and the arms; what should be known of them is said.

    Raises:
        InputError: A world or an arm would fail in each scenario of a kind, so that no run is worth its cost.
    """
    apps = load_arms(names, folder=folder)
    known = Arms(apps, model)
    suite = known.select_comparable(suite)
    kinds = {
        (one.agent is None, id(getattr(one.world, "func", one.world)), one.matches_only): one
        for one in reversed(suite.scenarios)
    }
    for one in kinds.values():  # a mistake in a world is no arm's
        PreparedApp(None, world=one.make_world(suite.seed)).read_outcome()  # as if nothing had been done
    for arm, one in product(apps, kinds.values()):
        try:
            known.prepare_app(PlannedConversation(arm, one, 1, suite.seed))
        except (InputError, SpecError) as error:
            raise InputError(f"the arm {arm!r} cannot be tried on {suite.name!r}: {error}") from error
        except (Exception, SystemExit):  # of a user's own code, which may fail in one conversation alone
            continue
    say_doubts(model, names, suite.scenarios)
    return suite, apps


def ablated_in(arms: Iterable[str]) -> dict[str, str]:
    """By arm that leaves queries out, the steps that they are left out of."""
    return {name: " and ".join(each.without) for name in arms if (each := parse_ablation(name))}


@contextmanager
def conversing(
    suite: Suite, arms: Mapping[str, Arm], settings: Mapping[str, Any], way_on: str
) -> Iterator[OnConversation]:
    """Inside the block conversations are run: progress is shown, and whatever ends it says how to go on."""
    count = sum(1 for _ in suite.plan_conversations(list(arms), settings.get("runs", 1)))
    with resumable_progress_bar(way_on, "conversing", count, "went wrong") as advance:
        yield lambda _, outcome: advance(outcome.error is not None and outcome.ended != "limit")


def require_all_run(reports: Sequence[Report], way_on: str) -> None:
    """Leave with the exit code that says so where something went wrong."""
    if way_on and not any(each.broken or each.missing for each in reports):
        way_on = _NOT_REPEATED
    if any(each.failed for each in reports) and not any(each.conversations for each in reports):
        raise InputError("nothing could be measured")
    if any(each.failed or any(one.error for one in each.conversations) for each in reports):
        raise incomplete_exit(way_on)


def say_doubts(model: BaseChatModel, arms: Sequence[str], scenarios: Sequence[Scenario]) -> None:
    """Say what should be known about the choice of the model and the arms, and about tools without a world."""
    # LangChain would log that a conversation's limit of calls was reached; the report says so.
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
    if is_offline(model) and "create_agent" in arms:
        note("The offline model never calls a tool that is bound to it: the arm create_agent can only talk.")
    if shared := sum(bool(one.user and one.agent) and one.world is None for one in scenarios):
        note(
            f"{format_count(shared, 'scenario')} without a `world`: their conversations share the agent's own tools, "
            "and see what others have changed."
        )


def said_in(report: Report, results: Path) -> Iterator[Transcript]:
    """What was said in the conversations of a report, in the order of the file."""
    wanted = {record.id for record in report.conversations}
    for record, transcript in read_results(results):
        if record.id in wanted:
            wanted.remove(record.id)  # of one that was run twice, the first counts
            yield transcript


def exceptions_of_tools(report: Report, results: Path) -> Iterator[Table]:
    """How many calls failed with which exception: a world may raise it on purpose, or by mistake."""
    if any(one.moves.get("invalid") for one in report.conversations):
        events = chain.from_iterable(each.measured_events for each in said_in(report, results))
        ended = [(e.tool, e.failed and e.text.partition(":")[0]) for e in events if isinstance(e, Result)]
        calls = Counter(tool for tool, _ in ended)
        rows = {
            f"{tool}: {kind}": {"failed": f"{count:,} of {calls[tool]:,}"}
            for (tool, kind), count in sorted(Counter(ended).items(), key=str)
            if kind and kind.isidentifier()
        }
        yield from [table("exceptions of tools", ["failed"], rows)] if rows else ()


def show(report: Report, tables: Iterable[Table], way_on: str, *, of: str = "", judged: bool = True) -> None:
    """Say what could not be measured, which limit ended a run and how to continue it; and print the report."""
    show_broken(report.failed, "measured")
    if report.stopped:
        # Calls that were made before count, so the same limit is of no use.
        if (name := report.stopped.partition(":")[0]) in ("max_cost", "max_calls"):
            way_on = way_on.replace("--resume", f"--resume and a higher --{name.replace('_', '-')}")
            way_on += " What was cut off is run again; a lower --concurrency cuts off less."
        missing = format_count(report.missing, "conversation") + (f" of {of}" if of else "")
        lacking = "Missing below" if report.conversations else "No conversation was finished. Missing"
        warn(f"{report.stopped}. {lacking}: {missing}. {way_on}")
    if report.conversations:
        show_report(report, tables, suite=of, has_judge=judged)
