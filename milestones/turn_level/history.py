"""A recorded history as an agent is given it: LangChain messages, and the tools it may call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

from arq_graph.errors import InputError, ToolError
from arq_graph.milestones.tool_schemas import tool_name
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
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
    messages += _Told(events).messages()
    for number, message in enumerate(messages):
        message.id = f"recorded-{number}"
    return messages


def tool_definitions(transcript: Transcript, tools: Any = None) -> list[dict[str, Any]]:
    """The tools of an agent as OpenAI definitions, each name once.

    Args:
        transcript: Brings the tools where `tools` is None: as the record holds them, or else as schemas.
        tools: OpenAI definitions, LangChain tools or functions, or JSON schemas of the arguments by name.

    Raises:
        ToolError: A tool has no name, or cannot be described.
        InputError: The record's own tools cannot be read.
    """
    if tools is not None:
        return openai_definitions(tools)
    recorded = transcript.extra.get("tools")
    try:
        return openai_definitions(recorded if isinstance(recorded, list) and recorded else transcript.tools)
    except ToolError as error:
        raise InputError(f"the record's `tools`: {error}") from error


def openai_definitions(tools: Any) -> list[dict[str, Any]]:
    """Tools as OpenAI definitions, each name once.

    Args:
        tools: OpenAI definitions, LangChain tools or functions, or JSON schemas of the arguments by name.

    Raises:
        ToolError: A tool has no name, or cannot be described.
    """
    if isinstance(tools, Mapping):
        found = [_definition({"name": name, "parameters": schema}) for name, schema in tools.items()]
    else:
        found = [_definition(tool) for tool in tools]
    return list({each["function"]["name"]: each for each in found}.values())


def _definition(tool: Any) -> dict[str, Any]:
    name = tool_name(tool)
    if not isinstance(tool, Mapping):
        try:
            return convert_to_openai_tool(tool)
        except Exception as error:
            raise ToolError(f"the tool {name!r} cannot be described: {error}") from error
    function = tool.get("function", tool)
    schema = function.get("parameters") or function.get("input_schema") or {}
    parameters = {"type": "object", "properties": {}, **(schema if isinstance(schema, Mapping) else {})}
    described = {
        "name": name,
        "description": str(function.get("description") or ""),
        "parameters": parameters,
    }
    return {"type": "function", "function": described}


class _Told:
    """A history on its way into messages."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._actions = {first: (last, action) for first, last, action in agent_actions(events)}
        self._results: dict[int, list[Result]] = {}
        self._ids: set[str] = set()
        for event in events:
            if isinstance(event, Result) and self._is_answer(event):
                self._results.setdefault(event.call or 0, []).append(event)

    def messages(self) -> Iterator[BaseMessage]:
        for number, event in enumerate(self._events, start=1):
            if number in self._actions:
                last, action = self._actions[number]
                yield from self._acted(last - len(action.calls), action)
            elif isinstance(event, Message) and event.speaker != "agent":
                yield _said(event)
            elif isinstance(event, Result) and not self._is_answer(event):
                held = {"tool": event.tool, "result": event.text}
                yield SystemMessage(section(held, "result_of_a_call_that_was_not_recorded"))

    def _is_answer(self, result: Result) -> bool:
        call = result.call
        return call is not None and 0 < call <= len(self._events) and isinstance(self._events[call - 1], Call)

    def _acted(self, before: int, action: Action) -> Iterator[BaseMessage]:
        if action.kind == "nothing":
            return
        made = {before + index: call for index, call in enumerate(action.calls, start=1)}
        ids = {number: self._id(number, call) for number, call in made.items()}
        yield AIMessage(
            action.answer,
            tool_calls=[
                ToolCall(name=call.tool, args=dict(call.arguments), id=ids[number], type="tool_call")
                for number, call in made.items()
                if call.malformed is None
            ],
            invalid_tool_calls=[
                _malformed(call, ids[number]) for number, call in made.items() if call.malformed is not None
            ],
        )
        for number, call in made.items():
            results = self._results.get(number, [])
            text = "\n".join(result.text for result in results) if results else NO_RESULT
            failed = not results or any(result.failed for result in results)
            yield ToolMessage(
                text, name=call.tool, tool_call_id=ids[number], status="error" if failed else "success"
            )

    def _id(self, number: int, call: Call) -> str:
        id = call.id if call.id and call.id not in self._ids else f"call_{number}"
        while id in self._ids:
            id += "_"
        self._ids.add(id)
        return id


def _said(message: Message) -> AnyMessage:
    return HumanMessage(message.text) if message.speaker == "user" else SystemMessage(message.text)


def _malformed(call: Call, id: str) -> InvalidToolCall:
    return InvalidToolCall(
        name=call.tool, args=call.malformed, id=id, error="no JSON object", type="invalid_tool_call"
    )
