"""Packages whose names load their modules when they are first used, so that importing them stays light."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def lazily(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's `__getattr__` and `__dir__`.

    Args:
        package: The package's name.
        modules: For each of its public names, the module that defines it.
    """

    def get(name: str) -> Any:
        if name in modules:
            return getattr(import_module(modules[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(modules)


def lazily_imported(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make a package's `__getattr__`, `__dir__` and `__all__` of the imports that it shows to type checkers.

    Each public name is written once: as `from module import Name as Name` under `if TYPE_CHECKING:`.

    Args:
        package: The package's name.
        file: The file of its code.
    """
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    modules = {
        alias.name: str(node.module)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    get, names = lazily(package, modules)
    return get, names, names()
