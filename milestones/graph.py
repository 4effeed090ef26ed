"""The milestone graph: a networkx `DiGraph` whose edges lead from a dependency to what depends on it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import networkx as nx

from arq_graph.errors import SpecError
from arq_graph.milestones.constraints import Constraint
from arq_graph.milestones.milestone import END, START, Forbidden, Milestone, Reviewed
from arq_graph.milestones.patterns import Pattern
from arq_graph.milestones.values import same_value

if TYPE_CHECKING:
    from arq_graph.milestones.findings import Findings

    _DiGraph = nx.DiGraph[str]
else:
    _DiGraph = nx.DiGraph

T = TypeVar("T")
_START = Milestone(name=START, type="NFC")


class MilestoneGraph(_DiGraph):
    """The milestones of one use case and how they depend on each other (Pre-Act, 4.3).

    It is a `DiGraph`, so any networkx algorithm takes it; each node has its `Milestone` as the attribute
    `milestone`. It cannot be changed once it is made; a graph that networkx copies from it can.

    Args:
        milestones: The milestones, in any order; `Start` and `End` among them.
        failed_if: A tool's result in which this pattern occurs is a failed call.
        grounded: `strict`: a call with an argument that nobody gave before is no genuine call.
        forbidden: What must not happen, as in a milestone file.
        file: The file it was read from, for messages and for functions that stand beside it.
        generated_by: The model that drafted it; None: a person wrote it.
        reviewed: Who looked it over, and when; None: nobody has said so.
        vetoes: Whether a judge may veto calls that code saw.

    Raises:
        SpecError: Two milestones have one name.
        ValueError: `failed_if` is no regular expression.
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
        self._made: dict[Callable[[MilestoneGraph], Any], Any] = {}
        self.milestones = tuple(milestones)
        self.failed_if = Pattern(failed_if) if isinstance(failed_if, str) else failed_if
        self.grounded = grounded
        self.forbidden = tuple(map(Forbidden.model_validate, forbidden))
        self.file = file
        self.generated_by = generated_by
        self.reviewed = reviewed
        self.vetoes = vetoes
        for milestone in self.milestones:
            if milestone.name in self:
                first = self.milestone(milestone.name).line
                raise SpecError(
                    f"two milestones are named {milestone.name!r}"
                    f"{f' (the first is in line {first})' if first else ''}; give each its own name",
                    file=file,
                    line=milestone.line,
                )
            self.add_node(milestone.name, milestone=milestone)
        for milestone in self.milestones:
            implied = () if milestone.name == START else (START,)
            for dependency in milestone.dependencies or implied:
                if dependency in self:
                    self.add_edge(dependency, milestone.name)
        if self.milestones:
            nx.freeze(self)

    def __getstate__(self) -> dict[str, Any]:
        # What was computed from the graph may hold functions of the user's own, which cannot be pickled.
        return {**self.__dict__, "_made": {}}

    def once(self, make: Callable[[MilestoneGraph], T]) -> T:
        """What is made of the graph; it is made once, as a graph never changes."""
        if make not in self._made:
            self._made[make] = make(self)
        made: T = self._made[make]
        return made

    @classmethod
    def from_yaml(cls, path: str | Path, *, check: bool = True) -> MilestoneGraph:
        """Read a milestone file: the paper's YAML (Appendix F), with the optional keys.

        Args:
            path: The file.
            check: Refuse a graph that cannot be measured on, and give what is doubtful as warnings of Python's.
                False: read it as it stands; `check()` gives both as data.

        Raises:
            SpecError: The file cannot be read, or the graph cannot be measured on; file and line are named.
        """
        from arq_graph.agent.yaml_file import read_text  # a graph made in Python needs none of it
        from arq_graph.milestones.findings import require_sound

        graph = cls.parse_yaml(read_text(path, what="milestone file"), file=str(path))
        if check:
            require_sound(graph)
            for finding in graph.check().warnings:
                warnings.warn(f"{path}: {finding}", stacklevel=2)
        return graph

    @classmethod
    def parse_yaml(cls, text: str, *, file: str | None = None) -> MilestoneGraph:
        """Read the text of a milestone file as it stands; `check()` says what is wrong with the graph.

        Args:
            text: The YAML.
            file: The file it came from, for messages and for functions that stand beside it.

        Raises:
            SpecError: It is no YAML, or no list of milestones; the line is named.
        """
        from arq_graph.milestones.graph_file import parsed

        return cls(**parsed(text, file or "<text>"), file=file)

    def to_yaml(self) -> str:
        """The graph as the text of a milestone file; reading it gives an equal graph."""
        from arq_graph.milestones.graph_file import written

        return written(self)

    @classmethod
    def from_actions(
        cls,
        actions: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        failed_if: Pattern | str | None = None,
        forbidden: Iterable[Forbidden | Mapping[str, Any]] = (),
    ) -> MilestoneGraph:
        """A graph from a gold list of tool calls: End is reached when all were made.

        A call counts if it was made with these arguments, whatever others it had.

        Args:
            actions: The calls: `name` or `tool`, and `kwargs`, `arguments` or `args`. A call listed twice must
                be made twice. An empty list makes a graph on which nothing can be measured.
            ordered: Each call must come after the one before it; otherwise in any order.
            failed_if: A result in which this pattern occurs is a failed call.
            forbidden: What must not happen, as in a milestone file.

        Raises:
            SpecError: An action has no name, or its arguments are no mapping.
        """
        gold: list[Milestone] = []
        uses = Counter((START, END))
        # One call must not serve two entries of the list: the second of two equal ones follows the first.
        listed: dict[str, list[tuple[Mapping[str, Any], str]]] = {}
        for position, action in enumerate(actions, start=1):
            tool, arguments = _action(action, position)
            uses[tool] += 1
            name = tool if uses[tool] == 1 else f"{tool} ({uses[tool]})"
            of_tool = listed.setdefault(tool, [])
            equal = next((other for one, other in reversed(of_tool) if same_value(one, arguments)), None)
            before = gold[-1].name if ordered and gold else equal
            exactly = {key: Constraint(equals=value) for key, value in arguments.items()}
            called = {"tool": None if name == tool else tool, "arguments": exactly}
            gold.append(Milestone(name=name, type="FC", dependencies=(before or START,), **called))
            of_tool.append((arguments, name))
        last = tuple(milestone.name for milestone in (gold[-1:] if ordered else gold))
        end = Milestone(name=END, type="NFC", dependencies=last, requires="all")
        return cls([_START, *gold, end], failed_if=failed_if, forbidden=forbidden)

    def toward(self, goal: str) -> MilestoneGraph:
        """The graph in which End requires this milestone beside what it depends on.

        It is the graph itself where every road to End leads over the milestone anyway.

        Raises:
            KeyError: There is no such milestone.
            SpecError: The graph cannot be measured on.
        """
        from arq_graph.milestones.findings import require_sound
        from arq_graph.milestones.fixpoints import leads_past

        structure, end = require_sound(self), self.milestone(END)
        if goal == END or not leads_past(structure, structure.number[goal]):
            return self
        road = {"requires": end.requires, "dependencies": end.dependencies}
        some = Milestone(name="End Of Some Road", type="Aggregator", **road)
        both = end.model_copy(update={"requires": "all", "dependencies": (some.name, goal)})
        others = [each for each in self.milestones if each is not end]
        keys = ("failed_if", "grounded", "forbidden", "file", "generated_by", "reviewed", "vetoes")
        graph = MilestoneGraph([*others, some, both], **{key: getattr(self, key) for key in keys})
        graph.name = f"{self.name or Path(self.file or 'milestones').stem}: {goal}"
        return graph

    @property
    def is_unreviewed(self) -> bool:
        """Whether a model drafted it and nobody has looked it over; what it measures is then doubtful."""
        return self.generated_by is not None and self.reviewed is None

    def milestone(self, name: str) -> Milestone:
        """The milestone of that name.

        Raises:
            KeyError: There is none.
        """
        milestone: Milestone = self.nodes[name]["milestone"]
        return milestone

    def check(self, tools: Any = None) -> Findings:
        """What is wrong with the graph, and what is doubtful, each with its line.

        Args:
            tools: The agent's tools: names, LangChain tools or OpenAI tool definitions; None: not compared.
        """
        from arq_graph.milestones.findings import check

        return check(self, tools)


def _action(action: Any, position: int) -> tuple[str, Mapping[str, Any]]:
    given = action if isinstance(action, Mapping) else {}
    tool = given.get("name") or given.get("tool")
    keys = ("kwargs", "arguments", "args")
    arguments: Any = next((given[key] for key in keys if given.get(key) is not None), {})
    if not isinstance(tool, str) or not isinstance(arguments, Mapping):
        raise SpecError(f"action {position} is no call: give an object with `name` and `arguments`")
    return tool, arguments
