"""The modes of a blueprint: with all its queries, with free reasoning, or with the response alone.

A mode other than `"arq"` is a class of its own, a variant: it has the response fields of its blueprint with
their types, constraints and field validators, and the blueprint's methods and properties. Blueprints inside
the response, and models that hold such, are replaced by their variants in the same way.

Only what needs no query carries over. A model validator sees the whole answer and stays with `"arq"`; in a
field validator, `info.data` holds response fields only; a `when` that reads a query which the mode does not
have counts as false. A variant has its members from no base class, so they cannot call `super()` there.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from functools import cached_property
from inspect import getattr_static
from threading import RLock
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, ForwardRef

from pydantic import BaseModel, create_model, field_validator
from pydantic.errors import PydanticUserError

from arq_graph.errors import BlueprintDefinitionError, InputError
from arq_graph.reasoning.annotations import mentions, replaced
from arq_graph.reasoning.blueprint import ARQ, Mode, queries_of
from arq_graph.reasoning.definition import require_complete
from arq_graph.reasoning.queries import Query, query

__all__ = ["Mode", "variant_of"]

REASONING = "Think it through step by step: what the instructions and the context ask for, and what follows."

_CACHE = "__arq_variants__"
_LOCK = RLock()


class NotInThisMode(AttributeError):
    """A query was read from an answer that was given in a mode without queries."""


class Variant(ARQ, ABC):
    """A blueprint in a mode without its queries."""

    __arq_origin__: ClassVar[type[ARQ]]
    __arq_mode__: ClassVar[Mode]

    def _is_asked(self, asked: Query) -> bool:
        try:
            return super()._is_asked(asked)
        except NotInThisMode:
            return False

    def __reduce__(self) -> Any:
        return _blank, (self.__arq_origin__, self.__arq_mode__), self.__getstate__()

    if not TYPE_CHECKING:  # or else every attribute would seem to exist

        def __getattr__(self, name: str) -> Any:
            if name in self.__arq_origin__.model_fields:
                raise NotInThisMode(
                    f"{type(self).__name__} was answered in mode {self.__arq_mode__!r}, which does not ask "
                    f"{name!r}: read response fields only, or ask in mode 'arq'.",
                    name=name,
                    obj=self,
                )
            return super().__getattr__(name)


def variant_of(blueprint: type[ARQ], mode: Mode) -> type[ARQ]:
    """The class that asks a blueprint in a mode, made once.

    Args:
        blueprint: A blueprint; of a variant, the blueprint that it was made from counts.
        mode: `"arq"`, `"cot"` or `"direct"`.

    Raises:
        InputError: There is no such mode.
        BlueprintDefinitionError: The class is not complete (a generic parameter, a forward reference), or a
            blueprint stands in its response where it cannot be reduced.
    """
    blueprint = blueprint.__dict__.get("__arq_origin__", blueprint)
    if mode == "arq":
        return blueprint
    if mode not in ("cot", "direct"):
        raise InputError(f"{mode!r} is not a mode: use 'arq', 'cot' or 'direct'.")
    with _LOCK:
        known: type[ARQ] | None = _known(blueprint, mode)
        if known is None:
            require_complete(blueprint)
            known = _Reduction().run(blueprint, mode)
        return known


def _known(model: type[BaseModel], mode: Mode) -> Any:
    return model.__dict__.get(_CACHE, {}).get(mode)


class _Reduction:
    """The making of one variant, with those of the models that its response reaches."""

    def __init__(self) -> None:
        # By these names a model refers to another one that is still being made, its own variant or one around it.
        self.names: dict[tuple[type[BaseModel], Mode], str] = {}
        self.made: dict[tuple[type[BaseModel], Mode], type[BaseModel]] = {}

    def run(self, model: type[BaseModel], mode: Mode) -> Any:
        variant = self.reduced(model, mode)
        namespace = {self.names[key]: made for key, made in self.made.items()}
        for made in self.made.values():
            made.model_rebuild(_types_namespace=namespace)
            _check_reduced(made)
        for (model, made_in), made in self.made.items():
            setattr(model, _CACHE, {**model.__dict__.get(_CACHE, {}), made_in: made})
        return variant

    def reduced(self, model: type[BaseModel], mode: Mode = "direct") -> Any:
        key = (model, mode)
        if (known := _known(model, mode) or self.made.get(key)) is not None:
            return known
        if key in self.names:
            return ForwardRef(self.names[key])
        self.names[key] = f"__arq_variant_{len(self.names)}"
        try:
            made = self.blueprint(model, mode) if issubclass(model, ARQ) else self.model(model)
        except PydanticUserError as error:
            raise BlueprintDefinitionError(
                f"{model.__name__} cannot be asked in mode {mode!r}, where it only has response fields: "
                f"{error.message}"
            ) from error
        self.made[key] = made
        return made

    def blueprint(self, blueprint: type[ARQ], mode: Mode) -> type[ARQ]:
        kept = [name for name, asked in queries_of(blueprint).items() if asked.kind == "respond"]
        fields: dict[str, Any] = {name: self.field(blueprint, name) for name in kept}
        if mode == "cot":
            fields = {_free_name("reasoning", kept): (str, query(REASONING))} | fields
        variant = create_model(
            blueprint.__name__,
            __base__=Variant,
            __module__=blueprint.__module__,
            __doc__=blueprint.__doc__,
            __validators__=_field_validators(blueprint, kept),
            __cls_kwargs__=dict(blueprint.model_config),
            **fields,
        )
        variant.__qualname__ = blueprint.__qualname__
        variant.__arq_origin__ = blueprint
        variant.__arq_mode__ = mode
        for name, member in _members(blueprint).items():
            setattr(variant, name, member)
        return variant

    def model(self, model: type[BaseModel]) -> type[BaseModel]:
        """A plain model's variant is a subclass of it that redefines the fields which hold blueprints."""
        fields: dict[str, Any] = {
            name: self.field(model, name)
            for name, field in model.model_fields.items()
            if mentions(field.annotation, ARQ)
        }
        variant = create_model(
            model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **fields
        )
        variant.__qualname__ = model.__qualname__
        variant.__reduce__ = lambda self: (_blank, (model, "direct"), self.__getstate__())  # type: ignore[method-assign]
        return variant

    def field(self, model: type[BaseModel], name: str) -> tuple[Any, Any]:
        field = model.model_fields[name]
        return replaced(field.annotation, ARQ, self.reduced), field


