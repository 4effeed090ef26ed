"""Declare the options and arguments that several commands share, each once."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, BadParameter, Option

from arq_graph.reasoning.blueprint import Mode


def declare_count(name: str, help: str, **settings: Any) -> Any:
    """Declare an option that takes a number from 1."""
    return Option(name, min=1, metavar="N", help=help, **settings)


def declare_file(name: str, help: str) -> Any:
    """Declare an option that takes a file."""
    return Option(name, metavar="FILE", help=help)


def _declare_names(name: str, help: str) -> Any:
    """Declare an option that takes names, separated by commas, and can be repeated."""
    return Option(name, metavar="NAME,…", callback=_split_names, help=help)


def _split_names(values: list[str] | None) -> list[str]:
    if not values:
        return []
    names = [name.strip() for name in ",".join(values).split(",")]
    if not any(names):
        raise BadParameter("it is empty: name at least one, or leave the option out")
    return [name for name in names if name]


def _check_limits(values: list[str] | None) -> list[str]:
    for value in values or []:
        if not re.fullmatch(r".+=\d+", value):
            raise BadParameter(f"{value}: it must be written NAME=N, such as no-promises=0")
    return values or []


# Files

AgentFile = Annotated[Path, Argument(metavar="AGENT.yaml", help="The agent's file.")]
AgentOption = Annotated[
    Path | None,
    Option("--agent", metavar="AGENT.yaml", help="The agent's file, for its tools and instructions."),
]
SuiteFile = Annotated[Path, Argument(metavar="SUITE.yaml", help="The file of scenarios.")]
Transcripts = Annotated[
    list[Path],
    Argument(
        metavar="TRANSCRIPTS",
        help="Recorded conversations of any agent: JSON or JSON Lines files, folders, or the threads of `chat`.",
    ),
]
Tools = Annotated[
    list[str] | None,
    Option(
        "--tools",
        metavar="TOOLS",
        help="Tools as module:function, file.yaml:tool, or a file of tools or an agent. Can be repeated.",
    ),
]
MilestonesOption = Annotated[
    Path | None, declare_file("--milestones", "Measure the conversation on these milestones.")
]
Journey = Annotated[
    str | None,
    Option("--journey", metavar="ID", help="A journey of the agent, in the place of a milestone file."),
]
HtmlOut = Annotated[
    Path | None, declare_file("--html", "Write a page to explore, as one file that needs no network.")
]
ReportOut = Annotated[
    Path | None, declare_file("--json", "Write the report as JSON, for programs and `compare`.")
]
CsvOut = Annotated[
    Path | None, declare_file("--csv", "Write a row for each conversation, for spreadsheets and data frames.")
]
Verbose = Annotated[bool, Option("--verbose", "-v", help="Print all tables, not only the first figures.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object, for programs.")]

# Models

Model = Annotated[
    str | None,
    Option(
        "--model",
        "-m",
        metavar="NAME",
        help="openai:gpt-4o, offline, … Default: $ARQ_GRAPH_MODEL, else openai:gpt-4o with a key, else offline.",
    ),
]
ModelArgs = Annotated[
    list[str] | None,
    Option(
        "--model-arg",
        metavar="NAME=VALUE",
        help="An argument of the model, such as reasoning_effort=low. Can be repeated.",
    ),
]
BaseUrl = Annotated[
    str | None,
    Option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint. Default: $ARQ_GRAPH_BASE_URL."),
]
_USER_HELP = "The model that plays the user. Default: none; code plays the user."
UserModel = Annotated[str | None, Option("--user-model", metavar="NAME", help=_USER_HELP)]
_JUDGE_HELP = "The model that decides what code cannot. Default: none."
Judge = Annotated[str | None, Option("--judge", metavar="NAME", help=_JUDGE_HELP)]
Votes = Annotated[
    int, declare_count("--votes", "How often to ask the judge; the majority decides. Default: 1.")
]

# The agent and its threads

_MODE_HELP = "How much the model reasons before it answers. Default: arq."
ModeOption = Annotated[Mode, Option("--mode", metavar="arq|cot|direct", help=_MODE_HELP)]
Thread = Annotated[
    str | None,
    Option("--thread", "-t", metavar="ID", help="Continue this thread, or start it. Default: a new one."),
]
Database = Annotated[
    Path | None, declare_file("--db", "Where threads are saved. Default: .arq_graph/threads.sqlite.")
]

# Evaluations

ArmNames = Annotated[
    list[str] | None,
    _declare_names(
        "--arms",
        "The agent configurations to try: guided, arq, cot, direct, react, pre-act, respact, create_agent, …, or "
        "module:function. Default: guided; in `experiment`, those of the paper.",
    ),
]
Only = Annotated[
    list[str] | None,
    _declare_names(
        "--only",
        "Play only scenarios of these categories or kinds of users, such as helpful.",
    ),
]
Runs = Annotated[int, declare_count("--runs", "How often each arm plays each scenario. Default: 1.")]
Concurrency = Annotated[
    int,
    declare_count(
        "--concurrency", "How many conversations run at once; with --workers, in each process. Default: 8."
    ),
]
Workers = Annotated[
    int | None,
    declare_count("--workers", "Run conversations in this many processes. Default: in this one."),
]
Resume = Annotated[bool, Option("--resume", help="Continue an earlier run; no conversation is run twice.")]
Overwrite = Annotated[
    bool, Option("--overwrite", help="Delete the results of an earlier run, and start anew.")
]
MaxCalls = Annotated[
    int | None,
    declare_count(
        "--max-calls",
        "Stop after this many model calls, with those of users, the judge, and the run that --resume continues.",
    ),
]
MaxCost = Annotated[
    float | None,
    Option(
        "--max-cost",
        metavar="COST",
        help="Stop once calls have cost this much; needs --prices.",
    ),
]
_PRICES_HELP = "What a million input and output tokens cost: gpt-4o=2.5/10."
Prices = Annotated[str | None, Option("--prices", metavar="MODEL=IN/OUT,…", help=_PRICES_HELP)]

# Thresholds

_MIN_SUCCESS_HELP = "The least goal completion of each arm, 0 to 1, or the exit code is 5: 0.8."
MinSuccess = Annotated[
    float | None, Option("--min-success", min=0, max=1, metavar="SHARE", help=_MIN_SUCCESS_HELP)
]
MaxBroken = Annotated[
    list[str] | None,
    Option(
        "--max-broken",
        metavar="NAME=N",
        callback=_check_limits,
        help="In how many turns each arm may break a guideline, by its id, or what milestones forbid, as `forbidden`, "
        "or the exit code is 5. Can be repeated.",
    ),
]
JunitOut = Annotated[
    Path | None, declare_file("--junit", "Write a JUnit file with a test case for each conversation.")
]
