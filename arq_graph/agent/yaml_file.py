"""The only reader of YAML files: it returns a Pydantic model, or raises one `SpecError` that names every mistake.

```python
suite = read_model("suite.yaml", SuiteFile, file_kind="suite file")
```

As in JSON, a word without quotes is null, true, false or a decimal number; anything else is text: `no`, `12:30`,
`0123`, `1e5` and `2025-01-31` stay as they are written. A number that is meant as text needs quotes. An alias (`*name`)
stands for a copy of its anchor (`&name`), within a limit.

A validator of the model finds the `Document` in `info.context`: the file's folder, and lines. If it raises
`ValueError`, the message continues a sentence that begins with the field ("must be …", "names …"). For problems further
inside, it raises `make_validation_error(…)`, which says where they are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from arq_graph.agent.regular_file import read_regular_file
from arq_graph.agent.spec_errors import (
    Place,
    Problem,
    format_place,
    get_line_number,
    keep_existing,
    make_spec_error,
)
from arq_graph.errors import SpecError, suggestion

M = TypeVar("M", bound=BaseModel)

_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # leaves words as they are
_FILE_KINDS = {
    "profile": "an agent's file, which `arq-graph check` reads",
    "scenarios": "a suite, which `arq-graph evaluate` and `experiment` run",
    "milestones": "a milestone file, which `arq-graph milestones check` reads",
}
FindMore = Callable[["Document"], Iterable[Problem]]
_TAGS = ("str", "int", "float", "bool", "null", "seq", "map")
MAX_DEPTH = 40
MAX_VALUES = 500_000
MAX_ALIASED_VALUES = 50_000
_JSON_WORD = re.compile(r"true|false|-?(0|[1-9]\d{0,30})(\.\d{1,30}(e[-+]?\d{1,2})?)?", re.ASCII)


def read_model(
    path: str | os.PathLike[str],
    model: type[M],
    *,
    file_kind: str = "file",
    find_more: FindMore | None = None,
) -> M:
    """Read a YAML file as a model; see `parse_model`.

    Raises:
        SpecError: The file can't be read or isn't valid; the message names every mistake with its line.
    """
    text = read_text(path, file_kind=file_kind)
    return parse_model(text, model, file_kind=file_kind, source=os.fspath(path), find_more=find_more)


def parse_model(
    text: str,
    model: type[M],
    *,
    file_kind: str = "file",
    source: str = "<text>",
    find_more: FindMore | None = None,
) -> M:
    """Parse a YAML text as a model.

    Args:
        text: The text.
        model: The model.
        file_kind: The kind of file, for errors.
        source: The name of the file, for errors.
        find_more: If a value isn't valid, returns what else is wrong. Pydantic checks a whole only if its parts are
            valid.

    Raises:
        SpecError: The text isn't valid; the message names every mistake with its line.
    """
    document = Document(text, source)
    values = document.values
    try:
        parsed = model.model_validate(values, context=document)
    except ValidationError as error:
        keys = [key for key in _FILE_KINDS if isinstance(values, dict) and key in values]
        if keys and model.model_fields.keys().isdisjoint(keys):
            message = f"is not a valid {file_kind}: it looks like {_FILE_KINDS[keys[0]]}"
            raise SpecError(message, file=source) from None
        more_problems: list[tuple[int | None, Place, str]] = []
        more_problems.extend((line, (), message) for line, message in document.problems)
        document.has_unknown_keys = any(detail["type"] == "extra_forbidden" for detail in error.errors())
        if find_more is not None:
            for full_place, problem in find_more(document):
                place = keep_existing(values, full_place)
                message = f"{format_place(place)} {problem}"
                more_problems.append((document.get_line(place), place, message))
        raise make_spec_error(
            error,
            model,
            values,
            file_kind=file_kind,
            source=source,
            get_line=document.get_line,
            is_reported=document.is_unread,
            more_problems=more_problems,
        ) from None
    document.require_valid()
    return parsed


def read_text(path: str | os.PathLike[str], *, file_kind: str) -> str:
    """Read the text of a file.

    Raises:
        SpecError: The file can't be read, or isn't UTF-8.
    """
    file = os.fspath(path)
    try:
        content = read_regular_file(file)
        return content.decode("utf-8-sig")
    except OSError as error:
        message = f"the {file_kind} cannot be read: {error.strerror}{suggest_file(file)}"
        raise SpecError(message, file=file) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"is not UTF-8: {error}; save it as UTF-8", file=file, line=line) from None


def suggest_file(path: str | os.PathLike[str], *alternatives: str) -> str:
    """Return a suggestion for the path of a missing file: a file in the same folder, or one of the alternatives."""
    path = Path(path)
    names = list(alternatives)
    with suppress(OSError):
        names.extend(file.name for file in path.parent.iterdir() if file != path)
    return suggestion(path.name, names)


class Entry(dict[str, Any]):
    """A mapping of a file, with its line, counted from 1."""

    line: int


class Document:
    """A YAML text, parsed; the line of every value is known.

    Repeated keys and tags aren't read; `problems` names them, each with its line.

    Attributes:
        source: The file as it was named, or a word such as "<text>".
        path: The absolute path of the file.
        folder: The folder of the file; modules and files that it names are searched for here first.
        values: Dicts (`Entry`), lists, texts, numbers, booleans and None; an empty document is an empty dict.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.path = Path(source).absolute()
        self.folder = self.path.resolve().parent
        self._lines: dict[Place, int] = {(): 1}
        self.problems: list[tuple[int | None, str]] = []
        self.has_unknown_keys = False
        self._unread_places: set[Place] = set()
        self._read_nodes: set[int] = set()
        self._aliased_count = 0
        try:
            self._check_structure(text)
            root: Any = yaml.compose(text, _Loader)
        except yaml.YAMLError as error:
            raise self._make_syntax_error(error) from None
        self.values: Any = self._read(root, ()) if root else {}

    def get_line(self, place: Place) -> int:
        """Return the line of a place, from 1; for a place that doesn't exist, the line of what encloses it."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def is_unread(self, place: Place) -> bool:
        """Return whether a value, or one around it, isn't read, and `problems` says why."""
        return any(place[:length] in self._unread_places for length in range(len(place) + 1))

    def require_valid(self) -> None:
        """Raise a SpecError if something isn't read."""
        if self.problems:
            raise SpecError.from_problems(sorted(self.problems, key=get_line_number), file=self.source)

    def _check_structure(self, text: str) -> None:
        """Refuse texts that are too large, or would overflow the stack of PyYAML's composer in C."""
        depth = 0
        for number, event in enumerate(yaml.parse(text, _Loader)):
            if number > MAX_VALUES:
                raise self._make_error(event, f"has more than {MAX_VALUES:,} keys and values; split the file")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > MAX_DEPTH:
                raise self._make_error(event, f"is nested more than {MAX_DEPTH} deep")

    def _read(self, node: yaml.Node, place: Place) -> Any:
        self._lines.setdefault(place, node.start_mark.line + 1)
        self._limit_aliases(node, place)
        if node.tag.removeprefix("tag:yaml.org,2002:") not in _TAGS:
            message = f"the tag `{node.tag:.100}` is unknown; put text that begins with ! in quotes"
            self._add_problem(node, message)
            self._unread_places.add(place)
            return None
        return self._read_value(node, place)

    def _limit_aliases(self, node: yaml.Node, place: Place) -> None:
        """Refuse aliases that stand for billions of values, or for themselves."""
        self._aliased_count += id(node) in self._read_nodes
        self._read_nodes.add(id(node))
        if self._aliased_count > MAX_ALIASED_VALUES:
            message = (
                f"the file's aliases (`*name`) stand for more than {MAX_ALIASED_VALUES:,} values; use fewer"
            )
            raise self._make_error(node, message)
        if len(place) > MAX_DEPTH:
            message = f"an alias (`*name`) stands for itself, or nests values more than {MAX_DEPTH} deep"
            raise self._make_error(node, message)

    def _read_value(self, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return _read_scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self._read(item, (*place, index)) for index, item in enumerate(node.value)]
        entry = Entry()
        entry.line = node.start_mark.line + 1
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._add_problem(key, "a key must be a word, but is a list or a mapping")
                continue
            if key.value in entry:
                self._add_problem(key, f"the key `{key.value:.100}` is used twice here")
                continue
            value_place = (*place, key.value)
            self._lines[value_place] = key.start_mark.line + 1
            entry[key.value] = self._read(value, value_place)
        return entry

    def _add_problem(self, node_or_event: Any, message: str) -> None:
        self.problems.append((node_or_event.start_mark.line + 1, message))

    def _make_error(self, node_or_event: Any, message: str) -> SpecError:
        return SpecError(message, file=self.source, line=node_or_event.start_mark.line + 1)

    def _make_syntax_error(self, error: yaml.YAMLError) -> SpecError:
        problem = " ".join(str(error).replace('in "<unicode string>", ', "in ").split())
        mark = getattr(error, "problem_mark", None)
        return SpecError(
            f"is not YAML: {problem}. Indent with spaces only, and put text in quotes that holds `: ` or quotes or"
            " begins with one of * & ! @ % ` [ {",
            file=self.source,
            line=mark.line + 1 if mark else None,
        )


def _read_scalar(node: yaml.ScalarNode) -> object:
    if node.style:  # in quotes, or a block
        return node.value
    word = node.value.lower()
    if word in ("", "~", "null"):
        return None
    if _JSON_WORD.fullmatch(word):
        return json.loads(word)
    return node.value
