"""Scenarios: each has a user with a goal, an agent and its world, milestones, and the limits of a conversation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Annotated, Any, Self

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from pydantic import Field, InstanceOf, JsonValue, model_validator

from arq_graph.agent.environment import Environment
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.part import Part
from arq_graph.agent.spec import Agent
from arq_graph.agent.spec_errors import Problem, make_validation_error
from arq_graph.agent.tools import get_argument_schema, make_tool
from arq_graph.errors import InputError, SpecError, describe_error, suggestion
from arq_graph.milestones.evaluation.expectation import Expectation
from arq_graph.milestones.evaluation.history import HistoryEntry, make_history_messages
from arq_graph.milestones.evaluation.misspellings import (
    find_misspelt_methods,
    find_misspelt_slots,
    find_unknown_variables,
)
from arq_graph.milestones.findings import check_milestones
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.measure import with_goal
from arq_graph.milestones.observation_rules import load_rules
from arq_graph.milestones.reports.graph_registry import fingerprint_graphs
from arq_graph.milestones.tool_schemas import Schema, get_argument_schemas
from arq_graph.milestones.users.simulated import make_user
from arq_graph.milestones.users.user_spec import Kind, Says, ScriptedUser, Text, User, UserSpec, wrap_text

WorldFactory = Callable[..., Any]
"""A class or function that makes the world of one conversation: an object with the tools' functions."""

_MEASURES = ("milestones", "journey", "expect")


class Limits(Part):
    """The limits of one conversation. A conversation that ends at one of them is measured, too.

    Args:
        turns: The number of the user's messages, 1 or more. An answer to an interrupt within a turn counts, too.
        calls: The number of the app's requests to its models, 1 or more. The conversation ends at the next request.
        seconds: The duration, above 0. None: no limit.

    Raises:
        SpecError: A limit is out of its range.
    """

    turns: Annotated[int, Field(ge=1, strict=True)] = 20
    calls: Annotated[int, Field(ge=1, strict=True)] = 200
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 600.0


