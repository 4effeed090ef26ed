"""Fingerprints: by them, a run that goes on knows that whatever shapes it is what it was."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from arq_graph.errors import InputError

_DIGEST = "digest "
_CHUNK = 1 << 20


def fingerprint(*things: Any) -> str:
    """A short text that is the same where the things are the same.

    A `Path` counts by what the file holds, a function by the source file that defines it, a tool by its name and
    schema, a model by its fields; anything else as JSON, or as its text.
    """
    digest = hashlib.blake2b(digest_size=16)
    for thing in things:
        size = 0
        for chunk in _chunks(thing):
            digest.update(chunk)
            size += len(chunk)
        digest.update(b"\0%d\0" % size)
    return f"{_DIGEST}{digest.hexdigest()}"


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of what is not the same any more; with both values where they are no digests."""
    told = []
    for name in {**before, **now}:
        values = (before.get(name), now.get(name))
        if values[0] != values[1]:
            is_readable = all(value and not value.startswith(_DIGEST) for value in values)
            told.append(f"{name} (was {values[0]!r}, now {values[1]!r})" if is_readable else name)
    return told


def _chunks(thing: Any) -> Iterator[bytes]:
    if inspect.isroutine(thing) or isinstance(thing, type):
        thing = inspect.unwrap(thing)
        yield str(thing.__qualname__).encode()
        thing = _source(thing)
    if not isinstance(thing, Path):
        yield json.dumps(thing, sort_keys=True, default=_described).encode()
        return
    try:
        with thing.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise InputError(f"{thing} cannot be read: {error.strerror}") from None


def _source(function: Any) -> Path | str:
    """The file that defines a function; its text where there is no file, as in a notebook; at worst its module."""
    with suppress(TypeError, OSError):
        file = Path(inspect.getsourcefile(function) or "")
        return file if file.is_file() else inspect.getsource(function)
    return str(function.__module__)


def _described(value: Any) -> Any:
    if (schema := getattr(value, "tool_call_schema", None)) is not None:
        return [getattr(value, "name", ""), schema]
    if isinstance(value, type) and issubclass(value, BaseModel):
        return value.model_json_schema()
    if isinstance(value, BaseModel):
        return value.model_dump()
    return f"{value.__module__}.{value.__qualname__}" if inspect.isroutine(value) else str(value)
