"""What Pydantic finds wrong, in the words of somebody who wrote it into a file or a call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from arq_graph.agent.spelling import suggestion

Place = tuple[str | int, ...]

_NOTHING = object()

_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "iterable": "a list",
    "dict": "a mapping of names to values (`name: value`)",
    "mapping": "a mapping of names to values (`name: value`)",
    "callable": "a function",
    "none": "nothing",
}


def complaints(
    error: ValidationError, model: type[BaseModel], values: object, *, root: str | None = None
) -> list[tuple[Place, str]]:
    """Say each thing that is wrong, with its place in `values`.

    Args:
        error: What was raised.
        model: The model that was to be made.
        values: What it was to be made of.
        root: What the outermost mapping is called: "the agent file". None: as its model is.
    """
    found = [_Finding(each, model, values, root) for each in error.errors(include_url=False)]
    groups: dict[object, list[_Finding]] = {}
    for number, finding in enumerate(found):
        groups.setdefault(number if finding.fork is None else finding.fork, []).append(finding)
    return list(dict.fromkeys(told for group in groups.values() for told in _told(group)))


def _told(findings: list[_Finding]) -> list[tuple[Place, str]]:
    """What to say of one error, or of all errors that the types of one union gave."""
    branches: dict[object, list[_Finding]] = {}
    for finding in findings:
        branches.setdefault(finding.branch, []).append(finding)
    # What is nearly of one of the types is told what it lacks to be that; other types are not mentioned.
    near = [
        branch for branch in branches.values() if len(branches) == 1 or any(e.goes_inside for e in branch)
    ]
    if near:
        return [(each.place, each.message([each.expected])) for each in min(near, key=len)]
    expected = list(dict.fromkeys(finding.expected for finding in findings))
    return [(findings[0].place, findings[0].message(expected))]


def described(value: object) -> str:
    """Say what a value is."""
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


def inner(value: object, step: str | int, otherwise: Any = None) -> Any:
    """What stands under a key, at an index or in a field; `otherwise` where there is nothing."""
    if isinstance(value, Mapping):
        return value.get(step, otherwise)
    if isinstance(value, list | tuple):
        return value[step] if isinstance(step, int) and step < len(value) else otherwise
    is_field = isinstance(value, BaseModel) and step in type(value).model_fields
    return getattr(value, str(step)) if is_field else otherwise


def steps(value: object, place: Iterable[str | int]) -> Place:
    """Those steps of a place that lead somewhere; the others name a type of a union."""
    walked: Place = ()
    for step in place:
        if (found := inner(value, step, _NOTHING)) is not _NOTHING:
            value, walked = found, (*walked, step)
    return walked


class _Finding:
    """One error of Pydantic's: where it stands, and whose field it is."""

    def __init__(self, error: Any, model: type[BaseModel], values: object, root: str | None) -> None:
        self.error = error
        self.root = model
        self.place: Place = ()
        self.fork: Place | None = None  # where a union was tried, if one was
        self.branch: object = None  # which of its types this error is about
        self.model: type[BaseModel] | None = model  # the innermost entry that it stands in
        self.owner = root or _called(model, values, None)
        self.is_root = root is not None
        self.field: Place = ()
        value: Any = values
        types: list[Any] = [model]
        for depth, step in enumerate(error["loc"], start=1):
            if isinstance(step, int) and not isinstance(value, list | tuple):
                self.error = {**error, "type": "list_type"}  # Pydantic iterates whatever can be
                break
            if (found := inner(value, step, _NOTHING)) is _NOTHING:
                if error["type"] == "missing" and depth == len(error["loc"]):
                    break
                if self.fork is None:
                    self.fork, self.branch = self.place, step
                types = [each for each in types if getattr(each, "__name__", "") == step] or types
            else:
                is_entry = not any(map(_is_model, types))
                value, types = found, list(_children(types, step))
                self.place += (step,)
                self.field += (step,)
                if is_entry and (models := list(filter(_is_model, types))):
                    self.owner = _called(models[0], value, step)
                    self.field, self.is_root = (), False
            self.model = next(filter(_is_model, types), self.model)
        self.value = value

    @property
    def goes_inside(self) -> bool:
        """Whether it is about what the value holds, rather than about the value's being of the wrong kind."""
        return self.place != self.fork or self.error["type"] in ("missing", "extra_forbidden", "value_error")

    @property
    def expected(self) -> str:
        """What was expected there, or nothing where Pydantic says it otherwise."""
        kind = self.error["type"]
        if kind in ("literal_error", "enum"):
            return str(self.error["ctx"]["expected"])
        if kind in ("model_type", "model_attributes_type", "dataclass_type"):
            needed = self.model.model_fields.items() if self.model else ()
            keys = [f"{name}: …" for name, field in needed if field.is_required()]
            return f"a mapping ({', '.join(keys)})" if keys else "a mapping"
        base = re.sub(r"_(type|parsing|parsing_size|from_float|sub_type|required)$", "", kind)
        return _EXPECTED.get(base, "") if base != kind else ""

    def message(self, expected: list[str]) -> str:
        """The whole sentence."""
        kind, last = self.error["type"], self.error["loc"][-1] if self.error["loc"] else ""
        if kind == "missing":
            return f"{self._subject} has no `{last}`; add `{last}: …`"
        if kind == "extra_forbidden":
            known = list(_fields(self.model)) if self.model else []
            hint = suggestion(str(last), known) or _elsewhere(str(last), self.root)
            return f"{self._subject} has an unknown key `{last}`{hint} (its keys: {', '.join(known)})"
        predicate = self._predicate([each for each in expected if each])
        if not self.field:
            joint = " " if predicate.startswith(("must be", "is empty")) else ": "
            return predicate if self.is_root and joint == ": " else f"{self.owner}{joint}{predicate}"
        return f"{self._subject} {predicate}"

    @property
    def _subject(self) -> str:
        if not (steps := self.field[:-1] if self.error["type"] == "extra_forbidden" else self.field):
            return self.owner
        first, *rest = map(str, steps)
        field = first + "".join(f"[{step}]" if step.isdecimal() else f".{step}" for step in rest)
        return f"`{field}`" if self.is_root else f"{self.owner}: `{field}`"

    def _predicate(self, expected: list[str]) -> str:
        if "a number" in expected:
            expected = [each for each in expected if each != "a whole number"]
        kind = self.error["type"]
        if kind in ("value_error", "assertion_error"):
            return str(self.error["ctx"]["error"])
        if kind == "string_too_short" and not self.value.strip():
            return "is empty; write what it should say"
        if kind == "too_short" and not self.value:
            return "is empty; add an entry"
        if not expected:
            said = str(self.error["msg"]).removeprefix("Value error, ")
            if said == self.error["msg"] and not said.startswith("Input should "):
                return said
            return f"{said.replace('Input should', 'must')}, but is {described(self.value)}"
        return f"must be {' or '.join(expected)}, but is {described(self.value)}{self._hint(expected)}"

    def _hint(self, expected: list[str]) -> str:
        wanted = " or ".join(expected)
        if isinstance(self.value, str):
            if "a list" in expected:
                return f"; write {[self.value]!r}"
            return suggestion(self.value, re.findall(r"'([^']*)'", wanted)) if "'" in wanted else ""
        if isinstance(self.value, Mapping):
            if "a list" in expected:
                return "; begin each of its entries with `- `"
            if "text" in expected:
                return "; text with `: ` in it goes in quotes"
        return ""


