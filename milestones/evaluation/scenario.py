"""What an agent is tried on: a user with a goal, the agent's world, what is measured, and how far it may go."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import networkx as nx

from arq_graph.agent.entries import suggestion
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.findings import require_sound
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.matching import Observer
from arq_graph.milestones.milestone import END
from arq_graph.milestones.users.spec import UserSpec

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

World = Callable[..., Any]
"""A class or function that makes the world of one conversation: an object, or a mapping, with the tools' functions."""


@dataclass(frozen=True)
class Limits:
    """How far one conversation may go; what ends at a limit is measured all the same.

    Args:
        turns: Messages of the user, 1 or more.
        calls: Requests of the app to its models, 1 or more; the one that would exceed it is not made.
        seconds: How long the conversation may take, above 0; None: as long as it does. An app that is not async
            cannot be stopped while it runs: its time is looked at after each turn.

    Raises:
        InputError: A limit is out of its range.
    """

    turns: int = 20
    calls: int = 200
    seconds: float | None = 600.0

    def __post_init__(self) -> None:
        for name, least in (("turns", 1), ("calls", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"the limit `{name}` must be a whole number from {least} on, not {value!r}")
        if self.seconds is not None and (
            isinstance(self.seconds, bool)
            or not isinstance(self.seconds, int | float)
            or not self.seconds > 0
        ):
            raise InputError(
                f"the limit `seconds` must be a number above 0, or nothing, not {self.seconds!r}"
            )


@dataclass(frozen=True, eq=False)
class Scenario:
    """A kind of conversation that agents are tried on.

    Args:
        name: Its name, unique in a suite.
        user: Who talks to the agent.
        milestones: What it is measured on.
        agent: The agent, for the arms that are made of one; None where every arm is an app of its own.
        world: Makes the world of one conversation. Its methods (or, of a mapping, its functions) stand in the place
            of the agent's tools of the same names; `seed` is given where it is an argument. None: all
            conversations share the agent's own tools, and whatever these change.
        limits: How far a conversation may go.
        use_case: What kind of conversation it is, as reports group them.
        task: What its runs are runs of; the scenario's name unless given.
        goal: The milestone that the user's goal is served by, if it is to be checked that there is one. Reports tell
            how often it was reached.
        file: The file that it stands in, for messages.
        line: Its line there.

    Raises:
        SpecError: The milestones cannot be measured on or name a tool that the agent does not have, none of them
            serves the goal, or there is a world and no agent.
    """

    name: str
    user: UserSpec
    milestones: MilestoneGraph
    agent: Agent | None = None
    world: World | None = None
    limits: Limits = field(default_factory=Limits)
    use_case: str | None = None
    task: str | None = None
    goal: str | None = None
    file: str | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        require_sound(self.milestones)
        Observer(self.milestones)  # loads the functions that its checks name
        if self.agent is not None:
            errors = self.milestones.check(list(self.agent.toolbox.values())).errors
            if errors:
                raise SpecError(errors[0].message, file=self.milestones.file, line=errors[0].line)
        elif self.world is not None:
            raise self._error("has a `world`, whose tools replace those of an agent, and names no `agent`")
        if self.world is not None and not callable(self.world):
            raise self._error(
                "has a `world` that cannot be called: give a class, or a function that makes one"
            )
        if self.goal is not None:
            self._check_goal(self.goal)

    def _check_goal(self, goal: str) -> None:
        graph = self.milestones
        if goal not in graph:
            raise self._error(
                f"has the goal {goal!r}, which no milestone of {graph.file or 'its graph'} serves"
                + suggestion(goal, graph)
            )
        if goal != END and goal not in nx.ancestors(graph, END):
            raise self._error(f"has the goal {goal!r}, from which no way leads to End")

    def _error(self, message: str) -> SpecError:
        return SpecError(f"scenario {self.name!r} {message}", file=self.file, line=self.line)

    @property
    def tools(self) -> list[Any] | None:
        """The agent's tools, for their schemas; None where there is no agent."""
        return None if self.agent is None else list(self.agent.toolbox.values())

    def depends_on(self) -> Mapping[str, str]:
        """What its results depend on, by a name that a message can show, as digests."""
        limits = (self.limits.turns, self.limits.calls, self.limits.seconds)
        graph = self.milestones
        agent: tuple[Any, ...] = ()
        made_of: list[Any] = [self.world]
        if self.agent is not None:
            spec = self.agent
            rules = [(g.id, _said(g.condition), g.action, g.continuous) for g in spec.guidelines]
            agent = (
                spec.name,
                spec.profile,
                rules,
                sorted(spec.toolbox),
                str(dict(spec.confirm)),
                spec.fallback,
            )
            for tool in spec.toolbox.values():
                made_of += [getattr(tool, "func", None), getattr(tool, "coroutine", None)]
        return {
            "the user": _digest(self.user.model_dump_json()),
            "the limits": _digest(limits),
            "the milestones": _digest((graph.milestones, graph.failed_if, graph.grounded, graph.forbidden)),
            "the agent": _digest(agent),
            "the tools": _digest(_code_of(made_of)),
        }


def _said(condition: Any) -> str:
    return condition if isinstance(condition, str) else getattr(condition, "__qualname__", str(condition))


def _code_of(made_of: list[Any]) -> list[str]:
    """What stands in the files of these functions and classes."""
    code: dict[str, str] = {}
    for one in made_of:
        try:
            module = inspect.getmodule(inspect.unwrap(one)) if one is not None else None
            if module is not None and module.__name__ not in code:
                code[module.__name__] = inspect.getsource(module)
        except (OSError, TypeError):
            continue
    return sorted(code.values())  # a module's name may tell the folder it stands in


def _digest(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
