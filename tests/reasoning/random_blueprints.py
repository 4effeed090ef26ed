"""Random blueprints for hypothesis: any stages, types, nesting and subclassing, with answers for each mode."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import GenericAlias
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st
from pydantic import create_model

from arq_graph import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.blueprint import Mode

STAGES = {reinstate: 0, query: 0, respond: 1, verify: 2}
NAMES = st.sampled_from(["a", "b", "c", "d", "e", "G1", "G-2", "x.y", "Z_9", "class", "reasoning"])


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Shape(NamedTuple):
    """A type of a field, with JSON values that answer it in mode `arq` and in the modes without queries."""

    annotation: Any
    full: st.SearchStrategy[Any]
    reduced: st.SearchStrategy[Any]


@dataclass(frozen=True)
class RandomBlueprint:
    """A blueprint, and what is expected of it, worked out apart from it: the stage and the type of each field.

    The fields stand in the order in which Pydantic collects them.
    """

    blueprint: type[ARQ]
    stages: dict[str, int] = field(default_factory=dict)
    shapes: dict[str, Shape] = field(default_factory=dict)

    def order(self, mode: Mode) -> list[str]:
        """The fields that a mode has, in the order of the stages."""
        response = [name for name, stage in self.stages.items() if stage == 1]
        if mode == "arq":
            return sorted(self.stages, key=lambda name: self.stages[name])
        thought = "reasoning_" if "reasoning" in response else "reasoning"
        return [thought, *response] if mode == "cot" else response

    def answers(self, mode: Mode) -> st.SearchStrategy[dict[str, Any]]:
        """JSON objects that answer the blueprint in a mode, their keys in any order."""
        values = {name: shape.full if mode == "arq" else shape.reduced for name, shape in self.shapes.items()}
        values = {name: values.get(name, st.text()) for name in self.order(mode)}
        if mode == "cot":
            values[self.order(mode)[0]] = st.text()
        return st.permutations(list(values)).flatmap(
            lambda names: st.fixed_dictionaries({n: values[n] for n in names})
        )


LEAVES = st.sampled_from(
    [
        Shape(annotation, values, values)
        for annotation, values in (
            (str, st.text(max_size=5)),
            (int, st.integers()),
            (bool, st.booleans()),
            (float, st.floats(allow_nan=False, allow_infinity=False)),
            (Literal["no", 3, True, None], st.sampled_from(["no", 3, True, None])),
            (Colour, st.sampled_from(["red", "blue"])),
            (str | int | None, st.none() | st.text(max_size=3) | st.integers()),
        )
    ]
)


def _containers(inner: st.SearchStrategy[Shape]) -> st.SearchStrategy[Shape]:
    def listed(shape: Shape) -> Shape:
        lists = [st.lists(values, max_size=2) for values in shape[1:]]
        return Shape(GenericAlias(list, (shape.annotation,)), *lists)

    def optional(shape: Shape) -> Shape:
        return Shape(shape.annotation | None, st.none() | shape.full, st.none() | shape.reduced)

    def plain(shapes: dict[str, Shape]) -> Shape:
        """A plain Pydantic model that may hold blueprints."""
        fields: dict[str, Any] = {name: (shape.annotation, ...) for name, shape in shapes.items()}
        full = {name: shape.full for name, shape in shapes.items()}
        reduced = {name: shape.reduced for name, shape in shapes.items()}
        model = create_model("Plain", **fields)
        return Shape(model, st.fixed_dictionaries(full), st.fixed_dictionaries(reduced))

    nested = blueprints(inner).map(
        lambda one: Shape(one.blueprint, one.answers("arq"), one.answers("direct"))
    )
    models = st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(plain)
    return inner.map(listed) | nested.map(optional) | nested | models


@st.composite
def blueprints(draw: st.DrawFn, inner: st.SearchStrategy[Shape] | None = None) -> RandomBlueprint:
    """A blueprint that is subclassed up to twice; subclasses may redefine fields, in other stages too."""
    inner = st.recursive(LEAVES, _containers, max_leaves=4) if inner is None else inner
    made = RandomBlueprint(ARQ)
    for level in range(draw(st.integers(1, 3))):
        asked = st.tuples(st.sampled_from(list(STAGES)), inner)
        fields = draw(st.dictionaries(NAMES, asked, min_size=1, max_size=4))
        if not any(stage is respond for stage, _ in fields.values()):
            name = next(iter(fields))
            fields[name] = (respond, fields[name][1])
        definitions: dict[str, Any] = {
            name: (shape.annotation, stage(f"{name} of level {level}?"))
            for name, (stage, shape) in fields.items()
        }
        made = RandomBlueprint(
            create_model(f"Level{level}", __base__=made.blueprint, **definitions),
            made.stages | {name: STAGES[stage] for name, (stage, _) in fields.items()},
            made.shapes | {name: shape for name, (_, shape) in fields.items()},
        )
    return made
