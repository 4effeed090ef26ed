"""Who may import whom: each layer only what is below it, so that a part can be understood without those above.

cli
apps
nodes         milestones
agent
reasoning
models
errors
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import arq_graph

BELOW = {
    "errors": set(),
    "models": {"errors"},
    "reasoning": {"errors", "models"},
    "agent": {"errors", "models", "reasoning"},
    "milestones": {"errors", "models", "reasoning", "agent"},
    "nodes": {"errors", "models", "reasoning", "agent"},
    "apps": {"errors", "models", "reasoning", "agent", "nodes", "milestones"},
    "cli": {"errors", "models", "reasoning", "agent", "nodes", "milestones", "apps", "examples"},
}
# Live progress: a node may measure how far the conversation got, as whoever scores the finished thread does.
ALSO = {
    "nodes": (
        "arq_graph.milestones.graph",
        "arq_graph.milestones.measure",
        "arq_graph.milestones.scoring",
        "arq_graph.milestones.judging.judge",
        "arq_graph.milestones.transcripts.messages",
        "arq_graph.milestones.grounding",
        "arq_graph.milestones.transcript",
    )
}
LANGGRAPH = {"nodes", "apps", "cli"}  # and of `agent` the state alone
ONLY_IN_FUNCTIONS = {"langchain_openai", "openai", "typer", "rich"}


def modules() -> Iterator[tuple[str, str, ast.Module]]:
    """Every module of the package: its layer, its name, its code."""
    for layer in BELOW:
        package = importlib.import_module(f"arq_graph.{layer}")
        for root in getattr(package, "__path__", ()):
            for path in sorted(Path(root).rglob("*.py")):
                inner = ".".join(path.relative_to(root).with_suffix("").parts)
                yield (
                    layer,
                    f"arq_graph.{layer}.{inner}".removesuffix(".__init__"),
                    ast.parse(path.read_text()),
                )
    errors = Path(arq_graph.__file__).with_name("errors.py")
    yield "errors", "arq_graph.errors", ast.parse(errors.read_text())


def imports(tree: ast.AST, *, top_only: bool = False) -> Iterator[str]:
    """Names of what a module imports, in functions too, but not for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and top_only:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, ast.unparse(node)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        else:
            yield from imports(node, top_only=top_only)


MODULES = list(modules())


def test_every_layer_has_modules():
    assert {layer for layer, *_ in MODULES} == set(BELOW)


@pytest.mark.parametrize("layer", BELOW)
def test_a_layer_imports_only_from_itself_and_those_below(layer):
    allowed = {layer, "lazy", *BELOW[layer]}
    wrong = [
        f"{name} imports {imported}"
        for of, name, tree in MODULES
        for imported in imports(tree)
        if of == layer and imported.startswith("arq_graph.") and not imported.startswith(ALSO.get(layer, "-"))
        if imported.split(".")[1] not in allowed
    ]
    assert wrong == []


def test_only_the_upper_layers_and_the_state_import_langgraph():
    wrong = [
        f"{name} imports {imported}"
        for layer, name, tree in MODULES
        for imported in imports(tree)
        if layer not in LANGGRAPH
        and name != "arq_graph.agent.state"
        and imported.split(".")[0] == "langgraph"
    ]
    assert wrong == []


@pytest.mark.parametrize("layer", BELOW)
def test_what_is_slow_to_import_is_imported_where_it_is_used(layer):
    slow = ONLY_IN_FUNCTIONS - ({"typer", "rich"} if layer == "cli" else set())
    slow |= set() if layer in ("milestones", "cli") else {"networkx"}
    wrong = [
        f"{name} imports {imported} at its top"
        for of, name, tree in MODULES
        for imported in imports(tree, top_only=True)
        if of == layer and imported.split(".")[0] in slow
    ]
    assert wrong == []


def test_modules_import_from_modules_and_not_from_the_package_that_collects_them():
    wrong = [
        f"{name} imports {imported}"
        for _, name, tree in MODULES
        for imported in imports(tree)
        if imported.rpartition(".")[0] == "arq_graph" and imported.rpartition(".")[2] not in BELOW
    ]
    assert wrong == []
