"""The guided agent wired by hand: what `create_guided_agent` compiles, to change as you like.

python examples/wired_by_hand.py
"""

from __future__ import annotations

from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from arq_graph import Agent, AgentState, resume_or_invoke
from arq_graph.nodes import (
    CallApprover,
    GuidelineMatcher,
    MessageReviser,
    ToolCaller,
    guarded_tools,
    route_calls,
)


def build(model: str, agent: Agent) -> CompiledStateGraph:
    """Match, call tools (after an operator's word), look again at what the results change, revise the reply."""
    matcher, caller = GuidelineMatcher(model, agent), ToolCaller(model, agent)
    graph = StateGraph(AgentState)
    graph.add_node("match", matcher)
    graph.add_node("call_tools", caller)
    graph.add_node("approve", CallApprover(agent))
    graph.add_node("tools", guarded_tools(agent))
    graph.add_node("match_again", matcher)
    graph.add_node("call_tools_again", caller)
    graph.add_node("next_round", lambda state: {})  # waits for both the re-match and the caller
    graph.add_node("message", MessageReviser(model, agent))
    graph.add_edge(START, "match")
    graph.add_edge("match", "call_tools")
    graph.add_conditional_edges("call_tools", route_calls(agent))
    graph.add_conditional_edges(
        "approve", route_calls(agent, approve=None, otherwise=["match_again", "call_tools_again"])
    )
    graph.add_edge("tools", "match_again")
    graph.add_edge("tools", "call_tools_again")
    graph.add_edge(["match_again", "call_tools_again"], "next_round")
    graph.add_conditional_edges("next_round", route_calls(agent, again="call_tools"))
    graph.add_edge("message", END)
    return graph.compile(checkpointer=MemorySaver())


if __name__ == "__main__":
    app = build("offline", Agent.from_yaml(Path(__file__).parent / "order_desk" / "agent.yaml"))
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    for text in ["Hi, where is my order?", "It is ORD-1003."]:
        state = resume_or_invoke(app, {"messages": [("user", text)]}, thread, durability="sync")
        print("customer:", text, "\nagent:   ", state["messages"][-1].text)
