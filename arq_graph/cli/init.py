"""`arq-graph init`: a folder with an agent, its tests, simulated customers, and what a server and CI need."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import yaml
from typer import Argument, BadParameter, Option

from arq_graph.agent.mcp import McpServer, list_mcp_tools
from arq_graph.agent.spec import Agent
from arq_graph.apps.agents import create_guided_agent
from arq_graph.cli.agent_file import FILE_MODELS
from arq_graph.cli.model_choice import OFFLINE
from arq_graph.cli.openapi import read_operations
from arq_graph.cli.screen import show, show_command, warn
from arq_graph.errors import InputError, SpecError
from arq_graph.models.scripted import ScriptedChatModel

_SCAFFOLD = Path(str(files("arq_graph.cli") / "scaffold"))
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MODEL = re.compile(r"[\w.:/@+-]+", re.ASCII)
_MANY_TOOLS = 20


def init(
    name: Annotated[Path, Argument(metavar="NAME", help="The folder to write; it must be new or empty.")],
    source: Annotated[
        str | None,
        Option(
            "--from",
            metavar="SOURCE",
            help="Take the tools from an OpenAPI document (a file or an address), or an MCP server (mcp:URL).",
        ),
    ] = None,
    model: Annotated[
        str, Option("--model", "-m", metavar="NAME", help="The model that the files name: openai:gpt-4o, …")
    ] = OFFLINE,
) -> None:
    """Write a folder with an agent to start from: its file, tools, tests, simulated customers, server and CI.

    All of it runs at once, without a key.
    """
    if not _NAME.fullmatch(name.name):
        raise BadParameter(f"the name {name.name!r} must begin with a letter, and have only a-z A-Z 0-9 - _")
    if not _MODEL.fullmatch(model):
        raise BadParameter(f"--model {model!r} must be the name of a model, such as openai:gpt-4o")
    provider, colon, _ = model.partition(":")
    words = {
        "NAME": name.name,
        "TITLE": re.sub("[-_]+", " ", name.name).strip().capitalize(),
        "MODEL": model,
        "KEY": re.sub(r"\W", "_", provider.upper() if colon else "OPENAI") + "_API_KEY",
        "EXTRAS": "cli,play",
    }
    templates = ["common", "desk"]
    if source is not None and source.startswith("mcp:"):
        templates = ["common", "tools"]
        words |= _read_mcp_server(source.removeprefix("mcp:"))
        words["EXTRAS"] += ",mcp"
    elif source is not None:
        templates = ["common", "tools", "openapi"]
        words |= _read_openapi(source)
    if colon and provider != "openai":
        words["EXTRAS"] += ",providers"
    with _write_folder(name) as folder:
        for template in templates:
            _fill_templates(_SCAFFOLD / template, folder, words)
        (folder / ".schemas").mkdir()
        for kind, file_model in FILE_MODELS.items():
            schema = json.dumps(file_model.model_json_schema(), indent=1)
            (folder / ".schemas" / f"{kind}.json").write_text(schema, encoding="utf-8")
        agent = Agent.from_yaml(folder / "agent.yaml")
        create_guided_agent(ScriptedChatModel([]), agent)  # a mistake shows before anything is written
    if len(agent.toolbox) > _MANY_TOOLS:
        warn(
            f"every turn weighs all {len(agent.toolbox)} tools: in agent.yaml, move those that you need to guidelines,"
            " and delete the others"
        )
    show(f"{name} is written. Go on with:")
    show_command(["cd", name])
    for command in ("check", "chat", "play"):
        show_command(["arq-graph", command, "agent.yaml"])
    show("README.md there names the other commands.")


@contextmanager
def _write_folder(target: Path) -> Iterator[Path]:
    """Yield a new folder that becomes the target if the block succeeds, and else is removed."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if target.exists() and any(target.iterdir()):
            raise InputError(f"{target} isn't empty: choose another name, or remove it first")
        draft.mkdir()
        yield draft
        if target.exists():
            target.rmdir()
        draft.rename(target)
    except OSError as error:
        raise InputError(f"{target} can't be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill_templates(source: Path, folder: Path, words: Mapping[str, str]) -> None:
    """Copy files in which `XX_NAME_XX` stands for a word; a name that begins with `dot-` gets a dot."""
    for template in source.rglob("*"):
        if template.is_file() and template.suffix != ".pyc":
            text = template.read_text(encoding="utf-8")
            file = folder / str(template.relative_to(source)).replace("dot-", ".")
            file.parent.mkdir(parents=True, exist_ok=True)
            filled = re.sub("XX_([A-Z]+)_XX", lambda match: words[match[1]], text)
            file.write_text(filled, encoding="utf-8")


def _read_openapi(source: str) -> dict[str, str]:
    operations, omitted = read_operations(source)
    for line in omitted:
        warn(f"left out: {line}")
    references: dict[str, str] = {}
    changing: list[str] = []
    for name, operation in operations.items():
        references[name] = f"tools:api.{name}"
        if operation["method"] not in ("get", "head"):
            changing.append(name)
    return _describe_tools(references, changing) | {"OPERATIONS": json.dumps(operations, indent=1)}


def _read_mcp_server(url: str) -> dict[str, str]:
    try:
        tools = list_mcp_tools(McpServer(url=url), "server", Path())
    except SpecError as error:
        raise SpecError(f"the MCP server {error}") from None
    if not tools:
        raise SpecError(f"the MCP server ({url}) has no tools")
    references: dict[str, str] = {}
    changing: list[str] = []
    for name, tool in tools.items():
        references[name] = f"mcp:server/{name}"
        if not (tool.metadata or {}).get("readOnlyHint"):
            changing.append(name)
    return _describe_tools(references, changing, mcp={"server": {"url": url}})


def _describe_tools(references: Mapping[str, str], changing: list[str], **fields: Any) -> dict[str, str]:
    """Return tools as an agent's file has them, with a question before each that may change something."""
    fields |= {"tools": list(references.values()), "confirm": dict.fromkeys(changing, "customer")}
    first = min(references, key=lambda name: name in changing)
    return {"TOOLS": yaml.safe_dump(fields, sort_keys=False), "TOOL": json.dumps(first)}
