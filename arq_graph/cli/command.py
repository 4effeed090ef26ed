"""Commands whose help is in words: no Python types or ranges, and paragraphs as wide as the terminal."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command whose help is in words."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options."""
        return _leave_words(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A group of commands whose help is in words."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options."""
        return _leave_words(super().get_params(ctx))


def _show_nothing(ctx: Any = None) -> None:  # noqa: ARG001
    return None


def _leave_words(params: list[Any]) -> list[Any]:
    """Hide what Typer adds to the help of each option and argument: its text says the default and the range."""
    for param in params:
        param.show_default = False
        param._get_number_range_help_str = _show_nothing
        if isinstance(param, TyperArgument):
            param.display_type_rich = _show_nothing  # type: ignore[method-assign]
        elif param.is_flag:
            param.metavar = ""
    return params


def register_command(app: typer.Typer, name: str, function: Callable[..., None]) -> None:
    """Add a function as a command; its docstring is the help."""
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    help = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    app.command(name, cls=Command, help=help)(function)
