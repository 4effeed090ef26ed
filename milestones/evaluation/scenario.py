"""What an agent is tried on: a user with a goal, the agent's world, what is measured, and how far it may go."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool
from pydantic import Field, InstanceOf, JsonValue, model_validator

from arq_graph.agent.environment import Environment
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import describe_error
from arq_graph.agent.part import Part
from arq_graph.agent.spec import Agent
from arq_graph.agent.spec_errors import Problem, make_validation_error
from arq_graph.agent.tools import get_argument_schema, make_tool
from arq_graph.errors import InputError, SpecError, suggestion
from arq_graph.milestones.evaluation.expectation import Before, Expectation, messages_before
from arq_graph.milestones.findings import check_milestones
from arq_graph.milestones.goal import with_goal
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import load_rules
from arq_graph.milestones.reports.graph_choice import fingerprint_of_graphs
from arq_graph.milestones.tool_schemas import Schema, get_argument_schemas
from arq_graph.milestones.users.simulated import make_user
from arq_graph.milestones.users.user_spec import Kind, ScriptedUser, Text, User, UserSpec

World = Callable[..., Any]
"""A class or function that makes the world of one conversation: an object with the tools' functions."""


class Limits(Part):
    """How far one conversation may go; what ends at a limit is measured all the same.

    Args:
        turns: Messages of the user, 1 or more.
        calls: Requests of the app to its models, 1 or more; the one that would exceed it is not made.
        seconds: How long the conversation may take, above 0; null: as long as it does.

    Raises:
        SpecError: A limit is out of its range.
    """

    turns: Annotated[int, Field(ge=1, strict=True)] = 20
    calls: Annotated[int, Field(ge=1, strict=True)] = 200
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = 600.0


