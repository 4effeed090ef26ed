"""What `evaluate` and `experiment` do alike: choose models and arms, hold conversations, and tell how that went."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any, Self

from langchain_core.language_models import BaseChatModel
from typer import BadParameter, Exit

from arq_graph.apps.ablations import ablation_of
from arq_graph.apps.arms import arms as arms_named
from arq_graph.cli import WRONG_INPUT, options
from arq_graph.cli.progress import way_on_told
from arq_graph.cli.screen import note, output, warn
from arq_graph.cli.tables import counted, show_broken, show_report
from arq_graph.errors import InputError, SpecError, suggestion
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.holding import Done
from arq_graph.milestones.evaluation.results import VOTES, read_results
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Planned, Suite, read_shard
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.shown import Table
from arq_graph.milestones.store import ASKED
from arq_graph.milestones.transcript import Transcript
from arq_graph.models.offline.model import is_stand_in


@dataclass(frozen=True)
class Asked:
    """The models that are asked, by role, and what else the results depend on."""

    models: Mapping[str, BaseChatModel]
    names: Mapping[str, str]
    votes: int = 1

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> Self:
        """Those that the options choose."""
        url = given["base_url"]
        choices = {
            "model": options.choose_model(given["model"], url, given["model_arg"]),
            "user_model": options.choose_if_named(given["user_model"], url),
            "judge": options.choose_if_named(given["judge"], url),
        }
        named = {role: each for role, each in choices.items() if each}
        if given.get("votes") and "judge" not in named:
            raise BadParameter("--votes needs a --judge, who is asked so often")
        names = {ASKED[role]: each.name for role, each in named.items()}
        return cls({role: each.chat_model() for role, each in named.items()}, names, given.get("votes") or 1)

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of `aevaluate`: the models, and what options of the same names set."""
        same = ("concurrency", "workers", "shard", "resume", "max_calls", "max_cost")
        prices = options.read_prices(given["prices"], given["max_cost"])
        settings = {name: given[name] for name in same} | {"runs": given["runs"] or 1, "prices": prices}
        if "judge" not in self.models:
            return {**self.models, **settings, "depends_on": self.names}
        judge = LLMJudge(self.models["judge"], votes=self.votes)
        votes = {VOTES: str(self.votes)} if self.votes > 1 else {}
        return {**self.models, **settings, "judge": judge, "depends_on": {**self.names, **votes}}


def part_of(shard: str) -> str:
    """What the name of a shard's results file says of it: `.2-of-5`, or nothing where there is one part alone."""
    try:
        number, shards = read_shard(shard)
    except ValueError as error:
        raise BadParameter(f"--shard {error}") from None
    return f".{number}-of-{shards}" if shards > 1 else ""


def way_on_from(kept: Path, *, merges: bool = False) -> str:
    """How a run goes on whose conversations are kept there."""
    if merges:
        return "The same with --shard and --resume, for each part that is not done, goes on."
    return f"What ended is kept in {kept}: the same command with --resume goes on from there."


def names_in(listed: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in listed.split(",") if name.strip()]


def of_categories(suites: Sequence[Suite], only: str | None) -> list[Suite]:
    """The suites with the scenarios of some categories alone; one that has none of them is left out."""
    wanted = names_in(only or "")
    known = sorted({one.use_case for suite in suites for one in suite.scenarios if one.use_case})
    for name in wanted:
        if name not in known:
            there = suggestion(name, known) or f"; there are {', '.join(known) or 'none'}"
            raise InputError(f"there is no category (`use_case`) {name!r}{there}")
    fitting = [[one for one in suite.scenarios if not wanted or one.use_case in wanted] for suite in suites]
    return [suite.replace(scenarios=some) for suite, some in zip(suites, fitting, strict=True) if some]


