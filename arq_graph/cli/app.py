"""The commands by name; each is imported when it is called, because its libraries take a second to load."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from dotenv import dotenv_values
from typer.core import TyperCommand

from arq_graph.agent.regular_file import read_regular_file
from arq_graph.cli.command import CommandGroup, register_command
from arq_graph.cli.exit_codes import INTERRUPTED, NO_ANSWER, WRONG_INPUT, AnnouncedInterrupt
from arq_graph.cli.screen import note, safe_text, show_error, stderr_console, warn
from arq_graph.errors import ArqGraphError, ReasoningError

_COMMANDS = {
    "demo": "Watch the shipped order desk in a conversation, then with simulated users; needs no key.",
    "init": "Write a folder with an agent to start from, its tests, simulated customers, server and CI.",
    "chat": "Talk to an agent in the terminal.",
    "play": "Talk to an agent on a page of this machine, and see why it does what it does.",
    "run": "Run a conversation from a file, and print one JSON line per turn.",
    "explain": "See why a reply is what it is: guidelines, tool decisions, revisions.",
    "graph": "Print the agent's graph, or one of its journeys, as Mermaid.",
    "prepare": "Ask once what never changes about the guidelines, and save it beside the file.",
    "check": "Read an agent's file as a run would, and show what is in it.",
    "schema": "Print the JSON Schema of a kind of file, for completion and checks in an editor.",
    "score": "Measure how far recorded conversations got: goal completion and progress rate.",
    "compare": "See whether one of two reports is better, and how certain that is.",
    "turns": "Evaluate single turns: given the recorded history, is the next action the recorded one?",
    "finetune-data": "Turn recorded conversations into data for fine-tuning a planner's model.",
    "evaluate": "Try agents in conversations with simulated users, and measure how far each gets.",
    "experiment": "Compare modes, strategies or apps on a suite, beside the figures of the papers.",
    "simulate": "Watch one conversation of a simulated user with an agent, and the milestones as they are reached.",
    "milestones": "Check, draw or draft milestone files, which say what a conversation has to reach.",
}
_MODULES = {"check": "agent_file", "graph": "agent_file", "prepare": "agent_file", "schema": "agent_file"}
"""The modules of commands that have another name than their module."""

_KEY = "OPENAI_API_KEY"
_ENDPOINT_VARIABLES = ("ARQ_GRAPH_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE")


class Commands(CommandGroup):
    """Lists the commands without importing them; each is a function of the same name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=line) for name, line in _COMMANDS.items()}

    def invoke(self, ctx: Any) -> Any:
        """Run a command, after .env is loaded: the modules that it imports may read the environment."""
        with warnings.catch_warnings(), _report_errors(debug=ctx.params["_debug"]):
            warnings.showwarning = lambda message, *_, **__: warn(str(message))
            _load_env_file()
            result = super().invoke(ctx)
            sys.stdout.flush()  # a full disk or a reader that has gone shows here at the latest
            return result

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find a command by its name, and import it."""
        name, _, remaining_args = super().resolve_command(ctx, args)
        return name, _load_command(str(name)), remaining_args


def _load_command(name: str) -> Any:
    function_name = name.replace("-", "_")
    with stderr_console().status("loading …"):
        module = import_module(f"arq_graph.cli.{_MODULES.get(name, function_name)}")
    command = getattr(module, function_name)
    if isinstance(command, typer.Typer):
        return typer.main.get_group(command)
    command_app = typer.Typer(add_completion=False)
    register_command(command_app, name, command)
    return typer.main.get_command(command_app)


def _load_env_file() -> None:
    has_own_key = _KEY in os.environ
    try:
        entries = {}
        if Path(".env").exists():
            text = read_regular_file(".env").decode("utf-8-sig")
            entries = dotenv_values(stream=StringIO(text), interpolate=False)
        new_entries = {}
        for name, value in entries.items():
            if value is not None and name not in os.environ:
                new_entries[name] = value
        os.environ.update(new_entries)
    except (OSError, ValueError) as error:
        warn(f".env cannot be read: {error}")
        return
    for name in _ENDPOINT_VARIABLES:
        if has_own_key and name in new_entries:
            warn(
                f".env sets {name} to {new_entries[name]}: the {_KEY} of your environment will be sent there. Unset "
                "it, or give --base-url, if that is not what you want."
            )


@contextmanager
def _report_errors(*, debug: bool) -> Iterator[None]:
    """Turn an error into a message on standard error and an exit code."""
    try:
        yield
    except KeyboardInterrupt as error:
        if not isinstance(error, AnnouncedInterrupt):
            note("Interrupted.")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        raise  # nobody reads the output any more: Typer ends without a message
    except (Exception, SystemExit) as error:
        if hasattr(error, "exit_code"):
            raise  # Typer's own: the command line is wrong, or the command is done
        if debug:
            stderr_console().print(safe_text("".join(traceback.format_exception(error))), soft_wrap=True)
        show_error(error, _describe(error))
        _flush_output()
        code = NO_ANSWER if isinstance(error, ReasoningError) else WRONG_INPUT
        raise typer.Exit(code) from None


def _flush_output() -> None:
    with suppress(OSError, ValueError):
        try:
            sys.stdout.flush()
        except OSError:
            # What is still buffered would fail once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe(error: BaseException) -> str:
    if isinstance(error, ArqGraphError):
        return str(error)
    if isinstance(error, SystemExit):
        return f"a module or tool of the agent ended the program (exit code {error.code})"
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"the disk is full: {error.filename or 'the output'} could not be written"
    last_frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"unexpected {type(error).__name__}: {error} in {last_frame.filename}, line {last_frame.lineno}. This should "
        "not happen: `arq-graph --debug …` shows where it comes from."
    )


app = typer.Typer(
    name="arq-graph",
    cls=Commands,
    help="Try an agent, run it over conversations, and see why it said what it said.",
    epilog="Exit codes: 0 done, 1 something that you name cannot be used, or something went wrong, 2 the command "
    "line is wrong, 3 no answer from the model, 4 a call or the conversation waits for a person, 5 a threshold was "
    "missed, 130 Ctrl-C. Settings are read from the environment and from a .env file in the current folder.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"arq-graph {version('arq_graph')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    pass
