"""A milestone graph as Mermaid text."""

from __future__ import annotations

import re

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import END, START, Milestone

_SPECIAL = re.compile(r"[^\w ,'/]|_(?=_)")
_LONGEST_LABEL = 200

LEGEND = (
    "%% [box]: a tool's call; (rounded): a state; {{hexagon}}: a join; ((circle)): Start and End\n"
    "%% solid arrow: needed; dashed arrow: one of several alternatives"
)


def mermaid(graph: MilestoneGraph) -> str:
    """The graph as a Mermaid flowchart.

    FCs, NFCs and joins differ in shape. Arrows are dashed where one of several dependencies is enough. Names
    are escaped: whatever stands in them is shown, and nothing of it is taken for Mermaid.

    Args:
        graph: The graph; dependencies that are no milestones are left out.
    """
    numbers = {name: number for number, name in enumerate(graph)}
    lines = ["flowchart TD", *LEGEND.splitlines()]
    lines += [f"  m{numbers[each.name]}{_shape(each)}" for each in graph.milestones]
    for name in graph:
        before = list(graph.predecessors(name))
        is_alternative = len(before) > 1 and graph.milestone(name).requires == "any"
        arrow = "-.->" if is_alternative else "-->"
        lines += [f"  m{numbers[dependency]} {arrow} m{numbers[name]}" for dependency in before]
    return "\n".join(lines) + "\n"


def _shape(milestone: Milestone) -> str:
    shown = milestone.name if milestone.tool is None else f"{milestone.name} ({milestone.tool})"
    label = f'"{_escaped(" ".join(shown.split())[:_LONGEST_LABEL])}"'
    if milestone.name in (START, END):
        return f"(({label}))"
    if milestone.type == "FC":
        return f"[{label}]"
    if milestone.type == "NFC":
        return f"({label})"
    return f"{{{{{label}}}}}"


def _escaped(label: str) -> str:
    # Mermaid writes a character by its number: #34; is a quote. A list's "1." or "-" is no plain text to it.
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", label)
