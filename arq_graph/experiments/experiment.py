"""An experiment on one suite: the arms in its conversations and on its gold turns, and tables beside the papers'."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, RootModel

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.yaml_file import read_model, suggest_file
from arq_graph.errors import InputError
from arq_graph.milestones import suites
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.runner import aevaluate
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.milestones.recording import recording_scope
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.shown import Row, Table, number
from arq_graph.milestones.reports.tables import Rows, table, tables_of
from arq_graph.milestones.turn_level.evaluation import aevaluate_turns
from arq_graph.milestones.turn_level.metrics import StepOutcome, TurnMetrics, turn_metrics
from arq_graph.milestones.users.user_spec import Kind
from arq_graph.models.resolve import model_name
from arq_graph.reasoning.sections import clean

SUITES = Path(suites.__file__).parent
"""The suites that come with the library, each in a folder of its own."""

_USUAL_ARMS = {"guidelines": "arq,cot,direct", "use_cases": "react,pre-act"} | dict.fromkeys(
    ("household", "shop", "booking"), "react,respact"
)
PUBLISHED = "published"
_TURNS: Mapping[str, Callable[[TurnMetrics], float | None]] = {
    "action recall": lambda of: of.action_recall.rate,
    "tool calls, F1": lambda of: of.tool_calls.f1,
    "parameter match": lambda of: of.parameter_match.rate,
    "final answers, F1": lambda of: of.final_answers.f1,
    "answer similarity": lambda of: of.similarity.mean,
}


class Published(Record):
    """What a paper reports: where, and its figures by row and arm.

    Args:
        of: Of which model or setting, where a table has several.
        not_comparable: Why nothing can be held against them: a fine-tuned model, private data; else for orientation.
        users: The one kind of users that they are of: they stand only beside figures of the same.
    """

    source: str
    of: str | None = None
    not_comparable: str | None = None
    users: Kind | None = None
    rows: Rows


@cache
def published() -> Mapping[str, Mapping[str, list[Published]]]:
    """The papers' figures, by suite and title of the table."""
    file, form = Path(__file__).with_name("published.yaml"), RootModel[dict[str, dict[str, list[Published]]]]
    return read_model(file, form, what="file of published figures").root


class Experiment(Record):
    """What came of the arms on one suite.

    Args:
        schema_version: The version of this form, written as `schema`.
        suite: The suite's name.
        report: What was measured in its conversations.
        turns: By arm, the figures over the suite's gold turns; empty where it has none.
        ablated: By arm that leaves queries out, the step that they are left out of.
        has_published: Whether the papers' figures stand beside ours: those of a shipped suite, all of it, or all its
            scenarios with the kinds of users that were played, helpful ones among them.
    """

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    schema_version: Literal[1] = Field(default=1, alias="schema")
    suite: str
    report: Report
    turns: Mapping[str, TurnMetrics] = {}
    ablated: Mapping[str, str] = {}
    has_published: bool = False

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The papers' tables; the JSON holds them too, and of one that is read they are made anew."""
        turns = {
            name: {arm: number(figure(metrics), ".3f") for arm, metrics in self.turns.items()}
            for name, figure in _TURNS.items()
        }
        of_turns = [table("single turns", self.turns, turns)] if self.turns else []
        theirs = published().get(self.suite, {}) if self.has_published else {}
        found = [*tables_of(self.report, ablated=self.ablated), *of_turns]
        users = {one.user for one in self.report.conversations}
        return tuple(_beside(each, theirs.get(each.title, ()), users) for each in found)


def suite_file(name: str | Path) -> Path:
    """The file of a suite: a shipped one by its name, or the path itself.

    Raises:
        InputError: There is neither.
    """
    shipped = _shipped()
    if (found := shipped.get(str(name))) is not None:
        return found
    if not Path(name).is_file():
        raise InputError(
            f"there is no suite {str(name)!r}: give a suite's file, or one of {', '.join(shipped)}"
            f"{suggest_file(name, *shipped)}"
        )
    return Path(name)


def _shipped() -> dict[str, Path]:
    return {each.parent.name.replace("_", "-"): each for each in sorted(SUITES.glob("*/suite.yaml"))}


def usual_arms(file: Path) -> str:
    """The arms that the paper compares on a shipped suite; on another, the agent as it ships."""
    return _USUAL_ARMS.get(file.parent.name, "guided") if file.is_relative_to(SUITES) else "guided"


