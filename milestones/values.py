"""Values of arguments: comparing them, and turning them into numbers and text."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json

_SCALAR_TYPES = (str, int, bool)
_ENCODERS: dict[bool, json.JSONEncoder] = {}
for _sort_keys in (False, True):
    _ENCODERS[_sort_keys] = json.JSONEncoder(ensure_ascii=False, default=str, sort_keys=_sort_keys)


def is_same_value(value: Any, other: Any) -> bool:
    """Return whether two JSON values are the same.

    - Numbers are compared by value: 1, 1.0 and 1e0 are the same.
    - Types are kept apart: 1 is neither "1" nor true. A text is never parsed as a number or a date, because "007"
      and "7" may be two order numbers.
    - Texts are compared in Unicode's form NFC, without the white space around them; case matters.
    - The order of keys does not matter, the order of a list does.
    - A key whose value is null is the same as a missing key: several providers write null for what is not given.

    Cost O(size).
    """
    if type(value) is type(other) and type(value) in _SCALAR_TYPES and value == other:
        return True
    if isinstance(value, str) and isinstance(other, str):  # as most values are
        return value == other or _normalize(value) == _normalize(other)
    # No recursion: a recorded value may be nested deeper than Python's stack.
    pairs = [(value, other)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, str):
            if not isinstance(b, str) or (a != b and _normalize(a) != _normalize(b)):
                return False
        elif isinstance(a, Mapping) and isinstance(b, Mapping):
            keys = _get_keys_with_value(a)
            if keys != _get_keys_with_value(b):
                return False
            pairs += [(a[key], b[key]) for key in keys]
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif is_number(a) and is_number(b):
            if a != b and not (math.isnan(a) and math.isnan(b)):
                return False
        elif type(a) is not type(b) or a != b:
            return False
    return True


def as_number(value: Any) -> float | None:
    """Return a number, or a text in Python's notation as a number; None for anything else, true and false too."""
    if is_number(value):
        return cast(float, value)
    if not isinstance(value, str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def is_number(value: Any) -> bool:
    """Return whether a value is a number; true and false aren't."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_text(value: Any, *, sort_keys: bool = False) -> str:
    """Return a text as it is and anything else as JSON; what JSON can't express, as Python writes it.

    Raises:
        RecursionError: The value is nested too deep.
        ValueError: The value contains itself.
    """
    if isinstance(value, str):
        return value
    try:
        return _ENCODERS[sort_keys].encode(value)
    except TypeError:  # a Python literal may have keys that JSON doesn't allow
        return repr(value)


def parse_json(text: str | bytes) -> Any:
    """Parse JSON as Python's own module does, and faster.

    Raises:
        ValueError: It isn't JSON.
        RecursionError: It is nested too deep.
    """
    try:
        return from_json(text)
    except (
        ValueError,
        TypeError,
    ):  # what it does not accept, lone surrogates and deep nesting, may still be JSON
        return json.loads(text)


def _get_keys_with_value(mapping: Mapping[Any, Any]) -> set[Any]:
    return {key for key, value in mapping.items() if value is not None}


def _normalize(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()
