"""The one reader of YAML files: text in, a Pydantic model out, or one `SpecError` that names every mistake.

```python
suite = read_model("suite.yaml", SuiteFile, what="suite file")
```

A word without quotes is null, true, false or a decimal number, as in JSON, and text otherwise: `no`, `12:30`,
`0123`, `1e5` and `2025-01-31` stay what was written. A number that is meant as text goes in quotes.

A validator of the model finds the `Document` in `info.context`: the file's folder, and lines. Where it raises
`ValueError`, the message continues a sentence that begins with the field ("must be …", "names …"). One that
finds something wrong further inside raises `misfits`, which say where.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from arq_graph.agent.spec_errors import Place, spec_error
from arq_graph.errors import SpecError, suggestion

M = TypeVar("M", bound=BaseModel)

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # words stay words
_KINDS = {
    "profile": "an agent's file, which `arq-graph check` reads",
    "scenarios": "a suite, which `arq-graph evaluate` and `experiment` run",
    "milestones": "a milestone file, which `arq-graph milestones check` reads",
}
MAX_DEPTH = 40
_OF_JSON = re.compile(r"true|false|-?(0|[1-9]\d{0,30})(\.\d{1,30}(e[-+]?\d{1,2})?)?", re.ASCII)


def read_model(path: str | os.PathLike[str], model: type[M], *, what: str = "file") -> M:
    """Read a YAML file as a model, or raise `SpecError` about all that is wrong in it."""
    return parse_model(read_text(path, what=what), model, what=what, source=os.fspath(path))


def parse_model(text: str, model: type[M], *, what: str = "file", source: str = "<text>") -> M:
    """Read a YAML text as a model."""
    document = Document(text, source)
    try:
        return model.model_validate(document.values, context=document)
    except ValidationError as error:
        keys = [key for key in _KINDS if isinstance(document.values, dict) and key in document.values]
        if keys and model.model_fields.keys().isdisjoint(keys):
            raise SpecError(f"is not a valid {what}: it looks like {_KINDS[keys[0]]}", file=source) from None
        raise spec_error(error, model, document.values, document=document, what=what) from None


def read_text(path: str | os.PathLike[str], *, what: str) -> str:
    """Read the text of a file; what cannot be read is a `SpecError`."""
    file = os.fspath(path)
    try:
        content = Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise SpecError(f"the {what} cannot be read: {error.strerror}{alike(file)}", file=file) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"is not UTF-8: {error}; save it as UTF-8", file=file, line=line) from None


def alike(path: str | os.PathLike[str], *others: str) -> str:
    """Of a path where no file is: what was probably meant, a file beside it or one of the others."""
    file, known = Path(path), [*others]
    with suppress(OSError):
        known += [each.name for each in file.parent.iterdir() if each != file]
    return suggestion(file.name, known)


class Entry(dict[str, Any]):
    """A mapping of a file, which knows its line, counted from 1."""

    line: int


class Document:
    """One YAML text: no key stands twice, there are no aliases, and every value knows its line.

    Attributes:
        source: Where it came from: a file, as it was named, or a word such as "<text>".
        path: The file, absolute.
        folder: The folder of the file; modules and files that it names are looked for here first.
        values: Dicts (`Entry`), lists, texts, numbers, truth values and None; an empty document is an empty dict.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.path = Path(source).absolute()
        self.folder = self.path.resolve().parent
        self._lines: dict[Place, int] = {(): 1}
        try:
            self._check(text)
            root: Any = yaml.compose(text, _Loader)
        except yaml.YAMLError as error:
            said = " ".join(str(error).replace('in "<unicode string>", ', "in ").split())
            mark = getattr(error, "problem_mark", None)
            raise SpecError(
                f"is not YAML: {said}. Indent with spaces only, and put text in quotes that holds `: ` or quotes or"
                " begins with one of * & ! @ % ` [ {",
                file=source,
                line=mark.line + 1 if mark else None,
            ) from None
        self.values: Any = self._value(root, ()) if root else {}

    def line(self, place: Place) -> int:
        """The line of what stands at a place, from 1; where nothing does, of what is around it."""
        return self._lines[place] if place in self._lines else self.line(place[:-1])

    def _check(self, text: str) -> None:
        """Refuse what could grow to billions of values, or overflow the stack of PyYAML's composer in C."""
        depth = 0
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise self._error(event, f"is nested more than {MAX_DEPTH} deep")
            if isinstance(event, yaml.AliasEvent):
                raise self._error(
                    event, f"the alias `*{event.anchor}` is not known here; write out what it stands for"
                )

    def _value(self, node: yaml.Node, place: Place) -> Any:
        self._lines.setdefault(place, node.start_mark.line + 1)
        if not node.tag.startswith("tag:yaml.org,2002:"):
            raise self._error(node, f"the tag `{node.tag}` is unknown; put text that begins with ! in quotes")
        if isinstance(node, yaml.ScalarNode):
            return _word(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*place, index)) for index, item in enumerate(node.value)]
        entry = Entry()
        entry.line = node.start_mark.line + 1
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, "a key must be a word, but is a list or a mapping")
            if key.value in entry:
                raise self._error(key, f"the key `{key.value}` stands here a second time")
            self._lines[*place, key.value] = key.start_mark.line + 1
            entry[key.value] = self._value(value, (*place, key.value))
        return entry

    def _error(self, where: Any, message: str) -> SpecError:
        return SpecError(message, file=self.source, line=where.start_mark.line + 1)


def _word(node: yaml.ScalarNode) -> object:
    lower = node.value.lower()
    if not node.style and lower in ("", "~", "null"):
        return None
    return json.loads(lower) if not node.style and _OF_JSON.fullmatch(lower) else node.value
