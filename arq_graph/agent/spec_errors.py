"""Pydantic's validation errors as one `SpecError`: where each problem is, what was expected, and a suggestion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails

from arq_graph.errors import MAX_PROBLEMS, SpecError, suggestion

Place = tuple[str | int, ...]
"""The keys and indices that lead to a value, such as `("guidelines", 2, "tools", 0)`."""
Problem = tuple[Place, str | SpecError]

# By Pydantic's type of error, or the first word of it; Pydantic's own messages speak of "a valid tuple".
_EXPECTED = {
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


def make_spec_error(
    error: ValidationError,
    model: type[BaseModel],
    values: object,
    *,
    file_kind: str = "",
    source: str | None = None,
    get_line: Callable[[Place], int] | None = None,
    is_reported: Callable[[Place], bool] | None = None,
    more_problems: Sequence[tuple[int | None, Place, str]] = (),
) -> SpecError:
    """Return one `SpecError` for everything that Pydantic and others found wrong.

    Args:
        error: Pydantic's error.
        model: The model that validated the values.
        values: The values that were validated.
        file_kind: The kind of file, such as "agent file".
        source: The name of the file; None for an object that is built in Python.
        get_line: Returns the line of a place in the file; None for an object that is built in Python.
        is_reported: Returns whether a problem with this place is among the other problems.
        more_problems: What others found wrong, each with its line and place; () if it isn't a value's.
    """
    details: dict[Place | str, tuple[int | None, Place, Any]] = {}
    for detail in error.errors(include_url=False):
        if _is_consequence(detail):
            continue
        place = _find_place(values, detail)
        # A union reports several errors for a place: the first counts. A problem in another file is reported once,
        # however often that file is named.
        cause = detail.get("ctx", {}).get("error")
        key = str(cause) if getattr(cause, "file", None) else place
        if is_reported is not None and is_reported(place):
            continue
        if key not in details:
            line = get_line(place) if get_line else None
            details[key] = (line, place, detail)
    all_details: list[tuple[int | None, Place, Any]] = list(details.values())
    all_details.extend(problem for problem in more_problems if not problem[1] or problem[1] not in details)
    problems: list[tuple[int | None, str]] = []
    for number, (line, place, detail) in enumerate(sorted(all_details, key=get_line_number)):
        if isinstance(detail, str):
            problems.append((line, detail))
            continue
        # Describing takes a look at all keys and ids for a suggestion, so only what is shown is described.
        message = _describe(detail, place, model) if number < MAX_PROBLEMS else ""
        if get_line is None:
            separator = ": " if place else " "
            message = f"{model.__name__}{separator}{message}"
        elif not place:
            message = f"the {file_kind} {message}"
        problems.append((line, message))
    return SpecError.from_problems(problems, file=source)


def get_line_number(problem: tuple[Any, ...]) -> int:
    """Return the line of a problem, which is its first item; 0 if it has none."""
    return problem[0] or 0


def make_validation_error(*problems: Problem) -> ValidationError:
    """Return an error that the validator of a model raises for problems at places inside the model."""
    details = []
    for place, problem in problems:
        detail = InitErrorDetails(type="value_error", loc=place, input=None, ctx={"error": problem})
        details.append(detail)
    return ValidationError.from_exception_data("validation", details)


def _is_consequence(detail: Mapping[str, Any]) -> bool:
    """Return True for an error that only follows from another one."""
    if detail["type"] == "too_short":  # a list of which no item was valid
        return not detail["ctx"]["actual_length"] and bool(detail["input"])
    return bool(detail["type"] == "default_factory_not_called")


def _find_place(values: Any, detail: Mapping[str, Any]) -> Place:
    """Return the steps of an error's location that exist in the values; the others are Pydantic's names of types."""
    place = keep_existing(values, detail.get("ctx", {}).get("place", detail["loc"]))
    if detail["type"] == "missing":
        place += (detail["loc"][-1],)
    return place


def keep_existing(values: Any, steps: Sequence[str | int]) -> Place:
    """Return those steps of a place that exist in the values."""
    place: list[str | int] = []
    for step in steps:
        if isinstance(values, BaseModel):
            values = values.__dict__
        if isinstance(values, str):
            continue
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            continue
        place.append(step)
    return tuple(place)


def _describe(detail: Mapping[str, Any], place: Place, model: type[BaseModel]) -> str:
    field = format_place(place)
    if detail["type"] == "missing":
        return f"{field} is missing{_format_choices(model, detail['loc'])}"
    if detail["type"] == "extra_forbidden":
        key = str(detail["loc"][-1])
        keys = _list_keys(model, detail["loc"][:-1])
        problem = f"has an unknown key `{key}`{suggestion(key, keys)} (its keys: {', '.join(keys)})"
        return f"{format_place(place[:-1])} {problem}".lstrip()
    if detail["type"].startswith("value_"):
        return _describe_value_error(detail["ctx"]["error"], field)
    expected = _describe_expected(detail, model)
    hint = suggestion(str(detail["input"]), re.findall(r"'([^']*)'", expected))
    message = f"{expected}, but is {detail['input']!r:.60}{hint}"
    return f"{field} {message}" if field else message


def format_place(place: Place) -> str:
    """Return a place as a path, such as "`guidelines[2].id`"; "" for the whole."""
    if not place:
        return ""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return f"`{text.removeprefix('.')}`"


def _describe_value_error(error: object, field: str) -> str:
    """Join a field and the message of a validator, which continues the sentence ("names …") or is a whole sentence."""
    message = str(error)
    if getattr(error, "file", None):
        message = f"cannot be used: {message}"
    if not field:
        return message
    separator = ": " if message.startswith(("agent ", "the ", "there ")) else " "
    return f"{field}{separator}{message}"


def _describe_expected(detail: Mapping[str, Any], model: type[BaseModel]) -> str:
    error_type = detail["type"]
    kind, _, fault = error_type.partition("_")
    if fault not in ("type", "parsing", "from_float") and error_type not in _EXPECTED:
        message = re.sub(r"^\w+ should ", "must ", detail["msg"])
        return re.sub(r" after validation, not \d+$", "", message)
    expected = _EXPECTED.get(error_type) or _EXPECTED.get(kind, kind)
    keys = ", ".join(_list_keys(model, detail["loc"]))
    if keys and kind == "model":
        expected += f" (its keys: {keys})"
    elif keys and kind in ("list", "tuple"):
        expected += f" of mappings (their keys: {keys})"
    return f"must be {expected}"


def _list_keys(model: type[BaseModel], loc: Sequence[str | int]) -> list[str]:
    """Return the keys of a mapping at a location in a model; of a union, the keys of all its models."""
    keys: dict[str, None] = {}
    for candidate in _find_candidate_models(model, loc):
        keys |= dict.fromkeys(candidate.model_fields)
    return list(keys)


def _format_choices(model: type[BaseModel], loc: Sequence[str | int]) -> str:
    """Return the values that a field may have, as the end of a sentence; "" if they can't be listed."""
    choices: list[str] = []
    for candidate in _find_candidate_models(model, loc[:-1]):
        field = candidate.model_fields.get(str(loc[-1]))
        if field is not None and get_origin(field.annotation) is Literal:
            choices.extend(map(str, get_args(field.annotation)))
    return f": write {' or '.join(choices)}" if choices else ""


def _find_candidate_models(model: type[BaseModel], loc: Sequence[str | int]) -> list[type[BaseModel]]:
    models = [model]
    for step in ("root", *loc):
        annotations = []
        for candidate in models:
            if field := candidate.model_fields.get(str(step)):
                annotations.append(field.annotation)
        if annotations:
            models = list(chain.from_iterable(map(_find_models, annotations)))
    return models


def _find_models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _find_models(argument)
