"""Fingerprints: by them, a run that goes on knows that whatever shapes it is what it was."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from arq_graph.errors import InputError

_DIGEST = "digest "


def fingerprint(*things: Any) -> str:
    """A short text that is the same where the things are the same.

    A `Path` counts by what the file holds, a function or class by the source file that defines it, a tool by its
    name, description, schema and function, a model by its fields, an object that is called by its class and attributes;
    anything else as JSON, or as its text.
    """
    told = json.dumps(things, sort_keys=True, default=_described)
    return f"{_DIGEST}{hashlib.blake2b(told.encode(), digest_size=16).hexdigest()}"


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of what is not the same any more; with both values where they are no digests."""
    told = []
    for name in {**before, **now}:
        values = (before.get(name), now.get(name))
        if values[0] != values[1]:
            is_readable = all(value and not value.startswith(_DIGEST) for value in values)
            told.append(f"{name} (was {values[0]!r}, now {values[1]!r})" if is_readable else name)
    return told


def _described(value: Any) -> Any:
    if isinstance(value, Path):
        try:
            with value.open("rb") as stream:
                return hashlib.file_digest(stream, "blake2b").hexdigest()
        except OSError as error:
            raise InputError(f"{value} cannot be read: {error.strerror}") from None
    if hasattr(value, "tool_call_schema"):
        from arq_graph.agent.tools import argument_schema

        function = getattr(value, "func", None) or getattr(value, "coroutine", None) or type(value)
        return [value.name, value.description, argument_schema(value), function]
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if inspect.ismethod(value) and isinstance(value.__self__, BaseModel):
        return [value.__func__, value.__self__]
    if inspect.isroutine(value) or inspect.isclass(value):
        return _source(inspect.unwrap(value))
    if callable(value):
        return [type(value), getattr(value, "__dict__", {})]
    return str(value)


def _source(function: Any) -> list[str]:
    """A function's name, and its file; its text where there is no file, as in a notebook; at worst its module."""
    found = str(function.__module__)
    with suppress(TypeError, OSError):
        file = Path(inspect.getsourcefile(function) or "")
        found = _described(file) if file.is_file() else inspect.getsource(function)
    return [function.__qualname__, found]
