"""How journeys look: drawn as Mermaid, and in the terminal with what is done, open and skipped."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from arq_graph.agent.guideline import describe_condition
from arq_graph.agent.journey import Journey, JourneyStep, make_rule_id
from arq_graph.agent.journey_progress import JourneyState, StepProgress
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch
from arq_graph.cli.mermaid import make_label
from arq_graph.cli.screen import join_parts, list_entry, safe_text
from arq_graph.milestones.tool_schemas import get_tool_name

_LEGEND = (
    "%% ([start]): when it begins; [box]: a step with tools; (rounded): one without; [[double]]: another journey\n"
    "%% solid arrow: needed; dashed arrow: one of several alternatives"
)
_MARKS = {
    "active": ("●", "green"),
    "open": ("●", "green"),
    "done": ("✓", "green"),
    "skipped": ("–", "dim"),
    "waiting": ("○", "dim"),
    "left": ("○", "dim"),
    "given_up": ("✗", "yellow"),
}
"""By the state of a journey or a step: its mark, and the style of the mark."""
_COLOURS = {
    "open": "fill:#fff2cc,stroke:#b8860b,color:#000,stroke-width:3px",
    "done": "fill:#d5ead8,stroke:#2e7d32,color:#000",
    "skipped": "fill:#eee,stroke:#999,color:#666,stroke-dasharray:4",
}
_LIMIT = 300


def draw_journey(journey: Journey, state: JourneyState | None = None) -> str:
    """Return a journey as Mermaid; with how far it is, what is done, open and skipped is marked."""
    states: dict[str, str] = {}
    for progress in state.steps if state else ():
        states[progress.step] = progress.state
    nodes = {step.id: f"s{number}" for number, step in enumerate(journey.steps, start=1)}
    start_label = make_label(describe_condition(journey.condition) or journey.id)
    if state:
        start_label += f"<br/>{_format_state(state)}"
    lines = ["flowchart TD", _LEGEND, f'  s0(["{start_label}"])']
    for step in journey.steps:
        lines.append(f"  {nodes[step.id]}{_draw_step(step, states.get(step.id))}")
    for step in journey.steps:
        arrow = "-.->" if step.requires == "any" and len(step.after) > 1 else "-->"
        if step.condition is not None:
            arrow += f'|"{make_label(describe_condition(step.condition) or "")}"|'
        for id in step.after or ("",):
            lines.append(f"  {nodes.get(id, 's0')} {arrow} {nodes[step.id]}")
    for name, style in _COLOURS.items():
        coloured = [node for id, node in nodes.items() if states.get(id) == name]
        if coloured:
            lines.append(f"  classDef {name} {style}")
            lines.append(f"  class {','.join(coloured)} {name}")
    return "\n".join(lines) + "\n"


def _draw_step(step: JourneyStep, state: str | None) -> str:
    lines = [step.id, step.action or f"the journey {step.journey}"]
    opening, closing = "(", ")"
    if step.journey:
        opening, closing = "[[", "]]"
    elif step.tools:
        lines.append(f"calls {', '.join(map(get_tool_name, step.tools))}")
        opening, closing = "[", "]"
    label = "<br/>".join(map(make_label, lines))
    if state:
        label = f"{_MARKS[state][0]} {label}"
    return f'{opening}"{label}"{closing}'


def list_journeys(
    journeys: Sequence[JourneyState], agent: Agent, matches: Sequence[GuidelineMatch]
) -> Iterator[tuple[str, list[Text]]]:
    """Yield each journey that has begun, and of one that is active, what is settled and what its open steps do.

    Args:
        journeys: How far each one is.
        agent: The agent that has them.
        matches: The turn's matches, which say what a step is held back for.
    """
    held_back = {match.guideline for match in matches if match.missing_information}
    actions: dict[str, str | None] = {}
    for spec in agent.journeys:
        actions |= {make_rule_id(spec.id, step.id): step.action or step.journey for step in spec.steps}
    for journey in journeys:
        if journey.state != "active":
            yield journey.journey, [safe_text(_format_state(journey), "dim")]
            continue
        settled, opened = [], []
        for progress in journey.steps:
            mark, style = _MARKS[progress.state]
            entry = join_parts(safe_text(mark, style), f" {progress.step}")
            action = actions.get(
                make_rule_id(journey.journey, progress.step)
            )  # None: the agent was edited since
            if progress.state == "open" and action:
                opened.append(join_parts(entry, safe_text(f": {action}", "dim")))
            else:
                settled.append(entry)
        if settled:
            opened.insert(0, Text("  ").join(settled))
        opened.extend(_list_held_back(agent.journeys, journey.journey, held_back))
        yield journey.journey, opened


def _list_held_back(journeys: Sequence[Journey], id: str, held_back: Container[str]) -> Iterator[Text]:
    mark, style = _MARKS["waiting"]
    for journey in journeys:
        for step in journey.steps:
            if journey.id == id and make_rule_id(id, step.id) in held_back:
                condition = describe_condition(step.condition)
                text = f" {step.id}: not known yet whether {condition}"
                yield join_parts(safe_text(mark, style), safe_text(text, "dim"))


def explain_journey(
    journey: JourneyState, step_ids: Iterable[str], matches: Mapping[str, GuidelineMatch]
) -> RenderableType:
    """Lay out a journey with why each of its steps is done, open, skipped or held back.

    Args:
        journey: How far it is.
        step_ids: The ids of its steps.
        matches: The turn's matches, by id.
    """
    mark, style = _MARKS[journey.state]
    title = join_parts(safe_text(journey.journey, "bold cyan"), f"  {_format_state(journey)}")
    lines: list[RenderableType] = [title]
    if match := matches.get(journey.journey):
        lines.append(safe_text(match.rationale, limit=_LIMIT))
    progress_by_step = {progress.step: progress for progress in journey.steps}
    for id in step_ids:
        progress, match = progress_by_step.get(id), matches.get(make_rule_id(journey.journey, id))
        if progress or match:
            step_mark, step_style = _MARKS[progress.state if progress else "waiting"]
            explanation = safe_text(_explain_step(progress, match), limit=_LIMIT)
            line = join_parts(safe_text(f"{id}  ", "cyan"), explanation)
            lines.append(list_entry(step_mark, step_style, [line]))
    return list_entry(mark, style, lines)


def _explain_step(progress: StepProgress | None, match: GuidelineMatch | None) -> str:
    if match and match.missing_information:
        return f"waits until it is known if its condition holds: {match.missing_information}"
    if match and match.rationale:
        return match.rationale
    if progress and progress.reason:
        return f"the step is {progress.state}: {progress.reason}"
    return f"the step is {progress.state if progress else 'not open yet'}"


def _format_state(journey: JourneyState) -> str:
    return journey.state.replace("_", " ")
