"""Whether a text names what a call would do it with: each value in words of its own, and each flag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from arq_graph.nodes.agreement import sentences_in, words_in
from arq_graph.nodes.speaking.grounds import unsaid

_NOT = frozenset(("no", "not", "never", "without", "none", "neither", "nor", "off", "cannot"))
_TRUE = frozenset(("yes", "true", "on"))
# In a flag's name they tell nothing.
_EMPTY = frozenset(("the", "with", "has", "have", "are", "should", "will", "and", "for"))


def unnamed_values(tool: str, arguments: Mapping[str, Any], text: str) -> list[str]:
    """The names of the arguments that a text leaves out.

    No two values are named by the same words: the 3 of "2026-03-05" is a part of the day, and not the passengers.

    Args:
        tool: The tool's name.
        arguments: The arguments.
        text: The text.
    """
    left_out = set()
    rest = text
    for name, value in sorted(arguments.items(), key=lambda each: len(str(each[1])), reverse=True):
        flags = [each for each in _leaves(name, value) if isinstance(each[1], bool)]
        if unsaid(tool, {name: value}, [rest]) or not all(states(text, *flag) for flag in flags):
            left_out.add(name)
        for _, said in _leaves(name, value):
            rest = re.sub(
                rf"(?<![\w.-]){re.escape(str(said))}(?![\w-])", " ", rest, count=1, flags=re.IGNORECASE
            )
    return [name for name in arguments if name in left_out]


def states(text: str, name: str, value: bool) -> bool:
    """Whether a text says that a flag is on, or off: "monthly: yes", "monthly", "not monthly".

    Args:
        text: The text.
        name: The flag's name.
        value: What it is set to.
    """
    words = words_in(name.replace("_", " "))
    if not words:
        return False
    label = r"[\s_]+".join(map(re.escape, words))
    stated = re.search(
        rf"\b{label}\b[\"'*]*\s*[:=]\s*[\"'*]*(yes|no|true|false|on|off)\b", text, re.IGNORECASE
    )
    if stated:
        return (stated[1].casefold() in _TRUE) is value
    telling = {word for word in words if len(word) > 2 and word not in _EMPTY}
    spoken = [words_in(each) for each in sentences_in(text)]
    about = [each for each in spoken if telling and telling.issubset(each)]
    negated = [any(word in _NOT or word.endswith("n't") for word in each) for each in about]
    return bool(negated) and all(each is not value for each in negated)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The values within a value, with the names nearest to them."""
    ahead = [(name, value)]  # no recursion: a value may be nested deeper than Python's stack
    while ahead:
        name, value = ahead.pop()
        if isinstance(value, Mapping):
            ahead.extend((str(key), each) for key, each in value.items())
        elif isinstance(value, list | tuple):
            ahead.extend((name, each) for each in value)
        elif value is not None:
            yield name, value
