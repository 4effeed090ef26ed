"""An agent of LangChain's `create_agent` under the guidelines of an order desk."""

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.memory import MemorySaver
from pydantic import BaseModel

from arq_graph import Agent, Guideline, ScriptedChatModel, Variable
from arq_graph.middleware import GuidelineMiddleware
from tests.brain import Brain, Prompt

RAN: list[tuple[Any, ...]] = []
THREAD: Any = {"configurable": {"thread_id": "1"}}
QUESTION = 'Cancel order (order id: "A-1")\nReply yes to go ahead.'


def get_order(order_id: str) -> str:
    """Look up an order."""
    RAN.append(("get_order", order_id))
    return "it is late"


def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    RAN.append(("cancel_order", order_id))
    return "cancelled" if order_id != "broken" else '{"error": "no such order"}'


def refund(order_id: str) -> str:
    """Pay an order back."""
    RAN.append(("refund", order_id))
    return "paid"


def weather() -> str:
    """Tell the weather."""
    RAN.append(("weather",))
    return "sunny"


DESK = Agent(
    "Order desk",
    "You help with orders.",
    [
        Guideline("they ask", "look it up", tools=[get_order], priority=2),
        Guideline("they want to cancel", "cancel it", tools=[cancel_order]),
        Guideline("they want money", "pay it back", tools=[refund]),
        Guideline("the order is late", "say sorry"),
    ],
    confirm={"cancel_order": "customer"},
    variables=[Variable("tier", "The customer's tier.", "gold")],
    fallback="I cannot say.",
)
A1 = {"order_id": "A-1"}
LOOK_UP, CANCEL, REFUND = (("get_order", A1), ("cancel_order", A1), ("refund", A1))


def make_calls(*calls: tuple[str, dict[str, Any]], text: Any = "", **fields: Any) -> AIMessage:
    """Return a message of the agent's model with calls, whose ids are `c0`, `c1`, …"""
    tool_calls = []
    for number, (name, args) in enumerate(calls):
        tool_calls.append(tool_call(name=name, args=args, id=f"c{number}"))
    return AIMessage(text, tool_calls=tool_calls, **fields)


class Shop:
    """An agent of `create_agent` under the desk's guidelines; `answers` are those of its own model."""

    def __init__(
        self,
        *answers: Any,
        judge: Any = None,
        reply: Any = None,
        agent: Agent = DESK,
        before: Any = (),
        behind: Any = (),
        rules: Any = None,
        kind: type[ScriptedChatModel] = ScriptedChatModel,
        **options: Any,
    ) -> None:
        self.judge = {"G1": 9} if judge is None else judge
        self.guideline_model = ScriptedChatModel(Brain(self.judge, reply=reply))
        self.agent_model = kind(answers)
        self.rules = GuidelineMiddleware(self.guideline_model, agent, mode="direct", **(rules or {}))
        options = {"checkpointer": MemorySaver(), **options}
        self.app: Any = create_agent(self.agent_model, middleware=[*before, self.rules, *behind], **options)

    def say(self, text: str = "Where is A-1?", **given: Any) -> Any:
        return self.app.invoke({"messages": [HumanMessage(text)], **given}, THREAD)

    def get_offered_tools(self, number: int = 0) -> set[str]:
        """Return the tools of a call of the agent's model."""
        return {tool["function"]["name"] for tool in self.agent_model.calls[number].kwargs.get("tools", ())}

    def get_prompt(self, number: int = 0) -> Prompt:
        """Return the prompt of a call of the agent's model."""
        return Prompt(self.agent_model.calls[number])


def get_reply(state: Any) -> str:
    return str(state["messages"][-1].text)


def get_results(state: Any) -> list[tuple[str, str]]:
    return [(message.name, message.status) for message in state["messages"] if message.type == "tool"]


def ask_about(*tools: str) -> HumanInTheLoopMiddleware:
    return HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(tools, True))


class Answer(BaseModel):
    """The answer."""

    status: str


STATUS = ("Answer", {"status": "late"})
