"""Random blueprints for hypothesis: any stages, types, nesting and subclassing, with answers for each mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal

from hypothesis import strategies as st
from pydantic import BaseModel, create_model

from arq_graph import ARQ, query, reinstate, respond, verify

STAGES = {reinstate: 0, query: 0, respond: 1, verify: 2}

_NAMES = ["a", "b", "c", "d", "e", "G1", "G-2", "x.y", "Z_9", "reasoning"]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Shape:
    """A type of a field, with its answers.

    Args:
        annotation: The type.
        full: JSON values that answer it in `arq` mode.
        reduced: JSON values that answer it in the modes without queries.
    """

    annotation: Any
    full: st.SearchStrategy[Any]
    reduced: st.SearchStrategy[Any]


@dataclass(frozen=True)
class RandomBlueprint:
    """A blueprint, and what is expected of it, worked out apart from it.

    Args:
        blueprint: The class.
        stages: The stage of each field, in the order in which Pydantic collects the fields.
        shapes: The type of each field.
    """

    blueprint: type[ARQ]
    stages: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)

    def order(self, mode: str) -> list[str]:
        """The fields that a mode has, in the order of the stages."""
        response = [name for name, stage in self.stages.items() if stage == 1]
        if mode == "arq":
            return sorted(self.stages, key=lambda name: self.stages[name])
        thought = "reasoning_" if "reasoning" in response else "reasoning"
        return [thought, *response] if mode == "cot" else response

    def answers(self, mode: str) -> st.SearchStrategy[dict[str, Any]]:
        """JSON objects that answer the blueprint in a mode, their keys in any order."""
        values = {name: shape.full if mode == "arq" else shape.reduced for name, shape in self.shapes.items()}
        values = {name: values.get(name, st.text()) for name in self.order(mode)}
        if mode == "cot":
            values[self.order(mode)[0]] = st.text()
        return st.permutations(list(values)).flatmap(
            lambda names: st.fixed_dictionaries({n: values[n] for n in names})
        )


def _same(annotation: Any, values: st.SearchStrategy[Any]) -> Shape:
    return Shape(annotation, values, values)


LEAVES = st.sampled_from(
    [
        _same(str, st.text(max_size=5)),
        _same(int, st.integers()),
        _same(bool, st.booleans()),
        _same(float, st.floats(allow_nan=False, allow_infinity=False)),
        _same(Literal["no", "partially", 3, True, None], st.sampled_from(["no", "partially", 3, True, None])),
        _same(Colour, st.sampled_from(["red", "blue"])),
        _same(str | int | None, st.none() | st.text(max_size=3) | st.integers()),
    ]
)


@st.composite
def _models(draw: st.DrawFn, inner: st.SearchStrategy[Shape]) -> Shape:
    """A plain Pydantic model that may hold blueprints."""
    shapes = draw(st.dictionaries(st.sampled_from(_NAMES), inner, min_size=1, max_size=3))
    fields: dict[str, Any] = {name: (shape.annotation, ...) for name, shape in shapes.items()}
    model: type[BaseModel] = create_model("Plain", **fields)
    return Shape(
        model,
        st.fixed_dictionaries({name: shape.full for name, shape in shapes.items()}),
        st.fixed_dictionaries({name: shape.reduced for name, shape in shapes.items()}),
    )


def _containers(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    def listed(shape: Shape) -> Shape:
        return Shape(
            GenericAlias(list, (shape.annotation,)),
            st.lists(shape.full, max_size=2),
            st.lists(shape.reduced, max_size=2),
        )

    def optional(shape: Shape) -> Shape:
        return Shape(shape.annotation | None, st.none() | shape.full, st.none() | shape.reduced)

    def annotated(shape: Shape) -> Shape:
        return Shape(Annotated[shape.annotation, "a note"], shape.full, shape.reduced)

    nested = blueprints(inner).map(
        lambda one: Shape(one.blueprint, one.answers("arq"), one.answers("direct"))
    )
    return inner.map(listed) | nested.map(optional) | inner.map(annotated) | nested | _models(inner)


def shapes() -> st.SearchStrategy[Shape]:
    """Types of fields, nested up to a few levels."""
    return st.recursive(LEAVES, _containers, max_leaves=4)


@st.composite
def blueprints(draw: st.DrawFn, inner: st.SearchStrategy[Shape] | None = None) -> RandomBlueprint:
    """A blueprint that is subclassed up to twice; subclasses may redefine fields, in other stages too."""
    inner = shapes() if inner is None else inner
    made = RandomBlueprint(ARQ)
    for level in range(draw(st.integers(1, 3))):
        fields = draw(
            st.dictionaries(
                st.sampled_from(_NAMES),
                st.tuples(st.sampled_from(list(STAGES)), inner),
                min_size=1,
                max_size=4,
            )
        )
        stages = made.stages | {name: STAGES[stage] for name, (stage, _) in fields.items()}
        if 1 not in stages.values():
            # A subclass that turns the only response into a query is no blueprint.
            name = next(iter(fields))
            fields[name] = (respond, fields[name][1])
            stages[name] = 1
        definitions: dict[str, Any] = {
            name: (shape.annotation, stage(f"{name} of level {level}?"))
            for name, (stage, shape) in fields.items()
        }
        made = RandomBlueprint(
            create_model(f"Level{level}", __base__=made.blueprint, **definitions),
            stages,
            made.shapes | {name: shape for name, (_, shape) in fields.items()},
        )
    return made