def _called(model: type[BaseModel], value: object, step: str | int | None) -> str:
    """What an entry is called: "guideline 2", or "guideline 'vip'" where it has an id or a name."""
    kind = model.model_config.get("title") or re.sub(r"(?<=[a-z])(?=[A-Z])", " ", model.__name__).lower()
    for key in ("id", "name"):
        name = inner(value, key)
        if isinstance(name, str) and name.strip():
            return f"{kind} {shortened(name)!r}"
    if step is None:
        return kind
    return f"{kind} {step + 1}" if isinstance(step, int) else f"{kind} {step!r}"


def _options(annotation: Any) -> Iterator[Any]:
    """The types that a field may have, one by one."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for each in get_args(annotation):
            yield from _options(each)
    else:
        yield annotation


def _children(types: list[Any], step: str | int) -> Iterator[Any]:
    """The types of what stands under a key or at an index of values of `types`."""
    for each in types:
        arguments = [argument for argument in get_args(each) if argument is not Ellipsis]
        if _is_model(each):
            yield from _options(_fields(each).get(str(step)))
        elif arguments:
            yield from _options(arguments[-1])


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _fields(model: type[BaseModel]) -> dict[str, Any]:
    """The type of each field, by its key in a file."""
    return {
        (field.validation_alias if isinstance(field.validation_alias, str) else name): field.annotation
        for name, field in model.model_fields.items()
    }


def _elsewhere(key: str, root: type[BaseModel]) -> str:
    """Where a key would have been right."""
    seen: set[type[BaseModel]] = set()
    waiting = [(root, "the file's first level")]
    while waiting:
        model, where = waiting.pop()
        if model in seen:
            continue
        seen.add(model)
        if key in _fields(model):
            return f"; `{key}` is a key of {where}: is it indented as it should be?"
        for name, annotation in _fields(model).items():
            inside = [*_options(annotation)]
            inside += [*_children(inside, "")]
            waiting += [(each, f"an entry of `{name}`") for each in inside if _is_model(each)]
    return ""
