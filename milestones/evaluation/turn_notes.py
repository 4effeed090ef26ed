"""Make the notes of a turn from the state of the app that took it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import ValidationError

from arq_graph.agent.record import Record
from arq_graph.agent.state import Agreement, GuidelineMatch, Revision, ToolVerdict
from arq_graph.milestones.turn_note import TURN_NOTES, GuidelineNote, TurnNote, VerdictNote

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

R = TypeVar("R", bound=Record)
_MAX_NOTED = 100


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
    notes = []
    for note in _make_notes(state, turn_id, agent):
        notes.append(note.model_dump(mode="json", exclude_defaults=True))
    for position in reversed(range(len(messages))):
        message = messages[position]
        if message.id == turn_id or not notes:
            return
        if message.type == "ai" and not getattr(message, "tool_calls", None):
            metadata = message.response_metadata | {TURN_NOTES: notes}
            messages[position] = message.model_copy(update={"response_metadata": metadata})
            return


def _make_notes(state: Mapping[str, Any], turn_id: str, agent: Agent | None) -> Iterator[TurnNote]:
    """Yield a note for each agent that matched guidelines, proposed calls or replied in the turn."""
    all_matches = _read_records(state, "guideline_matches", GuidelineMatch, turn_id)
    all_verdicts = _read_records(state, "tool_insights", ToolVerdict, turn_id)
    all_revisions = _read_records(state, "revisions", Revision, turn_id)
    agreements = _read_records(state, "agreements", Agreement)
    for name in dict.fromkeys(record.agent for record in (*all_matches, *all_verdicts, *all_revisions)):
        matches: list[GuidelineMatch] = []
        for match in all_matches:
            if match.agent == name:
                matches += match.expand()
        revisions = [revision for revision in all_revisions if revision.agent == name]
        sent = next((revision for revision in revisions if revision.sent), None)
        violations: tuple[str, ...] = ()
        if sent:
            violations = sent.violations[:_MAX_NOTED]
        notes = [_note_guideline(match, sent) for match in matches if match.active]
        notes.sort(key=lambda note: note.outcome != "broken")
        confirmed: list[str] = []
        for agreement in agreements:
            if agreement.agent == name and agreement.answer_message_id == turn_id:
                confirmed += [call.tool for call in agreement.calls]
        unlocked = None
        if agent and agent.name == name:
            unlocked = _list_unlocked_tools(agent, notes)
        verdicts = [VerdictNote.model_validate(verdict) for verdict in all_verdicts if verdict.agent == name]
        yield TurnNote(
            agent=name,
            guidelines=tuple(notes[:_MAX_NOTED]),
            inactive=len(matches) - len(notes),
            is_checked=sent is not None and sent.broken is not None,
            unlocked=unlocked,
            verdicts=tuple(verdicts[:_MAX_NOTED]),
            confirmed=tuple(confirmed[:_MAX_NOTED]),
            violations=violations,
            revisions=len(revisions),
        )


def _read_records(
    state: Mapping[str, Any], channel: str, record_type: type[R], turn_id: str | None = None
) -> list[R]:
    """Return the records in a channel, of one turn if it is given; none if another program's data is in it."""
    rows = state.get(channel)
    if not isinstance(rows, list):
        return []
    try:
        records = [record_type.model_validate(row) for row in rows]
    except ValidationError:
        return []
    return [record for record in records if turn_id in (None, record.turn)]


def _list_unlocked_tools(agent: Agent, active: Sequence[GuidelineNote]) -> tuple[str, ...]:
    active_ids = {note.id for note in active}
    tools = []
    for tool, granting_ids in agent.grants.items():
        if tool in agent.always_available or not active_ids.isdisjoint(granting_ids):
            tools.append(tool)
    return tuple(tools[:_MAX_NOTED])


def _note_guideline(match: GuidelineMatch, sent: Revision | None) -> GuidelineNote:
    broken: Mapping[str, str] = {}
    if sent and sent.broken:
        broken = sent.broken
    outcome: Literal["followed", "broken"] | None = None
    if match.guideline in broken:
        outcome = "broken"
    elif sent and match.guideline in sent.followed:
        outcome = "followed"
    return GuidelineNote(
        id=match.guideline,
        score=match.score,
        rationale=match.rationale,
        origin=match.origin,
        outcome=outcome,
        reason=broken.get(match.guideline, ""),
    )
