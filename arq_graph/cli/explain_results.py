"""`arq-graph explain RESULTS.jsonl`: a turn of an evaluated conversation, with what was noted about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from arq_graph.cli.turn_view import (
    DECISION_LABELS,
    LIMIT,
    ORIGIN_LABELS,
    customer_view,
    format_call,
    format_violation,
)
from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.evaluation.results import parse_stored_conversation
from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.milestones.turn_note import GuidelineNote, TurnNote

_OUTCOME_STYLES = {"followed": "green", "broken": "red", "excused": "yellow"}


@dataclass(frozen=True)
class NotedTurn:
    """A turn of a recorded conversation: its events by number, from the user's message to the last before the next."""

    number: int
    events: dict[int, Event]

    @property
    def notes(self) -> tuple[TurnNote, ...]:
        """The notes on the turn."""
        notes: list[TurnNote] = []
        for event in self.events.values():
            notes += getattr(event, "turn_notes", ())
        return tuple(notes)


def explain_result(file: Path, conversation: str | None, turn: int | None, *, as_json: bool) -> None:
    """Print a turn of a conversation in a results file.

    Args:
        file: The results file.
        conversation: The id of the conversation; None: the last one.
        turn: The number of the turn, from 1; None: the last one.
        as_json: Whether to print one JSON object.

    Raises:
        InputError: The file can't be read, or has no such conversation or turn.
    """
    transcript = _find_conversation(file, conversation)
    turns = _split_turns(transcript)
    number = len(turns) if turn is None else turn
    if not 1 <= number <= len(turns):
        raise InputError(f"{transcript.id!r} has no turn {number}: it has {len(turns)}; name one with --turn")
    noted = turns[number - 1]
    stored = parse_stored_conversation(transcript.extra)
    record = stored.record if stored else None
    if as_json:
        notes = [note.model_dump(mode="json", exclude_defaults=True) for note in noted.notes]
        head = {"conversation": transcript.id, "turn": number, "turns": len(turns)}
        texts = {"customer": _join_texts(noted, "user"), "reply": _join_texts(noted, "agent")}
        print_json(head | texts | {"notes": notes})
        return
    show(join_parts(safe_text(transcript.id, "bold"), f" · turn {number} of {len(turns)}"), "")
    show(customer_view(_join_texts(noted, "user")))
    show(label_grid([("Agent", "bold cyan", [message_text(_join_texts(noted, "agent"), LIMIT)])]))
    for turn_note in noted.notes:
        _show_note(turn_note, has_heading=len(noted.notes) > 1)
    calls = list(_list_calls(noted, record))
    show_heading("Calls" if calls else "Calls: none")
    for entry in calls:
        show(entry)
    reached = [
        milestone.name for milestone in (record.reached if record else ()) if milestone.step in noted.events
    ]
    show_heading(f"Milestones reached: {', '.join(reached) or 'none'}")
    if not noted.notes:
        show("", "Nothing is noted of the agent's guidelines in this turn.", style="dim")


def _find_conversation(file: Path, id: str | None) -> Transcript:
    ids: list[str] = []
    last: Transcript | None = None
    for transcript in read_transcripts(file):
        if isinstance(transcript, Transcript):
            ids.append(transcript.id)
            last = transcript
            if transcript.id == id:
                return transcript
    if last is None:
        raise InputError(f"{file} has no conversation that is finished: evaluate a suite first")
    if id is not None:
        hint = suggestion(id, ids) or f"; the last one is {last.id!r}"
        raise InputError(f"{file} has no conversation {id!r}{hint}")
    return last


def _split_turns(transcript: Transcript) -> list[NotedTurn]:
    """Return the turns after the history; each begins with a message of the user."""
    turns: list[NotedTurn] = []
    for number, event in transcript.enumerate_events():
        if number > transcript.history_length:
            if not turns or (isinstance(event, Message) and event.speaker == "user"):
                turns.append(NotedTurn(len(turns) + 1, {}))
            turns[-1].events[number] = event
    return turns


def _join_texts(turn: NotedTurn, speaker: str) -> str:
    messages = [event for event in turn.events.values() if isinstance(event, Message)]
    return "\n\n".join(message.text for message in messages if message.speaker == speaker)


def _show_note(turn_note: TurnNote, *, has_heading: bool) -> None:
    if has_heading:
        show_heading(f"Agent {turn_note.agent}")
    active_count = len(turn_note.guidelines) + turn_note.omitted
    show_heading(f"Guidelines: {active_count} active, {turn_note.inactive} not")
    for guideline in turn_note.guidelines:
        show(_guideline_entry(guideline))
    if turn_note.omitted:
        show(f"and {turn_note.omitted:,} more that were active", style="dim")
    if turn_note.unlocked is not None:
        show_heading(f"Tools that could be called: {', '.join(turn_note.unlocked) or 'none'}")
    for verdict in turn_note.verdicts:
        lines = [join_parts(safe_text(verdict.tool, "bold"), f"  {DECISION_LABELS[verdict.kind]}")]
        problem = ": ".join(filter(None, (verdict.argument, verdict.problem)))
        if problem:
            lines.append(safe_text(problem, "yellow"))
        if verdict.rationale:
            lines.append(safe_text(verdict.rationale, "dim"))
        show(list_entry("✓" if verdict.kind == "run" else "○", "dim", lines))
    if turn_note.confirmed:
        show(f"The customer agreed to {', '.join(turn_note.confirmed)}.", style="green")
    if turn_note.violations:
        show_heading(f"What is wrong with the reply, candidate {turn_note.revisions}")
        for violation in turn_note.violations:
            show(format_violation(violation))


def _guideline_entry(guideline: GuidelineNote) -> RenderableType:
    title = safe_text(guideline.id, "bold cyan")
    if guideline.score is not None:
        title.append_text(safe_text(f"  score {guideline.score}"))
    title.append_text(safe_text(ORIGIN_LABELS.get(guideline.origin, ""), "dim"))
    if guideline.outcome is not None:
        title.append_text(safe_text(f"  {guideline.outcome}", _OUTCOME_STYLES[guideline.outcome]))
    lines = [title]
    if guideline.rationale:
        lines.append(safe_text(guideline.rationale))
    if guideline.reason:
        lines.append(safe_text(guideline.reason, "yellow"))
    return list_entry("●", "green", lines)


def _list_calls(turn: NotedTurn, record: ConversationRecord | None) -> Iterator[RenderableType]:
    """Lay out each call with its result, and why it served no milestone."""
    for number, event in turn.events.items():
        if not isinstance(event, Call):
            continue
        lines = [format_call(event.tool, event.arguments)]
        for answer in turn.events.values():
            if isinstance(answer, Result) and answer.call == number:
                lines.append(safe_text(answer.text, "red" if answer.failed else "dim", limit=LIMIT))
        if record is not None and number in record.too_early:
            names = " or ".join(record.too_early[number])
            lines.append(safe_text(f"too early: {names} was not reached", "yellow"))
        elif record is not None and number in record.wasted_calls:
            lines.append(safe_text("served no milestone", "yellow"))
        yield list_entry("✓", "green", lines)