class Scenario(Part):
    """A kind of conversation that agents are evaluated in.

    Args:
        name: Its name, unique in a suite.
        user: The simulated user.
        milestones: The graph that it is measured on; None if it is made from a `journey` or from what to `expect`, as
            `graph`.
        journey: The id of the agent's journey whose steps are the milestones.
        agent: The agent, for the arms that are made from one; None if every arm is an app of its own.
        world: The factory that makes the world of one conversation: a class or function, which is called with a `seed`
            if it has such an argument. The world's methods replace the agent's tools of the same names, or the world is
            an `Environment`. The result of the world's `outcome()` is in the report. None: all conversations share the
            agent's own tools, and whatever these change.
        limits: The limits of a conversation.
        use_case: The category by which reports group it.
        task: The task that its runs try, the scenario's name by default; scenarios of one task share it.
        goal: The milestone that means that the user's goal is reached. The End of the measured graph requires it, too.
            Reports show first how often it was reached.
        says: The user's only message, word for word, or all their messages in order, whatever the agent answers;
            instead of `user`.
        history: The messages and calls before the conversation; they aren't measured.
        expect: The expected answer, from which the milestones are made; instead of `milestones`.
        variables: Values of the agent's variables, by name.
        probes: Its purpose, in a sentence.
        twin: The name of the scenario that differs in one detail, and so in the right answer.

    Raises:
        SpecError: The scenario has not exactly one of `user` and `says`, or of `milestones`, `journey` and `expect`; it
            has a world but no agent; or it names something that doesn't exist.
    """

    name: Text
    user: UserSpec | None = None
    milestones: InstanceOf[MilestoneGraph] | None = None
    agent: InstanceOf[Agent] | None = None
    world: WorldFactory | None = None
    limits: Limits = Limits()
    use_case: Text | None = None
    task: Text | None = None
    goal: Text | None = None
    says: Says | None = None
    history: tuple[HistoryEntry, ...] = ()
    expect: Expectation | None = None
    variables: Mapping[str, JsonValue] = {}
    probes: Text | None = None
    twin: Text | None = None
    journey: Text | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._require_measure()
        problems = list(_find_problems(self, self._get_schemas()))
        if problems:
            raise make_validation_error(*problems)
        return self

    @property
    def matcher_only(self) -> bool:
        """True if the scenario tests only which guidelines the matcher activates."""
        return self.expect is not None and self.expect.active is not None

    @property
    def user_kind(self) -> Kind | None:
        """The kind of its user; None if the user only says one message."""
        return self.user.kind if self.user else None

    @property
    def tools(self) -> list[Any] | None:
        """The agent's tools, for their schemas; None if they aren't known here.

        They aren't known without an agent, nor if a world replaces the tools of an agent that lists none.
        """
        if self.agent is None or (self.world and not self.agent.toolbox):
            return None
        return list(self.agent.toolbox.values())

    @property
    def unbound_world_factory(self) -> Any:
        """The class or function that makes the world, without the arguments that a suite file sets."""
        return self.world.func if isinstance(self.world, partial) else self.world

    @cached_property
    def graph(self) -> MilestoneGraph:
        """The milestones, as they are given or made from what is expected."""
        if self.milestones is not None:
            return self.milestones
        assert self.agent is not None
        if self.journey is not None:
            return MilestoneGraph.from_journey(self.agent, self.journey)
        assert self.expect is not None
        return self.expect.make_graph(self.agent.toolbox)

    @cached_property
    def measured_graph(self) -> MilestoneGraph:
        """The milestones, with the goal as one that End requires."""
        return self.graph if self.goal is None else with_goal(self.graph, self.goal)

    @cached_property
    def history_messages(self) -> tuple[BaseMessage, ...]:
        """The history as chat messages."""
        return tuple(make_history_messages(self.history))

    def compute_fingerprints(self) -> dict[str, str]:
        """Return a fingerprint of each thing that shapes its conversations, by the name that errors show."""
        fingerprints = {
            "the user": fingerprint(self.user, self.says),
            "the history": fingerprint(self.history, self.variables),
            "the limits": fingerprint(self.limits),
            "the milestones": fingerprint_graphs(self.measured_graph),
            "the world": fingerprint(inspect.unwrap(self.world)) if self.world else "none",
        }
        if self.agent is not None:
            for field in type(self.agent).model_fields:
                name = "guidelines or their tools" if field == "guidelines" else field
                fingerprints[f"the agent's {name}"] = fingerprint(getattr(self.agent, field))
        return fingerprints

    def make_user(self, seed: int, model: Any = None) -> User:
        """Make the user of one conversation; see `simulated.make_user`."""
        if self.user is None:
            return ScriptedUser(*wrap_text(self.says or ""))
        return make_user(self.user, seed=seed, model=model)

    def make_world(self, seed: int) -> Any:
        """Make the world of one conversation; None if the scenario has none.

        The world gets the seed if it has such an argument, which the scenario doesn't set.
        """
        if self.world is None:
            return None
        arguments_set = self.world.keywords if isinstance(self.world, partial) else {}
        takes_seed = "seed" in inspect.signature(self.world).parameters and "seed" not in arguments_set
        try:
            return self.world(seed=seed) if takes_seed else self.world()
        except (Exception, SystemExit) as error:
            raise InputError(
                f"the world of scenario {self.name!r} cannot be made: {describe_error(error)}"
            ) from error

    def equip_agent(self, world: Any) -> Agent | None:
        """Return the agent with the tools of a world; without a world, and in an `Environment`, the agent as it is."""
        if self.agent is None or world is None:
            return self.agent
        tools: dict[str, BaseTool] = {}
        for name in self.agent.toolbox:
            if hasattr(world, name):
                tool = self._make_world_tool(getattr(world, name))
                tools[name] = tool.model_copy(update={"name": name})
        if tools:
            return self.agent.replace_tools(tools)
        if isinstance(world, Environment):
            return self.agent
        raise self._make_useless_world_error(self.agent, world)

    def _require_measure(self) -> None:
        measures = [name for name in _MEASURES if getattr(self, name) is not None]
        if len(measures) > 1:
            raise ValueError(f"has {' and '.join(f'`{name}`' for name in measures)}; leave one of them out")
        if not measures:
            raise ValueError("is measured on nothing; give `milestones`, a `journey`, or what to `expect`")
        if self.milestones is None and self.agent is None:
            raise ValueError(f"has `{measures[0]}`, but names no `agent`")
        if self.journey is not None and self.agent is not None:
            try:
                self.agent.get_journey(self.journey)
            except SpecError as error:
                raise make_validation_error((("journey",), error)) from None

    def _get_schemas(self) -> dict[str, Schema] | None:
        """Return the argument schema of each tool, or of the world's method that replaces it; None if unknown."""
        if self.tools is None:
            return None
        agent_schemas = get_argument_schemas(self.tools)
        if self.world is None:
            return agent_schemas
        world_schemas: dict[str, Schema] = {}
        for name in agent_schemas:
            if inspect.isroutine(getattr(self.unbound_world_factory, name, None)):
                method = _bind_to_class(self.unbound_world_factory, name)
                world_schemas[name] = get_argument_schema(self._make_world_tool(method))
            else:
                world_schemas[name] = {}  # unknown: an instance of the world may have the method
        return world_schemas

    def _make_world_tool(self, method: Any) -> BaseTool:
        try:
            return make_tool(method)
        except SpecError as error:
            raise SpecError(f"the method of the world of scenario {self.name!r} {error}") from error

    def _make_useless_world_error(self, agent: Agent, world: Any) -> SpecError:
        tool_names = ", ".join(agent.toolbox) or "the agent has none"
        missing = [name for name in ("reset", "step", "actions", "done", "score") if not hasattr(world, name)]
        return SpecError(
            f"the world of scenario {self.name!r}, a {type(world).__qualname__}, has none of the agent's tools as "
            f"methods ({tool_names}), and isn't an `Environment` either: for that it lacks {', '.join(missing)}"
        )


