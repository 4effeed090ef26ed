"""A recorded history as an agent is given it: LangChain messages that every provider takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from arq_graph.milestones.transcript import Call, Event, Message, Result
from arq_graph.milestones.turn_level.actions import Action, agent_actions
from arq_graph.reasoning.sections import section

NO_RESULT = "no result was recorded"


def to_messages(events: Sequence[Event], instructions: str = "") -> list[BaseMessage]:
    """Events as LangChain messages that every provider takes, each with an id of its own.

    The calls of one message stay one message. Its results follow it directly, as providers want it, wherever
    they stand in the events; a call without one gets a result of the status `error` that says so. Ids of calls
    are kept where they are unique, and made where they are missing. A result whose call was not recorded becomes
    a system message that holds it as data. Messages of the agent with neither words nor calls are left out.

    Args:
        events: What happened, in order.
        instructions: The system prompt; nothing where it is empty.
    """
    messages: list[BaseMessage] = [SystemMessage(instructions)] if instructions else []
    messages += _told(events)
    for number, message in enumerate(messages):
        message.id = f"recorded-{number}"
    return messages


def _told(events: Sequence[Event]) -> Iterator[BaseMessage]:
    actions = dict(agent_actions(events))
    calls = {number: event for number, event in enumerate(events, start=1) if isinstance(event, Call)}
    ids = _ids(calls)
    results: dict[int | None, list[Result]] = {number: [] for number in calls}
    for event in events:
        if isinstance(event, Result) and event.call in results:
            results[event.call].append(event)
    for number, event in enumerate(events, start=1):
        if number in actions:
            made = {at: calls[at] for at in range(number, number + len(actions[number])) if at in calls}
            said = Action.of(actions[number]).answer
            if said.strip() or made:
                yield _message(said, made, ids)
            for at, call in made.items():
                yield _result(call, ids[at], results[at])
        elif isinstance(event, Message) and event.speaker != "agent":
            yield HumanMessage(event.text) if event.speaker == "user" else SystemMessage(event.text)
        elif isinstance(event, Result) and event.call not in calls:
            held = {"tool": event.tool, "result": event.text}
            yield SystemMessage(section(held, "result_of_a_call_that_was_not_recorded"))


def _ids(calls: dict[int, Call]) -> dict[int, str]:
    ids: dict[int, str] = {}
    taken: set[str] = set()
    for number, call in calls.items():
        id = call.id if call.id and call.id not in taken else f"call_{number}"
        while id in taken:
            id += "_"
        taken.add(id)
        ids[number] = id
    return ids


def _message(said: str, made: dict[int, Call], ids: dict[int, str]) -> AIMessage:
    message = AIMessage(said)
    for at, call in made.items():
        if call.malformed is None:
            told = ToolCall(name=call.tool, args=dict(call.arguments), id=ids[at], type="tool_call")
            message.tool_calls.append(told)
        else:
            message.invalid_tool_calls.append(
                InvalidToolCall(
                    name=call.tool,
                    args=call.malformed,
                    id=ids[at],
                    error="no JSON object",
                    type="invalid_tool_call",
                )
            )
    return message


def _result(call: Call, id: str, results: Sequence[Result]) -> ToolMessage:
    text = "\n".join(result.text for result in results) if results else NO_RESULT
    failed = not results or any(result.failed for result in results)
    return ToolMessage(text, name=call.tool, tool_call_id=id, status="error" if failed else "success")
