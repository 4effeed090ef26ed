"""What an entry of a specification may hold: a reader for each kind of value, and words for a misfit.

The same readers serve an agent that is built in Python and one that is read from a file: both hear the same
complaint, and a file adds its line.
"""

from __future__ import annotations

import difflib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar

Reader = Callable[[object], Any]
T = TypeVar("T")

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_ID = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")
_RESERVED = {
    "T": "tool results",
    "K": "glossary terms",
    "V": "variables",
    "M": "messages",
    "P": "the profile",
}

_TRUTH_WORDS = {"yes": "true", "on": "true", "no": "false", "off": "false"}


class Misfit(ValueError):
    """An entry does not hold what it should; becomes a `SpecError` where the file or the object is known.

    Args:
        message: What is wrong, and what was expected.
        path: Where it stands, as keys and indices from the outermost entry inwards.
    """

    def __init__(self, message: str, *path: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.path = path

    def inside(self, owner: str, field: str, *outer: str | int) -> Self:
        """Return the same misfit, told from the entry whose `field` it was found in."""
        place = field + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return type(self)(f"{owner}: `{place}` {self.message}", *outer, field, *self.path)


class NotText(Misfit):
    """Something else stands where text is expected; YAML reads some words as truth values and numbers."""


def settle(
    owner: str, readers: Mapping[str, Reader], values: Mapping[str, object], *outer: str | int
) -> dict[str, Any]:
    """Pass each value through its reader.

    Args:
        owner: What the values belong to, for the message: "guideline G3".
        readers: A reader for each field.
        values: The values by field.
        outer: Where the owner stands.

    Raises:
        Misfit: A value does not fit its field.
    """
    settled = {}
    for field, value in values.items():
        try:
            settled[field] = readers[field](value)
        except Misfit as misfit:
            raise misfit.inside(owner, field, *outer) from misfit.__cause__
    return settled


def described(value: object) -> str:
    """Say what a value is, in the words of somebody who wrote it into a file or a call."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"the truth value {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text {shortened(value)!r}"
        case Mapping():
            return "a mapping of keys to values"
        case list() | tuple():
            return "a list"
        case type():
            return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {value.__name__}"
    return f"an object of type {type(value).__name__}"


def shortened(text: str, length: int = 60) -> str:
    """Cut `text` to one line of at most `length` characters."""
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean `x`?" for the nearest known word, or nothing where none is near."""
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean `{by_folded[near[0]]}`?" if near else ""


def text(value: object) -> str:
    """Read a text that says something."""
    if not isinstance(value, str):
        raise NotText(f"must be text, but is {described(value)}")
    if not value.strip():
        raise Misfit("is empty; write what it should say")
    return value.strip()


def flag(value: object) -> bool | None:
    """Read true, false or nothing."""
    if value is None or isinstance(value, bool):
        return value
    meant = _TRUTH_WORDS.get(value.casefold()) if isinstance(value, str) else None
    hint = f"; write {meant}" if meant else ""
    raise Misfit(f"must be true or false, but is {described(value)}{hint}")


def whole_number(value: object) -> int:
    """Read a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit(f"must be a whole number, but is {described(value)}")
    return value


def one_of(*allowed: str) -> Reader:
    """Read one of some words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in allowed:
            return value
        hint = suggestion(value, allowed) if isinstance(value, str) else ""
        raise Misfit(f"must be {' or '.join(map(repr, allowed))}, but is {described(value)}{hint}")

    return read


def optional(reader: Reader) -> Reader:
    """Read nothing, or what `reader` reads."""
    return lambda value: None if value is None else reader(value)


def listing(reader: Callable[[object], T], what: str = "") -> Callable[[object], tuple[T, ...]]:
    """Read a list (or tuple), each item by `reader`.

    Args:
        reader: Reads one item.
        what: What the items are, for the message: "guidelines".
    """
    expected = f"a list of {what}" if what else "a list"

    def read(value: object) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            example = f"; write {[value]!r}" if isinstance(value, str) else ""
            if isinstance(value, Mapping):
                example = "; begin each of its entries with `- `"
            raise Misfit(f"must be {expected}, but is {described(value)}{example}")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(reader(item))
            except Misfit as misfit:
                raise type(misfit)(misfit.message, index, *misfit.path) from misfit.__cause__
        return tuple(items)

    return read


def instance(kind: type[T]) -> Callable[[object], T]:
    """Read an object of one class."""

    def read(value: object) -> T:
        if not isinstance(value, kind):
            raise Misfit(f"must be a {kind.__name__}, but is {described(value)}")
        return value

    return read


def identifier(value: object) -> str:
    """Read an id: it becomes a key of the answers, and the letters of other kinds of ids are taken."""
    name = text(value)
    if not _ID.fullmatch(name):
        raise Misfit(
            f"is {shortened(name)!r}, but an id is 1 to 64 of the characters A-Z a-z 0-9 _ - and does not"
            " begin with _"
        )
    if name == "P" or (name[0] in _RESERVED and name[1:].isdecimal()):
        raise Misfit(f"is {name!r}, but {name[0]} and a number is how prompts name {_RESERVED[name[0]]}")
    if is_taken(name):
        raise Misfit(f"is {name!r}, a word that answers use for something else; choose another id")
    return name


def is_taken(name: str) -> bool:
    """Whether an answer, which has a property for each id and for each tool, cannot have one of that name."""
    from arq_graph.reasoning.blueprint import ARQ

    return name.startswith("_") or hasattr(ARQ, name)


def own_identifier(value: object) -> str:
    """Read an id, or nothing (an empty one) where the agent is to give it one."""
    return "" if value is None or value == "" else identifier(value)


def identifiers(value: object) -> tuple[str, ...]:
    """Read a list of ids."""
    return listing(identifier, "ids")(value)


def condition(value: object) -> str | Callable[[Any], bool] | None:
    """Read a condition: text, a function of the state, or None for always."""
    if value is None:
        return None
    if isinstance(value, str):
        if value.strip() == "None":
            raise Misfit("is the word 'None'; for a guideline that always applies, leave it out")
        if _FUNCTION.fullmatch(value.strip()):
            raise Misfit(
                f"is {value.strip()!r}, which looks like a function and would be read as words; in a file write "
                f'{{function: "{value.strip()}"}}, in Python give the function itself'
            )
        return text(value)
    if not callable(value) or isinstance(value, type):
        raise NotText(
            "must be text, a function of the state, or nothing at all (always true), but is "
            + described(value)
        )
    if inspect.iscoroutinefunction(value):
        raise Misfit(f"is {described(value)}, which is async; a condition is a plain function of the state")
    try:
        inspect.signature(value).bind(None)
    except TypeError:
        raise Misfit(f"is {described(value)}, which must take one argument: the state") from None
    except ValueError:
        pass  # a function written in C may have no signature to look at
    return value


def anything_sayable(value: object) -> object:
    """Read any value that a prompt can show as JSON."""
    try:
        json.dumps(value, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise Misfit(f"must be a value that JSON can say, but is {described(value)} ({error})") from None
    return value


def mapping_of(reader: Callable[[object], T]) -> Callable[[object], dict[str, T]]:
    """Read a mapping from names to what `reader` reads."""

    def read(value: object) -> dict[str, T]:
        if not isinstance(value, Mapping):
            raise Misfit(f"must be a mapping of names to values (`name: value`), but is {described(value)}")
        read_values = {}
        for name, item in value.items():
            try:
                read_values[text(name)] = reader(item)
            except Misfit as misfit:
                raise type(misfit)(misfit.message, str(name), *misfit.path) from misfit.__cause__
        return read_values

    return read
