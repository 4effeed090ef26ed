"""The milestone graph: a networkx `DiGraph` whose edges lead from a dependency to what depends on it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import networkx as nx

from arq_graph.errors import SpecError
from arq_graph.milestones.constraints import Equals
from arq_graph.milestones.milestone import END, START, Forbidden, Milestone
from arq_graph.milestones.patterns import Pattern
from arq_graph.milestones.review import Review

if TYPE_CHECKING:
    from arq_graph.milestones.findings import Findings

    _DiGraph = nx.DiGraph[str]
else:
    _DiGraph = nx.DiGraph


class MilestoneGraph(_DiGraph):
    """The milestones of one use case and how they depend on each other (Pre-Act, 4.3).

    It is a `DiGraph`, so any networkx algorithm takes it. Each node has the attributes `type`, `requires`,
    `weight`, `holds` and `milestone` (the whole `Milestone`). It cannot be changed once it is made; a graph
    that networkx copies from it can.

    Args:
        milestones: The milestones, in any order; `Start` and `End` among them.
        failed_if: A tool's result in which this pattern occurs is a failed call.
        grounded: `strict`: a call with an argument that nobody gave before is no genuine call.
        forbidden: What must not happen.
        file: The file it was read from, for messages and for functions that stand beside it.
        review: Who made it and who looked it over; None: nothing is said about that.

    Raises:
        SpecError: Two milestones have one name.
    """

    milestones: tuple[Milestone, ...] = ()
    failed_if: Pattern | None = None
    grounded: Literal["strict"] | None = None
    forbidden: tuple[Forbidden, ...] = ()
    file: str | None = None
    review: Review | None = None

    def __init__(
        self,
        milestones: Iterable[Milestone] = (),
        *,
        failed_if: Pattern | None = None,
        grounded: Literal["strict"] | None = None,
        forbidden: Iterable[Forbidden] = (),
        file: str | None = None,
        review: Review | None = None,
    ) -> None:
        super().__init__()
        self.milestones = tuple(milestones)
        self.failed_if = failed_if
        self.grounded = grounded
        self.forbidden = tuple(forbidden)
        self.file = file
        self.review = review
        for milestone in self.milestones:
            if milestone.name in self:
                first = self.milestone(milestone.name).line
                raise SpecError(
                    f"two milestones are named {milestone.name!r}"
                    f"{f' (the first is in line {first})' if first else ''}; give each its own name",
                    file=file,
                    line=milestone.line,
                )
            self.add_node(
                milestone.name,
                type=milestone.type,
                requires="all" if milestone.type == "Aggregator" else milestone.requires,
                weight=milestone.weight,
                holds=milestone.holds,
                milestone=milestone,
            )
        for milestone in self.milestones:
            implied = () if milestone.name == START else (START,)
            for dependency in milestone.dependencies or implied:
                if dependency in self:
                    self.add_edge(dependency, milestone.name)
        if self.milestones:
            # What is computed once per graph stays true only while the graph stays as it is.
            nx.freeze(self)

    def __getstate__(self) -> dict[str, Any]:
        # What was computed from the graph may hold functions of the user's own, which cannot be pickled.
        return {key: value for key, value in self.__dict__.items() if key not in ("_structure", "_rules")}

    @classmethod
    def from_yaml(cls, path: str | Path) -> MilestoneGraph:
        """Read a milestone file: the paper's YAML (Appendix F), with the optional keys.

        What is doubtful is given as a warning of Python's; `read_yaml` and `check()` give it as data.

        Args:
            path: The file.

        Raises:
            SpecError: The file cannot be read, or the graph cannot be measured on; file and line are named.
        """
        from arq_graph.milestones.yaml_file import load_graph

        return load_graph(Path(path))

    def to_yaml(self) -> str:
        """The graph as the text of a milestone file; reading it gives an equal graph."""
        from arq_graph.milestones.yaml_writing import write_yaml

        return write_yaml(self)

    @classmethod
    def from_actions(
        cls,
        actions: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        failed_if: str | None = None,
        grounded: Literal["strict"] | None = None,
        forbidden: Iterable[Forbidden] = (),
    ) -> MilestoneGraph:
        """A graph from a gold list of tool calls: End is reached when all were made.

        A call counts if it was made with these arguments, whatever others it had.

        Args:
            actions: The calls: `name` or `tool`, and `kwargs`, `arguments` or `args`. A call listed twice must
                be made twice. An empty list makes a graph on which nothing can be measured.
            ordered: Each call must come after the one before it; otherwise in any order.
            failed_if: A result in which this pattern occurs is a failed call.
            grounded: `strict`: a call with an argument that nobody gave before does not count.
            forbidden: What must not happen.

        Raises:
            SpecError: An action has no name, or its arguments are no mapping.
        """
        gold: list[Milestone] = []
        taken = {START, END}
        uses: Counter[str] = Counter()
        # The last milestone that asks for this very call: one call must not serve two entries of the list.
        same: dict[str, str] = {}
        for position, action in enumerate(actions, start=1):
            tool, arguments = _action(action, position)
            name = tool
            while name in taken or not uses[tool]:
                uses[tool] += 1
                name = tool if uses[tool] == 1 else f"{tool} ({uses[tool]})"
            taken.add(name)
            key = json.dumps([tool, _plain(arguments)], sort_keys=True, default=str)
            before = gold[-1].name if ordered and gold else same.get(key)
            gold.append(
                Milestone(
                    name,
                    "FC",
                    dependencies=(before or START,),
                    tool=None if name == tool else tool,
                    arguments={argument: Equals(value) for argument, value in arguments.items()},
                )
            )
            same[key] = name
        last = tuple(milestone.name for milestone in (gold[-1:] if ordered else gold))
        end = Milestone(END, "NFC", dependencies=last or (START,), requires="any" if ordered else "all")
        return cls(
            [Milestone(START, "NFC"), *gold, end],
            failed_if=Pattern(failed_if) if failed_if else None,
            grounded=grounded,
            forbidden=forbidden,
        )

    @property
    def is_unreviewed(self) -> bool:
        """Whether it is known that no person has been through all of it; what it measures is then doubtful."""
        return self.review is not None and not self.review.reviewed

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


def _plain(value: Any) -> Any:
    """The value, with one text for all that `Equals` takes for the same: 1.0 is written as 1."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _action(action: Any, position: int) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(action, Mapping):
        raise SpecError(
            f"action {position} is a {type(action).__name__}, not an object with `name` and `arguments`"
        )
    tool = action.get("name") or action.get("tool")
    if not isinstance(tool, str):
        raise SpecError(f"action {position} names no tool; give it a `name`")
    for key in ("kwargs", "arguments", "args"):
        arguments = action.get(key)
        if arguments is not None:
            if not isinstance(arguments, Mapping):
                raise SpecError(
                    f"the arguments of action {position} ({tool}) are no mapping of names to values"
                )
            return tool, arguments
    return tool, {}
