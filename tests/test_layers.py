"""Imports point down: each layer can be understood without those above it."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import arq_graph
from arq_graph import milestones, nodes

# From the bottom up.
LAYERS = [
    "errors",
    "models",
    "reasoning",
    "agent",
    "milestones",
    "nodes",
    "apps",
    "middleware",
    "agui",
    "testing",
    "experiments",
    "play",
    "cli",
    "__main__",
]
MAY_IMPORT_LANGGRAPH = (
    "arq_graph.agent.state",
    "arq_graph.milestones.evaluation.",
    "arq_graph.nodes.",
    "arq_graph.apps.",
    "arq_graph.middleware",
    "arq_graph.agui",
    "arq_graph.testing.",
    "arq_graph.experiments.",
    "arq_graph.play.",
    "arq_graph.cli.",
)


def parse_modules() -> Iterator[tuple[str, ast.Module]]:
    for package in (arq_graph, nodes, milestones):
        root = Path(package.__file__).parent
        for path in root.rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join([package.__name__, *parts]).removesuffix(".__init__")
            yield name, ast.parse(path.read_text(encoding="utf-8"))


def find_imports(tree: ast.Module) -> Iterator[str]:
    """Yield every module that a module imports: at the top, in functions and for type checkers only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full_name = f"{node.module}.{alias.name}"
                yield full_name if full_name in MODULES else node.module


MODULES = dict(parse_modules())
IMPORTS = {name: set(find_imports(tree)) - {name} for name, tree in MODULES.items()}


def get_layer(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "arq_graph" else None


def test_imports_point_down() -> None:
    wrong = []
    for module, imports in IMPORTS.items():
        layer = get_layer(module)
        if layer in (None, "examples"):
            continue
        for imported in imports:
            imported_layer = get_layer(imported)
            if imported_layer and LAYERS.index(imported_layer) > LAYERS.index(layer):
                wrong.append(f"{module} imports {imported}")
    assert wrong == []


def test_only_the_state_evaluations_and_what_is_above_import_langgraph() -> None:
    wrong = []
    for module, imports in IMPORTS.items():
        if not module.startswith(MAY_IMPORT_LANGGRAPH):
            wrong += [f"{module} imports {name}" for name in imports if name.split(".")[0] == "langgraph"]
    assert wrong == []


def test_no_modules_import_each_other() -> None:
    inner_imports = {module: imports & MODULES.keys() for module, imports in IMPORTS.items()}
    TopologicalSorter(inner_imports).prepare()  # a CycleError names the circle
