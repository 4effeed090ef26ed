"""Names in a scenario that don't exist, or that look misspelt."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from arq_graph.agent.spec import Agent
from arq_graph.agent.spec_errors import Problem
from arq_graph.errors import suggestion
from arq_graph.milestones.tool_schemas import Schema
from arq_graph.milestones.users.user_spec import UserSpec

_MISSPELLING_CUTOFF = 80
"""Two names that are at least this similar, in percent, count as one name and its misspelling."""


def find_unknown_variables(variables: Mapping[str, Any], agent: Agent) -> Iterator[Problem]:
    """Yield values of variables that the agent lacks, or that callers of it can't set."""
    settable = [variable.name for variable in agent.variables if variable.settable]
    for name in variables:
        if name not in settable:
            hint = suggestion(name, settable)
            yield ("variables", name), f"the agent has no settable variable {name!r}{hint}"


def find_misspelt_methods(world_factory: Any, agent: Agent) -> Iterator[Problem]:
    """Yield methods of the world that nothing calls, and whose names are nearly those of tools that it lacks."""
    lacking = [name for name in (*agent.toolbox, "outcome") if not hasattr(world_factory, name)]
    for name in dir(world_factory):
        is_method = inspect.isroutine(getattr(world_factory, name))
        if not is_method or name.startswith("_") or name in agent.toolbox:
            continue
        hint = suggestion(name, lacking, cutoff=_MISSPELLING_CUTOFF)
        if hint:
            message = f"the world has a method {name!r}, which nothing calls{hint}"
            yield ("world",), f"{message} If it is a helper, begin its name with `_`"


def find_misspelt_slots(user: UserSpec, schemas: Mapping[str, Schema]) -> Iterator[Problem]:
    """Yield slots whose names are nearly those of arguments that the user doesn't know."""
    arguments = {name for schema in schemas.values() for name in schema.get("properties", ())}
    known_facts = {fact.name.replace(" ", "_") for fact in user.facts}
    for index, intent in enumerate(user.intents):
        for name in intent.slots:
            word = name.replace(" ", "_")
            hint = suggestion(word, sorted(arguments - known_facts), cutoff=_MISSPELLING_CUTOFF)
            if hint and word not in arguments:
                place = ("user", "intents", index, "slots", name)
                yield place, f"the slot {name!r} isn't an argument of any tool{hint}"
