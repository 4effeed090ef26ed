"""The commands and their options; each loads what it needs when it is called."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from arq_graph.cli.compare_command import compare
from arq_graph.cli.evaluate_command import evaluate
from arq_graph.cli.failures import reported, warn
from arq_graph.cli.milestones_command import milestones
from arq_graph.cli.options import (
    AgentFile,
    AsJson,
    BaseUrl,
    Database,
    Debug,
    MilestonesOption,
    Model,
    ModeOption,
    Png,
    StrategyOption,
    Thread,
    choice_of,
    loading,
)
from arq_graph.cli.score_command import score
from arq_graph.cli.settings import load_env_file
from arq_graph.cli.simulate_command import simulate
from arq_graph.cli.turns_command import turns

app = typer.Typer(
    name="arq-graph",
    help="Try an agent, run it over conversations, and see why it said what it said.",
    epilog="Exit codes: 0 done, 1 wrong input or an evaluation in which something went wrong, 2 wrong usage, 3 no "
    "answer from the model, 4 an operator is waited for, 130 Ctrl-C. Settings are read from the environment and from a "
    ".env file here.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            typer.echo(f"arq-graph {version('arq_graph')}")
        except PackageNotFoundError:
            typer.echo("arq-graph (not installed)")
        raise typer.Exit


@app.callback()
def _read_settings(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    for remark in load_env_file(Path(".env"), os.environ):
        warn(remark)


@app.command()
def demo(
    model: Model = None,
    base_url: BaseUrl = None,
    mode: ModeOption = "arq",
    strategy: StrategyOption = "tools",
    milestones: MilestonesOption = None,
    thread: Thread = None,
    db: Database = None,
    evaluation: Annotated[
        bool | None,
        typer.Option(
            "--evaluation/--no-evaluation",
            help="End with an evaluation against simulated users. Else with the offline model alone.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Watch the shipped order desk in a conversation, then with simulated users; needs no key."""
    with reported(debug):
        choice = choice_of(model, base_url)
        with loading():
            from arq_graph.cli.demo import demo_folder, hold_demo
            from arq_graph.cli.dialogue import Setup
        milestones = milestones or demo_folder() / "milestones.yaml"
        setup = Setup(demo_folder() / "agent.yaml", choice, mode, thread, db, strategy, milestones)
        hold_demo(setup, evaluation=evaluation)


@app.command()
def chat(
    agent: AgentFile,
    model: Model = None,
    base_url: BaseUrl = None,
    mode: ModeOption = "arq",
    strategy: StrategyOption = "tools",
    milestones: MilestonesOption = None,
    thread: Thread = None,
    db: Database = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show the replies alone.")] = False,
    debug: Debug = False,
) -> None:
    """Talk to an agent in the terminal.

    Calls that need an operator's word are put to you. Ctrl-C and Ctrl-D leave; the thread can be gone on with, and an
    unfinished turn is finished first.
    """
    with reported(debug):
        choice = choice_of(model, base_url)
        with loading():
            from arq_graph.cli.chat import chat_with
            from arq_graph.cli.dialogue import Setup
        setup = Setup(agent, choice, mode, thread, db, strategy, milestones)
        chat_with(setup, quiet=quiet)


@app.command()
def run(
    agent: AgentFile,
    conversation: Annotated[
        Path,
        typer.Option(
            "--conversation",
            "-c",
            metavar="FILE",
            help="What the customer says: a message a line, a JSON list, or JSON Lines with text or content. "
            "- reads standard input.",
        ),
    ],
    model: Model = None,
    base_url: BaseUrl = None,
    mode: ModeOption = "arq",
    strategy: StrategyOption = "tools",
    milestones: MilestonesOption = None,
    thread: Thread = None,
    db: Database = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Approve every call that needs an operator's word.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Hold a conversation from a file: one JSON line a turn.

    The same command with the --thread that it names goes on where an interrupted run stopped.
    """
    with reported(debug):
        choice = choice_of(model, base_url)
        with loading():
            from arq_graph.cli.dialogue import Setup
            from arq_graph.cli.run import run_conversation
        setup = Setup(agent, choice, mode, thread, db, strategy, milestones)
        run_conversation(setup, conversation, approve=approve)


@app.command()
def explain(
    thread: Annotated[
        str | None, typer.Option("--thread", "-t", metavar="ID", help="Else the thread used last.")
    ] = None,
    db: Database = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """See why the last reply is what it is: guidelines, tool decisions, revisions."""
    with reported(debug):
        with loading():
            from arq_graph.cli.explain import explain_thread
        explain_thread(thread, db, as_json)


@app.command()
def graph(
    agent: AgentFile,
    png: Png = None,
    debug: Debug = False,
) -> None:
    """Print the agent's graph as Mermaid."""
    with reported(debug):
        with loading():
            from arq_graph.cli.picture import draw_agent
        draw_agent(agent, png)


@app.command()
def prepare(agent: AgentFile, model: Model = None, base_url: BaseUrl = None, debug: Debug = False) -> None:
    """Ask once what never changes about the guidelines, and keep it beside the file."""
    with reported(debug):
        choice = choice_of(model, base_url)
        with loading():
            from arq_graph.cli.prepare import prepare_agent
        prepare_agent(agent, choice)


@app.command()
def check(agent: AgentFile, debug: Debug = False) -> None:
    """Read an agent as a run would, and see what is in it."""
    with reported(debug):
        with loading():
            from arq_graph.cli.check import check_agent
        check_agent(agent)


@app.command()
def schema(
    kind: Annotated[
        Literal["agent", "milestones", "suite"], typer.Argument(help="Which kind of file.", show_choices=True)
    ],
    debug: Debug = False,
) -> None:
    """Print the JSON Schema of a kind of file, for completion and checks in an editor."""
    with reported(debug):
        with loading():
            from pydantic import BaseModel

            from arq_graph.agent.spec import Agent
            from arq_graph.milestones.evaluation.suite import SuiteFile
            from arq_graph.milestones.graph_file import MilestoneFile
        models: dict[str, type[BaseModel]] = {"agent": Agent, "milestones": MilestoneFile, "suite": SuiteFile}
        typer.echo(json.dumps(models[kind].model_json_schema(), indent=2, ensure_ascii=False))


app.command()(score)
app.command()(compare)
app.command()(turns)
app.command()(evaluate)
app.command()(simulate)


app.add_typer(milestones)
