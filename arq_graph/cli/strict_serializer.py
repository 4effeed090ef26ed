"""Read stored checkpoints without running code: a file of threads may come from anybody."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import ormsgpack
from langchain_core import messages
from langchain_core.documents import Document
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Interrupt, Overwrite, Send

from arq_graph.errors import InputError

_MESSAGE_NAMES = ("Human", "AI", "System", "Chat", "Tool", "Function")
_MESSAGES = [getattr(messages, f"{name}Message") for name in _MESSAGE_NAMES]
_CHUNKS = [getattr(messages, f"{name}MessageChunk") for name in _MESSAGE_NAMES]
_CLASSES = [*_MESSAGES, *_CHUNKS, messages.RemoveMessage, Document, Command, Interrupt, Overwrite, Send]
_ALLOWED_TYPES = {(allowed.__module__, allowed.__name__) for allowed in _CLASSES} | {
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("collections", "deque"),
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "time"),
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("decimal", "Decimal"),
    ("uuid", "UUID"),
}
"""Module and name of each type that a checkpoint may make: messages, plain values, and what a paused graph stores."""

_KINDS = ("null", "bytes", "bytearray", "msgpack")

# LangGraph's codes: below 6, a value names the type that makes it; the others hold plain data.
_NAMED_TYPE_CODES = range(6)
_PLAIN_CODES = (6, 7)
_MAX_WARNINGS = 10


@dataclass(frozen=True)
class UnreadValue:
    """Stands for a value whose type a file of threads may not make."""

    type: str


class StrictSerializer(JsonPlusSerializer):
    """Makes only values of the allowed types, whatever the environment says; any other becomes an `UnreadValue`.

    LangGraph's own serializer calls any function that a file names, unless `LANGGRAPH_STRICT_MSGPACK` is set.
    """

    def __init__(self) -> None:
        self._warned_types: set[str] = set()
        # LangGraph allows a few types of its own choice as well, so it sees only what was looked through before.
        strict = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=_ALLOWED_TYPES)
        self._make_value = strict._unpack_ext_hook
        super().__init__(
            pickle_fallback=False,
            allowed_msgpack_modules=_ALLOWED_TYPES,
            __unpack_ext_hook__=self._read_value,
        )

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Read a stored value.

        Raises:
            InputError: It is damaged, or of a kind that could run code when it is read, such as a pickle.
        """
        kind, _ = data
        if kind not in _KINDS:
            raise InputError(
                f"a stored value of kind {kind!r} cannot be read: making it could run code, and LangGraph stores "
                "values as msgpack"
            )
        try:
            return super().loads_typed(data)
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"a stored value of kind {kind!r} cannot be read: {type(error).__name__}: {error}; "
                "was the file damaged, or written by something else than LangGraph?"
            ) from None

    def _read_value(self, code: int, content: bytes) -> Any:
        forbidden_types = _find_types(code, content) - _ALLOWED_TYPES
        if not forbidden_types:
            return self._make_value(code, content)
        type_name = ".".join(min(forbidden_types))[:100]
        if type_name not in self._warned_types and len(self._warned_types) < _MAX_WARNINGS:
            self._warned_types.add(type_name)
            warnings.warn(
                f"the file of threads holds a value of the type {type_name!r}, which is not read, because making it "
                "could run code; messages and plain data are read",
                stacklevel=2,
            )
        return UnreadValue(type_name)


def _find_types(code: int, content: bytes) -> set[tuple[str, str]]:
    """Return module and name of each type that a value names, those of the values inside it included."""
    types: set[tuple[str, str]] = set()

    def visit(code: int, content: bytes) -> None:
        parts = ormsgpack.unpackb(content, ext_hook=visit, option=ormsgpack.OPT_NON_STR_KEYS)
        if code in _NAMED_TYPE_CODES:
            types.add((str(parts[0]), str(parts[1])))
        elif code not in _PLAIN_CODES:
            types.add(("msgpack", f"code {code}"))

    visit(code, content)
    return types
