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
    """One YAML text, read: bounded in depth and size, no key twice, and every value knows its line.

    Attributes:
        source: Where it came from: a file, as it was named, or a word such as "<text>".
        values: Dicts (`Entry`), lists, texts, numbers, truth values and None; None for an empty document.
    """

    def __init__(self, text: str, source: str, *, max_bytes: int = MAX_BYTES) -> None:
        self.source = source
        self._room = max_bytes * GROWTH
        self._root = self._composed(text)
        self.values = None if self._root is None else self._value(self._root, 0)

    @property
    def path(self) -> Path:
        """The file, absolute."""
        return Path(self.source).absolute()

    @property
    def folder(self) -> Path:
        """The folder of the file; modules and files that it names are looked for here first."""
        return self.path.resolve().parent

    def line(self, place: Sequence[str | int]) -> int:
        """The line of what stands at a place, from 1; steps that do not exist are passed over."""
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
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == step:
                        line, node = key.start_mark.line, value
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
            begun = f"{error.context}: " if error.context else ""
            if error.context and error.context_mark:
                begun = f"{error.context} that begins in line {error.context_mark.line + 1}: "
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
        self._room -= 1 + len(node.value)
        if self._room < 0:
            raise self._error(node, "aliases (`*name`) multiply the file to more than it can hold")
        if depth > MAX_DEPTH:
            raise self._error(node, f"goes deeper than {MAX_DEPTH}; is an alias inside its own anchor?")
        kind = node.tag.removeprefix(_YAML)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            return [self._value(item, depth + 1) for item in node.value]
        if isinstance(node, yaml.MappingNode) and kind == "map":
            return self._entry(node, depth)
        if isinstance(node, yaml.ScalarNode) and kind in _MEANINGS:
            with suppress(ValueError):  # `!!int` before what is none
                return _MEANINGS[kind](node.value)
        raise self._error(
            node, f"the tag `{node.tag}` is not known here; text that begins with ! goes in quotes"
        )

    def _entry(self, node: yaml.MappingNode, depth: int) -> Entry:
        entry = Entry()
        entry.line = node.start_mark.line + 1
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be a word, but is a list or a mapping")
            if key.value in entry:
                raise self._error(key, f"the key `{key.value}` stands here a second time")
            entry[key.value] = self._value(value, depth + 1)
        return entry

    def _error(self, where: Any, message: str) -> SpecError:
        return SpecError(message, file=self.source, line=where.start_mark.line + 1)
