"""Queries: what a field of a blueprint asks, and in which stage (ARQ paper, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel, Field
from pydantic.fields import FieldInfo

Kind = Literal["reinstate", "query", "respond", "verify"]
_STAGES: Final[dict[Kind, int]] = {"reinstate": 0, "query": 0, "respond": 1, "verify": 2}

When = Callable[[Any], bool] | None


@dataclass(frozen=True, eq=False)
class Query:
    """What one field of a blueprint asks; the four functions below make it and explain its parts."""

    kind: Kind
    question: str
    when: When = None
    must_be: Any = ...

    def problem(self, value: object) -> str:
        """Why a verification's answer is not the one that `must_be` names; "" if it is, or none is named."""
        if self.must_be is ... or (self.must_be(value) if callable(self.must_be) else value == self.must_be):
            return ""
        wanted = "is not acceptable" if callable(self.must_be) else f"must be {self.must_be!r}"
        return f'"{self.question}" was answered {value!r}, which {wanted}'


def reinstate(question: str, *, when: When = None, **constraints: Any) -> Any:
    """Leading stage: the model repeats an instruction or a piece of context, just before it needs it.

    Args:
        question: What to repeat, and how exactly.
        when: Whether the query has to be answered, given the whole instance. The field's type must admit
            None; None where `when` is true is an invalid answer, and where it is false any value will do.
        **constraints: Those of Pydantic's `Field`, such as `ge`, `max_length`, `pattern` or `discriminator`; they
            are checked in the answer.
    """
    return _field(Query("reinstate", question, when), constraints)


def query(question: str, *, when: When = None, **constraints: Any) -> Any:
    """Leading stage: the model reasons one step.

    Args:
        question: The step, as a question about what has been reinstated and answered before it.
        when: As in `reinstate`.
        **constraints: As in `reinstate`.
    """
    return _field(Query("query", question, when), constraints)


def respond(question: str, *, when: When = None, **constraints: Any) -> Any:
    """Response stage: what the blueprint is asked for. Every mode has these fields, and code reads only them.

    Args:
        question: What to answer.
        when: As in `reinstate`; in the modes without queries, a `when` that reads one counts as false.
        **constraints: As in `reinstate`.
    """
    return _field(Query("respond", question, when), constraints)


def verify(question: str, *, must_be: Any = ..., when: When = None, **constraints: Any) -> Any:
    """Verification stage: the model checks its response.

    Args:
        question: The check, as a question about the response.
        must_be: The answer with which the response is satisfactory: a value, or a predicate of the value.
            Another one makes the reasoner ask for a new candidate. Without it the answer is only recorded.
        when: As in `reinstate`.
        **constraints: As in `reinstate`.
    """
    return _field(Query("verify", question, when, must_be), constraints)


def queries_in(field: FieldInfo) -> list[Query]:
    """The queries that a field was declared with: one, unless the declaration is wrong."""
    return [item for item in field.metadata if isinstance(item, Query)]


def queries_of(blueprint: type[BaseModel]) -> Mapping[str, Query]:
    """The queries of a blueprint by field name, in the order of its fields; none for any other model."""
    return {name: asked for name, field in blueprint.model_fields.items() for asked in queries_in(field)}


def by_stage(fields: dict[str, FieldInfo]) -> dict[str, FieldInfo]:
    """Fields in the order of their stages, and within a stage in the order given."""
    stages = {name: [_STAGES[asked.kind] for asked in queries_in(field)] for name, field in fields.items()}
    return dict(sorted(fields.items(), key=lambda item: stages[item[0]]))


def _field(asked: Query, constraints: Mapping[str, Any]) -> Any:
    field: FieldInfo = Field(description=asked.question, **constraints)
    field.metadata.append(asked)
    return field
