"""What commands share: their options, the model that these choose, and files that are read or written beside others."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from pydantic_core import from_json
from typer import Argument, BadParameter, Option

from arq_graph.agent import yaml_file
from arq_graph.agent.spec import Agent
from arq_graph.apps.settings import StrategyName
from arq_graph.cli.screen import note
from arq_graph.errors import InputError, SpecError, ToolError
from arq_graph.milestones.store import files_in
from arq_graph.milestones.tool_schemas import get_argument_schemas, get_tool_definitions, get_tool_name
from arq_graph.models.resolve import chat_model
from arq_graph.reasoning.blueprint import Mode

OFFLINE = "offline"
_WITH_A_KEY = "openai:gpt-4o"
_KEY = "OPENAI_API_KEY"
_NO_KEY = (
    "No model and no key is set: the offline model answers, which compares words and understands nothing. Set "
    "OPENAI_API_KEY for a real one, or give --model, with --base-url for a server of your own."
)

_Words = str | None
_File = Path | None


def names_in(given: list[str] | None) -> list[str] | None:
    """The names in what an option with commas was given, once or repeatedly."""
    names = [name for each in given or () for part in each.split(",") if (name := part.strip())]
    if given and not names:
        raise BadParameter("it is empty: name at least one, or leave the option out")
    return names or None


AgentFile = Annotated[Path, Argument(metavar="AGENT.yaml", help="The agent's file.")]
AgentOption = Annotated[
    _File, Option("--agent", metavar="AGENT.yaml", help="The agent's file, for its tools and instructions.")
]
Transcripts = Annotated[
    list[Path],
    Argument(
        metavar="TRANSCRIPTS",
        help="Recorded conversations of any agent, as JSON or JSON Lines (OpenAI or LangChain messages, results of "
        "`evaluate` or tau-bench, …), a folder of such .jsonl files, or the threads of `chat` and `run`.",
    ),
]
Tools = Annotated[
    list[str] | None,
    Option(
        help="Tools: module:function, file.yaml:tool, an agent's file, a YAML or JSON file of tools. Can be repeated."
    ),
]
Model = Annotated[
    _Words,
    Option(
        "--model",
        "-m",
        metavar="NAME",
        help="openai:gpt-4o, offline, … Default: $ARQ_GRAPH_MODEL, else openai:gpt-4o if OPENAI_API_KEY is set, else "
        "offline.",
    ),
]
ModelArgs = Annotated[
    list[str] | None,
    Option(
        "--model-arg",
        metavar="NAME=VALUE",
        help="An argument that --model is made with, as JSON or text: reasoning_effort=low. Can be repeated.",
    ),
]
BaseUrl = Annotated[
    _Words, Option(metavar="URL", help="An OpenAI-compatible endpoint. Default: $ARQ_GRAPH_BASE_URL.")
]
Judge = Annotated[
    _Words, Option(metavar="MODEL", help="The model that decides what code cannot. Default: none.")
]
Votes = Annotated[int, Option(min=1, help="How often to ask the judge; the majority decides.")]
UserModel = Annotated[
    _Words,
    Option(metavar="MODEL", help="The model that plays the user. Default: none; code plays the user."),
]
ArmNames = Annotated[
    list[str] | None,
    Option(
        "--arms",
        metavar="NAME,…",
        callback=names_in,
        help="What to try: guided, arq, cot, direct, react, pre-act, respact, create_agent and others, or "
        "module:function, a function of (scenario, agent, model) that makes an app. Default: guided; `experiment` "
        "takes those of the paper for a shipped suite.",
    ),
]
Runs = Annotated[int | None, Option(min=1, show_default="1", help="How often each arm plays each scenario.")]
Only = Annotated[
    list[str] | None,
    Option(
        metavar="NAME,…",
        callback=names_in,
        help="Play only scenarios of these categories (`use_case`) or kinds of users, such as helpful.",
    ),
]
Concurrency = Annotated[
    int, Option(min=1, help="How many conversations run at once; with --workers, in each process.")
]
Workers = Annotated[
    int | None, Option(min=1, help="Run conversations in this many processes. Default: in this one.")
]
Resume = Annotated[bool, Option("--resume", help="Continue an earlier run; no conversation is run twice.")]
MaxCalls = Annotated[
    int | None,
    Option(
        min=1,
        help="Stop after this many model calls, including those of users, of the judge and of the run that --resume "
        "continues. Turns that have begun, at most --concurrency, are still finished and judged.",
    ),
]
MaxCost = Annotated[
    float | None,
    Option(help="Stop, as with --max-calls, once calls have cost this much (more than 0); needs --prices."),
]
Prices = Annotated[
    _Words,
    Option(metavar="MODEL=IN/OUT,…", help="What a million input and output tokens cost: gpt-4o=2.5/10."),
]
ModeOption = Annotated[Mode, Option("--mode", help="How much the model reasons before it answers.")]
StrategyOption = Annotated[
    StrategyName,
    Option(
        "--strategy",
        help="How the agent acts: it decides on all tools at once, makes a plan, goes step by step, or alternates "
        "between thinking, speaking and acting.",
    ),
]
Thread = Annotated[
    _Words,
    Option("--thread", "-t", metavar="ID", help="Continue this thread, or start it. Default: a new one."),
]
Database = Annotated[
    _File,
    Option("--db", metavar="FILE", help="Where threads are saved. Default: .arq_graph/threads.sqlite."),
]
MilestonesOption = Annotated[
    _File, Option("--milestones", metavar="FILE", help="Measure the conversation on these milestones.")
]
SuiteFile = Annotated[Path, Argument(metavar="SUITE.yaml", help="The file of scenarios.")]
HtmlOut = Annotated[
    _File, Option(metavar="OUT", help="Write a page to explore, as one file that needs no network.")
]
ReportOut = Annotated[
    _File, Option(metavar="OUT", help="Write the report as JSON, for programs and `compare`.")
]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object, for programs.")]


@dataclass(frozen=True)
class ModelChoice:
    """The model that a command asks."""

    spec: str
    base_url: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model as it is shown."""
        if self.spec == OFFLINE:
            return "offline model"
        given = ", ".join(f"{name}={json.dumps(value)}" for name, value in self.arguments.items())
        name = f"{self.spec} ({given})" if given else self.spec
        return f"{name} at {self.base_url}" if self.base_url else name

    def chat_model(self) -> BaseChatModel:
        """Make the model."""
        return chat_model(self.spec, base_url=self.base_url, arguments=self.arguments)


