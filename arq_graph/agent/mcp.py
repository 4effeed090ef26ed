"""Tools of MCP servers, which a file names as "mcp:server/tool"."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

from langchain_core.tools import BaseTool
from pydantic import ValidationError, model_validator

from arq_graph.agent.parts import Part, Text
from arq_graph.errors import SpecError, innermost, suggestion
from arq_graph.reasoning.performing import run_awaitable

_MAX_SECONDS = 30


class McpServer(Part):
    """An MCP server whose tools an agent's file names: either a program that is started, or an address.

    `${NAME}` in `env` and `headers` stands for an environment variable, so that no secret has to be in the file.

    Args:
        command: The program to start, which serves over its input and output, in the folder of the agent's file.
        args: The arguments of that program.
        env: Environment variables that it gets besides the usual ones.
        url: The address of a server of streamable HTTP.
        headers: Headers that are sent to that address with each request.

    Raises:
        SpecError: It has no `command` and no `url`, or both; a value does not fit its field.
    """

    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    url: Text | None = None
    headers: Mapping[str, str] | None = None

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("has a `command` or a `url`, and not both")
        return self

    def connection(self, folder: Path) -> dict[str, Any]:
        """How `langchain_mcp_adapters` reaches it."""
        if self.url is not None:
            return {"transport": "streamable_http", "url": self.url, "headers": _expanded(self.headers)}
        own = {"command": self.command, "args": list(self.args), "env": _expanded(self.env)}
        return {"transport": "stdio", **own, "cwd": str(folder)}


def _expanded(values: Mapping[str, str] | None) -> dict[str, str]:
    """The values with environment variables in the places of their names."""

    def value_of(found: re.Match[str]) -> str:
        if (value := os.environ.get(found[1])) is None:
            raise SpecError(f"needs the environment variable {found[1]}, which is not set")
        return value

    return {name: re.sub(r"\$\{(\w+)\}", value_of, value) for name, value in (values or {}).items()}


def mcp_tool(reference: str, context: Any) -> BaseTool:
    """The tool that a file names as "mcp:server/tool", of a server of the file's `mcp`."""
    server, _, name = reference.removeprefix("mcp:").partition("/")
    servers = context.values.get("mcp") if context else None
    if not isinstance(servers, Mapping):
        raise SpecError(
            f"is {reference!r}, but the file names no servers under `mcp`; in Python, give the tools that"
            " langchain_mcp_adapters loads"
        )
    if server not in servers:
        raise SpecError(
            f"names {reference!r}, but `mcp` has no server {server!r}{suggestion(server, servers)}"
        )
    try:
        connection = McpServer.model_validate(servers[server]).connection(context.folder)
    except ValidationError:
        raise SpecError(f"names {reference!r}, whose server is not right itself") from None
    except SpecError as error:
        raise SpecError(f"names {reference!r}, whose server {error}") from None
    tools = _tools(server, json.dumps(connection))
    if name not in tools:
        raise SpecError(
            f"names {reference!r}, but the server has no tool {name!r}{suggestion(name, tools)} (it has:"
            f" {', '.join(tools)})"
        )
    return tools[name]


@cache
def _tools(server: str, connection: str) -> dict[str, BaseTool]:
    """All tools of a server, by name; one that several files or guidelines name is asked once."""
    try:
        from langchain_mcp_adapters.client import MultiServerMCPClient
    except ImportError:
        raise SpecError('names a tool of an MCP server, which needs pip install "arq_graph[mcp]"') from None
    reached = json.loads(connection)
    client = MultiServerMCPClient({server: reached})
    try:
        loaded = run_awaitable(asyncio.wait_for(client.get_tools(), _MAX_SECONDS))
    except Exception as error:
        said = " ".join(str(innermost(error)).split()) or f"no answer within {_MAX_SECONDS} seconds"
        raise SpecError(
            f"names a tool of the MCP server {server!r} ({reached.get('url') or reached['command']}), which cannot be"
            f" asked for its tools: {said}"
        ) from error
    return {tool.name: tool for tool in loaded}
