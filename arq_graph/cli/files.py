"""Files beside the one that a command is about: the tools to hold something against, and what is written."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, SpecError, ToolError
from arq_graph.milestones.tool_schemas import tool_name


def read_tools(agent: Path | None, tools: Path | None) -> Any:
    """The tools of an agent or of a file of definitions; None where neither is given."""
    if agent is not None and tools is not None:
        raise typer.BadParameter("--agent and --tools name the tools twice: give one of them")
    if agent is not None:
        return list(Agent.from_yaml(agent).toolbox.values())
    return None if tools is None else _defined(tools)


def read_text(file: Path, what: str, most: int | None = None) -> str:
    """A file's text, or that of standard input for `-`; of a longer one than `most` bytes its beginning."""
    name = "standard input" if str(file) == "-" else str(file)
    limit = -1 if most is None else most
    try:
        if str(file) == "-":
            content = sys.stdin.buffer.read(limit)
        else:
            with file.open("rb") as stream:
                content = stream.read(limit)
    except OSError as error:
        raise InputError(f"the {what} {name} cannot be read: {error.strerror}") from error
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        if len(content) == most:  # perhaps cut off inside a character
            return content.decode("utf-8-sig", errors="replace")
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{name}:{line}: is not UTF-8 text ({error.reason}); save it as UTF-8") from error


def require_writable(outs: Sequence[Path | None], read: Sequence[Path]) -> None:
    """Refuse, before a model is paid for what goes into them, files that could not be written in the end."""
    written = [out for out in outs if out is not None]
    for out in written:
        folder = out.absolute().parent
        if out.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InputError(f"{out} cannot be written: name a file in a folder that is there")
    files = [file.resolve() for file in (*dict.fromkeys(read), *written)]
    if len(set(files)) < len(files):
        raise InputError("what is read and what is written must be different files; one is named twice")


def _defined(file: Path) -> Any:
    try:
        found = json.loads(file.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise SpecError(f"the tools cannot be read: {error.strerror}", file=str(file)) from None
    except UnicodeDecodeError:
        raise SpecError("not UTF-8; save the file as UTF-8", file=str(file)) from None
    except json.JSONDecodeError as error:
        raise SpecError(f"not JSON: {error.msg}", file=str(file), line=error.lineno) from None
    except RecursionError:
        raise SpecError("nested too deeply", file=str(file)) from None
    if isinstance(found, dict) and isinstance(found.get("tools"), list):
        found = found["tools"]
    if isinstance(found, dict) and found and all(isinstance(schema, dict) for schema in found.values()):
        return found
    if not isinstance(found, list):
        raise SpecError(
            "no list of tools; it holds tool names, OpenAI tool definitions, or schemas by name",
            file=str(file),
        )
    try:
        for tool in found:
            tool_name(tool)
    except ToolError as error:
        raise SpecError(str(error), file=str(file)) from None
    return found