def choose_model(
    model: str | None, base_url: str | None, arguments: Sequence[str] | None = None, *, asks: bool = True
) -> ModelChoice:
    """Choose the model: the option, else `ARQ_GRAPH_MODEL`, else what the keys allow, which is said if it is asked."""
    spec = (model or os.environ.get("ARQ_GRAPH_MODEL") or "").strip()
    endpoint = (base_url or os.environ.get("ARQ_GRAPH_BASE_URL") or "").strip() or None
    if endpoint and not spec:
        raise BadParameter(
            f"the endpoint {endpoint} is set, but no model: name one of its models with --model or ARQ_GRAPH_MODEL"
        )
    if not spec:
        spec = _WITH_A_KEY if os.environ.get(_KEY) else OFFLINE
        if asks:
            note(_NO_KEY if spec == OFFLINE else f"{_KEY} is set: asking {spec}; --model names another.")
    if spec == OFFLINE:
        endpoint = None  # the address is for others: users, or a judge
    return ModelChoice(spec, endpoint, dict(map(_argument, arguments or ())))


def _argument(given: str) -> tuple[str, Any]:
    name, equals, value = given.partition("=")
    if not equals:
        raise BadParameter(f"--model-arg {given}: it must be written NAME=VALUE")
    try:
        return name.strip(), from_json(value)
    except ValueError:
        return name.strip(), value


