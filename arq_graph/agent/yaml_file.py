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

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from arq_graph.agent.spec_errors import place_of, spec_error
from arq_graph.errors import SpecError

M = TypeVar("M", bound=BaseModel)

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # words stay words
MAX_DEPTH = 40
_TAG = "tag:yaml.org,2002:"
_OF_JSON = re.compile(r"true|false|-?(0|[1-9]\d{0,30})(\.\d{1,30}(e[-+]?\d{1,2})?)?", re.ASCII)


def read_model(path: str | os.PathLike[str], model: type[M], *, what: str = "file") -> M:
    """Read a YAML file as a model, or raise `SpecError` about all that is wrong in it."""
    return parse_model(read_text(path, what=what), model, what=what, source=os.fspath(path))


def parse_model(
    text: str, model: type[M], *, what: str = "file", source: str = "<text>", list_as: str | None = None
) -> M:
    """Read a YAML text as a model; a text that is a list alone stands for the field `list_as`."""
    document = Document(text, source)
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
        if each["type"] == "string_type" and isinstance(each["input"], bool | int | float):
            *outer, last = place_of(values, each["loc"])
            holder = values
            for step in outer:
                holder = holder[step]
            _, node = document.found(each["loc"])
            holder[last] = node.value
            changed = True
    return changed


def read_text(path: str | os.PathLike[str], *, what: str) -> str:
    """Read the text of a file; what cannot be read is a `SpecError`."""
    file = os.fspath(path)
    try:
        content = Path(file).read_bytes()
    except FileNotFoundError:
        raise SpecError("there is no such file", file=file) from None
    except OSError as error:
        raise SpecError(f"the {what} cannot be read: {error}", file=file) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"is not UTF-8: {error}; save it as UTF-8", file=file, line=line) from None


class Entry(dict[str, Any]):
    """A mapping of a file, which knows its line, counted from 1."""

    line: int


class Document:
    """One YAML text, read: no key stands twice, and every value knows its line.

    Attributes:
        source: Where it came from: a file, as it was named, or a word such as "<text>".
        values: Dicts (`Entry`), lists, texts, numbers, truth values and None; None for an empty document.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._room = 1_000_000 + 4 * len(text)  # aliases could multiply a few lines to billions of values
        try:
            self._check_depth(text)
            self._root: Any = yaml.compose(text, _Loader)
            self.values = None if self._root is None else self._value(self._root)
        except yaml.YAMLError as error:
            said = " ".join(str(error).replace('in "<unicode string>", ', "in ").split())
            mark = getattr(error, "problem_mark", None)
            raise SpecError(
                f"is not YAML: {said}. Indent with spaces only, and put text in quotes that holds `: ` or quotes or"
                " begins with one of * & ! @ % ` [ {",
                file=source,
                line=mark.line + 1 if mark else None,
            ) from None
        except RecursionError:
            raise SpecError("has an alias inside its own anchor", file=source) from None

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
        return self.found(place)[0]

    def found(self, place: Sequence[str | int]) -> tuple[int, Any]:
        """The line of what stands at a place, and its node of YAML."""
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

    def _check_depth(self, text: str) -> None:
        depth = 0  # PyYAML's composer in C would overflow the stack on a million brackets
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise self._error(event, f"is nested more than {MAX_DEPTH} deep")

    def _value(self, node: yaml.Node) -> Any:
        self._room -= 1 + len(node.value)
        if self._room < 0:
            raise self._error(node, "aliases (`*name`) multiply the file to more than it can hold")
        if isinstance(node, yaml.ScalarNode) and node.tag == f"{_TAG}str":
            return node.value if node.style else _word(node.value)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self._value(item) for item in node.value]
        if not isinstance(node, yaml.MappingNode) or node.tag != f"{_TAG}map":
            said = f"the tag `{node.tag}` is not known here; text that begins with ! goes in quotes"
            raise self._error(node, said)
        entry = Entry()
        entry.line = node.start_mark.line + 1
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be a word, but is a list or a mapping")
            if key.value in entry:
                raise self._error(key, f"the key `{key.value}` stands here a second time")
            entry[key.value] = self._value(value)
        return entry

    def _error(self, where: Any, message: str) -> SpecError:
        return SpecError(message, file=self.source, line=where.start_mark.line + 1)


def _word(text: str) -> object:
    """What a word without quotes means."""
    lower = text.lower()
    if lower in ("", "~", "null"):
        return None
    return json.loads(lower) if _OF_JSON.fullmatch(lower) else text
