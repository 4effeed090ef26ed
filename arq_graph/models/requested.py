"""Which JSON schema a model call asks for, read from the call's keyword arguments in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHOICES_WITHOUT_NAME = ("auto", "none", "any", "required")


def requested_schema(kwargs: Mapping[str, Any]) -> tuple[str | None, dict[str, Any] | None]:
    """Name and JSON schema that `response_format`, or else a forced tool, asks for; None for what is absent.

    Args:
        kwargs: The keyword arguments of a chat model call.
    """
    response_format = kwargs.get("response_format")
    if isinstance(response_format, Mapping):
        wanted = response_format.get("json_schema")
        if isinstance(wanted, Mapping):
            return wanted.get("name"), wanted.get("schema")
        if isinstance(response_format.get("schema"), Mapping):
            return None, response_format["schema"]  # json_object with a schema, as llama.cpp takes it
        return None, None
    name = forced_tool(kwargs)
    for function in _functions(kwargs):
        if function.get("name") == name:
            return name, function.get("parameters")
    return None, None


def forced_tool(kwargs: Mapping[str, Any]) -> str | None:
    """Name of the one tool that the call must use, or None if it may answer in another way."""
    choice = kwargs.get("tool_choice")
    if isinstance(choice, Mapping):
        return (choice.get("function") or choice).get("name")
    names = [function.get("name") for function in _functions(kwargs)]
    if choice in ("any", "required", True):
        return names[0] if len(names) == 1 else None
    return choice if isinstance(choice, str) and choice not in _CHOICES_WITHOUT_NAME else None


def _functions(kwargs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [tool.get("function", tool) for tool in kwargs.get("tools") or () if isinstance(tool, Mapping)]
