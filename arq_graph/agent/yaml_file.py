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

from arq_graph.agent.spec_errors import spec_error
from arq_graph.errors import SpecError

M = TypeVar("M", bound=BaseModel)

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # words stay words
MAX_DEPTH = 40
_OF_JSON = re.compile(r"true|false|-?(0|[1-9]\d{0,30})(\.\d{1,30}(e[-+]?\d{1,2})?)?", re.ASCII)


def read_model(path: str | os.PathLike[str], model: type[M], *, what: str = "file") -> M:
    """Read a YAML file as a model, or raise `SpecError` about all that is wrong in it."""
    return parse_model(read_text(path, what=what), model, what=what, source=os.fspath(path))


def parse_model(
    text: str, model: type[M], *, what: str = "file", source: str = "<text>", list_as: str | None = None
) -> M:
    """Read a YAML text as a model; a text that is a list alone stands for the field `list_as`."""
    document = Document(text, source)
    while True:
        values = document.values()
        if list_as and isinstance(values, list):
            values = {list_as: values}
        try:
            return model.model_validate(values, context=document)
        except ValidationError as error:
            wanted = [each["loc"] for each in error.errors() if each["type"] == "string_type"]
            if not sum(map(document.quote, wanted)):  # all of them, not only the first
                raise spec_error(error, model, values, document=document, what=what) from None


def read_text(path: str | os.PathLike[str], *, what: str) -> str:
    """Read the text of a file; what cannot be read is a `SpecError`."""
    file = os.fspath(path)
    try:
        content = Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise SpecError("there is no such file", file=file) from None
    except OSError as error:
        raise SpecError(f"the {what} cannot be read: {error}", file=file) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"is not UTF-8: {error}; save it as UTF-8", file=file, line=line) from None


class Entry(dict[str, Any]):
    """A mapping of a file, which knows its line, counted from 1."""

    line: int


class Document:
    """One YAML text: no key stands twice, and every value knows its line.

    Attributes:
        source: Where it came from: a file, as it was named, or a word such as "<text>".
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._most = 1_000_000 + 4 * len(text)
        try:
            self._check_depth(text)
            self._root: Any = yaml.compose(text, _Loader)
        except yaml.YAMLError as error:
            said = " ".join(str(error).replace('in "<unicode string>", ', "in ").split())
            mark = getattr(error, "problem_mark", None)
            raise SpecError(
                f"is not YAML: {said}. Indent with spaces only, and put text in quotes that holds `: ` or quotes or"
                " begins with one of * & ! @ % ` [ {",
                file=source,
                line=mark.line + 1 if mark else None,
            ) from None

    @property
    def path(self) -> Path:
        """The file, absolute."""
        return Path(self.source).absolute()

    @property
    def folder(self) -> Path:
        """The folder of the file; modules and files that it names are looked for here first."""
        return self.path.resolve().parent

    def values(self) -> Any:
        """Dicts (`Entry`), lists, texts, numbers, truth values and None; an empty document is an empty dict."""
        self._room = self._most  # aliases could multiply a few lines to billions of values
        try:
            return self._value(self._root) if self._root else {}
        except RecursionError:
            raise SpecError("has an alias inside its own anchor", file=self.source) from None

    def line(self, place: Sequence[str | int]) -> int:
        """The line of what stands at a place, from 1; steps that do not exist are passed over."""
        return self._found(place)[0] + 1

    def quote(self, place: Sequence[str | int]) -> bool:
        """Read the number or truth value at a place as text from now on; False where there is none."""
        node = self._found(place)[1]
        if not isinstance(node, yaml.ScalarNode) or not isinstance(_word(node), int | float):
            return False
        node.style = '"'
        return True

    def _found(self, place: Sequence[str | int]) -> tuple[int, Any]:
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
        return line, node

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
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._error(
                node, f"the tag `{node.tag}` is not known here; text that begins with ! goes in quotes"
            )
        if isinstance(node, yaml.ScalarNode):
            return _word(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item) for item in node.value]
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


def _word(node: yaml.ScalarNode) -> object:
    """What a word means; in quotes it is text."""
    lower = node.value.lower()
    if not node.style and lower in ("", "~", "null"):
        return None
    return json.loads(lower) if not node.style and _OF_JSON.fullmatch(lower) else node.value
