"""The one reader of YAML files: text in, a Pydantic model out, or one `SpecError` that names every mistake.

```python
suite = read_model("suite.yaml", SuiteFile, what="suite file")
```

A word without quotes is null, true, false or a decimal number, as in JSON, and text otherwise: `no`, `12:30`,
`0123`, `1e5` and `2025-01-31` stay what was written. Where the model wants text, every word is text.

A validator of the model finds the `Document` in `info.context`: the file's folder, and lines. Where it raises
`ValueError`, the message continues a sentence that begins with the field ("must be …", "names …"). One that
finds something wrong further inside raises `misfits`, which say where.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from arq_graph.agent.spec_errors import place_of, spec_error
from arq_graph.errors import SpecError

M = TypeVar("M", bound=BaseModel)

MAX_BYTES = 1_000_000  # more than 5,000 guidelines
MAX_DEPTH = 40
# Aliases can multiply a few lines to billions, so values and characters are counted once they are followed.
GROWTH = 2

_YAML = "tag:yaml.org,2002:"
_MEANINGS: dict[str, Callable[[str], object]] = {
    "null": lambda _: None,
    "bool": lambda word: word.lower() == "true",
    "int": int,
    "float": float,
    "str": str,
}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with the words of JSON; those of YAML 1.1 turn `no` into false and `12:30` into 750."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


_NUMBER = r"[-+]?(0|[1-9][0-9]{0,30})"
for _kind, _pattern, _first in (
    ("null", r"(?i:~|null|)\Z", ["~", "n", "N", ""]),
    ("bool", r"(?i:true|false)\Z", ["t", "T", "f", "F"]),
    ("float", _NUMBER + r"\.[0-9]*([eE][-+]?[0-9]{1,2})?\Z", list("-+0123456789")),
    ("int", _NUMBER + r"\Z", list("-+0123456789")),
    ("merge", r"<<\Z", ["<"]),
):
    _Loader.add_implicit_resolver(_YAML + _kind, re.compile(_pattern), _first)


def read_model(
    path: str | os.PathLike[str], model: type[M], *, what: str = "file", max_bytes: int = MAX_BYTES
) -> M:
    """Read a YAML file of at most `max_bytes` as a model, or raise `SpecError` about all that is wrong in it."""
    text = read_text(path, what=what, max_bytes=max_bytes)
    return parse_model(text, model, what=what, source=os.fspath(path), max_bytes=max_bytes)


def parse_model(
    text: str,
    model: type[M],
    *,
    what: str = "file",
    source: str = "<text>",
    max_bytes: int = MAX_BYTES,
    list_as: str | None = None,
) -> M:
    """Read a YAML text as a model; a text that is a list alone stands for the field `list_as`."""
    document = Document(text, source, max_bytes=max_bytes)
    values = {} if document.values is None else document.values
    if list_as and isinstance(values, list):
        values = {list_as: values}
    while True:
        try:
            return model.model_validate(values, context=document)
        except ValidationError as error:
            if not _take_as_text(values, document, error):
                wrong = spec_error(error, model, values, document=document, what=what)
                raise wrong from wrong.__cause__


def _take_as_text(values: Any, document: Document, error: ValidationError) -> bool:
    """Put words as they stand in the file where text was wanted and a number or truth value was read."""
    changed = False
    for each in error.errors(include_url=False):
        word = document.bare_word(each["loc"]) if each["type"] == "string_type" else None
        if word is None:
            continue
        holder = values
        *outer, last = place_of(values, each["loc"])
        for step in outer:
            holder = holder[step]
        holder[last] = word
        changed = True
    return changed


def read_text(path: str | os.PathLike[str], *, what: str, max_bytes: int = MAX_BYTES) -> str:
    """Read the text of a file that is at most `max_bytes` long; what cannot be read is a `SpecError`."""
    file = os.fspath(path)
    try:
        with Path(file).open("rb") as stream:
            content = stream.read(max_bytes + 1)
    except FileNotFoundError:
        where = "" if Path(file).is_absolute() else f" in {Path.cwd()}"
        raise SpecError(f"there is no such file{where}", file=file) from None
    except (OSError, ValueError) as error:
        raise SpecError(f"the {what} cannot be read: {error}", file=file) from error
    if len(content) > max_bytes:
        raise SpecError(f"is larger than {max_bytes:,} bytes, the limit of this kind of file", file=file)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"is not UTF-8: {error}; save it as UTF-8", file=file, line=line) from None


class Entry(dict[str, Any]):
    """A mapping of a file, which knows its line, counted from 1."""

    line: int


class Document:
    """One YAML text, read: bounded in depth and size, no key twice, and every value knows its line."""

    def __init__(self, text: str, source: str, *, max_bytes: int = MAX_BYTES) -> None:
        self.source = source
        self._room = max_bytes * GROWTH
        self._problems: dict[tuple[int, str], None] = {}
        self._known: dict[int, dict[str, tuple[yaml.Node, yaml.Node]]] = {}
        self._root = self._composed(text)
        self.values = None if self._root is None else self._value(self._root, 0)
        if self._problems:
            raise SpecError.of_several(sorted(self._problems), file=source)

    @property
    def path(self) -> Path:
        """The file, absolute."""
        return Path(self.source).absolute()

    @property
    def folder(self) -> Path:
        """The folder of the file; modules and files that it names are looked for here first."""
        return self.path.resolve().parent

    def line(self, place: Sequence[str | int]) -> int:
        """The line of an entry, or else that of what it would stand in."""
        return self._found(place)[0]

    def bare_word(self, place: Sequence[str | int]) -> str | None:
        """What stands at a place and was read as a number or a truth value; None otherwise."""
        node = self._found(place)[1]
        kind = node.tag.removeprefix(_YAML) if isinstance(node, yaml.ScalarNode) else None
        return str(node.value) if node and kind in ("bool", "int", "float") else None

    def _found(self, place: Sequence[str | int]) -> tuple[int, yaml.Node | None]:
        node = self._root
        line = node.start_mark.line if node else 0
        for step in place:
            if isinstance(node, yaml.MappingNode) and step in (entries := self._entries(node, 0)):
                key, node = entries[str(step)]
                line = key.start_mark.line
            elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                line = node.start_mark.line
        return line + 1, node

    def _composed(self, text: str) -> yaml.Node | None:
        try:
            self._check_depth(text)
            return yaml.compose(text, _Loader)
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise SpecError(f"is not YAML: {error.reason}", file=self.source, line=line) from None
        except yaml.MarkedYAMLError as error:
            begun = error.context or ""
            if begun and error.context_mark:
                begun += f" that begins in line {error.context_mark.line + 1}: "
            said = (
                f"is not YAML: {begun}{error.problem}. Indent with spaces only, and put text in quotes that holds"
                " `: ` or quotes or begins with one of * & ! @ % ` [ {"
            )
            place = error.problem_mark.line + 1 if error.problem_mark else None
            raise SpecError(said, file=self.source, line=place) from None

    def _check_depth(self, text: str) -> None:
        depth = 0  # PyYAML's composer in C would overflow the stack on a million brackets
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise self._error(event, f"is nested more than {MAX_DEPTH} deep")

    def _value(self, node: yaml.Node, depth: int) -> Any:
        self._count(node, 1 + len(node.value), depth)
        kind = node.tag.removeprefix(_YAML)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self._value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode) and kind == "map":
            entry = Entry()
            entry.line = node.start_mark.line + 1
            for key, (_, value) in self._entries(node, depth).items():
                entry[key] = self._value(value, depth + 1)
            return entry
        if isinstance(node, yaml.ScalarNode) and kind in _MEANINGS:
            with suppress(ValueError):  # `!!int` before what is none
                return _MEANINGS[kind](node.value)
        said = f"the tag `{node.tag}` is not known here; text that begins with ! goes in quotes"
        self._problems[node.start_mark.line + 1, said] = None
        return None

    def _entries(self, node: yaml.MappingNode, depth: int) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """The entries of a mapping by key: its own, then those that `<<` merges, from near to far."""
        if (known := self._known.get(id(node))) is not None:
            return known
        self._count(node, 0, depth)
        entries = self._known[id(node)] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                self._problems[line, "a key must be a word, but is a list or a mapping"] = None
            elif key.tag == f"{_YAML}merge":
                merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
            elif key.value in entries:
                first = entries[key.value][0].start_mark.line + 1
                self._problems[line, f"the key `{key.value}` stands here twice, first in line {first}"] = None
            else:
                entries[key.value] = (key, value)
        for part in merged:
            if not isinstance(part, yaml.MappingNode):
                said = "`<<` merges mappings only: `<<: *name`"
                self._problems[part.start_mark.line + 1, said] = None
                continue
            inherited = self._entries(part, depth + 1)
            self._count(node, len(inherited), depth)
            for name, entry in inherited.items():
                entries.setdefault(name, entry)
        return entries

    def _count(self, node: yaml.Node, size: int, depth: int) -> None:
        self._room -= size
        if self._room < 0:
            raise self._error(node, "aliases (`*name`) multiply the file to more than it can hold")
        if depth > MAX_DEPTH:
            raise self._error(
                node, f"is nested more than {MAX_DEPTH} deep; is an alias inside its own anchor?"
            )

    def _error(self, where: Any, message: str) -> SpecError:
        return SpecError(message, file=self.source, line=where.start_mark.line + 1)
