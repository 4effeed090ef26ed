"""Whether two calls ask the same: a typed comparison of their arguments."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.milestones.transcript import Call


def same_arguments(truth: Mapping[str, Any], predicted: Mapping[str, Any]) -> bool:
    """Whether two calls of one tool have the same arguments: the full parameter match of Pre-Act 4.2.

    - The order of keys does not matter, that of a list does.
    - Numbers are equal by value, however they are written: 1, 1.0 and 1e0.
    - Types are kept apart: 1 is not "1" and not true. A text is never read as a number or a date, because
      "007" and "7", or "1,200" and "1200", may be two order numbers.
    - Texts are equal in Unicode's form NFC and without white space around them; case matters.
    - null is the same as an argument (or a key inside one) that is not given: several providers write null for
      each optional argument. A schema's default is not filled in: leaving an argument out is not the same as
      giving its default.

    Cost O(size).
    """
    return same_value(truth, predicted)


def same_value(truth: Any, predicted: Any) -> bool:
    """Whether two values of arguments are the same; see `same_arguments`."""
    to_compare = [(truth, predicted)]
    while to_compare:
        a, b = to_compare.pop()
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if _given(a) != _given(b):
                return False
            to_compare += [(a[key], b[key]) for key in _given(a)]
        elif _is_list(a) and _is_list(b):
            if len(a) != len(b):
                return False
            to_compare += zip(a, b, strict=True)
        elif not _same_scalar(a, b):
            return False
    return True


def same_calls(truth: Sequence[Call], predicted: Sequence[Call]) -> bool | None:
    """Whether calls pair up one to one, by tool and arguments, in any order.

    Returns:
        None where a true call is malformed: there is nothing to compare with. A malformed call that is
        predicted matches nothing.
    """
    if any(call.malformed is not None for call in truth):
        return None
    left = [call for call in predicted if call.malformed is None]
    if len(left) != len(truth) or len(left) != len(predicted):
        return False
    for call in truth:
        # Sameness is an equivalence, so the first that fits is as good as any.
        fitting = next(
            (
                index
                for index, other in enumerate(left)
                if other.tool == call.tool and same_arguments(call.arguments, other.arguments)
            ),
            None,
        )
        if fitting is None:
            return False
        del left[fitting]
    return True


def _given(value: Mapping[Any, Any]) -> set[Any]:
    return {key for key, inner in value.items() if inner is not None}


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _same_scalar(a: Any, b: Any) -> bool:
    if isinstance(a, str) and isinstance(b, str):
        return _normalised(a) == _normalised(b)
    if _is_number(a) and _is_number(b):
        return a == b or (math.isnan(a) and math.isnan(b))
    return type(a) is type(b) and bool(a == b)


def _normalised(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
