"""What an agent does next: it calls tools, or it gives its final answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.transcript import Call, Event, Message
from arq_graph.milestones.transcripts import messages
from arq_graph.reasoning.sections import clean

ActionKind = Literal["call", "answer", "nothing"]
FINAL_ANSWER = "final answer"

# Pydantic takes no lone surrogate, which a model may well write.
Text = Annotated[str, BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)]


class ToolCall(Record):
    """A tool call; `malformed` is the raw text of arguments that are no JSON object."""

    tool: Text
    arguments: dict[Any, Any] = Field(default_factory=dict)
    malformed: Text | None = None


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
        return FINAL_ANSWER if self.kind == "answer" else "nothing"

    @classmethod
    def of(cls, events: Iterable[Event]) -> Action:
        """The action that events of one message are.

        Raises:
            InputError: They are not an agent's.
        """
        calls, said = [], []
        for event in events:
            if isinstance(event, Call):
                calls.append(
                    ToolCall(tool=event.tool, arguments=dict(event.arguments), malformed=event.malformed)
                )
            elif isinstance(event, Message) and event.speaker == "agent":
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
    """
    if isinstance(value, Action):
        return value
    if isinstance(value, str):
        return Action(answer=value)
    if isinstance(value, Mapping) and ("calls" in value or "answer" in value):
        calls = value.get("calls") or ()
        if not isinstance(calls, list | tuple):
            raise InputError("`calls` is no list of objects with `tool` and `arguments`")
        value = {"type": "ai", "content": value.get("answer"), "tool_calls": [*map(_written, calls)]}
    if messages.is_message(value):
        return Action.of(messages.events_of([value])[0])
    raise InputError(
        f"{type(value).__name__} is no action: give a text, an agent's message, or an object with `calls` or `answer`"
    )


def _written(call: Any) -> Any:
    if not isinstance(call, Mapping):
        return call
    arguments = call.get("malformed") or call.get("arguments", call.get("args"))
    return {"name": call.get("tool", call.get("name")), "args": arguments}


def agent_actions(events: Iterable[Event]) -> Iterator[tuple[int, tuple[Event, ...]]]:
    """The agent's actions: the number of each one's first event, and its events.

    An action is what stands in one message: what is said, and the calls that follow it directly with the same
    `step`. Calls of another step, or with anything between them, are another action.
    """
    held: list[Event] = []
    first = 0
    for number, event in enumerate(events, start=1):
        goes_on = isinstance(event, Call) and number == first + len(held)
        if held and not (goes_on and event.step == held[-1].step):
            yield first, tuple(held)
            held = []
        if isinstance(event, Call) or (isinstance(event, Message) and event.speaker == "agent"):
            first = first if held else number
            held.append(event)
    if held:
        yield first, tuple(held)
