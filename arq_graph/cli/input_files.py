"""Read the files that options name: tools and recorded conversations; and check that files can be read and written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_core import from_json
from typer import BadParameter

from arq_graph.agent import yaml_file
from arq_graph.agent.regular_file import (
    MAX_TEXT_BYTES,
    open_regular_file,
    read_limited,
    require_regular_file,
)
from arq_graph.errors import InputError, SpecError, ToolError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.store import convert_file_errors
from arq_graph.milestones.tool_schemas import get_argument_schemas, get_tool_definitions, get_tool_name
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, ReadRecord, iterate_records

_SQLITE_HEADER = b"SQLite format 3\0"


def read_text(file: Path, kind: str) -> str:
    """Read a file of some kind, or standard input for `-`."""
    if str(file) == "-":
        with convert_file_errors("standard input cannot be read"):
            text: str = read_limited(sys.stdin, MAX_TEXT_BYTES)
            return text
    return yaml_file.read_text(file, file_kind=kind)


def read_tools(agent: Path | None, tools: Sequence[str] | None) -> list[Any] | None:
    """Return the tools that --agent or --tools names, or None if neither is given."""
    if agent is not None and tools:
        raise BadParameter("--agent and --tools both name the tools: give one of them")
    if agent is not None:
        return _read_agent_tools(agent)
    if not tools:
        return None
    sources: dict[str, tuple[str, Any]] = {}
    for source in tools:
        for tool in _read_tool_source(source):
            name = get_tool_name(tool)
            earlier, earlier_tool = sources.setdefault(name, (source, tool))
            if get_tool_definitions([tool]) != get_tool_definitions([earlier_tool]):
                raise InputError(
                    f"{earlier} and {source} have different tools called {name!r}: give one of them"
                )
    return [tool for _, tool in sources.values()]


def _read_tool_source(source: str) -> list[Any]:
    """Return the tools of an agent's file, of a YAML or JSON file of tools, or of a reference as agents have it."""
    file = Path(source)
    if file.suffix.lower() in (".yaml", ".yml"):
        document = yaml_file.Document(read_text(file, "file of tools"), source)
        document.require_valid()
        values = document.values
        if not _is_tool_file(values):
            return _read_agent_tools(file)
        return _load_references([f"{source}:{name}" for name in values])
    if ":" not in source or file.exists():
        return _read_json_tools(file)
    return _load_references([source])


def _read_agent_tools(file: Path) -> list[Any]:
    from arq_graph.agent.spec import Agent  # loads LangChain, which most of what is read here doesn't need

    return list(Agent.from_yaml(file).toolbox.values())


def _is_tool_file(values: Any) -> bool:
    """Tell a file of tools from an agent's file, which has a name that is a text."""
    if not values or not isinstance(values, dict):
        return False
    return all(isinstance(value, dict) for value in values.values())


def read_journey_graph(file: Path, journey: str) -> MilestoneGraph:
    """Return the milestones of a journey in an agent's file."""
    from arq_graph.agent.spec import Agent

    return MilestoneGraph.from_journey(Agent.from_yaml(file), journey)


def _load_references(references: list[str]) -> list[Any]:
    """Load tools as an agent's file in the current folder would name them."""
    from arq_graph.agent.spec import Agent

    document = json.dumps({"name": "tools", "profile": "tools", "tools": references})
    return list(yaml_file.parse_model(document, Agent, source="--tools").toolbox.values())


def _read_json_tools(file: Path) -> list[Any]:
    text = read_text(file, "list of tools")
    try:
        tools = from_json(text)
        if isinstance(tools, dict):
            tools = tools.get("tools", tools)
        if isinstance(tools, dict):
            tools = [{"name": name, "parameters": dict(schema)} for name, schema in tools.items()]
        get_argument_schemas(tools)
    except (ValueError, TypeError, ToolError) as error:
        raise SpecError(
            f"not a list of tools ({error}); write tool names, OpenAI tool definitions, or schemas by name, as JSON",
            file=str(file),
        ) from None
    return list(tools)


def find_readable_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files, with those of a folder one by one; raise an error if one doesn't exist."""
    files = _list_files(paths)
    for file in files:
        if file.is_dir():
            raise InputError(f"{file} cannot be read: it holds no .jsonl file")
        if not file.exists():
            raise InputError(f"{file} cannot be read: there is no such file{yaml_file.suggest_file(file)}")
        with convert_file_errors(f"{file} cannot be read"):
            require_regular_file(file)
    return files


def check_output_files(outputs: Sequence[Path | None], inputs: Sequence[Path] = ()) -> None:
    """Raise an error if a file can't be written, or would change what is read."""
    input_folders = [path.resolve() for path in inputs if path.is_dir()]
    known_files = {file.resolve() for file in _list_files(inputs)}
    for file in filter(None, outputs):
        if file.is_dir() or not os.access(file.absolute().parent, os.W_OK):
            raise InputError(f"{file} cannot be written: name a file in a folder that exists")
        with convert_file_errors(f"{file} cannot be written"):
            require_regular_file(file)
        if file.resolve().parent in input_folders:
            raise InputError(f"{file} would stand in a folder that is read: write it to another one")
        if file.resolve() in known_files:
            raise BadParameter("what is read and what is written must be different files; one is named twice")
        known_files.add(file.resolve())


def _list_files(paths: Sequence[Path]) -> list[Path]:
    """Return files, and of each folder its JSON Lines files of conversations by name, each once.

    The single turns and model answers that an experiment saves in its folder are left out.
    """
    files: list[Path] = []
    for path in paths:
        conversations = []
        for file in sorted(path.glob("*.jsonl*")):
            is_other = ".turns.jsonl" in file.name or ".recording.jsonl" in file.name
            if file.name.endswith((".jsonl", ".jsonl.gz")) and not is_other:
                conversations.append(file)
        files += conversations or [path]
    return list(dict.fromkeys(files))


def read_conversations(files: Sequence[Path]) -> Iterator[Transcript | BrokenRecord]:
    """Yield the conversations of several files; a file that can't be read to its end yields a broken record."""
    for read in iterate_conversations(files):
        yield read()


def iterate_conversations(files: Sequence[Path]) -> Iterator[ReadRecord]:
    """Yield a function for each conversation of several files that reads it; see `read_conversations`."""
    for file in files:
        try:
            with convert_file_errors(f"{file} cannot be read"), open_regular_file(file) as stream:
                is_database = stream.read(len(_SQLITE_HEADER)) == _SQLITE_HEADER
            if is_database:
                from arq_graph.cli.threads import read_threads  # langgraph takes seconds to load

                for thread in read_threads(file):
                    yield partial(_get, thread)
            else:
                yield from iterate_records(file)
        except InputError as error:
            yield partial(BrokenRecord, None, error, str(file))


def _get(conversation: Transcript | BrokenRecord) -> Transcript | BrokenRecord:
    return conversation
