"""A desk with a tool that needs the customer's yes, under any strategy, and the thread of one customer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import (
    Agent,
    Guideline,
    PreAct,
    ReAct,
    ReSpAct,
    ScriptedChatModel,
    ToolCalling,
    create_guided_agent,
)
from tests.brain import Asked, Brain, Move, act, say

SETTINGS = {"tools": ToolCalling, "pre-act": PreAct, "react": ReAct, "respact": ReSpAct}
THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION = 'Cancel order (order id: "A-1", refund: yes)\nReply yes to go ahead.'
CANCEL = act("cancel_order", {"order_id": "A-1"})


class Cut(BaseException):
    """The process is gone, as far as the thread can tell."""


class Desk:
    """The desk.

    Args:
        strategy: How it decides; `eager` is the tool caller, asked ahead, `middleware` LangChain's agent under ours.
        moves: What the model decides, one at a time; then it speaks.
        reply: What it says.
        wants: Whether the customer still wants what waits.
        agrees: As the strategies take it.
        fields: Of the agent.
    """

    def __init__(
        self,
        strategy: str = "tools",
        moves: tuple[Move, ...] = (CANCEL,),
        *,
        reply: Any = "Certainly.",
        wants: bool = True,
        agrees: Any = None,
        **fields: Any,
    ) -> None:
        self.done: list[tuple[Any, ...]] = []
        self.cut = False
        self.moves = list(moves)
        self.decisions = 0
        self.judge: dict[str, Any] = {"G1": 9}
        rule = Guideline(fields.pop("condition", "they want to cancel"), "cancel it", tools=[self._tool()])
        settings = {"guidelines": [rule], "confirm": {"cancel_order": "customer"}, **fields}
        self.agent = Agent("Desk", "You help with orders.", **settings)
        self.answer: Callable[[Any], Any] = Brain(
            self.judge, reply=reply, moves=lambda _: self._move(), wants=lambda: wants
        )
        self.model = ScriptedChatModel(lambda call: self.answer(call))
        self.app: Any
        if strategy == "middleware":
            from langchain.agents import create_agent

            from arq_graph.middleware import GuidelineMiddleware

            own = ScriptedChatModel(lambda call: self._as_agent(Asked(call), wants))
            rules = GuidelineMiddleware(self.model, self.agent, agrees=agrees, mode="direct")
            self.app = create_agent(own, middleware=[rules], checkpointer=MemorySaver())
            return
        is_eager, saver = strategy == "eager", MemorySaver()
        how = SETTINGS["tools" if is_eager else strategy](agrees=agrees)
        self.app = create_guided_agent(
            self.model, self.agent, strategy=how, mode="direct", checkpointer=saver, eager=is_eager
        )

    def _as_agent(self, asked: Asked, wants: bool) -> AIMessage:
        """What the model of a `create_agent` answers."""
        again = asked.now.get("awaiting_agreement", ()) if wants else ()
        move = None if again else self._move()
        calls = [(each["tool"], each["arguments"]) for each in again]
        if move and move.tool:
            calls = [(move.tool, dict(move.args))]
        made = [tool_call(name=name, args=args, id=f"c{uuid4().hex}") for name, args in calls]
        said = move.text if move and move.text is not None else "A draft."
        return AIMessage("" if made else said, tool_calls=made)

    def _move(self) -> Move:
        self.decisions += 1
        return self.moves.pop(0) if self.moves else say()

    def _tool(self) -> Any:
        def cancel_order(order_id: str, refund: bool = True) -> str:
            """Cancel an order. It cannot be undone."""
            if self.cut:
                self.cut = False
                raise Cut
            self.done.append((order_id, refund))
            return "cancelled" if order_id != "broken" else '{"error": "no such order"}'

        return cancel_order

    def starts_anew(self, moves: tuple[Move, ...] = (CANCEL,)) -> None:
        """Forget the thread and what was done."""
        self.app.checkpointer.delete_thread("1")
        self.done.clear()
        self.moves = list(moves)

    def say(self, text: Any) -> str:
        """Say something, and hear the reply."""
        state = self.app.invoke({"messages": [HumanMessage(text)]}, THREAD, durability="sync")
        return str(state["messages"][-1].text)

    def asked(self, text: str = "Please cancel A-1.") -> str:
        """Ask for it; the reply holds code's question."""
        put = self.say(text)
        assert self.done == []
        return put

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.app.get_state(THREAD).values)
