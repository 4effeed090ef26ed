"""YAML as plain values that know their lines: no surprises of YAML 1.1, no key twice, bounded in depth and size.

A word without quotes is `null`, `true`, `false` or a decimal number, as in JSON, and text otherwise: `no`,
`on`, `12:30`, `0123`, `1e5` and `2025-01-31` stay what was written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer

from arq_graph.errors import SpecError

MAX_BYTES = 1_000_000  # more than 5,000 guidelines
MAX_DEPTH = 40
# Aliases can multiply a few lines to billions, so values and characters are counted once they are followed.
GROWTH = 1.5

_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,30})\.[0-9]*([eE][-+]?[0-9]{1,2})?")

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
    ("'<stream end>'", "the bracket that is opened here is never closed"),
    ("expected ',' or", "a bracket that is opened before here is not closed, or a comma is missing"),
    ("could not find expected ':'", "a line that is neither `key: value` nor indented under one"),
    ("sequence entries are not allowed", "a `- ` that does not begin its line"),
    ("but found another document", "a second document (`---`); keep one in a file"),
    ("characters are not allowed", "a control character, which YAML does not allow"),
)


class Entry(dict[str, Any]):
    """A mapping of a file, which knows its line.

    Attributes:
        line: Where it begins, counted from 1.
    """

    line: int


class Document:
    """One YAML text, read.

    Args:
        text: The text.
        source: Where it came from: a file, as it was named, or a word such as "<text>".
        max_bytes: How much it may hold once aliases are followed, 1.5 times over.

    Attributes:
        source: As given; what errors say.
        values: Dicts (`Entry`), lists, texts, numbers, truth values and None; None for an empty document.

    Raises:
        SpecError: It is not YAML, uses a key twice or a tag, is nested too deeply or multiplies itself.
    """

    def __init__(self, text: str, source: str, *, max_bytes: int = MAX_BYTES) -> None:
        self.source = source
        self._problems: list[tuple[int, str]] = []
        self._room = int(max_bytes * GROWTH)
        self._root = self._composed(text)
        self.values = None if self._root is None else self._value(self._root, 0)
        if self._problems:
            raise SpecError.of_several(sorted(set(self._problems)), file=source)

    @property
    def path(self) -> Path:
        """The file, absolute."""
        return Path(self.source).absolute()

    @property
    def folder(self) -> Path:
        """The folder of the file; modules and files that it names are looked for here first."""
        return self.path.resolve().parent

    def line(self, place: Sequence[str | int]) -> int:
        """The line of an entry, or else that of what it would stand in.

        Args:
            place: Keys and indices from the outermost mapping or list inwards; steps that do not exist are
                passed over.
        """
        return self._found(place)[0]

    def bare_word(self, place: Sequence[str | int]) -> str | None:
        """What stands at a place without quotes and was read as a number or a truth value; None otherwise."""
        node = self._found(place)[1]
        if isinstance(node, yaml.ScalarNode) and _is_bare(node) and node.value:
            return None if isinstance(_meaning(node.value), str | None) else str(node.value)
        return None

    def _found(self, place: Sequence[str | int]) -> tuple[int, yaml.Node | None]:
        node = self._root
        line = node.start_mark.line if node else 0
        for step in place:
            if isinstance(node, yaml.MappingNode):
                for key, value in _entries(node):
                    if key.value == step:
                        line, node = key.start_mark.line, value
                        break
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
        return line + 1, node

    def _composed(self, text: str) -> yaml.Node | None:
        try:
            return _compose(text, _Loader)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise SpecError(f"is not YAML: {_cause(error.reason)}", file=self.source, line=line) from None
        except yaml.MarkedYAMLError as error:
            wrong = _in_python_words(text, error)
        said = f"{wrong.context or ''} {wrong.problem or ''}"
        raise SpecError(f"is not YAML: {_cause(said)}", file=self.source, line=_line(wrong)) from None

    def _value(self, node: yaml.Node, depth: int) -> Any:
        self._take(1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0), node)
        if depth > MAX_DEPTH:
            said = f"is nested more than {MAX_DEPTH} deep; does an alias stand inside its own anchor?"
            raise SpecError(said, file=self.source, line=node.start_mark.line + 1)
        match node:
            case yaml.ScalarNode(tag="plain" | "text" | "tag:yaml.org,2002:str"):
                return _meaning(node.value) if _is_bare(node) else node.value
            case yaml.SequenceNode(tag="list"):
                return [self._value(item, depth + 1) for item in node.value]
            case yaml.MappingNode(tag="mapping"):
                return self._mapping(node, depth)
        tag = node.tag.replace("tag:yaml.org,2002:", "!!")
        self._wrong(node, f"the tag `{tag}` is not known here; text that begins with ! goes in quotes")
        return None

    def _mapping(self, node: yaml.MappingNode, depth: int) -> Entry:
        lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._wrong(key, "a key must be a word, but is a list or a mapping")
            elif _is_merge(key):
                if not all(isinstance(part, yaml.MappingNode) for part in _merged(value)):
                    self._wrong(key, "`<<` merges mappings only: `<<: *name`")
            elif key.value in lines:
                first = f"(first in line {lines[key.value]})"
                self._wrong(key, f"the key `{key.value}` stands here a second time {first}")
            else:
                lines[key.value] = key.start_mark.line + 1
        entry = Entry()
        entry.line = node.start_mark.line + 1
        for key, value in _entries(node):
            self._take(1, key)
            if key.value not in entry:
                entry[key.value] = self._value(value, depth + 1)
        return entry

    def _take(self, size: int, node: yaml.Node) -> None:
        self._room -= size
        if self._room < 0:
            said = "aliases (`*name`) multiply the file to more than it can hold"
            raise SpecError(said, file=self.source, line=node.start_mark.line + 1)

    def _wrong(self, node: yaml.Node, message: str) -> None:
        self._problems.append((node.start_mark.line + 1, message))


def read_text(path: str | os.PathLike[str], *, what: str, max_bytes: int = MAX_BYTES) -> str:
    """Read the text of a file.

    Args:
        path: The file.
        what: What it is, for messages: "agent file".
        max_bytes: How large it may be.

    Raises:
        SpecError: There is no such file, it cannot be read, is too large, or is not UTF-8.
    """
    file = os.fspath(path)
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except FileNotFoundError:
        where = "" if Path(file).is_absolute() else f" in {Path.cwd()}"
        raise SpecError(f"there is no such file{where}", file=file) from None
    except IsADirectoryError:
        raise SpecError(f"is a folder; name the {what} in it", file=file) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"the {what} cannot be read: {error}", file=file) from error
    if len(content) > max_bytes:
        raise SpecError(f"is larger than {max_bytes:,} bytes, the limit of this kind of file", file=file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(
            f"is not UTF-8: byte 0x{content[error.start]:02x} cannot be read; save the file as UTF-8",
            file=file,
            line=line,
        ) from None


_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one of libyaml is ten times as fast


class _Composing(Composer):
    """Composes nodes with a limit on their depth, and leaves the meaning of words to `_meaning`.

    PyYAML's composer in C would overflow the stack on a file of a million brackets.
    """

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MAX_DEPTH + 1:
            mark = self.peek_event().start_mark  # type: ignore[attr-defined]
            raise yaml.MarkedYAMLError(problem=f"nested more than {MAX_DEPTH} deep", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def resolve(self, kind: type[yaml.Node], value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return "plain" if implicit[0] else "text"
        return "list" if kind is yaml.SequenceNode else "mapping"


class _Loader(_Composing, _PARSER):  # type: ignore[misc]
    def __init__(self, stream: str) -> None:
        _PARSER.__init__(self, stream)
        Composer.__init__(self)


class _PythonLoader(_Composing, yaml.SafeLoader):
    def __init__(self, stream: str) -> None:
        yaml.SafeLoader.__init__(self, stream)


def _compose(text: str, loader: Any) -> yaml.Node | None:
    node: yaml.Node | None = yaml.compose(text, loader)
    return node


def _in_python_words(text: str, error: yaml.MarkedYAMLError) -> yaml.MarkedYAMLError:
    """The same error as PyYAML's own parser tells it: its words and lines say more than those of libyaml."""
    if len(text) <= MAX_BYTES:
        try:
            _compose(text, _PythonLoader)
        except yaml.MarkedYAMLError as told:
            return told
        except yaml.YAMLError:
            pass
    return error


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


def _entries(node: yaml.MappingNode) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    """The entries of a mapping: its own first, then those that `<<` merges, from near to far."""
    seen = {id(node)}
    waiting = [node]
    while waiting:
        mapping = waiting.pop()
        for key, value in mapping.value:
            if isinstance(key, yaml.ScalarNode) and not _is_merge(key):
                yield key, value
        merged = [part for key, value in mapping.value if _is_merge(key) for part in _merged(value)]
        for part in reversed(merged):
            if isinstance(part, yaml.MappingNode) and id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)


def _merged(value: yaml.Node) -> list[yaml.Node]:
    return value.value if isinstance(value, yaml.SequenceNode) else [value]


def _is_merge(key: yaml.Node) -> bool:
    return key.tag == "plain" and key.value == "<<"


def _is_bare(node: yaml.ScalarNode) -> bool:
    return bool(node.tag == "plain")


def _meaning(word: str) -> object:
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _WHOLE.fullmatch(word):
        return int(word)
    return float(word) if _DECIMAL.fullmatch(word) else word
