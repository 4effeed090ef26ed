"""Replacing classes inside type annotations: in lists, unions, aliases and the fields of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel


def mentions(annotation: Any, wanted: type) -> bool:
    """Whether a subclass of `wanted` stands in an annotation, or in the fields of a model in it."""
    return any(isinstance(part, type) and issubclass(part, wanted) for part in _parts(annotation, []))


def replaced(annotation: Any, wanted: type, replace: Callable[[type], Any]) -> Any:
    """An annotation with other classes in it.

    A dataclass, a TypedDict and an alias that contains itself cannot be rewritten: what they mention stays.

    Args:
        annotation: A type as a field has it.
        wanted: Whose subclasses are to be replaced.
        replace: Gives the class, or the forward reference, to stand in place of a subclass of `wanted` or of
            a model whose fields mention one.
    """
    if not mentions(annotation, wanted):
        return annotation
    if (value := _alias_value(annotation)) is not None:
        recursive = any(part == annotation for part in _parts(value, []))
        return annotation if recursive else replaced(value, wanted, replace)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return replace(annotation)
    origin, (first, *rest) = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[(replaced(first, wanted, replace), *rest)]
    arguments = tuple(replaced(argument, wanted, replace) for argument in (first, *rest))
    return Union[arguments] if origin in (Union, UnionType) else origin[arguments]  # noqa: UP007


def _parts(annotation: Any, seen: list[Any]) -> Iterator[Any]:
    """An annotation, what it is made of, and what that is made of."""
    if annotation in seen:
        return
    seen.append(annotation)
    yield annotation
    for part in _direct_parts(annotation):
        yield from _parts(part, seen)


def _direct_parts(annotation: Any) -> tuple[Any, ...]:
    if (value := _alias_value(annotation)) is not None:
        return (value,)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return tuple(field.annotation for field in annotation.model_fields.values())
    if get_origin(annotation) is Literal:
        return ()
    return get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)


def _alias_value(annotation: Any) -> Any:
    """What a `type X = …` alias stands for, None for anything else."""
    origin = get_origin(annotation)
    value = getattr(annotation if origin is None else origin, "__value__", None)
    return value if value is None or origin is None else value[get_args(annotation)]
