"""The steps of recorded conversations: each action of their agent, with the true history before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.transcript import Event, Message, Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcripts
from arq_graph.milestones.turn_level.actions import Action, agent_actions
from arq_graph.reasoning.sections import clean

Dataset = str | Path | Transcript | Iterable[Transcript | BrokenRecord]


@dataclass(frozen=True)
class TurnStep:
    """One action of the agent, as ground truth: which step of its conversation it is and its first event, from 1."""

    conversation: str
    number: int
    event: int
    truth: Action
    transcript: Transcript

    @property
    def key(self) -> tuple[str, int]:
        """Conversation and number."""
        return self.conversation, self.number

    @property
    def history(self) -> tuple[Event, ...]:
        """What happened before the action."""
        return self.transcript.events[: self.event - 1]


class DatasetSteps:
    """The steps of a dataset, one at a time; a broken record is noted and does not stop the rest.

    Where two conversations have the same id, the second is called `ID (2)`, and so on.

    Args:
        dataset: A file that `read_transcripts` reads, a transcript, or transcripts.
        limit: How many steps at most, from the first; None: all.

    Raises:
        InputError: The limit is below 1.
    """

    def __init__(self, dataset: Dataset, *, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise InputError(f"the limit is {limit}: it must be at least 1 step")
        self.broken: list[BrokenConversation] = []
        self._dataset = dataset
        self._limit = limit

    def __iter__(self) -> Iterator[TurnStep]:
        return islice(self._steps(), self._limit)

    def _steps(self) -> Iterator[TurnStep]:
        self.broken.clear()
        is_file = isinstance(self._dataset, str | Path)
        ids: set[str] = set()
        for record in self._records():
            if isinstance(record, BrokenRecord):
                source, error = str(self._dataset) if is_file else None, str(record.error)
                self.broken.append(BrokenConversation(source=source, record=record.index, error=error))
                continue
            id = known = clean(record.id)
            numbers = count(2)
            while id in ids:
                id = f"{known} ({next(numbers)})"
            ids.add(id)
            yield from _steps_of(record, id)

    def _records(self) -> Iterable[Transcript | BrokenRecord]:
        if isinstance(self._dataset, str | Path):
            return read_transcripts(self._dataset)
        return [self._dataset] if isinstance(self._dataset, Transcript) else self._dataset


def _steps_of(transcript: Transcript, conversation: str) -> Iterator[TurnStep]:
    """The steps of a conversation, in order. Pre-Act 3.2.1, Algorithm 1, and 4.2.

    Each message of the agent is a step: the tool calls in it, or else its final answer; a message with both is
    a tool call. No step is an action before the user has said anything, because nothing was asked for, nor a
    message with neither words nor calls.
    """
    said_by_user = (
        number
        for number, event in transcript.numbered()
        if isinstance(event, Message) and event.speaker == "user"
    )
    asked = next(said_by_user, len(transcript) + 1)
    actions = (
        (first, Action.of(events)) for first, events in agent_actions(transcript.events) if first > asked
    )
    truths = (each for each in actions if each[1].kind != "nothing")
    for number, (first, truth) in enumerate(truths, start=1):
        yield TurnStep(conversation, number, first, truth, transcript)
