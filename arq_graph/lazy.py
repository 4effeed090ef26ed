"""Packages whose names load their modules when they are first used, so that importing them stays light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
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
