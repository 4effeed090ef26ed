"""How much of a long text a judge is shown: its beginning and its end, as much of them as a budget allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from arq_graph.reasoning.sections import as_json

Shown = TypeVar("Shown")

SHORTEST_TEXT = 80
"""Characters of a text that are shown at least."""


def as_long_as_fits(
    render: Callable[[int | None], Shown], fits: Callable[[Shown], bool], longest: int
) -> Shown | None:
    """Something with texts in it, the longest of them cut as far as it has to be. Cost O(log longest) renderings.

    Args:
        render: Makes it with texts of so many characters at most; None: whole.
        fits: Whether it is within the budget.
        longest: The highest number of characters that can fit.

    Returns:
        None where it does not fit even with `SHORTEST_TEXT` characters of each text: after two renderings.
    """
    # Whole first: that a text was cut takes a few characters to say, which short ones do not save.
    if fits(whole := render(None)):
        return whole
    fitting = render(SHORTEST_TEXT)
    if not fits(fitting):
        return None
    low, high = SHORTEST_TEXT + 1, longest
    while low <= high:
        limit = (low + high) // 2
        shown = render(limit)
        if fits(shown):
            fitting, low = shown, limit + 1
        else:
            high = limit - 1
    return fitting


def cut(key: str, text: str, limit: int | None) -> dict[str, Any]:
    """A text under its key; where it is too long its two ends, and beside them how long it is.

    Args:
        key: The key.
        text: The text.
        limit: The characters that are shown at most; None: all.
    """
    if limit is None or len(text) <= limit:
        return {key: text}
    half = limit // 2
    return {key: f"{text[:half]} … {text[-half:]}", "shortened_from_characters": len(text)}


@dataclass(frozen=True)
class Budget:
    """What one section of a prompt may take.

    Args:
        max_tokens: Tokens of its JSON, from 1.
        count_tokens: How they are counted.
    """

    max_tokens: int
    count_tokens: Callable[[str], int]

    def has_room_for(self, value: Any) -> bool:
        """Whether a value is within the budget."""
        return self.count_tokens(as_json(value)) <= self.max_tokens

    def fitted(self, render: Callable[[int | None], Shown]) -> Shown | None:
        """A section's value, its texts cut as far as they have to be; see `as_long_as_fits`."""
        return as_long_as_fits(render, self.has_room_for, self.longest)

    @property
    def longest(self) -> int:
        """Characters; a longer text is over the budget by itself, at eight characters a token."""
        return 8 * self.max_tokens
