"""Tools of MCP servers, which a file names as "mcp:server/tool"."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self

from langchain_core.tools import BaseTool
from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError, PydanticKnownError

from arq_graph.agent.parts import Part, Text
from arq_graph.errors import SpecError, suggestion, unwrap_exception_group
from arq_graph.reasoning.steps import run_awaitable

_NAME = re.compile(r"\$\{(\w+)\}")


class McpServer(Part):
    """An MCP server whose tools an agent's file names: either a program that is started, or an address.

    `${NAME}` in `env` and `headers` stands for an environment variable, so that no secret has to be in the file.

    Args:
        command: The program to start, which serves over its input and output, in the folder of the agent's file.
        args: The arguments of that program.
        env: Environment variables that it gets besides the usual ones.
        url: The address of a server of streamable HTTP.
        headers: Headers that are sent to that address with each request.
        timeout: How many seconds an answer may take; more than 0.

    Raises:
        SpecError: It has no `command` and no `url`, or both; a value does not fit its field.
    """

    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: Text | None = None
    headers: Mapping[str, str] = {}
    timeout: Annotated[float, Field(gt=0)] = 60

    @model_validator(mode="after")
    def _is_one_of_two(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("has a `command` or a `url`, and not both")
        return self

    def connection(self, folder: Path) -> Any:
        """How `langchain_mcp_adapters` reaches it; without a limit, a server that dies in a call is awaited forever."""
        limit = timedelta(seconds=self.timeout)
        reached: dict[str, Any] = {"session_kwargs": {"read_timeout_seconds": limit}}
        if self.url is not None:
            reached |= {"transport": "streamable_http", "url": self.url, "headers": _expanded(self.headers)}
            return reached | {"timeout": limit, "sse_read_timeout": limit}
        reached |= {"transport": "stdio", "command": self.command, "args": list(self.args)}
        return reached | {"env": _expanded(self.env), "cwd": str(folder)}


def _expanded(values: Mapping[str, str]) -> dict[str, str]:
    """The values with environment variables in the places of their names; a `KeyError` names one that is not set."""
    return {key: _NAME.sub(lambda found: os.environ[found[1]], value) for key, value in values.items()}


def mcp_tool(reference: str, context: Any) -> BaseTool:
    """The tool that a file names as "mcp:server/tool", of a server of the file's `mcp`."""
    server, _, name = reference.removeprefix("mcp:").partition("/")
    listed = context.values.get("mcp") if context else None
    servers = listed if isinstance(listed, Mapping) else {}
    if server not in servers:
        raise SpecError(
            f"names {reference!r}, but the file's `mcp` has no server {server!r}{suggestion(server, servers)} (in"
            " Python, give the tools that langchain_mcp_adapters loads)"
        )
    tools = _tools(context, server)
    if isinstance(tools, str):
        raise PydanticCustomError("value_elsewhere", "{error}", {"error": tools, "place": ("mcp", server)})
    if name not in tools:
        raise SpecError(
            f"names {reference!r}, but the server has no tool {name!r}{suggestion(name, tools)} (it has:"
            f" {', '.join(tools)})"
        )
    return tools[name]


@lru_cache(maxsize=64)
def _tools(document: Any, name: str) -> dict[str, BaseTool] | str:
    """All tools of a server, or what is wrong with it; a file asks once, however many tools it names."""
    try:
        from langchain_mcp_adapters.client import MultiServerMCPClient
        from mcp.types import CallToolResult, TextContent

        server = McpServer.model_validate(document.values["mcp"][name])
        reached = {name: server.connection(document.folder)}
    except ImportError as error:
        return f'needs pip install -U "arq_graph[mcp]": {error}'
    except ValidationError:  # it is told where the server stands
        raise PydanticKnownError("default_factory_not_called") from None
    except KeyError as error:
        return f"needs the environment variable {error.args[0]}, which is not set"

    async def call(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            return await handler(request)
        except Exception as error:
            said = f"the MCP server {name!r} gave no result: {_reason(error)}"
            return CallToolResult(isError=True, content=[TextContent(type="text", text=said)])

    try:
        tools = run_awaitable(MultiServerMCPClient(reached, tool_interceptors=[call]).get_tools())
        return {tool.name: tool for tool in tools}
    except Exception as error:
        tried = server.url or shlex.join([str(server.command), *server.args])
        look = "is its path right (often /mcp)" if server.url else "do its arguments stand in `args`"
        return f"({tried}) gives no tools: {_reason(error)}; is there an MCP server, and {look}?"


def _reason(error: Exception) -> str:
    """What went wrong, without the address of an HTTP error, in which a key may stand."""
    cause = unwrap_exception_group(error)
    answer = getattr(cause, "response", None)
    said = str(cause) if answer is None else f"{answer.status_code} {answer.reason_phrase}"
    return " ".join(said.split()).rstrip(".") or type(cause).__name__