def _bind_to_class(world_class: Any, name: str) -> Any:
    """Return a method without its parameter `self`, which isn't an argument of the tool; a static method as it is."""
    # The class is bound in place of an instance, which doesn't exist yet: only the signature is read.
    method = getattr(world_class, name)
    return inspect.getattr_static(world_class, name, method).__get__(world_class)


def _find_problems(scenario: Scenario, schemas: Mapping[str, Schema] | None) -> Iterator[Problem]:
    """Yield parts that don't fit together, and names that don't exist or look misspelt."""
    yield from _find_missing_parts(scenario)
    yield from _find_graph_problems(scenario, schemas)
    agent = scenario.agent
    if agent is None:
        return
    yield from find_unknown_variables(scenario.variables, agent)
    if scenario.world is not None:
        yield from find_misspelt_methods(scenario.unbound_world_factory, agent)
    if scenario.user is not None:
        yield from find_misspelt_slots(scenario.user, schemas or {})
    for index, entry in enumerate(scenario.history):
        for place, message in entry.find_problems(schemas):
            yield ("history", index, *place), message
    if scenario.expect is not None:
        guideline_ids = [guideline.id for guideline in agent.rules]
        for place, message in scenario.expect.find_problems(schemas, guideline_ids):
            yield ("expect", *place), message


def _find_missing_parts(scenario: Scenario) -> Iterator[Problem]:
    if scenario.expect is not None and scenario.says is None:
        yield (), "`expect` needs `says`, the message to answer"
    elif scenario.matcher_only and not isinstance(scenario.says, str):
        yield (
            ("says",),
            "must be one message, since `expect` has `active`: what the matcher makes of it alone",
        )
    elif (scenario.user is None) == (scenario.says is None):
        yield (), "must have either a `user`, or what one `says`"
    if scenario.agent is None and scenario.world is not None:
        yield (), "has a `world`, whose methods replace an agent's tools, but names no `agent`"


def _find_graph_problems(scenario: Scenario, schemas: Mapping[str, Schema] | None) -> Iterator[Problem]:
    graph = scenario.graph
    file = graph.file or "its graph"
    measure = "milestones" if scenario.journey is None else "journey"
    if scenario.goal is not None and scenario.goal not in graph:
        hint = suggestion(scenario.goal, graph)
        yield ("goal",), f"the goal {scenario.goal!r} isn't a milestone of {file}{hint}"
    # Milestones that are made from an expectation are checked as that expectation.
    if scenario.expect is None:
        errors = [(error.line, error.message) for error in check_milestones(graph, schemas).errors]
        if errors:
            yield (measure,), SpecError.from_problems(errors, file=file)
    try:
        load_rules(graph)
    except SpecError as error:
        yield (measure,), error
