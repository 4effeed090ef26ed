"""Options that several commands have: they mean the same, so they say the same, and are written once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
import typer

from arq_graph.cli.app import app

SHARED = ("model", "user_model", "judge", "base_url", "mode", "html", "as_json", "db", "debug", "suite")


def options(commands: typer.Typer) -> Iterator[tuple[str, Any]]:
    """Each argument and option of each command: its name in code, and what it was declared with."""
    for command in commands.registered_commands:
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            yield from ((name, declared) for declared in get_args(hint)[1:] if hasattr(declared, "metavar"))
    for group in commands.registered_groups:
        yield from options(group.typer_instance)


def test_no_help_is_written_twice():
    written: dict[str, Any] = {}
    for _, declared in options(app):
        assert written.setdefault(declared.help, declared) is declared, declared.help
    assert len(written) > 20


@pytest.mark.parametrize("name", SHARED)
def test_an_option_of_several_commands_says_the_same_in_each(name):
    said = [declared.help for option, declared in options(app) if option == name]
    assert len(said) > 1
    assert len(set(said)) == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("score", "--html OUT Write a page to look at; it needs no network."),
        ("evaluate", "--html OUT Write a page to look at; it needs no network."),
        ("score", "--json OUT Write the report for programs and `compare`."),
        ("evaluate", "--json OUT Write the report for programs and `compare`."),
        ("simulate", "--judge MODEL Decides what code cannot: openai:gpt-4o, offline, … Else nobody."),
        ("compare", "--json <bool> One JSON object, for programs."),
    ],
)
def test_the_help_shows_them(cli, command, said):
    assert said in " ".join(cli(command, "--help").words.replace("│", " ").split())