def tried_on(
    suite: Suite, names: list[str], folder: Path, model: BaseChatModel
) -> tuple[Suite, dict[str, Arm]]:
    """The scenarios that all arms can be tried on, and the arms; what should be known of them is told.

    Raises:
        InputError: An arm cannot be made for one kind of scenario, and so would fail in each of that kind.
    """
    apps = arms_named(names, folder=folder)
    known = Arms(apps, model)
    turns = [one for one in suite.scenarios if not one.matches_only]
    kinds = {
        (one.agent is None, id(getattr(one.world, "func", one.world)), one.matches_only): one
        for one in reversed(suite.scenarios)
    }
    for arm, one in product(apps, kinds.values()):
        try:
            known.make(Planned(arm, one, 1, suite.seed)).outcome()  # as if nothing had been done
        except (InputError, SpecError) as error:
            if not (one.matches_only and turns):
                raise InputError(f"the arm {arm!r} cannot be tried on {suite.name!r}: {error}") from error
            if left_out := len(suite.scenarios) - len(turns):
                said = (
                    f"{counted(left_out, 'scenario')} left out: {arm} cannot say which guidelines are active."
                )
                note(said)
                suite = suite.replace(scenarios=turns)
        except (Exception, SystemExit):  # of a user's own code, which may fail in one conversation alone
            continue
    tell_doubts(model, names, suite.scenarios)
    return suite, apps


def ablated_in(arms: Iterable[str]) -> dict[str, str]:
    """By arm that leaves queries out, the steps that they are left out of."""
    return {name: " and ".join(each.without) for name in arms if (each := ablation_of(name))}


@contextmanager
def conversing(
    suite: Suite, arms: Mapping[str, Arm], settings: Mapping[str, Any], way_on: str
) -> Iterator[Done]:
    """Inside the block conversations are held: progress is shown, and whatever ends it tells the way on."""
    count = sum(1 for _ in suite.planned(list(arms), settings.get("runs", 1), settings.get("shard", "1/1")))
    with way_on_told(way_on, "conversing", count, "went wrong") as advance:
        yield lambda _, outcome: advance(outcome.error is not None)


def require_all_held(reports: Sequence[Report], way_on: str, *, missing: bool = False) -> None:
    """Leave with the exit code that says so where not everything could be held."""
    if any(each.failed for each in reports) and not any(each.conversations for each in reports):
        raise InputError("nothing could be measured")
    if missing or any(each.failed or any(one.error for one in each.conversations) for each in reports):
        note(f"Exit code {WRONG_INPUT}, because not everything could be held to its end. {way_on}")
        raise Exit(WRONG_INPUT)


def tell_doubts(model: BaseChatModel, arms: Sequence[str], scenarios: Sequence[Scenario]) -> None:
    """Say what should be known about the choice of the model and the arms, and about tools without a world."""
    # LangChain would log that a conversation's limit of calls was reached; the report says so.
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
    if is_stand_in(model) and "create_agent" in arms:
        note("The offline model never calls a tool that is bound to it: the arm create_agent can only talk.")
    if shared := sum(bool(one.user and one.agent) and one.world is None for one in scenarios):
        note(
            f"{counted(shared, 'scenario')} without a `world`: their conversations share the agent's own tools, and "
            "see what others have changed."
        )


def said_in(report: Report, *results: Path) -> Iterator[Transcript]:
    """What was said in the conversations of a report, in the order of the files."""
    wanted = {record.id for record in report.conversations}
    for record, transcript in chain.from_iterable(map(read_results, results)):
        if record.id in wanted:
            wanted.remove(record.id)  # of one that was held twice, the first counts
            yield transcript


def tell(report: Report, tables: Iterable[Table], way_on: str, *, of: str = "", judged: bool = True) -> None:
    """Say what could not be measured, which ceiling ended a run and how it goes on; and print the report."""
    show_broken(report.failed, "measured")
    if report.stopped:
        # Calls that were made before count, so the same ceiling is of no use.
        if (name := report.stopped.partition(":")[0]) in ("max_cost", "max_calls"):
            way_on = way_on.replace("--resume", f"--resume and a higher --{name.replace('_', '-')}")
        missing = counted(report.missing, "conversation")
        warn(f"{report.stopped}: {missing} of the run missing below. {way_on}")
    show_report(report, tables, output(), of=of, judged=judged)
