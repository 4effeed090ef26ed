"""Agents under a supervisor of langgraph-supervisor, and in a swarm of langgraph-swarm: a yes runs the call."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.messages.tool import tool_call
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
from arq_graph.middleware import GuidelineMiddleware
from tests.brain import Prompt, act, brain, say

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:create_react_agent has been moved")]

QUESTION = 'Cancel order (order id: "A-1")\nReply yes to go ahead.'


class Desk:
    """An order desk as a node of another graph; `ran` are the orders that it has cancelled."""

    def __init__(
        self, strategy: str = "tools", *, name: str = "order_desk", middleware: bool = False
    ) -> None:
        self.ran: list[str] = []
        guideline = Guideline("they want to cancel", "cancel", tools=[self._make_tool()])
        agent = Agent(name, "You help.", [guideline], confirm={"cancel_order": "customer"})
        model = brain({"G1": 9}, moves=self._decide, reply="Certainly.")
        self.graph: Any
        if middleware:
            rules = [GuidelineMiddleware(model, agent)]
            own_model = ScriptedChatModel(self._call_once)
            self.graph = create_agent(own_model, middleware=rules, name="order_desk", checkpointer=True)
        else:
            self.graph = create_guided_agent(model, agent, strategy=strategy, checkpointer=True)

    def _make_tool(self) -> Any:
        def cancel_order(order_id: str) -> str:
            """Cancel an order."""
            self.ran.append(order_id)
            return f"{order_id} is cancelled"

        return cancel_order

    def _call_once(self, _: Any) -> Any:
        return "Done." if self.ran else call("cancel_order", order_id="A-1")

    def _decide(self, prompt: Prompt) -> Any:
        return say() if self.ran else act("cancel_order", {"order_id": "A-1"})


def call(name: str, text: str = "", **args: Any) -> AIMessage:
    return AIMessage(text, tool_calls=[tool_call(name=name, args=args, id=f"{name}-1")])


FORWARD = call("forward_message", from_agent="order_desk")


def make_supervised(desk: Desk, answer: Any, **settings: Any) -> Any:
    """Put the desk under a supervisor that hands every message on to it, and then answers so."""
    supervisor = pytest.importorskip("langgraph_supervisor", reason="langgraph-supervisor is not installed")

    def supervise(request: Any) -> Any:
        if isinstance(request.messages[-1], HumanMessage):
            return call("transfer_to_order_desk", "I'll ask our order desk.")
        return answer

    tools = [supervisor.create_forward_message_tool()]
    model = ScriptedChatModel(supervise)
    graph = supervisor.create_supervisor([desk.graph], model=model, tools=tools, **settings)
    return graph.compile(checkpointer=MemorySaver())


def send(app: Any, text: str) -> list[str]:
    state = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
    return [message.text for message in state["messages"]]


@pytest.mark.parametrize("output_mode", ["last_message", "full_history"])
@pytest.mark.parametrize("answer", [FORWARD, ""], ids=["forwards", "is silent"])
@pytest.mark.filterwarnings("error::UserWarning")
def test_a_yes_runs_the_call_under_a_supervisor(answer: Any, output_mode: str) -> None:
    desk = Desk()
    app = make_supervised(desk, answer, output_mode=output_mode)
    texts = send(app, "Cancel A-1.")
    assert QUESTION in texts[-1] or texts[-1] == ""
    assert "Transferring back to supervisor" in texts
    send(app, "Yes")
    assert desk.ran == ["A-1"]
    send(app, "Yes")
    assert desk.ran == ["A-1"]  # the yes is spent


@pytest.mark.parametrize("graph", ["supervisor", "swarm"])
@pytest.mark.filterwarnings("error::UserWarning")
def test_a_yes_runs_the_call_of_an_agent_of_langchain_under_our_middleware(graph: str) -> None:
    desk = Desk(name="Order desk", middleware=True)
    if graph == "supervisor":
        app = make_supervised(desk, FORWARD)
    else:
        swarm = pytest.importorskip("langgraph_swarm", reason="langgraph-swarm is not installed")
        app = swarm.create_swarm([desk.graph], default_active_agent="order_desk").compile(MemorySaver())
    assert send(app, "Cancel A-1.")[-1].endswith(QUESTION)
    for _ in range(2):
        send(app, "Yes")
        assert desk.ran == ["A-1"]


def test_a_supervisors_own_words_after_the_question_close_it_with_a_warning() -> None:
    desk = Desk()
    app = make_supervised(desk, "Done. Can I help with anything else?")
    send(app, "Cancel A-1.")
    with pytest.warns(UserWarning, match="let a supervisor forward it word for word"):
        send(app, "Yes")
    assert desk.ran == []


@pytest.mark.parametrize("strategy", ["tools", "pre-act", "react", "respact"])
@pytest.mark.filterwarnings("error::UserWarning")
def test_a_yes_runs_the_call_in_a_swarm_in_which_an_agent_of_ours_hands_over(strategy: str) -> None:
    swarm = pytest.importorskip("langgraph_swarm", reason="langgraph-swarm is not installed")
    hand_over = swarm.create_handoff_tool(agent_name="order_desk")
    rule = Guideline("it is about an order", "hand over", tools=[hand_over])
    model = brain({"G1": 9}, moves=[act("transfer_to_order_desk")])
    sales = create_guided_agent(
        model, Agent("sales", "You sell.", [rule]), strategy=strategy, checkpointer=True
    )
    desk = Desk(strategy)
    graph = swarm.create_swarm([sales, desk.graph], default_active_agent="sales")
    app = graph.compile(checkpointer=MemorySaver())
    assert send(app, "Cancel A-1.")[-1].endswith(QUESTION)
    send(app, "Yes")
    assert desk.ran == ["A-1"]
