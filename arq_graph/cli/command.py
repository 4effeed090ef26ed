"""Commands whose help shows no Python types and breaks whole paragraphs to the width of the terminal."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help shows no Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options."""
        return _hide_types(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands whose help shows no Python types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options."""
        return _hide_types(super().get_params(ctx))


def _show_no_type(ctx: Any) -> None:  # noqa: ARG001
    return None


def _hide_types(params: list[Any]) -> list[Any]:
    for param in params:
        if isinstance(param, TyperArgument):
            descriptor = getattr(param, "type_descriptor", None)  # older versions of Typer print no such type
            if descriptor is not None and not descriptor.is_choice:
                param.display_type_rich = _show_no_type  # type: ignore[method-assign]
        elif param.is_flag:
            param.metavar = ""
    return params


def register_command(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a function as a command; its docstring is the help."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(name, cls=Command, help=help)(function)
