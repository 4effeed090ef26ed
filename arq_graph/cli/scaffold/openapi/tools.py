"""One tool for each operation in operations.json, which calls the API with httpx.

agent.yaml names such a tool as `tools:api.NAME`. The environment may set API_KEY, and API_URL for another server.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import httpx
from langchain_core.tools import StructuredTool, ToolException

MAX_CHARACTERS = 20_000
"""A longer answer fails: it would fill the model's prompt."""
SEPARATORS = {"pipeDelimited": "|", "spaceDelimited": " "}

client = httpx.Client(timeout=30)


class Operation:
    """An operation of the API.

    Args:
        details: What operations.json says of it.
    """

    def __init__(self, details: dict[str, Any]) -> None:
        self.details = details

    def call(self, /, **arguments: Any) -> Any:
        """Call the operation, and return what the API answers."""
        parts: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}, "cookie": {}}
        is_body_required = self.details["body"]["required"]
        body: Any = {} if is_body_required else None
        for argument, value in arguments.items():
            target = self.details["arguments"][argument]
            if target["in"] in ("query", "header", "cookie") and value is None:
                continue
            if target["in"] != "body":
                parts[target["in"]].update(_serialize(target, value))
            elif "name" in target:
                body = {**(body or {}), target["name"]: value}
            else:
                body = value
        for name, text in parts["cookie"].items():
            parts["cookie"][name] = quote(text, safe="")
        if os.environ.get("API_KEY"):
            key = self.details["key"]
            parts[key["in"]][key["name"]] = key["prefix"] + os.environ["API_KEY"]
        content = None
        if body is not None or is_body_required:
            content = json.dumps(body)
            parts["header"]["Content-Type"] = self.details["body"]["type"]
        if parts["cookie"]:
            parts["header"]["Cookie"] = "; ".join(map("=".join, parts["cookie"].items()))
        try:
            response = client.request(
                self.details["method"],
                self._make_url(parts["path"]),
                params=parts["query"],
                headers={name: value.encode() for name, value in parts["header"].items()},
                content=content,
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ToolException(f"The API can't be reached: {error}") from error
        return _read(response)

    def _make_url(self, values: dict[str, str]) -> str:
        server = os.environ.get("API_URL") or self.details["server"]
        if not server:
            raise ToolException("The address of the API isn't set: set API_URL.")
        path: str = self.details["path"]
        for name, value in values.items():
            if value in ("", ".", ".."):
                raise ToolException(f"{name} can't be {value!r}.")
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        return server.rstrip("/") + path


def _read(response: httpx.Response) -> Any:
    if not response.is_success:
        raise ToolException(f"The API answers {response.status_code}: {response.text[:500]}")
    if len(response.text) > MAX_CHARACTERS:
        raise ToolException(f"The answer has {len(response.text):,} characters: ask for less at once.")
    is_json = "json" in response.headers.get("content-type", "")
    return response.json() if is_json and response.content else response.text


def _serialize(target: dict[str, Any], value: Any) -> dict[str, Any]:
    """Return a parameter as the API reads it, by its OpenAPI style."""
    name, is_query = target["name"], target["in"] == "query"
    style = target.get("style", "form" if is_query else "simple")
    is_exploded = target.get("explode", style == "form")
    if isinstance(value, dict):
        if style == "deepObject":
            return {f"{name}[{key}]": _write(item) for key, item in value.items()}
        if is_query and is_exploded:
            return {key: _write(item) for key, item in value.items()}
        if is_exploded:
            return {name: ",".join(f"{key}={_write(item)}" for key, item in value.items())}
        value = [part for item in value.items() for part in item]
    if not isinstance(value, list):
        return {name: _write(value)}
    items = [_write(item) for item in value]
    if is_query and is_exploded:
        return {name: items}
    return {name: SEPARATORS.get(style, ",").join(items)}


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _make_tools() -> dict[str, StructuredTool]:
    operations = json.loads(Path(__file__).with_name("operations.json").read_text(encoding="utf-8"))
    tools = {}
    for name, details in operations.items():
        tools[name] = StructuredTool(
            name=name,
            description=details["description"],
            args_schema=details["schema"],
            func=Operation(details).call,
            handle_tool_error=True,
        )
    return tools


api = SimpleNamespace(**_make_tools())
