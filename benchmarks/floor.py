"""Make graphs to compare a turn with: a bare LangGraph that makes the same model calls, and `create_agent`."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolCall
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send

from arq_graph import ScriptedChatModel
from arq_graph.models.scripted import ScriptedCall
from benchmarks.in_process import TEXTS, get_order

_TOOL_CALL = ToolCall(name="get_order", args={"order_id": "ORD-1001"}, id="call_1")


class FloorState(MessagesState):
    """The messages, and the model's answers by the number of their call."""

    answers: Annotated[dict[str, Any], operator.or_]


@dataclass(frozen=True)
class TurnCalls:
    """The model calls of one guided turn with a tool call, in the order of the steps that made them."""

    match: Sequence[ScriptedCall]
    call_tools: Sequence[ScriptedCall]
    match_again: Sequence[ScriptedCall]
    call_tools_again: Sequence[ScriptedCall]
    message: Sequence[ScriptedCall]

    @classmethod
    def from_recorded(cls, calls: Sequence[ScriptedCall]) -> TurnCalls:
        """Sort the recorded calls of a turn."""
        modules = [call.module for call in calls]
        first_tool_call = modules.index("tools")
        later_calls = calls[first_tool_call + 1 :]
        return cls(
            match=calls[:first_tool_call],
            call_tools=[calls[first_tool_call]],
            match_again=[call for call in later_calls if call.module == "matcher"],
            call_tools_again=[call for call in later_calls if call.module == "tools"],
            message=[call for call in later_calls if call.module == "message"],
        )


class FloorGraph:
    """A graph with the nodes, Sends and model calls of a guided turn, and nothing else.

    Each call sends the recorded prompt and schema to the model, parses the answer as JSON, and writes it to the state.
    Each batch of guidelines and each tool call is a `Send`.

    Args:
        model: The model that is called.
        calls: The calls to make.
        is_async: The nodes are coroutines.
    """

    def __init__(self, model: ScriptedChatModel, calls: TurnCalls, *, is_async: bool) -> None:
        self._model = model
        self._is_async = is_async
        self._builder: StateGraph[Any, Any, Any, Any] = StateGraph(FloorState)
        self._add_batch_node("match")
        self._add_node("call_tools", calls.call_tools, AIMessage("", tool_calls=[_TOOL_CALL]))
        self._builder.add_node("tools", ToolNode([get_order]))
        self._add_batch_node("match_again")
        self._add_node("call_tools_again", calls.call_tools_again)
        self._add_node("next_round", [])
        self._add_node("message", calls.message, AIMessage(TEXTS["content"]))

        self._builder.add_conditional_edges(START, self._send_batches("match", calls.match), ["match"])
        self._builder.add_edge("match", "call_tools")
        self._builder.add_conditional_edges("call_tools", _send_tool_calls, ["tools"])
        self._builder.add_edge("tools", "call_tools_again")
        send_again = self._send_batches("match_again", calls.match_again)
        self._builder.add_conditional_edges("tools", send_again, ["match_again"])
        self._builder.add_edge(["match_again", "call_tools_again"], "next_round")
        self._builder.add_edge("next_round", "message")
        self._builder.add_edge("message", END)

    def compile(self, **options: Any) -> Any:
        """Compile the graph."""
        return self._builder.compile(**options)

    def _add_node(self, name: str, calls: Sequence[ScriptedCall], message: AIMessage | None = None) -> None:
        """Add a node that makes its calls one after the other, and writes their answers and the message."""

        def make_update(answers: dict[str, Any]) -> dict[str, Any]:
            if message is None:
                return {"answers": answers}
            # LangGraph sets an id on the message that it gets.
            return {"answers": answers, "messages": [message.model_copy()]}

        def run(_: Any) -> dict[str, Any]:
            answers: dict[str, Any] = {}
            for number, call in enumerate(calls):
                answers[f"{name}-{number}"] = self._ask(call)
            return make_update(answers)

        async def arun(_: Any) -> dict[str, Any]:
            answers: dict[str, Any] = {}
            for number, call in enumerate(calls):
                answers[f"{name}-{number}"] = await self._aask(call)
            return make_update(answers)

        node: Any = arun if self._is_async else run
        self._builder.add_node(name, node)

    def _add_batch_node(self, name: str) -> None:
        """Add a node that makes the call that it is sent, if any."""

        def run(batch: Any) -> dict[str, Any]:
            if batch["call"] is None:
                return {}
            return {"answers": {batch["id"]: self._ask(batch["call"])}}

        async def arun(batch: Any) -> dict[str, Any]:
            if batch["call"] is None:
                return {}
            return {"answers": {batch["id"]: await self._aask(batch["call"])}}

        node: Any = arun if self._is_async else run
        self._builder.add_node(name, node)

    def _send_batches(self, name: str, calls: Sequence[ScriptedCall]) -> Callable[[Any], list[Send]]:
        sends = [Send(name, {"id": f"{name}-{number}", "call": call}) for number, call in enumerate(calls)]
        return lambda _: sends or [Send(name, {"id": name, "call": None})]

    def _ask(self, call: ScriptedCall) -> Any:
        return json.loads(self._model.invoke(call.messages, **call.kwargs).text)

    async def _aask(self, call: ScriptedCall) -> Any:
        message = await self._model.ainvoke(call.messages, **call.kwargs)
        return json.loads(message.text)


def make_langchain_agent(model: ScriptedChatModel | None = None) -> Any:
    """Make LangChain's agent with the same tool; its model calls it once and then replies."""
    return create_agent(model or ScriptedChatModel(answer_agent), tools=[get_order])


def answer_agent(call: ScriptedCall) -> AIMessage:
    """Return the answer of that agent's model."""
    if call.messages[-1].type == "tool":
        return AIMessage(TEXTS["content"])
    return AIMessage("", tool_calls=[_TOOL_CALL])


def _send_tool_calls(state: Any) -> list[Send]:
    return [Send("tools", [call]) for call in state["messages"][-1].tool_calls]
