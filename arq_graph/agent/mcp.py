"""Tools of MCP servers, which a file names as "mcp:server/tool"."""

from __future__ import annotations

import logging
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

from arq_graph.agent.part import Part, Text
from arq_graph.agent.yaml_file import Document
from arq_graph.errors import SpecError, suggestion, unwrap_exception_group
from arq_graph.reasoning.steps import run_awaitable

_ENVIRONMENT_VARIABLE = re.compile(r"\$\{(\w+)\}")


class McpServer(Part):
    """An MCP server whose tools an agent's file names: either a program to start, or an address.

    `${NAME}` in `env` and `headers` stands for an environment variable, so that secrets can stay out of the file.

    Args:
        command: The program to start in the folder of the agent's file. It serves over its input and output.
        args: The arguments of that program.
        env: Environment variables to set for it besides the usual ones.
        url: The address of a streamable HTTP server.
        headers: Headers to send to that address with each request.
        timeout: How many seconds an answer may take; more than 0.

    Raises:
        SpecError: It has neither a `command` nor a `url`, or both; or a value isn't valid for its field.
    """

    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: Text | None = None
    headers: Mapping[str, str] = {}
    timeout: Annotated[float, Field(gt=0)] = 60

    @model_validator(mode="after")
    def _has_command_or_url(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("has a `command` or a `url`, and not both")
        return self

    def make_connection(self, folder: Path) -> dict[str, Any]:
        """Return the server's connection for `langchain_mcp_adapters`.

        Without a time limit, a server that dies during a call would be awaited forever.

        Raises:
            KeyError: An environment variable, which it names, isn't set.
        """
        limit = timedelta(seconds=self.timeout)
        connection: dict[str, Any] = {"session_kwargs": {"read_timeout_seconds": limit}}
        if self.url is None:
            connection |= {"transport": "stdio", "command": self.command, "args": list(self.args)}
            connection |= {"env": _fill_environment_variables(self.env), "cwd": str(folder)}
        else:
            connection |= {"transport": "streamable_http", "url": self.url}
            connection |= {"headers": _fill_environment_variables(self.headers)}
            connection |= {"timeout": limit, "sse_read_timeout": limit}
        return connection

    @property
    def address(self) -> str:
        """The URL, or the command line."""
        return self.url or shlex.join((str(self.command), *self.args))


def _fill_environment_variables(values: Mapping[str, str]) -> dict[str, str]:
    filled = {}
    for key, value in values.items():
        filled[key] = _ENVIRONMENT_VARIABLE.sub(lambda match: os.environ[match[1]], value)
    return filled


def load_mcp_tool(reference: str, document: Document | None) -> BaseTool:
    """Load the tool "mcp:server/tool" from a server that is listed under `mcp` in the file."""
    server, _, name = reference.removeprefix("mcp:").partition("/")
    servers = document.values.get("mcp") if document else None
    if not isinstance(servers, Mapping):
        servers = {}
    if document is None or server not in servers:
        raise SpecError(
            f"names {reference!r}, but the file's `mcp` has no server {server!r}{suggestion(server, servers)} (in"
            " Python, give the tools that langchain_mcp_adapters loads)"
        )
    tools = _load_tools(document, server)
    if isinstance(tools, str):
        context = {"error": tools, "place": ("mcp", server)}
        raise PydanticCustomError("value_elsewhere", "{error}", context)
    if name not in tools:
        raise SpecError(
            f"names {reference!r}, but the server has no tool {name!r}{suggestion(name, tools)} (it has:"
            f" {', '.join(tools)})"
        )
    return tools[name]


class _ShowOnce(logging.Filter):
    """Lets the first record of a kind through, without its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = None
        is_new = record.msg not in self._shown
        self._shown.add(record.msg)
        return is_new


# The client logs each line that isn't a message of the protocol with a traceback, and a server may print megabytes.
for _transport in ("stdio", "streamable_http"):
    logging.getLogger(f"mcp.client.{_transport}").addFilter(_ShowOnce())


@lru_cache(maxsize=64)  # a server is asked once per file, however many of its tools the file names
def _load_tools(document: Document, name: str) -> dict[str, BaseTool] | str:
    """Return all tools of a server by name, or an error message."""
    try:
        server = McpServer.model_validate(document.values["mcp"][name])
    except ValidationError:  # reported at the server's own place
        raise PydanticKnownError("default_factory_not_called") from None
    try:
        return list_mcp_tools(server, name, document.folder)
    except SpecError as error:
        return str(error)


def list_mcp_tools(server: McpServer, name: str, folder: Path) -> dict[str, BaseTool]:
    """Ask a server, which errors call `name`, for its tools; or raise a SpecError that says why it gives none."""
    try:
        from langchain_mcp_adapters.client import MultiServerMCPClient
        from mcp.types import CallToolResult, TextContent

        connection = server.make_connection(folder)
    except ImportError as error:
        raise SpecError(f'needs pip install -U "arq_graph[mcp]": {error}') from None
    except KeyError as error:
        message = f"needs the environment variable {error.args[0]}, which is not set"
        raise SpecError(message) from None

    async def report_failure(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            return await handler(request)
        except Exception as error:
            text = f"the MCP server {name!r} gave no result: {_describe_failure(error)}"
            return CallToolResult(isError=True, content=[TextContent(type="text", text=text)])

    try:
        connections: dict[str, Any] = {name: connection}
        client = MultiServerMCPClient(connections, tool_interceptors=[report_failure])
        tools = run_awaitable(client.get_tools())
    except Exception as error:
        hint = "is its path right (often /mcp)" if server.url else "do its arguments stand in `args`"
        failure = _describe_failure(error)
        message = f"({server.address}) gives no tools: {failure}; is there an MCP server, and {hint}?"
        raise SpecError(message) from error
    return {tool.name: tool for tool in tools}


def _describe_failure(error: Exception) -> str:
    """Describe an error without the address of an HTTP error, which may contain a key."""
    cause = unwrap_exception_group(error)
    text = str(cause)
    response = getattr(cause, "response", None)
    if response is not None:
        text = f"{response.status_code} {response.reason_phrase}"
    return " ".join(text.split()).rstrip(".") or type(cause).__name__
