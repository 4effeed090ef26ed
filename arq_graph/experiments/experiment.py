"""An experiment on one suite: arms in its conversations and on its gold turns, and tables beside the papers'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.agent.yaml_file import suggest_file
from arq_graph.errors import InputError
from arq_graph.experiments.published import add_published_rows, read_published_figures
from arq_graph.milestones import suites
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.evaluate import aevaluate
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.milestones.recording_scope import recording_scope
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.table_format import Table, format_number, make_table
from arq_graph.milestones.reports.tables import build_tables
from arq_graph.milestones.turn_level.turn_evaluation import aevaluate_turns
from arq_graph.milestones.turn_level.turn_metrics import StepOutcome, TurnMetrics, compute_turn_metrics
from arq_graph.models.resolve import get_model_name
from arq_graph.reasoning.sections import clean

SUITES = Path(suites.__file__).parent
"""The suites that come with the library, each in a folder of its own."""

_SHIPPED_SUITES = {file.parent.name.replace("_", "-"): file for file in sorted(SUITES.glob("*/suite.yaml"))}
_PAPERS_ARMS = {
    "guidelines": ["arq", "cot", "direct"],
    "use-cases": ["react", "pre-act"],
    "household": ["react", "respact"],
    "shop": ["react", "respact"],
    "booking": ["react", "respact"],
}
"""The arms that a paper compares on a shipped suite."""


class Experiment(Record):
    """The figures of arms on one suite.

    Args:
        suite: The suite's name.
        report: What was measured in its conversations.
        turns: By arm, the figures over the suite's gold turns; empty where it has none.
        ablated: By arm that leaves queries out, the step that they are left out of.
        has_published: Whether the tables show the papers' figures: for a shipped suite, if no scenario with helpful
            users, or with other kinds that were played, was left out.
    """

    suite: str
    report: Report
    turns: Mapping[str, TurnMetrics] = {}
    ablated: Mapping[str, str] = {}
    has_published: bool = False

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """The tables of the papers, with our figures."""
        tables = build_tables(self.report, ablated=self.ablated)
        if self.turns:
            tables.append(_make_turn_table(self.turns))
        if self.has_published:
            publications = read_published_figures().get(self.suite, {})
            user_kinds = {record.user for record in self.report.conversations}
            for index, table in enumerate(tables):
                tables[index] = add_published_rows(table, publications.get(table.title, ()), user_kinds)
        return tuple(tables)


def find_suite_file(name: str | Path) -> Path:
    """Return the file of a suite: a shipped one by its name, or the path itself.

    Raises:
        InputError: No shipped suite has this name, and it isn't the path of a file.
    """
    if str(name) in _SHIPPED_SUITES:
        return _SHIPPED_SUITES[str(name)]
    if not Path(name).is_file():
        raise InputError(
            f"there is no suite {str(name)!r}: give a suite's file, or one of {', '.join(_SHIPPED_SUITES)}"
            f"{suggest_file(name, *_SHIPPED_SUITES)}"
        )
    return Path(name)


def choose_default_arms(suite_file: Path) -> list[str]:
    """Return the arms that the paper compares on a shipped suite; on another, the agent as it ships."""
    return _PAPERS_ARMS.get(_find_shipped_name(suite_file) or "", ["guided"])


def make_file_name(name: str) -> str:
    """Return the name of a suite or an arm as a part of a file's name."""
    return re.sub(r"[^\w+.-]+", "-", name).casefold()


async def arun_experiment(
    file: Path,
    suite: Suite,
    arms: Mapping[str, Arm],
    *,
    results: Path,
    ablated: Mapping[str, str] | None = None,
    is_part: bool = False,
    **settings: Any,
) -> Experiment:
    """Try arms on a suite: on its conversations by `aevaluate`, and on its gold turns by `aevaluate_turns`.

    Gold conversations are in the folder `gold` beside the suite, in a file named after the file of their agent. Under a
    limit they are left out.

    Args:
        file: The suite's file.
        suite: Its scenarios, or those of them that are to be run.
        arms: The arms, by name.
        results: The file of the conversations' results; those of gold turns are written beside it.
        ablated: By arm that leaves queries out, the step that they are left out of.
        is_part: Whether scenarios with helpful users, or with other kinds that were played, are left out.
        **settings: Those of `aevaluate`.

    Raises:
        InputError: As `aevaluate` raises.
    """
    report = await aevaluate(suite, arms, results=results, **settings)
    turns: dict[str, TurnMetrics] = {}
    if not (settings.get("max_calls") or settings.get("max_cost")):
        turns = await _evaluate_gold_turns(file, suite, arms, results, settings)
    shipped_name = _find_shipped_name(file)
    is_complete = not (is_part or report.missing)
    return Experiment(
        suite=shipped_name or suite.name,
        report=report,
        turns=turns,
        ablated=ablated or {},
        has_published=shipped_name is not None and is_complete,
    )


