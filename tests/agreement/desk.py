"""A desk with a tool that needs the customer's yes, under any strategy, and the thread of one customer."""

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
from tests.brain import Brain, Move, Prompt, act, say

SETTINGS = {"tools": ToolCalling, "pre-act": PreAct, "react": ReAct, "respact": ReSpAct}
THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION = 'Cancel order (order id: "A-1", refund: yes)\nReply yes to go ahead.'
CANCEL = act("cancel_order", {"order_id": "A-1"})
CANCELLED = [("A-1", True)]


class ProcessKilled(BaseException):
    """The process is gone, as far as the thread can tell."""


class Desk:
    """The desk; `ran` are the calls of its tool.

    Args:
        strategy: How it decides; `eager` is the tool caller, asked ahead, `middleware` LangChain's agent under ours.
        agrees: As the strategies take it.
        mode: Of every step.
        fields: Of the agent.
    """

    def __init__(
        self, strategy: str = "tools", *, agrees: Any = None, mode: Any = "direct", **fields: Any
    ) -> None:
        self.ran: list[tuple[Any, ...]] = []
        self.judge: dict[str, Any] = {}
        condition = fields.pop("condition", "they want to cancel")
        guideline = Guideline(condition, "cancel it", tools=[self._make_tool()])
        settings = {"guidelines": [guideline], "confirm": {"cancel_order": "customer"}, **fields}
        self.agent = Agent(settings.pop("name", "Desk"), "You help with orders.", **settings)
        self.model = ScriptedChatModel(lambda call: self.answer(call))
        self._compiled_app = self._compile(strategy, agrees, mode)
        self.reset()

    def reset(
        self,
        moves: tuple[Move, ...] = (CANCEL,),
        *,
        reply: Any = "Certainly.",
        wants: bool = True,
        consent: Any = None,
    ) -> None:
        """Forget the thread and what ran.

        Args:
            moves: What the model decides, one at a time; then it speaks.
            reply: What it says.
            wants: Whether the customer still wants the pending calls.
            consent: Whether it takes an answer in free words for a yes, as a brain is told.
        """
        self.app: Any = self._compiled_app
        self.app.checkpointer.delete_thread("1")
        self.ran.clear()
        self.model.calls.clear()
        self.is_killed_by_call = False
        self.moves = list(moves)
        self.decisions = 0
        self.wants = wants
        self.judge.clear()
        self.judge["G1"] = 9
        self.answer: Callable[[Any], Any] = Brain(
            self.judge,
            reply=reply,
            moves=lambda _: self._next_move(),
            wants=lambda: wants,
            consent=consent,
        )

    def _compile(self, strategy: str, agrees: Any, mode: Any) -> Any:
        if strategy == "middleware":
            from langchain.agents import create_agent

            from arq_graph.middleware import GuidelineMiddleware

            agents_model = ScriptedChatModel(lambda call: self._answer_as_agent(Prompt(call)))
            middleware = GuidelineMiddleware(self.model, self.agent, agrees=agrees, mode=mode)
            return create_agent(agents_model, middleware=[middleware], checkpointer=MemorySaver())
        is_eager = strategy == "eager"
        settings_class = SETTINGS["tools" if is_eager else strategy]
        return create_guided_agent(
            self.model,
            self.agent,
            strategy=settings_class(agrees=agrees),
            mode=mode,
            checkpointer=MemorySaver(),
            eager=is_eager,
        )

    def _answer_as_agent(self, prompt: Prompt) -> AIMessage:
        """Answer as the model of a `create_agent` does."""
        still_wanted = prompt.now.get("awaiting_agreement", ()) if self.wants else ()
        move = None if still_wanted else self._next_move()
        calls = [(call["tool"], call["arguments"]) for call in still_wanted]
        if move and move.tool:
            calls = [(move.tool, dict(move.args))]
        tool_calls = [tool_call(name=name, args=args, id=f"c{uuid4().hex}") for name, args in calls]
        text = move.text if move and move.text is not None else "A draft."
        return AIMessage("" if tool_calls else text, tool_calls=tool_calls)

    def _next_move(self) -> Move:
        self.decisions += 1
        return self.moves.pop(0) if self.moves else say()

    def _make_tool(self) -> Any:
        def cancel_order(order_id: str, refund: bool = True) -> str:
            """Cancel an order. It cannot be undone."""
            if self.is_killed_by_call:
                self.is_killed_by_call = False
                raise ProcessKilled
            self.ran.append((order_id, refund))
            return "cancelled" if order_id != "broken" else '{"error": "no such order"}'

        return cancel_order

    def propose(self, **calls: Any) -> None:
        """Have the tool caller propose these calls once, and no others from now on."""
        rounds = {name: iter([call]) for name, call in calls.items()}
        once = {name: lambda _, left=left: next(left, []) for name, left in rounds.items()}
        self.answer = Brain(self.judge, once, "Certainly.", wants=lambda: True)

    def restart(self, **fields: Any) -> None:
        """Go on with a changed agent."""
        agent = self.agent.replace(**fields)
        saver = self.app.checkpointer
        self.app = create_guided_agent(self.model, agent, mode="direct", checkpointer=saver)

    def send(self, text: Any) -> str:
        """Send a message; return the reply."""
        state = self.app.invoke({"messages": [HumanMessage(text)]}, THREAD, durability="sync")
        return str(state["messages"][-1].text)

    def press(self, button: str) -> None:
        """Send the message of a button."""
        message = HumanMessage("(button)", additional_kwargs={"agrees_to": button})
        self.app.invoke({"messages": [message]}, THREAD)

    def request(self, text: str = "Please cancel A-1.") -> str:
        """Send a request that runs nothing yet; return the reply, which ends with code's question."""
        reply = self.send(text)
        assert self.ran == []
        return reply

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.app.get_state(THREAD).values)
