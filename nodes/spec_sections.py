"""The specification as the prompts show it: each thing with the id that answers may cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin

from arq_graph.agent.spec import Agent, Guideline
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.conversation import Conversation


def describe_agent(agent: Agent) -> dict[str, Any]:
    """What every head shows of the agent: its profile and glossary."""
    glossary = [
        {
            "id": f"K{number}",
            "name": term.name,
            "description": term.description,
            **({"synonyms": list(term.synonyms)} if term.synonyms else {}),
        }
        for number, term in enumerate(agent.glossary, start=1)
    ]
    return {"profile": {"id": "P", "name": agent.name, "text": agent.profile}, "glossary": glossary}


def describe_guideline(guideline: Guideline) -> dict[str, Any]:
    """A guideline as the prompts show it."""
    return {"id": guideline.id, "condition": guideline.condition_text, "action": guideline.action}


def describe_tool(agent: Agent, tool: ToolArguments, key: str = "") -> dict[str, Any]:
    """A tool as the prompts show it, with the guidelines that grant it, and the property that stands for it."""
    return {
        "name": tool.name,
        "description": tool.tool.description,
        "arguments": [argument.describe() for argument in tool.arguments],
        "granted_by": [describe_guideline(agent.guideline(id)) for id in agent.grants[tool.name]],
        **({"needs_agreement": True} if tool.name in agent.confirmed_by("customer") else {}),
        **({"key": key} if key and key != tool.name else {}),
    }


def describe_turn(
    conversation: Conversation, told: Mapping[str, Any], listed: Mapping[str, Any]
) -> dict[str, Any]:
    """The section `now`: the line that began the turn, and what is told; of what is listed, what holds something."""
    last = conversation.last_customer_line
    filled = {name: value for name, value in listed.items() if value}
    return {"turn": last.id if last else None, **told, **filled}


def get_variable_values(agent: Agent, state: StateView) -> dict[str, Any]:
    """The context variables with this thread's values, or their defaults; None for those without a value."""
    return {variable.name: variable.value for variable in agent.variables} | state.read_mapping("variables")


def build_function_state(agent: Agent, state: StateView) -> Any:
    """The state as conditions and policies of one's own are given it: with the values that the prompt shows.

    LangGraph leaves a channel out until something wrote it; a list or a dict of the node's is there, empty.
    """
    if not isinstance(state.state, Mapping):
        return state.state
    kinds = {name: get_origin(kind) or kind for name, kind in state.channels.items()}
    given = {**{name: kind() for name, kind in kinds.items() if kind in (list, dict)}, **state.state}
    return {**given, "variables": get_variable_values(agent, state)} if agent.variables else given


def describe_variables(agent: Agent, state: StateView) -> list[dict[str, Any]]:
    """The context variables with this thread's values, or their defaults; those without a value are left out."""
    described = {each.name: {"description": each.description} for each in agent.variables}
    return [
        {"id": f"V{number}", "name": name, **described.get(name, {}), "value": value}
        for number, (name, value) in enumerate(get_variable_values(agent, state).items(), start=1)
        if value is not None
    ]
