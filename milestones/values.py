"""Values of arguments: whether two are the same, and how one is written as text."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from typing import Any, cast


def is_same_value(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same.

    - Numbers are compared by value: 1, 1.0 and 1e0 are the same.
    - Types are kept apart: 1 is neither "1" nor true. A text is never read as a number or a date, because "007"
      and "7" may be two order numbers.
    - Texts are compared in Unicode's form NFC, without the white space around them; case matters.
    - The order of keys does not matter, the order of a list does.
    - A key whose value is null is a key that is not there: several providers write null for what is not given.

    Cost O(size).
    """
    # No recursion: what a record holds may be nested deeper than Python's stack.
    pairs = [(one, other)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, str):
            if not isinstance(b, str) or (a != b and _normal(a) != _normal(b)):
                return False
        elif isinstance(a, Mapping) and isinstance(b, Mapping):
            given = _given(a)
            if given != _given(b):
                return False
            pairs += [(a[key], b[key]) for key in given]
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
    """The number that a value is, or that a text says in Python's way; None for anything else, true and false too."""
    if is_number(value):
        return cast(float, value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def is_number(value: Any) -> bool:
    """Whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_text(value: Any, *, sort_keys: bool = False) -> str:
    """A text as it is, anything else as JSON; what JSON cannot say is written as Python writes it.

    Raises `RecursionError` where it is nested too deep to be written, `ValueError` where it holds itself.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str, sort_keys=sort_keys)
    except TypeError:  # keys that JSON does not have, which a Python literal may hold
        return repr(value)


def _given(value: Mapping[Any, Any]) -> set[Any]:
    return {key for key, inner in value.items() if inner is not None}


def _normal(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()
