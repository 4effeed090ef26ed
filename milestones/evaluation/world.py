"""The world of one conversation: the agent's tools bound to an object that no other conversation sees."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arq_graph.errors import SpecError
from arq_graph.milestones.evaluation.scenario import Scenario

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent


def fresh_agent(scenario: Scenario, seed: int) -> Agent | None:
    """The scenario's agent with the tools of a world that is made for one conversation.

    Args:
        scenario: Without a `world` its agent is returned as it is.
        seed: Given to the world where `seed` is one of its arguments.

    Raises:
        SpecError: The world has none of the agent's tools, or one of them cannot be used.
    """
    agent, world = scenario.agent, scenario.world
    if agent is None or world is None:
        return agent
    made = world(seed=seed) if _takes_seed(world) else world()
    if isinstance(made, Mapping):
        tools: dict[str, Any] = dict(made)
    else:
        named = {name: getattr(made, name, None) for name in agent.toolbox}
        tools = {name: function for name, function in named.items() if callable(function)}
    if not tools:
        raise SpecError(
            f"the world of scenario {scenario.name!r} has none of the agent's tools; it has methods, or keys, of their "
            f"names: {', '.join(agent.toolbox) or 'the agent has no tools'}",
            file=scenario.file,
            line=scenario.line,
        )
    return agent.with_tools(tools)


def _takes_seed(world: Any) -> bool:
    try:
        parameters = inspect.signature(world).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.name == "seed" and one.kind is not one.POSITIONAL_ONLY for one in parameters)
