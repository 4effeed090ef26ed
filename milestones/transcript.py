"""A recorded conversation: the messages, tool calls and results, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from arq_graph.errors import InputError
from arq_graph.milestones.turn_note import TurnNote
from arq_graph.milestones.values import as_text

Speaker = Literal["user", "agent", "system"]
Caller = Literal["user", "agent"]

MODEL_ROLES = {"model": "the agent's model", "user_model": "the users' model", "judge": "the judge"}
"""The models that may take part in a conversation, as errors and reports name them, by the argument of `evaluate`."""


class Message(NamedTuple):
    """A message.

    Args:
        speaker: Who wrote it.
        text: Its text.
        step: Its position in the record: its index from 0, or the record's own step name.
        done_steps: What was done with this message, if the agent records it: the steps of its journeys as
            `journey-step`, and journeys by their ids; None: it doesn't say.
        turn_notes: What agents of this library concluded in the turn that it ends, if an evaluation noted it.
    """

    speaker: Speaker
    text: str
    step: int | str | None = None
    done_steps: tuple[str, ...] | None = None
    turn_notes: tuple[TurnNote, ...] = ()


class Call(NamedTuple):
    """A tool call of the agent, or of a user who has tools.

    Args:
        tool: The tool's name.
        arguments: The arguments by name; empty if they are malformed.
        id: The provider's id of the call, if the record has one.
        malformed: The raw text of arguments that are not a JSON object; such a call never counts.
        step: Its position in the record.
        by: The caller.
        done_steps: What was done before this call, as in a `Message`.
    """

    tool: str
    arguments: Mapping[str, Any]
    id: str | None = None
    malformed: str | None = None
    step: int | str | None = None
    by: Caller = "agent"
    done_steps: tuple[str, ...] | None = None

    @property
    def arguments_text(self) -> str:
        """The arguments as JSON; the raw text if they are malformed."""
        if self.malformed is not None:
            return self.malformed
        return as_text(self.arguments)

    @property
    def text(self) -> str:
        """The call as text: `tool({arguments as JSON})`."""
        return f"{self.tool}({self.arguments_text})"


class Result(NamedTuple):
    """The result of a tool call.

    Args:
        call: The number of the event that called it, from 1; None if the record doesn't hold that call.
        tool: The tool's name; empty if unknown.
        text: What the tool returned, as text.
        failed: The record itself marks the result as an error.
        step: Its position in the record.
    """

    call: int | None
    tool: str
    text: str
    failed: bool = False
    step: int | str | None = None


Event = Message | Call | Result


@dataclass(frozen=True, repr=False)
class Transcript:
    """One recorded conversation, of any agent.

    Events are numbered from 1: each message, each call in the order listed, each result after its call.
    Number 0 is before anything happened.

    Args:
        events: The messages, calls and results, in order; never empty.
        id: The conversation's id; its position in the file if the record has none (`has_own_id` is then False).
        task: The task it was a run of, if one task was run several times.
        use_case: The kind of conversation, as reports group them.
        instructions: The instructions that the agent had before the conversation (the system prompt).
        tools: JSON schema of the arguments, by tool name, if the record brings them.
        extra: Everything else in the record (a recorded reward, gold actions), as it stands there.
        history_length: How many events, from the first, came before the part that is measured: in them nothing is
            reached, and nothing forbidden.
        stand_ins: The parts that fakes played in it, as in `Report.stand_ins`, if the record tells.
        world: The world after the conversation, if it was run in one and not read from a record.
        source: The file that it was read from, if any; `record` is its position there, from 0.

    Raises:
        InputError: There are no events: nothing could be measured.
    """

    events: tuple[Event, ...]
    id: str = ""
    task: str | None = None
    use_case: str | None = None
    instructions: str = ""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    history_length: int = 0
    stand_ins: tuple[str, ...] = field(default=(), compare=False)
    has_own_id: bool = field(default=True, compare=False)
    world: Any = field(default=None, compare=False)
    source: str | None = field(default=None, compare=False)
    record: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.events:
            raise InputError("The conversation is empty: it has no messages, tool calls or results.")

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return f"Transcript({self.id!r}, {len(self)} events)"

    @property
    def measured_events(self) -> tuple[Event, ...]:
        """The events after the history."""
        return self.events[self.history_length :]

    def enumerate_events(self) -> Iterator[tuple[int, Event]]:
        """Yield every event with its number."""
        return enumerate(self.events, start=1)

    def enumerate_calls(self) -> Iterator[tuple[int, Call]]:
        """Yield every tool call of the agent with its event number."""
        for number, event in self.enumerate_events():
            if isinstance(event, Call) and event.by == "agent":
                yield number, event