class Scenario(Part):
    """A kind of conversation that agents are tried on.

    Args:
        name: Its name, unique in a suite.
        user: Who talks to the agent.
        milestones: What it is measured on.
        agent: The agent, for the arms that are made of one; None where every arm is an app of its own.
        world: Makes the world of one conversation. Its methods stand in the place of the agent's tools of the same
            names; or it is an `Environment`. `seed` is given where it is an argument. What its `outcome()` gives is
            told in the report. None: all conversations share the agent's own tools, and whatever these change.
        limits: How far a conversation may go.
        use_case: What kind of conversation it is, as reports group them.
        task: What its runs are runs of; the scenario's name unless given.
        goal: The milestone that serves what the user came for. The conversation is measured on a graph whose End
            requires it, too. Reports tell first how often it was reached.
        says: What the user says, word for word, in a conversation of one message; instead of `user`.
        history: What was said and done before; nothing in it is measured.
        expect: What the answer must be, from which the milestones are made.
        variables: Values of the agent's variables, by name.
        probes: What it is for, in a sentence.
        twin: The scenario that differs in one thing, and in what is expected.

    Raises:
        SpecError: There is neither a user nor what one says, nothing to measure on, or a world and no agent; or what
            the history, the milestones, the expectation, the variables or the goal name is not there.
    """

    name: Text
    user: UserSpec | None = None
    milestones: InstanceOf[MilestoneGraph]
    agent: InstanceOf[Agent] | None = None
    world: World | None = None
    limits: Limits = Limits()
    use_case: str | None = None
    task: str | None = None
    goal: str | None = None
    says: Text | None = None
    history: tuple[Before, ...] = ()
    expect: Expectation | None = None
    variables: Mapping[str, JsonValue] = {}
    probes: Text | None = None
    twin: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _measured_on_what_is_expected(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("milestones"):
            return given
        if not given.get("expect"):
            raise ValueError("is measured on nothing; give `milestones`, or `says` and what to `expect`")
        expected, agent = Expectation.model_validate(given["expect"]), given.get("agent")
        if not isinstance(agent, Agent):
            raise ValueError("expects something of an agent, and names no `agent`")  # noqa: TRY004
        return given | {"expect": expected, "milestones": expected.graph(agent.toolbox)}

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if wrong := [*self._wrong(self.milestones, self.agent)]:
            raise make_validation_error(*wrong)
        return self

    def _wrong(self, graph: MilestoneGraph, agent: Agent | None) -> Iterator[Problem]:
        """What does not fit: where it stands, and what is wrong."""
        if self.expect is not None and self.says is None:
            yield (), "has `expect`, and no `says`: the message whose answer is meant"
        elif (self.user is None) == (self.says is None):
            yield (), "must have either a `user`, or what one `says`"
        if self.goal is not None and self.goal not in graph:
            near = suggestion(self.goal, graph)
            yield ("goal",), f"the goal {self.goal!r} is no milestone of {graph.file or 'its graph'}{near}"
        schemas = self._schemas()
        if self.expect is None and (errors := check_milestones(graph, schemas).errors):
            told, file = [(one.line, one.message) for one in errors], graph.file or "its graph"
            yield ("milestones",), SpecError.from_problems(told, file=file)
        try:
            load_rules(graph)
        except SpecError as error:
            yield ("milestones",), error
        if agent is None:
            if self.world is not None:
                yield (), "has a `world`, whose tools replace those of an agent, and names no `agent`"
            return
        settable = [each.name for each in agent.variables if each.settable]
        for name in (each for each in self.variables if each not in settable):
            near = suggestion(name, settable)
            yield ("variables", name), f"the agent has no settable variable {name!r}{near}"
        yield from self._unused_methods(agent)
        yield from _misspelt_slots(self.user, schemas or {}) if self.user else ()
        for index, one in enumerate(self.history):
            for place, said in one.unlike(schemas):
                yield ("history", index, *place), said
        if self.expect is not None:
            for place, said in self.expect.unlike(schemas, [each.id for each in agent.guidelines]):
                yield ("expect", *place), said

    def _unused_methods(self, agent: Agent) -> Iterator[Problem]:
        world = getattr(self.world, "func", self.world)
        lacking = [name for name in (*agent.toolbox, "outcome") if not hasattr(world, name)]
        for name in dir(world):
            is_other = inspect.isroutine(getattr(world, name)) and name not in agent.toolbox
            if is_other and name[0] != "_" and (near := suggestion(name, lacking, cutoff=80)):
                said = f"the world has a method {name!r}, which nothing calls{near}"
                yield ("world",), f"{said} If it is a helper, begin its name with `_`"

    def _schemas(self) -> dict[str, Schema] | None:
        """The parameters of each tool or of the world's method for it; empty if only an instance has them."""
        world = getattr(self.world, "func", self.world)
        schemas = get_argument_schemas(self.tools or ())
        for name in schemas if world else ():
            schemas[name] = {}
            method: Any = getattr(world, name, None)
            if inspect.isroutine(method):
                method = inspect.getattr_static(world, name, method).__get__(world)
                schemas[name] = get_argument_schema(self._tool(method))
        return None if self.tools is None else schemas

    @property
    def matches_only(self) -> bool:
        """Whether nothing but the guidelines that are active is expected."""
        return self.expect is not None and self.expect.active is not None

    @property
    def kind(self) -> Kind | None:
        """The kind of its user; None where one message is all that is said."""
        return self.user.kind if self.user else None

    @property
    def tools(self) -> list[Any] | None:
        """The agent's tools, for their schemas; None where there are none, but a world to act in, or no agent."""
        box = self.agent.toolbox if self.agent else {}
        return None if self.agent is None or (self.world and not box) else list(box.values())

    def compute_fingerprints(self) -> dict[str, str]:
        """A digest of each thing that shapes its conversations, by a name that a message can show."""
        parts = {
            "the user": fingerprint(self.user, self.says),
            "the history": fingerprint(self.history, self.variables),
            "the limits": fingerprint(self.limits),
            "the milestones": fingerprint_of_graphs(self.measured_graph),
            "the world": fingerprint(inspect.unwrap(self.world)) if self.world else "none",
        }
        if self.agent is not None:
            fields = {name: getattr(self.agent, name) for name in type(self.agent).model_fields}
            parts |= {f"the agent's {name}": fingerprint(value) for name, value in fields.items()}
            parts["the agent's guidelines or their tools"] = parts.pop("the agent's guidelines")
        return {f"{name} of scenario {self.name!r}": digest for name, digest in parts.items()}

    @cached_property
    def measured_graph(self) -> MilestoneGraph:
        """The milestones, and the goal as one that End requires."""
        return self.milestones if self.goal is None else with_goal(self.milestones, self.goal)

    @cached_property
    def messages_before(self) -> tuple[BaseMessage, ...]:
        """The history as chat messages."""
        return tuple(messages_before(self.history))

    def make_user(self, seed: int, model: Any = None) -> User:
        """The user of one conversation; see `simulated.make_user`."""
        if self.user is None:
            return ScriptedUser(self.says or "")
        return make_user(self.user, seed=seed, model=model)

    def make_world(self, seed: int) -> Any:
        """The world of one conversation; None where the scenario has none.

        It is given the seed where `seed` is one of its arguments and the scenario does not say otherwise.
        """
        if self.world is None:
            return None
        set_already = getattr(self.world, "keywords", {})
        takes_seed = "seed" in inspect.signature(self.world).parameters and "seed" not in set_already
        try:
            return self.world(seed=seed) if takes_seed else self.world()
        except (Exception, SystemExit) as error:
            raise InputError(
                f"the world of scenario {self.name!r} cannot be made: {describe_error(error)}"
            ) from error

    def equip_agent(self, world: Any) -> Agent | None:
        """The agent with the tools of a world; as it is without a world, or in one that is acted in with texts."""
        if self.agent is None or world is None:
            return self.agent
        tools = {name: getattr(world, name) for name in self.agent.toolbox if hasattr(world, name)}
        if not tools and not isinstance(world, Environment):
            parts = ("reset", "step", "actions", "done", "score")
            raise SpecError(
                f"the world of scenario {self.name!r}, a {type(world).__qualname__}, has none of the agent's tools as "
                f"methods ({', '.join(self.agent.toolbox) or 'the agent has none'}), and is no `Environment`: for that "
                f"it lacks {', '.join(each for each in parts if not hasattr(world, each))}"
            )
        if not tools:
            return self.agent
        box = dict(self.agent.toolbox)
        for name, function in tools.items():
            box[name] = self._tool(function).model_copy(update={"name": name})
        guidelines = [
            each.replace(tools=[box[tool.name] for tool in each.tools]) for each in self.agent.guidelines
        ]
        return self.agent.replace(guidelines=guidelines, tools=[box[tool.name] for tool in self.agent.tools])

    def _tool(self, method: Any) -> BaseTool:
        try:
            return make_tool(method)
        except SpecError as error:
            raise SpecError(f"the method of the world of scenario {self.name!r} {error}") from error


def _misspelt_slots(user: UserSpec, schemas: Mapping[str, Schema]) -> Iterator[Problem]:
    """Slots whose names are nearly those of arguments that the user lacks."""
    taken = {name for schema in schemas.values() for name in schema.get("properties", ())}
    lacking = sorted(taken - {fact.name.replace(" ", "_") for fact in user.facts})
    for index, intent in enumerate(user.intents):
        for name in intent.slots:
            word = name.replace(" ", "_")
            if word not in taken and (near := suggestion(word, lacking, cutoff=80)):
                yield (
                    ("user", "intents", index, "slots", name),
                    f"the slot {name!r} is no tool's argument{near}",
                )
