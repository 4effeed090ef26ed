"""The agent's specification as prompts show it: each thing with the id that answers may cite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_origin

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.spec import Agent
from arq_graph.nodes.channels import StateView
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.conversation import Conversation


def describe_agent(agent: Agent) -> dict[str, Any]:
    """Describe the agent's profile and glossary, for the head of every prompt."""
    glossary: list[dict[str, Any]] = []
    for number, term in enumerate(agent.glossary, start=1):
        entry: dict[str, Any] = {"id": f"K{number}", "name": term.name, "description": term.description}
        if term.synonyms:
            entry["synonyms"] = list(term.synonyms)
        glossary.append(entry)
    return {"profile": {"id": "P", "name": agent.name, "text": agent.profile}, "glossary": glossary}


def describe_guideline(guideline: Guideline) -> dict[str, Any]:
    """Describe a guideline."""
    return {"id": guideline.id, "condition": guideline.condition_text, "action": guideline.action}


def describe_tool(agent: Agent, tool: ToolArguments, key: str = "") -> dict[str, Any]:
    """Describe a tool, with the guidelines that grant it, and the property that stands for it in answers."""
    description: dict[str, Any] = {
        "name": tool.name,
        "description": tool.tool.description,
        "arguments": [argument.describe() for argument in tool.arguments],
        "granted_by": [describe_guideline(agent.get_guideline(id)) for id in agent.grants[tool.name]],
    }
    if tool.name in agent.get_confirmed_tools("customer"):
        description["needs_agreement"] = True
    if key and key != tool.name:
        description["key"] = key
    return description


def describe_turn(
    conversation: Conversation, values: Mapping[str, Any], lists: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the section `now`: the line that began the turn, the values, and the lists that aren't empty."""
    last = conversation.last_customer_line
    filled_lists = {name: entries for name, entries in lists.items() if entries}
    return {"turn": last.id if last else None, **values, **filled_lists}


def describe_variables(agent: Agent, state: StateView) -> list[dict[str, Any]]:
    """Describe the context variables that have a value in this thread or by default."""
    descriptions = {variable.name: variable.description for variable in agent.variables}
    entries: list[dict[str, Any]] = []
    for number, (name, value) in enumerate(get_variable_values(agent, state).items(), start=1):
        if value is None:
            continue
        entry: dict[str, Any] = {"id": f"V{number}", "name": name}
        if name in descriptions:
            entry["description"] = descriptions[name]
        entry["value"] = value
        entries.append(entry)
    return entries


def get_variable_values(agent: Agent, state: StateView) -> dict[str, Any]:
    """Return the context variables with this thread's values, or their defaults; None if they have neither."""
    defaults = {variable.name: variable.value for variable in agent.variables}
    return defaults | state.read_mapping("variables")


def build_function_state(agent: Agent, state: StateView) -> Any:
    """Return the state that a user's conditions and policies are called with: its variables have values.

    LangGraph leaves a channel out until something is written to it; the node's lists and dicts are then empty.
    """
    if not isinstance(state.state, Mapping):
        return state.state
    values: dict[str, Any] = {}
    for name, channel_type in state.channels.items():
        container = get_origin(channel_type) or channel_type
        if container in (list, dict):
            values[name] = container()
    values.update(state.state)
    if agent.variables:
        values["variables"] = get_variable_values(agent, state)
    return values