def file_name(name: str) -> str:
    """The name of a suite or an arm as a part of a file's name."""
    return re.sub(r"[^\w+.-]+", "-", name).casefold()


async def aexperiment(
    file: Path,
    suite: Suite,
    arms: Mapping[str, Arm],
    *,
    results: Path,
    ablated: Mapping[str, str] | None = None,
    is_part: bool = False,
    **settings: Any,
) -> Experiment:
    """Try arms on a suite: its conversations by `aevaluate`, and its gold turns by `aevaluate_turns`.

    Gold conversations stand in the folder `gold` beside the suite, in a file named as the agent's that they are of.
    Under a limit they are left out.

    Args:
        file: The suite's file.
        suite: Its scenarios, or those of them that are to be run.
        arms: The arms, by name.
        results: Where conversations are kept; turns are kept beside it.
        ablated: By arm that leaves queries out, the step that they are left out of.
        is_part: Whether scenarios with helpful users, or with other kinds that were played, are left out.
        **settings: Those of `aevaluate`.

    Raises:
        InputError: As `aevaluate` raises.
    """
    report = await aevaluate(suite, arms, results=results, **settings)
    golden = {} if any(map(settings.get, ("max_calls", "max_cost"))) else _golden(file, suite)
    model = settings.get("model")
    known = Arms(arms, model)
    asked = settings.get("depends_on", {}).get("the agent's model") or model_name(model or "none")
    turns = {}
    for arm in known.names if golden else ():
        outcomes: list[StepOutcome] = []
        for gold, scenario in golden.items():
            app = known.prepare_app(PlannedConversation(arm, scenario, 1, suite.seed)).app
            name = f"{suite.name}, {gold.stem}, {arm}"
            kept = results.with_name(f"{file_name(name)}.turns.jsonl")
            of = {"the agent": fingerprint(scenario.agent), "the arm": arm, "the agent's model": asked}
            concurrency = settings.get("concurrency", 8)
            with recording_scope(name):
                evaluation = await aevaluate_turns(
                    app, gold, results=kept, depends_on=of, concurrency=concurrency
                )
            outcomes += evaluation.outcomes
        if outcomes:
            turns[arm] = turn_metrics(outcomes)
    shipped = next((name for name, shipped in _shipped().items() if shipped == file), None)
    return Experiment(
        suite=shipped or suite.name,
        report=report,
        turns=turns,
        ablated=ablated or {},
        has_published=not (shipped is None or is_part or report.missing),
    )


def _golden(file: Path, suite: Suite) -> dict[Path, Scenario]:
    """The files of gold conversations, each with a scenario of the agent that held them."""
    by_agent = {one.agent.file.stem: one for one in suite.scenarios if one.agent and one.agent.file}
    golden = sorted(file.parent.glob("gold/*.jsonl"))
    # Recorded conversations do not say what the customer agreed to, so `confirm` would refuse every such call.
    return {
        gold: one.replace(agent=one.agent.replace(confirm={}))
        for gold in golden
        if (one := by_agent.get(gold.stem)) and one.agent
    }


def write_experiment(path: Path, experiment: Experiment, tables: Iterable[Table]) -> None:
    """Write an experiment as JSON, with its tables; the file is there whole or as it was before."""
    held = experiment.model_dump(mode="json", by_alias=True)
    held["tables"] = [table.model_dump(mode="json") for table in tables]
    write_atomically(path, clean(json.dumps(held, ensure_ascii=False, indent=1)) + "\n")


def _beside(ours: Table, theirs: Iterable[Published], users: set[str | None]) -> Table:
    rows: list[Row] = []
    notes: dict[str, None] = {}
    for row in ours.rows:
        rows.append(row)
        for one in theirs:
            cells = one.rows.get(row.name, {})
            if cells.keys() & set(ours.columns) and (one.users is None or users == {one.users}):
                name = f"{PUBLISHED}, {one.of}" if one.of else PUBLISHED
                rows.append(Row(name=name, cells=tuple(cells.get(column, "") for column in ours.columns)))
                mark = f"Not comparable: {one.not_comparable}" if one.not_comparable else "For orientation"
                notes[f"{name}: {one.source}. {mark}."] = None
    return ours.model_copy(update={"rows": tuple(rows), "notes": (*ours.notes, *notes)})