def write_experiment(path: Path, experiment: Experiment, tables: Iterable[Table]) -> None:
    """Write an experiment as JSON, with its tables; the file is replaced as a whole."""
    content: dict[str, Any] = {"schema": 1}  # the version of this form
    content |= experiment.model_dump(mode="json", by_alias=True)
    content["tables"] = [table.model_dump(mode="json") for table in tables]
    write_atomically(path, clean(json.dumps(content, ensure_ascii=False, indent=1)) + "\n")


async def _evaluate_gold_turns(
    file: Path, suite: Suite, arms: Mapping[str, Arm], results: Path, settings: Mapping[str, Any]
) -> dict[str, TurnMetrics]:
    """Return the turn-level figures of each arm; empty if the suite has no gold conversations."""
    scenarios = _find_gold_scenarios(file, suite)
    if not scenarios:
        return {}
    model = settings.get("model")
    loaded_arms = Arms(arms, model)
    model_name = (settings.get("depends_on") or {}).get("the agent's model")
    model_name = model_name or get_model_name(model or "none")
    metrics = {}
    for arm in loaded_arms.names:
        outcomes: list[StepOutcome] = []
        for gold_file, scenario in scenarios.items():
            app = loaded_arms.prepare_app(PlannedConversation(arm, scenario, 1, suite.seed)).app
            name = f"{suite.name}, {gold_file.stem}, {arm}"
            depends_on = {
                "the agent": fingerprint(scenario.agent),
                "the arm": arm,
                "the agent's model": model_name,
            }
            with recording_scope(suite.name, gold_file.stem, arm):
                evaluation = await aevaluate_turns(
                    app,
                    gold_file,
                    results=results.with_name(f"{make_file_name(name)}.turns.jsonl"),
                    depends_on=depends_on,
                    concurrency=settings.get("concurrency", 8),
                )
            outcomes += evaluation.outcomes
        if outcomes:
            metrics[arm] = compute_turn_metrics(outcomes)
    return metrics


def _find_gold_scenarios(file: Path, suite: Suite) -> dict[Path, Scenario]:
    """Return the files of gold conversations, each with a scenario of the agent that is heard in them."""
    scenarios: dict[str, tuple[Scenario, Agent]] = {}
    for scenario in suite.scenarios:
        if scenario.agent and scenario.agent.file:
            scenarios[scenario.agent.file.stem] = (scenario, scenario.agent)
    gold_scenarios = {}
    for gold_file in sorted(file.parent.glob("gold/*.jsonl")):
        if gold_file.stem in scenarios:
            scenario, agent = scenarios[gold_file.stem]
            # Recorded conversations do not say what the customer agreed to: `confirm` would refuse every such call.
            gold_scenarios[gold_file] = scenario.replace(agent=agent.replace(confirm={}))
    return gold_scenarios


def _make_turn_table(metrics_by_arm: Mapping[str, TurnMetrics]) -> Table:
    rows: dict[str, dict[str, str]] = {}
    for arm, metrics in metrics_by_arm.items():
        figures = {
            "action recall": metrics.action_recall.rate,
            "tool calls, F1": metrics.tool_calls.f1,
            "parameter match": metrics.parameter_match.rate,
            "final answers, F1": metrics.final_answers.f1,
            "answer similarity": metrics.similarity.mean,
        }
        for name, figure in figures.items():
            rows.setdefault(name, {})[arm] = format_number(figure, ".3f")
    return make_table("single turns", metrics_by_arm, rows)


def _find_shipped_name(file: Path) -> str | None:
    name = file.parent.name.replace("_", "-")
    return name if _SHIPPED_SUITES.get(name) == file else None
