"""Blueprints derived from others, for ablations: code sees their response alone, and some queries aren't asked."""

from __future__ import annotations

import types
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core.core_schema import ModelSchema

from arq_graph.errors import InputError, suggestion
from arq_graph.reasoning.blueprint import B
from arq_graph.reasoning.queries import Form, get_queries
from arq_graph.reasoning.schema import AnswerJsonSchema


@dataclass(frozen=True)
class ResponseOnly:
    """Derives blueprints whose answers hold their response alone, as they do in the modes without queries.

    The model still answers the queries. But no check in code can rest on them, so that arms differ in what the
    model is asked to write, and in nothing else.

    Args:
        without: Names of queries that the model isn't asked, wherever they stand in a blueprint.
    """

    without: Collection[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "without", frozenset(self.without))

    def derive(self, blueprint: type[B]) -> type[B]:
        """Return the derived blueprint, the same class each time; queries that the blueprint lacks are ignored."""
        return _derive(blueprint, frozenset(self.without))

    def require_queries(self, *blueprints: type[BaseModel]) -> None:
        """Raise InputError unless each name in `without` is a query of one of these blueprints."""
        if not self.without:
            return
        fields = find_fields(*blueprints)
        queries = [name for name, is_query in fields.items() if is_query]
        for name in sorted(set(self.without).difference(queries)):
            reason = "is part of the response"
            if name not in fields:
                reason = f"isn't one of their queries{suggestion(name, queries)}"
            owners = ", ".join(blueprint.__name__ for blueprint in blueprints)
            raise InputError(
                f"{owners} cannot be asked without {name!r}, which {reason}. What can be left out: "
                f"{', '.join(queries) or 'nothing'}"
            )


@lru_cache(maxsize=1_000)
def _derive(blueprint: type[B], without: frozenset[str]) -> type[B]:
    namespace = {
        "__doc__": blueprint.__doc__,
        "__module__": blueprint.__module__,
        "__qualname__": blueprint.__qualname__,
        "__arq_form__": Form("arq", without, response_only=True),
    }
    return types.new_class(blueprint.__name__, (blueprint,), exec_body=lambda body: body.update(namespace))


def find_fields(*blueprints: type[BaseModel]) -> dict[str, bool]:
    """Return the field names of blueprints and of those inside them, and whether each is a query.

    The outer names come first. A name that several blueprints use is a query if it is one anywhere.
    """
    fields: dict[str, bool] = {}
    for blueprint in blueprints:
        fields |= dict.fromkeys(get_queries(blueprint), False)

    class Collector(AnswerJsonSchema):
        def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
            for name, query in get_queries(schema["cls"]).items():
                fields[name] = fields.get(name, False) or query.kind != "respond"
            return super().model_schema(schema)

    for blueprint in blueprints:
        blueprint.model_json_schema(schema_generator=Collector)
    return fields
