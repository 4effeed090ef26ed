"""The tools that a command holds something against: those of an agent's file, or definitions from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from arq_graph.errors import SpecError, ToolError
from arq_graph.milestones.tool_schemas import tool_name


def read_tools(agent: Path | None, tools: Path | None) -> Any:
    """The tools of an agent or of a file of definitions; None where neither is given."""
    if agent is not None:
        from arq_graph.agent.spec import Agent

        return list(Agent.from_yaml(agent).toolbox.values())
    return None if tools is None else _defined(tools)


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
