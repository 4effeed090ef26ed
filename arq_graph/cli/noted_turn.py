"""Read a turn of an evaluated conversation from a results file, as far as it was noted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from arq_graph.agent.state import GuidelineMatch, Revision, ToolVerdict
from arq_graph.cli.turn import ToolRun, Turn
from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.evaluation.results import parse_stored_conversation
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.milestones.turn_note import TurnNote

Events = dict[int, Event]


class NotedTurn:
    """A turn of a conversation in a results file.

    Args:
        file: The results file.
        conversation: The id of the conversation; None: the last one.
        number: The number of the turn, from 1; None: the last one.

    Raises:
        InputError: The file can't be read, or has no such conversation or turn.
    """

    def __init__(self, file: Path, conversation: str | None, number: int | None) -> None:
        transcript = _find_conversation(file, conversation)
        turns = _split_turns(transcript)
        self.conversation = transcript.id
        self.turn_count = len(turns)
        self.number = self.turn_count if number is None else number
        if not 1 <= self.number <= self.turn_count:
            raise InputError(
                f"{transcript.id!r} has no turn {self.number}: name one of its {self.turn_count} with --turn"
            )
        self._events = turns[self.number - 1]
        stored = parse_stored_conversation(transcript.extra)
        self._record = stored.record if stored else None
        self.notes: list[TurnNote] = []
        for event in self._events.values():
            self.notes += getattr(event, "turn_notes", ())

    def make_turn(self) -> Turn:
        """Return the turn in the form in which it is read from a thread."""
        turn_id = str(self.number)
        reply = self._join_texts("agent")
        matches, verdicts, revisions = [], [], []
        for note in self.notes:
            outcomes: dict[str | None, dict[str, str]] = {"broken": {}, "followed": {}, None: {}}
            for guideline in note.guidelines:
                outcomes[guideline.outcome][guideline.id] = guideline.reason
                fields = guideline.model_dump(include={"score", "rationale", "origin"})
                matches.append(
                    GuidelineMatch(turn=turn_id, guideline=guideline.id, active=True, matched=True, **fields)
                )
            verdicts += [ToolVerdict(turn=turn_id, **verdict.model_dump()) for verdict in note.verdicts]
            rejected = Revision(turn=turn_id, content="(a candidate that the results don't keep)")
            revisions += [rejected] * (note.revisions - 1)
            sent = {"broken": outcomes["broken"], "violations": note.violations, "sent": True}
            if note.revisions:
                followed = tuple(outcomes["followed"])
                revisions.append(Revision(turn=turn_id, content=reply, followed=followed, **sent))
        return Turn(
            turn=self.number,
            customer=self._join_texts("user"),
            reply=reply,
            guidelines=tuple(matches),
            passages=(),
            tool_calls=tuple(self._list_tool_runs()),
            tool_decisions=tuple(verdicts),
            revisions=tuple(revisions),
            plan=None,
            moves=(),
            progress=None,
        )

    def describe_rest(self) -> Iterator[str]:
        """Yield what threads don't know: milestones, unlocked tools, agreement, and calls that came too early."""
        for note in self.notes:
            if note.unlocked is not None:
                yield f"Tools that could be called: {', '.join(note.unlocked) or 'none'}"
            if note.confirmed:
                yield f"The customer agreed to: {', '.join(note.confirmed)}"
        if self._record is None:
            return
        reached = [milestone.name for milestone in self._record.reached if milestone.step in self._events]
        yield f"Milestones reached: {', '.join(reached) or 'none'}"
        for number, names in self._record.too_early.items():
            event = self._events.get(number)
            if isinstance(event, Call):
                yield f"Too early: {event.tool}, as {' or '.join(names)} was not reached"

    def _join_texts(self, speaker: str) -> str:
        messages = [event for event in self._events.values() if isinstance(event, Message)]
        return "\n\n".join(message.text for message in messages if message.speaker == speaker)

    def _list_tool_runs(self) -> Iterator[ToolRun]:
        results = {event.call: event for event in self._events.values() if isinstance(event, Result)}
        for number, event in self._events.items():
            if isinstance(event, Call):
                run = ToolRun(tool=event.tool, arguments=dict(event.arguments))
                if number in results:
                    run.status = "error" if results[number].failed else "success"
                    run.result = results[number].text
                yield run


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
        raise InputError(f"{file} has no conversation that is finished")
    if id is not None:
        hint = suggestion(id, ids) or f"; the last one is {last.id!r}"
        raise InputError(f"{file} has no conversation {id!r}{hint}")
    return last


def _split_turns(transcript: Transcript) -> list[Events]:
    """Return the events of each turn after the history, by number; each begins with a message of the user."""
    turns: list[Events] = []
    for number, event in transcript.enumerate_events():
        if number > transcript.history_length:
            if not turns or (isinstance(event, Message) and event.speaker == "user"):
                turns.append({})
            turns[-1][number] = event
    return turns
