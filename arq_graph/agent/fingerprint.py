"""Fingerprints, by which a run that is resumed recognizes that nothing that shapes its results has changed."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from arq_graph.agent.regular_file import open_regular_file
from arq_graph.errors import InputError

_PREFIX = "digest "


def fingerprint(*values: Any) -> str:
    """Return a short text that is equal for equal values.

    A `Path` counts by the content of the file, a function or class by the source file that defines it, a tool by its
    name, description, schema and function, a model by its fields, another callable object by its class and attributes.
    Anything else counts as JSON or as its text.
    """
    text = json.dumps(values, sort_keys=True, default=_to_json)
    return _PREFIX + hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return the names of the values that changed, with both values unless they are fingerprints."""
    changes = []
    for name in dict(before) | dict(now):
        old, new = before.get(name), now.get(name)
        if old == new:
            continue
        is_readable = all(value and not value.startswith(_PREFIX) for value in (old, new))
        changes.append(f"{name} (was {old!r}, now {new!r})" if is_readable else name)
    return changes


def _to_json(value: Any) -> Any:
    if isinstance(value, Path):
        return _hash_file(value)
    if hasattr(value, "tool_call_schema"):
        from arq_graph.agent.tools import get_argument_schema

        function = getattr(value, "func", None) or getattr(value, "coroutine", None) or type(value)
        return [value.name, value.description, get_argument_schema(value), function]
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if inspect.ismethod(value) and isinstance(value.__self__, BaseModel):
        return [value.__func__, value.__self__]
    if inspect.isroutine(value) or inspect.isclass(value):
        function = inspect.unwrap(value)
        return [function.__qualname__, _get_source(function)]
    if callable(value):
        return [type(value), getattr(value, "__dict__", {})]
    return str(value)


def _hash_file(path: Path) -> str:
    try:
        with open_regular_file(path) as stream:
            return hashlib.file_digest(stream, "blake2b").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None


def _get_source(function: Any) -> str:
    """Return a hash of the function's file, or its source if it has none (in a notebook), or its module's name."""
    try:
        file = Path(inspect.getsourcefile(function) or "")
        return _hash_file(file) if file.is_file() else inspect.getsource(function)
    except (TypeError, OSError):
        return str(function.__module__)
