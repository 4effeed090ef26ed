"""YAML as plain values, each with its line: no surprises of YAML 1.1, no duplicate keys, bounded in size.

A word without quotes is `null`, `true`, `false` or a decimal number, as in JSON, and text otherwise: `no`,
`on`, `12:30`, `0123` and `2025-01-31` stay what was written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from arq_graph.agent.entries import Misfit
from arq_graph.agent.origin import Origin, Place
from arq_graph.errors import SpecError

MAX_BYTES = 1_000_000  # more than 5,000 guidelines; PyYAML reads about 600,000 bytes a second
MAX_SIZE = 1_500_000  # values and characters once aliases are followed: a few lines can multiply to billions
MAX_DEPTH = 40

_TAG = "tag:yaml.org,2002:"
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})\.[0-9]*([eE][-+]?[0-9]{1,2})?")
_PLAIN_TAGS = {_TAG + kind for kind in ("null", "bool", "int", "float", "timestamp", "str", "value", "merge")}

# What PyYAML says, by a piece of its words, and what people usually did.
_CAUSES = (
    ("'\\t'", "a tab; YAML is indented with spaces only"),
    (
        "mapping values are not allowed",
        "a second `:` in the line, or an indentation that does not fit; text with `: ` in it goes in quotes",
    ),
    ("cannot start any token", "text that begins with one of @ ` % goes in quotes"),
    ("alphabetic or numeric", "text that begins with * or & goes in quotes"),
    ("undefined alias", "text that begins with * goes in quotes"),
    ("unexpected end of stream", "the quote that is opened here is never closed"),
    (
        "expected <block end>",
        "the line does not line up with the ones before it, or it goes on after a closing quote or bracket;"
        " text with quotes or brackets in it goes in quotes as a whole",
    ),
    ("but got '<stream end>'", "the bracket that is opened here is never closed"),
    ("expected ',' or", "a bracket that is opened before here is not closed, or a comma is missing"),
    ("could not find expected ':'", "a line that is neither `key: value` nor indented under one"),
    ("sequence entries are not allowed", "a `- ` that does not begin its line"),
    ("but found another document", "a second document (`---`); one file holds one agent"),
    ("special characters are not allowed", "a control character, which YAML does not allow"),
)


def read_yaml(
    file: str, *, needs: str = "an agent needs at least `name:` and `profile:`"
) -> tuple[Any, Origin]:
    """Read a file as plain values.

    Args:
        file: The file.
        needs: What must be in it at least, as an empty one is told.

    Returns:
        The values (mappings as dicts), and where each one stands.

    Raises:
        SpecError: There is no such file, it is too large, not UTF-8, not YAML, empty, or uses a key twice.
    """
    text = _read(file)
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except RecursionError:
        raise SpecError("is nested too deeply to be an agent", file=file) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(f"is not YAML: {_cause(error.reason)}", file=file, line=line) from None
    except yaml.MarkedYAMLError as error:
        said = f"{error.context or ''} {error.problem or ''}"
        raise SpecError(f"is not YAML: {_cause(said)}", file=file, line=_line(error)) from None
    if root is None:
        raise SpecError(f"is empty; {needs}", file=file, line=1)
    reading = _Reading()
    origin = Origin(file, Path(file).absolute(), reading.lines, reading.bare)
    try:
        return reading.value(root, ()), origin
    except Misfit as misfit:
        raise origin.error(misfit) from None


def _read(file: str) -> str:
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        where = "" if Path(file).is_absolute() else f" in {Path.cwd()}"
        raise SpecError(f"there is no such file{where}", file=file) from None
    except IsADirectoryError:
        raise SpecError("is a folder; name the YAML file in it", file=file) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot be read: {error}", file=file) from error
    if len(content) > MAX_BYTES:
        raise SpecError(f"is larger than {MAX_BYTES:,} bytes, the limit of an agent file", file=file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(
            f"is not UTF-8: byte 0x{content[error.start]:02x} cannot be read; save the file as UTF-8",
            file=file,
            line=line,
        ) from None


def _cause(said: str) -> str:
    for piece, cause in _CAUSES:
        if piece in said:
            return cause
    return " ".join(said.split())


def _line(error: yaml.MarkedYAMLError) -> int | None:
    """Where it began, if what was begun never ended; else where YAML stopped."""
    never_ended = any(
        piece in str(error.problem) for piece in ("end of stream", "stream end", "could not find")
    )
    marks = [error.context_mark, error.problem_mark]
    mark = next((mark for mark in (marks if never_ended else marks[::-1]) if mark), None)
    return mark.line + 1 if mark else None


class _Reading:
    """One walk over a file's nodes, following aliases."""

    def __init__(self) -> None:
        self.lines: dict[Place, int] = {}
        self.bare: dict[Place, str] = {}
        self._size = 0

    def value(self, node: yaml.Node, place: Place) -> Any:
        self.lines[place] = node.start_mark.line + 1
        self._size += 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        if self._size > MAX_SIZE:
            raise Misfit("aliases (`*name`) multiply the file to more than an agent can hold", *place)
        if len(place) > MAX_DEPTH:
            raise Misfit(
                f"is nested more than {MAX_DEPTH} deep; does an alias stand inside its own anchor?", *place
            )
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return [self.value(item, (*place, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, place)
        raise _tagged(node, place)

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        word = node.value
        if node.tag not in _PLAIN_TAGS:
            raise _tagged(node, place)
        if node.tag == _TAG + "str" or node.style:
            return word
        meaning = _meaning(word)
        if not isinstance(meaning, str) and word:
            self.bare[place] = word
        return meaning

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self._at(line, Misfit("a key must be a word, but is a list or a mapping", *place, "?"))
            if key.tag == _TAG + "merge":
                for part in item.value if isinstance(item, yaml.SequenceNode) else [item]:
                    merged = {**self._merged(part, place), **merged}
                continue
            if key.value in own:
                first = self.lines[(*place, key.value)]
                said = f"the key `{key.value}` stands here a second time (first in line {first})"
                raise self._at(line, Misfit(said, *place, key.value))
            own[key.value] = self.value(item, (*place, key.value))
            self.lines[(*place, key.value)] = line
        return {**merged, **own}

    def _merged(self, node: yaml.Node, place: Place) -> dict[str, Any]:
        line = self.lines[place]
        value = self.value(node, place)
        if not isinstance(value, dict):
            raise Misfit("`<<` merges mappings only: `<<: *name`", *place)
        self.lines[place] = line
        return value

    def _at(self, line: int, misfit: Misfit) -> Misfit:
        self.lines[misfit.path] = line
        return misfit


def _meaning(word: str) -> object:
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _WHOLE.fullmatch(word):
        return int(word)
    return float(word) if _DECIMAL.fullmatch(word) else word


def _tagged(node: yaml.Node, place: Place) -> Misfit:
    tag = node.tag.replace(_TAG, "!!")
    return Misfit(f"the tag `{tag}` is not known here; text that begins with ! goes in quotes", *place)
