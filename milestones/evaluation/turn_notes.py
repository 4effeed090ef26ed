"""Make the notes of a turn from the state of the app that took it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from arq_graph.agent.record import Record
from arq_graph.agent.state import Agreement, GuidelineMatch, Revision, ToolVerdict
from arq_graph.milestones.turn_note import (
    MAX_NOTE_CHARACTERS,
    MAX_NOTED,
    TURN_NOTES,
    GuidelineNote,
    TurnNote,
    VerdictNote,
)

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

R = TypeVar("R", bound=Record)


def note_turn(messages: list[BaseMessage], state: Any, turn_id: str, agent: Agent | None) -> None:
    """Add notes to the last reply in the messages, if the state is one of agents of this library.

    Args:
        messages: The conversation so far; the reply is replaced by a copy.
        state: The state of the app after the turn.
        turn_id: The id of the user's message that began the turn.
        agent: The specification, which says what tools were unlocked.
    """
    if not isinstance(state, Mapping):
        return
    notes = list(make_turn_notes(state, turn_id, agent))
    if not notes:
        return
    dumped = [note.model_dump(mode="json", exclude_defaults=True) for note in notes]
    for position in reversed(range(len(messages))):
        message = messages[position]
        if message.id == turn_id:
            return
        if message.type == "ai" and not getattr(message, "tool_calls", None):
            metadata = message.response_metadata | {TURN_NOTES: dumped}
            messages[position] = message.model_copy(update={"response_metadata": metadata})
            return


def make_turn_notes(state: Mapping[str, Any], turn_id: str, agent: Agent | None) -> Iterator[TurnNote]:
    """Yield a note for each agent of this library that matched guidelines, proposed calls or replied in a turn."""
    matches = _read_records(state, "guideline_matches", GuidelineMatch, turn_id)
    verdicts = _read_records(state, "tool_insights", ToolVerdict, turn_id)
    revisions = _read_records(state, "revisions", Revision, turn_id)
    agreements = _read_records(state, "agreements", Agreement)
    for name in dict.fromkeys(record.agent for record in (*matches, *verdicts, *revisions)):
        own_matches: list[GuidelineMatch] = []
        for match in matches:
            if match.agent == name:
                own_matches += match.expand()
        active_ids = {match.guideline for match in own_matches if match.active}
        own_revisions = [revision for revision in revisions if revision.agent == name]
        sent = next((revision for revision in own_revisions if revision.sent), None)
        guidelines = _note_guidelines(own_matches, sent)
        confirmed: list[str] = []
        for agreement in agreements:
            if agreement.agent == name and agreement.answer_message_id == turn_id:
                confirmed += [call.tool for call in agreement.calls]
        yield TurnNote(
            agent=name,
            guidelines=tuple(guidelines[:MAX_NOTED]),
            omitted=max(0, len(guidelines) - MAX_NOTED),
            inactive=len(own_matches) - len(guidelines),
            is_checked=sent is not None and sent.broken is not None,
            unlocked=_list_unlocked_tools(agent, active_ids) if agent and agent.name == name else None,
            verdicts=_note_verdicts([verdict for verdict in verdicts if verdict.agent == name]),
            confirmed=tuple(confirmed[:MAX_NOTED]),
            violations=tuple(map(_shorten, sent.violations[:MAX_NOTED])) if sent else (),
            revisions=len(own_revisions),
        )


def _read_records(
    state: Mapping[str, Any], channel: str, record_type: type[R], turn_id: str | None = None
) -> list[R]:
    """Return the records in a channel, of one turn if it is given; none if another program's data is in it."""
    rows = state.get(channel)
    records: list[R] = []
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping) and turn_id in (None, row.get("turn")):
            try:
                records.append(record_type.model_validate(row))
            except ValidationError:
                return []
    return records


def _note_guidelines(matches: Sequence[GuidelineMatch], sent: Revision | None) -> list[GuidelineNote]:
    """Return the notes on the active guidelines; those that the reply does not follow come first."""
    broken = {}
    for entry in (sent and sent.broken) or ():
        broken[entry.guideline] = entry
    first: list[GuidelineNote] = []
    others: list[GuidelineNote] = []
    for match in matches:
        if not match.active:
            continue
        note = GuidelineNote(
            id=match.guideline,
            score=match.score,
            rationale=_shorten(match.rationale),
            origin=match.origin,
        )
        if match.guideline in broken:
            entry = broken[match.guideline]
            outcome = "excused" if entry.is_excused else "broken"
            first.append(note.model_copy(update={"outcome": outcome, "reason": _shorten(entry.rationale)}))
        elif sent and match.guideline in sent.followed:
            others.append(note.model_copy(update={"outcome": "followed"}))
        else:
            others.append(note)
    return first + others


def _note_verdicts(verdicts: Sequence[ToolVerdict]) -> tuple[VerdictNote, ...]:
    notes = []
    for verdict in verdicts[:MAX_NOTED]:
        note = VerdictNote(
            tool=verdict.tool,
            kind=verdict.kind,
            argument=verdict.argument,
            problem=_shorten(verdict.problem),
            rationale=_shorten(verdict.rationale),
        )
        notes.append(note)
    return tuple(notes)


def _list_unlocked_tools(agent: Agent, active_ids: set[str]) -> tuple[str, ...]:
    unlocked = []
    for tool, granting_ids in agent.grants.items():
        if tool in agent.always_available or not active_ids.isdisjoint(granting_ids):
            unlocked.append(tool)
    return tuple(unlocked[:MAX_NOTED])


def _shorten(text: str) -> str:
    if len(text) <= MAX_NOTE_CHARACTERS:
        return text
    return f"{text[: MAX_NOTE_CHARACTERS - 1]}…"
