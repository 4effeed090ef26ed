"""What Pydantic finds wrong as one `SpecError`: where it stands, what was expected, what was probably meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails

from arq_graph.errors import SpecError, suggestion

if TYPE_CHECKING:
    from arq_graph.agent.yaml_file import Document

Place = tuple[str | int, ...]
Problem = tuple[Place, str | SpecError]

# By the first word of Pydantic's type of error; its own texts speak of "a valid tuple".
_MUST_BE = {
    "string": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "list": "a list",
    "tuple": "a list",
    "sequence_str": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
    "invalid-json-value": "plain data (what is computed is given with the input, or written by a node)",
}


def spec_error(
    error: ValidationError,
    model: type[BaseModel],
    values: object,
    *,
    document: Document | None = None,
    what: str = "",
) -> SpecError:
    """Tell all that Pydantic found wrong, in a file or in an object that is built in Python."""
    # Of a union's errors at one place the first, and what is wrong in another file once, whatever names it.
    found: dict[Place | str, tuple[Any, str]] = {}
    for each in error.errors(include_url=False):
        follows = each["type"] == "too_short" and not each["ctx"]["actual_length"] and each["input"]
        if follows or each["type"] == "default_factory_not_called":  # only from what is wrong elsewhere
            continue
        missing = each["loc"][-1:] if each["type"] == "missing" else ()
        loc = each.get("ctx", {}).get("place", each["loc"])  # it may be due to what stands elsewhere
        place = (*_place(values, loc), *missing)
        said = _sentence(place, each, model)
        if document is None:
            said = f"{model.__name__}{':' if place else ''} {said}"
        elif not place:
            said = f"the {what} {said}"
        fault = each.get("ctx", {}).get("error")
        known_by = str(fault) if getattr(fault, "file", None) else place
        found.setdefault(known_by, (document.line(place) if document else None, said))
    if document is None:
        return SpecError.from_problems(list(found.values()))
    return SpecError.from_problems(sorted(found.values()), file=document.source)


def _place(values: Any, loc: Sequence[str | int]) -> Place:
    """Those steps of an error's place that lead somewhere; others are names of the types of a union."""
    place: Place = ()
    for step in loc:
        if isinstance(values, BaseModel):
            values = values.__dict__
        try:
            values = ({} if isinstance(values, str) else values)[step]
        except (KeyError, IndexError, TypeError):
            continue
        place += (step,)
    return place


def misfits(*found: Problem) -> ValidationError:
    """Return an error for a validator of a whole model to raise about what stands inside it."""
    details = [
        InitErrorDetails(type="value_error", loc=place, input=None, ctx={"error": said})
        for place, said in found
    ]
    return ValidationError.from_exception_data("misfits", details)


def _sentence(place: Place, error: Any, model: type[BaseModel]) -> str:
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    field = f"`{field.removeprefix('.')}` " if place else ""
    kind, _, fault = error["type"].partition("_")
    if kind == "missing":
        return f"{field}is missing"
    if kind == "extra":
        key, known = str(error["loc"][-1]), _keys(model, error["loc"][:-1])
        return f"has an unknown key `{key}`{suggestion(key, known)} (its keys: {', '.join(known)})"
    if kind == "value":
        said = str(error["ctx"]["error"])  # "names …", or a whole sentence
        if getattr(error["ctx"]["error"], "file", None):
            said = f"cannot be used: {said}"
        return (
            f"{field.rstrip()}: {said}" if field and said.startswith(("the ", "there ")) else f"{field}{said}"
        )
    must = re.sub(r"^\w+ should ", "must ", error["msg"])
    if fault in ("type", "parsing", "from_float") or error["type"] in _MUST_BE:
        must = f"must be {_MUST_BE.get(error['type']) or _MUST_BE.get(kind, kind)}"
        if kind in ("list", "tuple", "model") and (keys := ", ".join(_keys(model, error["loc"]))):
            must += f" (its keys: {keys})" if kind == "model" else f" of mappings (their keys: {keys})"
    near = suggestion(str(error["input"]), re.findall(r"'([^']*)'", must))
    return f"{field}{must}, but is {error['input']!r:.60}{near}"


def _keys(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """The keys of the mappings at a place of a model; where one of several models may stand there, of all."""
    root = model.model_fields.get("root")
    types = [*_models(root.annotation)] if root else [model]
    for step in loc:
        fields = [each.model_fields[str(step)] for each in types if step in each.model_fields]
        types = [found for field in fields for found in _models(field.annotation)] if fields else types
    return list(dict.fromkeys(key for each in types for key in each.model_fields))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