def read_tools(agent: Path | None, tools: Sequence[str] | None) -> list[Any] | None:
    """The tools of an agent, or those that are named otherwise; None where neither is given."""
    if agent is not None and tools:
        raise BadParameter("--agent and --tools both name the tools: give one of them")
    if agent is not None:
        return list(Agent.from_yaml(agent).toolbox.values())
    found: dict[str, tuple[str, Any]] = {}
    for place in tools or ():
        for tool in _tools_named(place):
            name = get_tool_name(tool)
            before, same = found.setdefault(name, (place, tool))
            if get_tool_definitions([tool]) != get_tool_definitions([same]):
                raise InputError(
                    f"{before} and {place} have different tools called {name!r}: give one of them"
                )
    return [tool for _, tool in found.values()] if tools else None


def _tools_named(given: str) -> list[Any]:
    file, references = Path(given), [given]
    if file.suffix.lower() in (".yaml", ".yml"):
        held = yaml_file.Document(read_text(file, "file of tools"), given).values
        is_mapping = bool(held) and isinstance(held, dict)
        if not is_mapping or not all(isinstance(each, dict) for each in held.values()):
            return list(Agent.from_yaml(file).toolbox.values())  # which has a name
        references = [f"{given}:{name}" for name in held]
    elif ":" not in given or file.exists():
        return _tools_in_json(file)
    # Read as an agent's file in this folder names them.
    named = json.dumps({"name": "tools", "profile": "tools", "tools": references})
    return list(yaml_file.parse_model(named, Agent, source="--tools").toolbox.values())


def _tools_in_json(file: Path) -> list[Any]:
    text = read_text(file, "list of tools")
    try:
        found = from_json(text)
        found = found.get("tools", found) if isinstance(found, dict) else found
        if isinstance(found, dict):
            found = [{"name": name, "parameters": dict(schema)} for name, schema in found.items()]
        get_argument_schemas(found)
    except (ValueError, TypeError, ToolError) as error:
        wanted = "it holds, as JSON, tool names, OpenAI tool definitions, or schemas by name"
        raise SpecError(f"no list of tools ({error}); {wanted}", file=str(file)) from None
    return list(found)


def read_prices(text: str | None, max_cost: float | None) -> dict[str, tuple[float, float]]:
    """What a million tokens cost, by model; a limit on cost needs to know."""
    if max_cost is not None and not (text and max_cost > 0):
        raise BadParameter("--max-cost needs --prices, such as --prices gpt-4o=2.5/10, and more than 0")
    prices = {}
    for part in text.split(",") if text else ():
        found = re.fullmatch(r"(.+)=(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", part.strip())
        if found is None:
            raise BadParameter(f"--prices {part}: it must be written MODEL=IN/OUT, such as gpt-4o=2.5/10")
        prices[found[1]] = (float(found[2]), float(found[3]))
    return prices


def refuse_useless(why: str, given: Mapping[str, object]) -> None:
    """Refuse options that would change nothing; a value that is false was not given."""
    if useless := [name for name, value in given.items() if value]:
        raise BadParameter(f"{why}: leave out {', '.join(useless)}, which would change nothing")


def read_text(file: Path, what: str) -> str:
    """A file's text, or that of standard input for `-`."""
    return sys.stdin.read() if str(file) == "-" else yaml_file.read_text(file, what=what)


def require_usable(written: Sequence[Path | None], read: Sequence[Path] = ()) -> list[Path]:
    """Refuse, before a model is paid for what goes into them, files that could not be read or written in the end.

    Those that are read are given back, a folder's one by one.
    """
    outs, found = [out for out in written if out is not None], files_in(read, without_turns=True)
    for file in found:
        if file.is_dir():
            raise InputError(f"{file} cannot be read: no .jsonl file is in it")
        if not file.exists():
            raise InputError(f"{file} cannot be read: there is no such file{yaml_file.alike(file)}")
    folders = [one.resolve() for one in read if one.is_dir()]
    for out in outs:
        if out.is_dir() or not os.access(out.absolute().parent, os.W_OK):
            raise InputError(f"{out} cannot be written: name a file in a folder that exists")
        if out.resolve().parent in folders:
            raise InputError(f"{out} would stand in a folder that is read: write it to another one")
    files = [file.resolve() for file in (*found, *outs)]
    if len(set(files)) < len(files):
        raise BadParameter("what is read and what is written must be different files; one is named twice")
    return found
