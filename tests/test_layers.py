"""Who may import whom: each part only those before it, so that it can be understood without those after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import arq_graph
from arq_graph import milestones, nodes

ORDER = [
    "errors",
    "models",
    "reasoning",
    "agent",
    "milestones",
    "nodes",
    "apps",
    "middleware",
    "experiments",
    "cli",
    "__main__",
]
MAY_IMPORT_LANGGRAPH = (
    *(
        "arq_graph.nodes.",
        "arq_graph.middleware.",
        "arq_graph.apps.",
        "arq_graph.experiments.",
        "arq_graph.cli.",
    ),
    "arq_graph.agent.state",
)


def sources() -> Iterator[tuple[str, ast.Module]]:
    for package in (arq_graph, nodes, milestones):
        root = Path(package.__file__).parent
        for path in root.rglob("*.py"):
            inner = path.relative_to(root).with_suffix("").parts
            name = ".".join([package.__name__, *inner]).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST, *, at_the_top: bool = False) -> Iterator[str]:
    """What a module imports, except for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if for_types or (at_the_top and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imported(node, at_the_top=at_the_top)


SOURCES = dict(sources())
INSIDE = {name: name.split(".")[1] for name in SOURCES if "." in name}


def test_a_part_imports_only_from_itself_and_those_before_it() -> None:
    assert {part for part in INSIDE.values() if part != "examples"} == set(ORDER)
    wrong = [
        f"{name} imports {other}"
        for name, part in INSIDE.items()
        for other in imported(SOURCES[name])
        if other.startswith("arq_graph.") and (later := other.split(".")[1]) in ORDER
        if part not in ORDER or ORDER.index(later) > ORDER.index(part)
    ]
    assert wrong == []


def test_below_the_nodes_only_the_state_imports_langgraph() -> None:
    wrong = [
        f"{name} imports {other}"
        for name, tree in SOURCES.items()
        for other in imported(tree)
        if other.split(".")[0] == "langgraph" and not f"{name}.".startswith(MAY_IMPORT_LANGGRAPH)
    ]
    assert wrong == []


def test_no_two_files_need_each_other() -> None:
    needs: dict[str, set[str]] = {}
    for name, tree in SOURCES.items():
        found = {(other, other.rpartition(".")[0]) for other in imported(tree, at_the_top=True)}
        needs[name] = {other for pair in found for other in pair if other in SOURCES} - {name}
    TopologicalSorter(needs).prepare()  # a CycleError names the circle