def _free_name(name: str, taken: list[str]) -> str:
    return _free_name(f"{name}_", taken) if name in taken else name


def _field_validators(blueprint: type[ARQ], kept: list[str]) -> dict[str, Any]:
    """The field validators of a blueprint, for the fields that are kept."""
    validators = {}
    for name, validator in blueprint.__pydantic_decorators__.field_validators.items():
        fields = [field for field in kept if field in validator.info.fields or "*" in validator.info.fields]
        if fields:
            options: dict[str, Any] = {"mode": validator.info.mode}
            options["json_schema_input_type"] = validator.info.json_schema_input_type
            decorate: Any = field_validator(*fields, **options)
            validators[name] = decorate(getattr_static(blueprint, name))
    return validators


def _members(blueprint: type[ARQ]) -> dict[str, Any]:
    """The methods, properties and class variables that a designer gave to a blueprint."""
    decorators = blueprint.__pydantic_decorators__
    taken = (
        decorators.field_validators.keys()
        | decorators.model_validators.keys()
        | decorators.field_serializers.keys()
        | decorators.model_serializers.keys()
    )
    return {
        name: member
        for owner in reversed(blueprint.__mro__)
        if owner not in Variant.__mro__
        for name, member in vars(owner).items()
        if not name.startswith("__") and name not in taken
        if name in blueprint.__class_vars__
        or isinstance(member, FunctionType | property | classmethod | staticmethod | cached_property)
    }


def _check_reduced(made: type[BaseModel]) -> None:
    for left in _models_in(made.__pydantic_core_schema__):
        if issubclass(left, ARQ) and not issubclass(left, Variant):
            raise BlueprintDefinitionError(
                f"{made.__name__} holds {left.__name__} where it cannot be reduced to its response: in a dataclass, "
                "a TypedDict, or an alias that is recursive or quoted. Use a BaseModel or an ARQ in its place."
            )


def _models_in(core_schema: Any) -> Iterator[type[BaseModel]]:
    if isinstance(core_schema, dict):
        if core_schema.get("type") == "model":
            yield core_schema["cls"]
        for part in core_schema.values():
            yield from _models_in(part)
    elif isinstance(core_schema, list | tuple):
        for part in core_schema:
            yield from _models_in(part)


def _blank(model: type[BaseModel], mode: Mode) -> BaseModel:
    """An empty instance of a variant, for unpickling."""
    with _LOCK:
        variant: type[BaseModel] = _known(model, mode) or _Reduction().run(model, mode)
    return variant.__new__(variant)
