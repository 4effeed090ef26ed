"""What an agent does next: it calls tools, or it gives its final answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, Json

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.transcript import Call, Event, Message
from arq_graph.milestones.transcripts import messages
from arq_graph.reasoning.sections import clean

ActionKind = Literal["call", "answer", "nothing"]

# Pydantic takes no lone surrogate, which a model may well write.
Text = Annotated[str, BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)]
Arguments = dict[Any, Any] | Json[dict[Any, Any]] | Text


class ToolCall(Record):
    """A tool call; where its arguments are a text, they are no JSON object."""

    tool: Text
    arguments: Arguments = Field({}, union_mode="left_to_right")


class Action(Record):
    """One action of an agent: all that one message of it does. Pre-Act 4.2.

    With calls it is a tool call, whatever is said beside them; with words alone it is a final answer; with
    neither it is nothing.

    Args:
        calls: The tool calls, in order.
        answer: The words.
    """

    calls: tuple[ToolCall, ...] = ()
    answer: Text = ""

    @property
    def kind(self) -> ActionKind:
        """`call`, `answer` or `nothing`."""
        if self.calls:
            return "call"
        return "answer" if self.answer.strip() else "nothing"

    @property
    def tools(self) -> Counter[str]:
        """How many times each tool is called."""
        return Counter(call.tool for call in self.calls)

    @property
    def label(self) -> str:
        """The action's name: the tools that it calls, in alphabetical order, or `final answer`, or `nothing`."""
        if self.calls:
            return " + ".join(sorted(call.tool for call in self.calls))
        return "final answer" if self.kind == "answer" else "nothing"

    @classmethod
    def of(cls, events: Iterable[Event]) -> Action:
        """The action that events of one message are; an `InputError` where they are not an agent's."""
        calls, said = [], []
        for event in events:
            if isinstance(event, Call):
                arguments = event.arguments if event.malformed is None else event.malformed
                calls.append(ToolCall.model_validate({"tool": event.tool, "arguments": arguments}))
            elif is_agents(event):
                said.append(event.text)
            else:
                raise InputError("the message is none of an agent: it says or calls nothing")
        return cls(calls=tuple(calls), answer="\n".join(said))


def action_of(value: Any) -> Action:
    """The action that an agent's output is.

    Args:
        value: A text, which is a final answer; a message of the agent, of LangChain or as OpenAI writes it; or
            `{"calls": [{"tool": …, "arguments": {…}}]}` or `{"answer": …}`.

    Raises:
        InputError: It is none of these.
        ValidationError: Its calls or its answer are of another type.
    """
    if isinstance(value, Action):
        return value
    if isinstance(value, str):
        return Action(answer=value)
    if isinstance(value, Mapping) and ("calls" in value or "answer" in value):
        return Action.model_validate(value)
    if messages.is_message(value):
        return Action.of(messages.events_of([value])[0])
    raise InputError(
        f"{type(value).__name__} is no action: give a text, an agent's message, or an object with `calls` or `answer`"
    )


def is_agents(event: Event) -> bool:
    """Whether this is something that the agent said or called."""
    return isinstance(event, Call) or (isinstance(event, Message) and event.speaker == "agent")


def grouped(events: Iterable[Event]) -> Iterator[tuple[int, list[Event]]]:
    """The events message by message, each with the number of its first event, from 1.

    A message of the agent is what it says and the calls that follow directly with the same `step`; every other
    event stands alone.
    """
    group: list[Event] = []
    number = 0
    for number, event in enumerate(events, start=1):
        goes_on = group and is_agents(group[-1]) and event.step == group[-1].step
        if group and not (goes_on and isinstance(event, Call)):
            yield number - len(group), group
            group = []
        group.append(event)
    if group:
        yield number - len(group) + 1, group
