"""What an agent does next: it calls tools, or it gives its final answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from arq_graph.errors import InputError
from arq_graph.milestones.transcript import Call, Event, Message
from arq_graph.milestones.transcripts import messages, openai

ActionKind = Literal["call", "answer", "nothing"]
FINAL_ANSWER = "final answer"


@dataclass(frozen=True, slots=True)
class Action:
    """One action of an agent: all that one message of it does. Pre-Act 4.2.

    With calls it is a tool call, whatever is said beside them; with words alone it is a final answer; with
    neither it is nothing.

    Args:
        calls: The tool calls, in order.
        answer: The words.
    """

    calls: tuple[Call, ...] = ()
    answer: str = ""

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


def action_of(value: Any) -> Action:
    """The action that an agent's output is.

    Args:
        value: An `Action`; a text, which is a final answer; a message of the agent, of LangChain or as OpenAI
            writes it; or `{"calls": [{"tool": …, "arguments": {…}}]}` or `{"answer": …}`.

    Raises:
        InputError: It is none of these.
    """
    if isinstance(value, Action):
        return value
    if isinstance(value, str):
        return Action(answer=value)
    if isinstance(value, Mapping) and ("calls" in value or "answer" in value):
        return _written(value)
    if messages.is_message(value):
        return _of_events(messages.events_of([value])[0])
    if openai.is_message(value):
        return _of_events(messages.events_of(openai.as_langchain([value]))[0])
    raise InputError(
        f"{type(value).__name__} is no action: give an Action, a text, an agent's message, or an object with "
        "`calls` or `answer`"
    )


def agent_actions(events: Iterable[Event]) -> Iterator[tuple[int, int, Action]]:
    """The agent's actions: the number of the first event of each, that of its last, and the action.

    An action is what stands in one message: what is said, and the calls that follow it directly with the same
    `step`. Calls of another step, or with anything between them, are another action.
    """
    first, last = 0, 0
    held: list[Event] = []
    for number, event in enumerate(events, start=1):
        if held and isinstance(event, Call) and number == last + 1 and event.step == held[-1].step:
            held.append(event)
            last = number
            continue
        if held:
            yield first, last, _of_events(held)
            held = []
        if isinstance(event, Call) or (isinstance(event, Message) and event.speaker == "agent"):
            first = last = number
            held = [event]
    if held:
        yield first, last, _of_events(held)


def _of_events(events: Iterable[Event]) -> Action:
    calls: list[Call] = []
    said: list[str] = []
    for event in events:
        if isinstance(event, Call):
            calls.append(event)
        elif isinstance(event, Message) and event.speaker == "agent":
            said.append(event.text)
        else:
            raise InputError("the message is none of an agent: it says or calls nothing")
    return Action(tuple(calls), "\n".join(said))


def _written(value: Mapping[str, Any]) -> Action:
    calls, answer = value.get("calls") or (), value.get("answer")
    if not isinstance(calls, list | tuple) or not all(isinstance(call, Mapping) for call in calls):
        raise InputError("`calls` is no list of objects with `tool` and `arguments`")
    if not isinstance(answer, str | None):
        raise InputError(f"`answer` is {type(answer).__name__}, not a text")
    made = [
        {
            "name": call.get("tool", call.get("name")),
            "args": call.get("arguments", call.get("args")),
            "id": call.get("id"),
        }
        for call in calls
    ]
    events, _ = messages.events_of([{"type": "ai", "content": "", "tool_calls": made, "step": None}])
    return Action(_of_events(events).calls, answer or "")
