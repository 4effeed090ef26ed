"""Tools of MCP servers, which a file names as "mcp:server/tool"."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self

from langchain_core.tools import BaseTool
from pydantic import ValidationError, model_validator

from arq_graph.agent.parts import Part, Text
from arq_graph.errors import SpecError, suggestion
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
            return {"transport": "streamable_http", "url": self.url, "headers": self.headers}
        started = {"command": self.command, "args": list(self.args), "env": self.env, "cwd": str(folder)}
        return {"transport": "stdio", **started}


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
    client = MultiServerMCPClient({server: json.loads(connection)})
    try:
        loaded = run_awaitable(asyncio.wait_for(client.get_tools(), _MAX_SECONDS))
    except Exception as error:
        while isinstance(error, ExceptionGroup):  # what went wrong stands inside those of its task groups
            error = error.exceptions[0]
        said = " ".join(str(error).split()) or f"no answer within {_MAX_SECONDS} seconds"
        raise SpecError(
            f"names a tool of the MCP server {server!r}, which cannot be asked for its tools: {said}"
        ) from error
    return {tool.name: tool for tool in loaded}
