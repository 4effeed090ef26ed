"""The milestone graph: a networkx `DiGraph` whose edges lead from a dependency to what depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import networkx as nx

from arq_graph.agent.patterns import Pattern
from arq_graph.errors import SpecError, require_type
from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.milestone import END, START, Forbidden, Milestone, Reviewed
from arq_graph.milestones.values import is_same_value

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

    _DiGraph = nx.DiGraph[str]
else:
    _DiGraph = nx.DiGraph

T = TypeVar("T")

_ARGUMENT_KEYS = ("kwargs", "arguments", "args")


class MilestoneGraph(_DiGraph):
    """The milestones of one use case and how they depend on each other (Pre-Act, 4.3).

    It is a `DiGraph`, so any networkx algorithm takes it; each node has its `Milestone` as the attribute
    `milestone`. It is frozen: to change it, copy it with networkx.

    Args:
        milestones: The milestones, in any order; `Start` and `End` among them.
        failed_if: A tool's result in which this pattern occurs is a failed call.
        grounded: `strict`: a call with an argument that nobody gave before isn't a genuine call.
        forbidden: What must not happen, as in a milestone file.
        file: The file it was read from, for messages and for functions in modules beside it.
        generated_by: The model that drafted it; None: a person wrote it.
        reviewed: Who reviewed it, and when; None: nobody said so.
        vetoes: Whether a judge may veto calls that code saw.

    Raises:
        SpecError: Two milestones have the same name.
        ValueError: `failed_if` isn't a regular expression.
    """

    def __init__(
        self,
        milestones: Iterable[Milestone] = (),
        *,
        failed_if: Pattern | str | None = None,
        grounded: Literal["strict"] | None = None,
        forbidden: Iterable[Forbidden | Mapping[str, Any]] = (),
        file: str | None = None,
        generated_by: str | None = None,
        reviewed: Reviewed | None = None,
        vetoes: bool = True,
    ) -> None:
        super().__init__()
        self._cache: dict[Callable[[MilestoneGraph], Any], Any] = {}
        self.milestones = tuple(milestones)
        self.failed_if = Pattern(failed_if) if isinstance(failed_if, str) else failed_if
        self.grounded = grounded
        self.forbidden = tuple(map(Forbidden.model_validate, forbidden))
        self.file = file
        self.generated_by = generated_by
        self.reviewed = reviewed
        self.vetoes = vetoes
        for milestone in self.milestones:
            self._add_milestone(milestone)
        for milestone in self.milestones:
            default = () if milestone.name == START else (START,)
            for dependency in milestone.dependencies or default:
                if dependency in self:
                    self.add_edge(dependency, milestone.name)
        # networkx makes empty graphs of this class when it copies one, and fills them afterwards.
        if self.milestones:
            nx.freeze(self)

    def _add_milestone(self, milestone: Milestone) -> None:
        if milestone.name in self:
            first_line = self.get_milestone(milestone.name).line
            first = f" (the first is in line {first_line})" if first_line else ""
            raise SpecError(
                f"two milestones are named {milestone.name!r}{first}; give each its own name",
                file=self.file,
                line=milestone.line,
            )
        self.add_node(milestone.name, milestone=milestone)

    def __getstate__(self) -> dict[str, Any]:
        # Cached values may hold the user's own functions, which can't be pickled.
        return self.__dict__ | {"_cache": {}}

    @classmethod
    def from_actions(
        cls,
        actions: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        failed_if: Pattern | str | None = None,
        forbidden: Iterable[Forbidden | Mapping[str, Any]] = (),
    ) -> MilestoneGraph:
        """Make a graph of a gold list of tool calls: End is reached when all of them were made.

        A call counts if it was made with these arguments, whatever others it had.

        Args:
            actions: The calls: `name` or `tool`, and `kwargs`, `arguments` or `args`. A call listed twice must
                be made twice. An empty list makes a graph on which nothing can be measured.
            ordered: Each call must come after the one before it; otherwise in any order.
            failed_if: A result in which this pattern occurs is a failed call.
            forbidden: What must not happen, as in a milestone file.

        Raises:
            SpecError: An action has no name, or its arguments aren't a mapping.
        """
        milestones = [_make_milestone(name=START, type="NFC")]
        arguments_by_name: dict[str, Mapping[str, Any]] = {}
        uses = Counter((START, END))
        for position, action in enumerate(actions, start=1):
            tool, arguments = _parse_action(action, position)
            uses[tool] += 1
            name = tool if uses[tool] == 1 else f"{tool} ({uses[tool]})"
            dependency = START
            for previous in reversed(milestones[1:]):
                is_same_tool = previous.tool_name == tool
                # One call must not serve two entries of the list: the second of two equal ones follows the first.
                if ordered or (is_same_tool and is_same_value(arguments_by_name[previous.name], arguments)):
                    dependency = previous.name
                    break
            constraints = {key: Constraint.make_exact(value) for key, value in arguments.items()}
            milestone = _make_milestone(name=name, type="FC", tool=None if tool == name else tool)
            milestone = milestone.model_copy(update={"arguments": constraints, "dependencies": (dependency,)})
            arguments_by_name[milestone.name] = arguments
            milestones.append(milestone)
        required_names = tuple(arguments_by_name)
        if ordered:
            required_names = required_names[-1:]
        end = _make_milestone(name=END, type="NFC", requires="all")
        milestones.append(end.model_copy(update={"dependencies": required_names}))
        return cls(milestones, failed_if=failed_if, forbidden=forbidden)

    @classmethod
    def from_journey(cls, agent: Agent, id: str, *, failed_if: Pattern | str | None = None) -> MilestoneGraph:
        """Make the graph of a journey: the file that guides the agent also measures its conversations.

        Each step is a milestone of its id, and depends on those `after` which it comes. One with a tool is an FC, one
        with several a join of one FC each, and any other an NFC. A step with a condition is optional, unless it is one
        of the last: End needs one of these, or if all have conditions, that the journey has ended without them. The
        steps of a journey that is a step are `step/inner step`. Agents of this library note in their messages which
        steps were done; in other conversations a judge decides the NFCs, or they stay undecided.

        Args:
            agent: The agent that has the journey.
            id: The journey's id.
            failed_if: A result in which this pattern occurs is a failed call.

        Raises:
            InputError: `agent` isn't an agent, but, for example, the path of its file.
            SpecError: The agent has no such journey.
        """
        from arq_graph.agent.spec import Agent  # loads LangChain
        from arq_graph.milestones.journey_graph import make_journey_milestones

        require_type("agent", agent, Agent, "make one with Agent(…), or read one with Agent.from_yaml(path)")
        graph = cls(make_journey_milestones(agent, id), failed_if=failed_if)
        graph.name = id
        return graph

    @property
    def is_unreviewed(self) -> bool:
        """True if a model drafted it and nobody has reviewed it; what is measured on it is then doubtful."""
        return self.generated_by is not None and self.reviewed is None

    def get_milestone(self, name: str) -> Milestone:
        """Return the milestone of that name; a KeyError says that there is none."""
        milestone: Milestone = self.nodes[name]["milestone"]
        return milestone

    def __repr__(self) -> str:
        return f"MilestoneGraph({str(self.name) or Path(self.file or '').name!r}, {len(self)} milestones)"

    def _repr_html_(self) -> str:
        """Return the graph as a picture, as a notebook shows it."""
        from arq_graph.milestones.reports.graph_svg import render_svg  # which draws graphs of this class

        return render_svg(self)

    def compute_once(self, compute: Callable[[MilestoneGraph], T]) -> T:
        """Return `compute(graph)`, from a cache after the first time: a graph never changes."""
        if compute not in self._cache:
            self._cache[compute] = compute(self)
        value: T = self._cache[compute]
        return value


def iterate_constraints(graph: MilestoneGraph) -> Iterator[tuple[Milestone | Forbidden, Constraint]]:
    """Yield each constraint on an argument, with the milestone or the rule that has it."""
    rules: list[Milestone | Forbidden] = [*graph.milestones, *graph.forbidden]
    for rule in rules:
        mappings = [rule.arguments]
        if isinstance(rule, Forbidden):
            mappings.extend(rule.unless)
        for mapping in mappings:
            for constraint in mapping.values():
                yield rule, constraint


@lru_cache(maxsize=4096)
def _make_milestone(**fields: Any) -> Milestone:
    """Make a milestone without arguments and dependencies; many conversations call the same tools."""
    return Milestone(**fields)


def _parse_action(action: Any, position: int) -> tuple[str, Mapping[str, Any]]:
    if isinstance(action, Mapping):
        tool = action.get("name") or action.get("tool")
        arguments: Any = next(filter(None, map(action.get, _ARGUMENT_KEYS)), {})
        is_named = isinstance(arguments, Mapping) and all(isinstance(name, str) for name in arguments)
        if isinstance(tool, str) and is_named:
            return tool.strip(), arguments
    raise SpecError(f"action {position} isn't a call: give an object with `name` and `arguments`")
