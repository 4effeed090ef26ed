"""`arq-graph turns`: evaluate single turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import create_guided_agent
from arq_graph.cli.failures import NO_ANSWER, note, show_error, warn
from arq_graph.cli.figures import counted
from arq_graph.cli.progress import progress_bar
from arq_graph.cli.screen import output, print_json, printable, words
from arq_graph.cli.settings import ModelChoice
from arq_graph.cli.tools_file import read_tools
from arq_graph.errors import InputError, SpecError, ToolError
from arq_graph.milestones.transcripts.formats import FORMATS, Format
from arq_graph.milestones.turn_level.agents import openai_definitions
from arq_graph.milestones.turn_level.evaluation import TurnEvaluation, aevaluate_turns, evaluate_turns
from arq_graph.milestones.turn_level.metrics import TurnMetrics
from arq_graph.milestones.turn_level.similarity import lexical_similarity
from arq_graph.milestones.turn_level.steps import DatasetSteps
from arq_graph.reasoning.blueprint import Mode

_SHOWN = 5
_MOST_PAIRS = 10
_NO_TOOLS = (
    "neither the records nor --tools name any tool: the model can only answer, and every step that is a tool call "
    "will be wrong; give --tools FILE, a JSON list of OpenAI tool definitions"
)


@dataclass(frozen=True)
class Evaluated:
    """What is evaluated on, and where the figures go."""

    dataset: Path
    format: str | None
    limit: int | None
    out: Path | None
    as_json: bool

    def steps(self) -> DatasetSteps:
        """The steps to evaluate."""
        return DatasetSteps(self.dataset, format=self.known_format(), limit=self.limit)

    def known_format(self) -> Format | None:
        """The format."""
        if self.format is not None and self.format not in FORMATS:
            raise InputError(f"the format {self.format!r} is not known; known are {', '.join(FORMATS)}")
        return self.format


@dataclass(frozen=True)
class Asked:
    """What is asked for its next actions."""

    choice: ModelChoice
    agent: Path | None
    mode: Mode
    tools: Path | None
    concurrency: int

    @property
    def name(self) -> str:
        """What is asked, as it is shown."""
        return f"{self.agent} ({self.mode}), {self.choice.name}" if self.agent else self.choice.name


def evaluate(evaluated: Evaluated, by: Asked | Path) -> None:
    """Evaluate, and print the figures."""
    total, without_tools = _count(evaluated)
    if isinstance(by, Path):
        with progress_bar("steps", total, failing="failed") as advance:
            found = evaluate_turns(
                by,
                evaluated.dataset,
                format=evaluated.known_format(),
                limit=evaluated.limit,
                on_step=lambda _: advance(False),
            )
        if missing := found.metrics.confusion["no_prediction"]:
            warn(
                f"{missing:,} of {found.metrics.steps:,} steps have no prediction in {printable(str(by), 200)}: "
                "they count as wrong"
            )
        asked = str(by)
    else:
        if without_tools and by.agent is None and by.tools is None:
            warn(_NO_TOOLS)
        found = _ask(evaluated, by, total)
        asked = by.name
    for broken in found.broken[:_SHOWN]:
        warn(f"left out: {printable(broken.error, 300)}")
    if len(found.broken) > _SHOWN:
        warn(f"left out: {len(found.broken) - _SHOWN} more broken records")
    if evaluated.as_json:
        print_json(_as_data(evaluated.dataset, asked, found))
    else:
        _show(asked, found.metrics)
    if found.metrics.errors == found.metrics.steps and not isinstance(by, Path):
        show_error(InputError("every step ended in an error; the last: " + str(found.outcomes[-1].error)))
        raise typer.Exit(NO_ANSWER)


def _count(evaluated: Evaluated) -> tuple[int, bool]:
    """How many steps there are, and whether no record names a tool."""
    steps = evaluated.steps()
    total, without = 0, True
    for step in steps:
        total += 1
        without = without and not step.transcript.tools and not step.transcript.extra.get("tools")
    if not total:
        said = f"; the first broken record: {steps.broken[0].error}" if steps.broken else ""
        raise InputError(f"{evaluated.dataset} holds no step: no agent's message that follows a user's{said}")
    return total, without


def _ask(evaluated: Evaluated, asked: Asked, total: int) -> TurnEvaluation:
    model: Any = asked.choice.chat_model()
    if asked.choice.notice:
        note(asked.choice.notice)
    tools = None if asked.tools is None else _tools(asked.tools)
    agent = model
    if asked.agent is not None:
        agent = create_guided_agent(model, Agent.from_yaml(asked.agent), mode=asked.mode)
    note(f"{asked.name} · {total} steps")
    run: dict[str, Any] = {
        "tools": tools,
        "format": evaluated.known_format(),
        "limit": evaluated.limit,
        "results": evaluated.out,
        "depends_on": {
            "the model": asked.choice.name,
            "the agent": f"{fingerprint(asked.agent)}, {asked.mode}" if asked.agent else "none",
        },
    }
    with progress_bar("steps", total, failing="failed") as advance:
        run["on_step"] = lambda outcome: advance(outcome.error is not None)
        if asked.concurrency == 1:
            found = evaluate_turns(agent, evaluated.dataset, **run)
        else:
            at_once = aevaluate_turns(agent, evaluated.dataset, concurrency=asked.concurrency, **run)
            found = asyncio.run(at_once)
    if found.kept:
        note(f"{evaluated.out} already held {counted(found.kept, 'step')}, which were not asked again")
    return found


def _tools(file: Path) -> list[dict[str, Any]]:
    try:
        return openai_definitions(read_tools(None, file))
    except ToolError as error:
        raise SpecError(str(error), file=str(file)) from None


def _as_data(dataset: Path, asked: str, found: TurnEvaluation) -> dict[str, Any]:
    return {
        "dataset": str(dataset),
        "asked": asked,
        "similarity": lexical_similarity.__name__,
        "metrics": found.metrics.model_dump(),
        "broken": [broken.model_dump() for broken in found.broken],
    }


def _show(asked: str, metrics: TurnMetrics) -> None:
    """Print the figures, each with its n, and what went wrong."""
    console = output()
    said = f"{counted(metrics.steps, 'step')} of {counted(metrics.conversations, 'conversation')} · {asked}"
    console.print(words(said, "bold"), soft_wrap=True)
    console.print(_figures(metrics))
    if wrong := [(kind.replace("_", " "), count) for kind, count in metrics.confusion.items() if count]:
        console.print()
        console.print(words("What went wrong", "bold"))
        console.print(_counted(wrong))
    if metrics.mistaken:
        console.print()
        console.print(words("Taken for another (truth → predicted)", "bold"))
        pairs = [(f"{each.truth} → {each.predicted}", each.count) for each in metrics.mistaken]
        console.print(_counted(pairs[:_MOST_PAIRS]))
        if len(pairs) > _MOST_PAIRS:
            console.print(words(f"and {len(pairs) - _MOST_PAIRS} more kinds (--json shows all)", "dim"))


def _figures(metrics: TurnMetrics) -> Table:
    calls, answers, matches = metrics.tool_calls, metrics.final_answers, metrics.parameter_match
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("figure", "value", "n", "of"):
        table.add_column(name, justify="right" if name in ("value", "n") else "left", overflow="fold")
    for name, value, n, of in (
        ("action recall", metrics.action_recall.rate, metrics.action_recall.n, "steps"),
        ("tool calls: precision", calls.precision, calls.predicted, "calls predicted"),
        ("tool calls: recall", calls.recall, calls.actual, "calls made"),
        ("tool calls: F1", calls.f1, calls.predicted + calls.actual, "both"),
        ("parameter match (full)", matches.rate, matches.n, "steps, tools right"),
        ("final answers: precision", answers.precision, answers.predicted, "answers predicted"),
        ("final answers: recall", answers.recall, answers.actual, "answers given"),
        ("final answers: F1", answers.f1, answers.predicted + answers.actual, "both"),
        ("answer similarity (words)", metrics.similarity.mean, metrics.similarity.n, "steps, both answers"),
    ):
        shown = "-" if value is None else f"{value:.3f}"
        table.add_row(words(name), words(shown, "bold"), words(f"{n:,}"), words(of, "dim"))
    return table


def _counted(rows: Iterable[tuple[str, int]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=6)
    grid.add_column(overflow="fold")
    for name, count in rows:
        grid.add_row(words(f"{count:,}"), words(printable(name, 120)))
    return grid
