"""The queries of a blueprint: their stages, and the forms in which they are asked (ARQ paper, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

Kind = Literal["reinstate", "query", "respond", "verify"]
_STAGES: Final[dict[Kind, int]] = {"reinstate": 0, "query": 0, "respond": 1, "verify": 2}

Mode = Literal["arq", "cot", "direct"]
When = Callable[[Any], bool] | None


@dataclass(frozen=True, eq=False)
class Query:
    """The question of one field of a blueprint; the four functions below make it and explain its parts."""

    kind: Kind
    question: str
    when: When = None
    must_be: Any = ...

    def find_problem(self, value: object) -> str:
        """Return why a verification's answer isn't the one that `must_be` demands, or ""."""
        if self.must_be is ...:
            return ""
        if callable(self.must_be):
            is_accepted, demand = self.must_be(value), "is not acceptable"
        else:
            is_accepted, demand = value == self.must_be, f"must be {self.must_be!r}"
        if is_accepted:
            return ""
        return f'"{self.question}" was answered {value!r}, which {demand}'


class Form(NamedTuple):
    """The part of a blueprint, and of the blueprints inside it, that a model is asked for.

    Args:
        mode: "arq": all queries. "cot": one free reasoning, then the response. "direct": the response alone.
        without: Names of queries that mode "arq" leaves out.
        response_only: True if code sees the response alone, whatever else the model is asked for.
    """

    mode: Mode = "arq"
    without: frozenset[str] = frozenset()
    response_only: bool = False

    @property
    def is_whole(self) -> bool:
        """True if every query is asked."""
        return self.mode == "arq" and not self.without

    def includes(self, name: str, query: Query) -> bool:
        """Return whether the field of this name is asked for."""
        return query.kind == "respond" or (self.mode == "arq" and name not in self.without)


def reinstate(question: str, *, when: When = None, **constraints: Any) -> Any:
    """Leading stage: the model repeats an instruction or a piece of context, just before it needs it.

    Args:
        question: What to repeat, and how exactly.
        when: Whether the query has to be answered, given the whole instance. The field's type must admit
            None; None where `when` is true is an invalid answer, and where it is false any value will do.
        **constraints: Those of Pydantic's `Field`, such as `ge`, `max_length`, `pattern` or `discriminator`; they
            are checked in the answer.
    """
    return _make_field(Query("reinstate", question, when), constraints)


def query(question: str, *, when: When = None, **constraints: Any) -> Any:
    """Leading stage: the model reasons one step.

    Args:
        question: The step, as a question about what has been reinstated and answered before it.
        when: As in `reinstate`.
        **constraints: As in `reinstate`.
    """
    return _make_field(Query("query", question, when), constraints)


def respond(question: str, *, when: When = None, **constraints: Any) -> Any:
    """Response stage: what the blueprint is asked for. Every mode has these fields, and code reads only them.

    Args:
        question: What to answer.
        when: As in `reinstate`; in the modes without queries, a `when` that reads one counts as false.
        **constraints: As in `reinstate`.
    """
    return _make_field(Query("respond", question, when), constraints)


def verify(question: str, *, must_be: Any = ..., when: When = None, **constraints: Any) -> Any:
    """Verification stage: the model checks its response.

    Args:
        question: The check, as a question about the response.
        must_be: The answer with which the response is satisfactory: a value, or a predicate of the value.
            Another one makes the reasoner ask for a new candidate. Without it the answer is only recorded.
        when: As in `reinstate`.
        **constraints: As in `reinstate`.
    """
    return _make_field(Query("verify", question, when, must_be), constraints)


def get_field_queries(field: FieldInfo) -> list[Query]:
    """Return the queries that a field was declared with: one, unless the declaration is wrong."""
    return [item for item in field.metadata if isinstance(item, Query)]


def get_queries(blueprint: type[BaseModel]) -> Mapping[str, Query]:
    """Return the queries of a blueprint by field name, in the order of its fields; {} for any other model."""
    queries: Mapping[str, Query] = blueprint.__dict__.get("__arq_queries__", {})
    return queries


def sort_by_stage(fields: dict[str, FieldInfo]) -> dict[str, FieldInfo]:
    """Return fields in the order of their stages, and within a stage in the order given."""

    def get_stages(name: str) -> list[int]:
        return [_STAGES[query.kind] for query in get_field_queries(fields[name])]

    return {name: fields[name] for name in sorted(fields, key=get_stages)}


def _make_field(query: Query, constraints: Mapping[str, Any]) -> Any:
    field: FieldInfo = Field(description=query.question, **constraints)
    field.metadata.append(query)
    return field
