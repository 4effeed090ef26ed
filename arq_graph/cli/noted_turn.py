"""A turn of an evaluated conversation, explained from what its results file notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType

from arq_graph.cli.screen import (
    join_parts,
    label_grid,
    list_entry,
    message_text,
    print_json,
    safe_text,
    show,
    show_heading,
)
from arq_graph.cli.turn import ToolRun
from arq_graph.cli.turn_view import (
    DECISION_LABELS,
    LIMIT,
    ORIGIN_LABELS,
    format_tool_run,
    format_violation,
)
from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.evaluation.results import parse_stored_conversation
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.milestones.turn_note import TurnNote

_OUTCOME_STYLES = {"followed": "green", "broken": "red"}


def explain_noted_turn(file: Path, conversation: str | None, number: int | None, *, as_json: bool) -> None:
    """Print a turn of a results file: the last one of the last conversation, or those that are named.

    Raises:
        InputError: The file can't be read, or has no such conversation or turn.
    """
    transcript = _find_conversation(file, conversation)
    turns = _split_turns(transcript)
    number = len(turns) if number is None else number
    if not 1 <= number <= len(turns):
        raise InputError(f"{transcript.id!r} has no turn {number}: name one of its {len(turns)} with --turn")
    events = turns[number - 1]
    notes: list[TurnNote] = []
    texts = {"user": "", "agent": "", "system": ""}
    for event in events.values():
        if isinstance(event, Message):
            notes += event.turn_notes
            texts[event.speaker] += f"{event.text}\n"
    if as_json:
        head = {"conversation": transcript.id, "turn": number, "turns": len(turns)}
        turn_texts = {"customer": texts["user"].strip(), "reply": texts["agent"].strip()}
        print_json(head | turn_texts | {"notes": [note.model_dump(mode="json") for note in notes]})
        return
    show(join_parts(safe_text(transcript.id, "bold"), f" · turn {number} of {len(turns)}"), "")
    rows = [("Customer", "bold green", texts["user"]), ("Agent", "bold cyan", texts["agent"])]
    show(label_grid([(label, style, [message_text(text.strip())]) for label, style, text in rows]))
    for note in notes:
        for entry in _lay_out_note(note):
            show(entry)
    show("", *_lay_out_events(transcript, events))
    if not notes:
        show("Nothing is noted of an agent's guidelines in this turn.")


def _find_conversation(file: Path, id: str | None) -> Transcript:
    ids: list[str] = []
    for transcript in read_transcripts(file):
        if isinstance(transcript, Transcript):
            if transcript.id == id:
                return transcript
            ids.append(transcript.id)
            last = transcript
    if not ids:
        raise InputError(f"{file} has no conversation that is finished")
    if id is not None:
        hint = suggestion(id, ids) or f"; the last one is {ids[-1]!r}"
        raise InputError(f"{file} has no conversation {id!r}{hint}")
    return last


def _split_turns(transcript: Transcript) -> list[dict[int, Event]]:
    """Return the events of each turn after the history, by number; each begins with a message of the user."""
    turns: list[dict[int, Event]] = []
    for number, event in transcript.enumerate_events():
        if number > transcript.history_length:
            if not turns or (isinstance(event, Message) and event.speaker == "user"):
                turns.append({})
            turns[-1][number] = event
    return turns


def _lay_out_note(note: TurnNote) -> Iterator[RenderableType]:
    active = len(note.guidelines)
    show_heading(f"{note.agent}: {active} of {active + note.inactive} guidelines active")
    for guideline in note.guidelines:
        score = "" if guideline.score is None else f"  score {guideline.score}"
        title = join_parts(
            safe_text(guideline.id, "bold cyan"), score, ORIGIN_LABELS.get(guideline.origin, "")
        )
        if guideline.outcome is not None:
            title.append_text(safe_text(f"  {guideline.outcome}", _OUTCOME_STYLES[guideline.outcome]))
        lines = [title, safe_text(guideline.rationale), safe_text(guideline.reason, "yellow")]
        yield list_entry("●", "green", [line for line in lines if line])
    if note.unlocked is not None:
        yield f"Tools that could be called: {', '.join(note.unlocked) or 'none'}"
    for verdict in note.verdicts:
        title = join_parts(safe_text(verdict.tool, "bold"), f"  {DECISION_LABELS[verdict.kind]}")
        lines = [title, safe_text(verdict.problem, "yellow"), safe_text(verdict.rationale, "dim")]
        yield list_entry("○", "dim", [line for line in lines if line])
    if note.confirmed:
        yield f"The customer agreed to: {', '.join(note.confirmed)}"
    for violation in note.violations:
        yield join_parts("Wrong with the reply: ", format_violation(violation))


def _lay_out_events(transcript: Transcript, events: dict[int, Event]) -> Iterator[RenderableType]:
    """Yield the calls of a turn, those that came too early, and the milestones that were reached in it."""
    results = {event.call: event for event in events.values() if isinstance(event, Result)}
    stored = parse_stored_conversation(transcript.extra)
    record = stored.record if stored else None
    for number, event in events.items():
        if isinstance(event, Call):
            run = ToolRun(tool=event.tool, arguments=dict(event.arguments))
            if number in results:
                run.status = "error" if results[number].failed else "success"
                run.result = results[number].text
            yield format_tool_run(run, LIMIT)
            if record and number in record.too_early:
                names = " or ".join(record.too_early[number])
                yield safe_text(f"  too early: {names} was not reached", "yellow")
    if record:
        reached = [milestone.name for milestone in record.reached if milestone.step in events]
        yield f"Milestones reached: {', '.join(reached) or 'none'}"
