"""Blueprints: their order, their definition, their schema, and the answers that are valid in each mode."""

from __future__ import annotations

import json
from abc import ABC
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
    create_model,
    field_validator,
    model_validator,
)

from arq_graph import ARQ, Reasoner, ScriptedChatModel, errors, query, reinstate, respond, verify
from tests.reasoning.strict_subset import assert_strict


class Judgement(ARQ):
    """Judge one guideline."""

    applies: bool = query("Does it apply?")
    score: int = respond("How much, 1 to 10?", ge=1, le=10)


class Holder(BaseModel):
    label: str = "none"
    judgement: Judgement


class Batch(ARQ):
    """Judge each guideline."""

    topic: str = reinstate("The topic.")
    first: Judgement = respond("The first.")
    others: list[Judgement | None] = respond("The others.")
    held: Holder | None = respond("One more.")
    complete: bool = verify("Is none left out?", must_be=True)


class Line(BaseModel):
    extras: dict[str, int] = {}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Author(ARQ):
    books: list[Book] = respond("What they wrote.")
    name: Annotated[str, query("Who?")]


class Book(ARQ):
    title: str = respond("Its title.")
    author: Annotated[Author | None, respond("Who wrote it?")]
    pages: Annotated[int, query("How long?")]


def define(annotation: Any, field: Any = None) -> type[ARQ]:
    """Return a blueprint with one field `x` of a type."""
    return create_model("Asked", __base__=ARQ, x=(annotation, field or respond("X?")))


def read_answer(blueprint: type[ARQ], value: Any, mode: Any = "arq") -> Any:
    """Return what a model's answer becomes in a mode."""
    reasoner = Reasoner(ScriptedChatModel([json.dumps(value)]), max_attempts=1, max_candidates=1)
    return reasoner.ask(blueprint, [HumanMessage("?")], mode=mode).value


STAGES = {reinstate: 0, query: 0, respond: 1, verify: 2}
NAMES = st.sampled_from(["a", "b", "c", "G1", "G-2", "x.y", "Z_9", "class", "reasoning"])
LEAVES = st.sampled_from([str, int, bool, float, Literal["no", 3, True, None], Colour, str | int | None])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    plain = st.dictionaries(NAMES, inner, min_size=1, max_size=3)
    models = plain.map(lambda kinds: create_model("Plain", **{name: (kinds[name], ...) for name in kinds}))
    nested = blueprints(inner).map(lambda drawn: drawn[0])
    return inner.map(lambda kind: list[kind]) | inner.map(lambda kind: kind | None) | nested | models


@st.composite
def blueprints(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> tuple[type[ARQ], dict[str, int]]:
    """Draw a blueprint that is subclassed up to twice, and the stage of each field, in the order of definition."""
    blueprint, stages = ARQ, {}
    for level in range(draw(st.integers(1, 3))):
        queries = st.tuples(st.sampled_from(list(STAGES)), inner)
        fields = draw(st.dictionaries(NAMES, queries, max_size=4)) | {f"answer{level}": (respond, str)}
        definitions = {name: (kind, stage("?")) for name, (stage, kind) in fields.items()}
        blueprint = create_model("Drawn", __base__=blueprint, **definitions)
        stages |= {name: STAGES[stage] for name, (stage, _) in fields.items()}
    return blueprint, stages


@settings(max_examples=8)
@given(blueprints(st.recursive(LEAVES, containers, max_leaves=4)))
def test_any_blueprint_is_strict_and_ordered_and_reads_what_its_schema_allows_in_each_mode(drawn):
    blueprint, stages = drawn
    response = [name for name, stage in stages.items() if stage == 1]
    reasoning = "reasoning_" if "reasoning" in response else "reasoning"
    by_stage = sorted(stages, key=stages.__getitem__)
    orders = {"arq": by_stage, "cot": [reasoning, *response], "direct": response}
    for mode, order in orders.items():
        assert_strict(blueprint.response_schema(mode))
        assert list(blueprint.response_schema(mode)["properties"]) == order
        answer = Reasoner("offline", max_attempts=1).ask(blueprint, [HumanMessage("?")], mode=mode)
        free_text = {reasoning: answer.reasoning} if mode == "cot" else {}
        assert free_text | json.loads(answer.value.model_dump_json()) == json.loads(answer.text)


# Definition


def test_a_query_of_a_subclass_lands_in_its_stage_after_the_inherited_ones():
    class Cost(ARQ, ABC):
        cost: Annotated[int, query("What does it cost?", ge=0)]
        cheap: bool = verify("Is it cheap?")

    class Both(Batch, Cost):
        """Judge, and reckon."""

        table: str = respond("The table to book.")

    schema = Both.response_schema()
    order = ["cost", "topic", "first", "others", "held", "table", "cheap", "complete"]
    assert list(schema["properties"]) == list(Both.model_fields) == order
    assert schema["description"] == "Judge, and reckon."
    inner = {"description": "How much, 1 to 10?", "type": "integer"}
    assert schema["$defs"]["Judgement"]["properties"]["score"] == inner


def test_blueprints_that_refer_to_each_other_are_ordered_and_reduced_everywhere():
    for blueprint in (Author, Book):
        schema = blueprint.response_schema()
        assert_strict(schema)
        assert list(schema["$defs"]["Author"]["properties"]) == ["name", "books"]
        assert list(schema["$defs"]["Book"]["properties"]) == ["pages", "title", "author"]
    assert_strict(Book.response_schema("direct"))
    value = {"title": "T", "author": {"books": [{"title": "U", "author": None}]}}
    assert read_answer(Book, value, "direct").model_dump() == value


@pytest.mark.parametrize(
    ("annotation", "field", "problem"),
    [
        (int, ..., r"Asked\.x has no stage"),
        (Annotated[int, query("X?")], None, r"Asked\.x has no stage, or several"),
        (Annotated[int, Field(alias="y")], None, r"Asked\.x has a default or an alias"),
        (int, query("X?"), "Asked has no response"),
        (int, respond("X?", when=bool), r"Asked\.x has when=.*\| None"),
        (list[Line] | None, None, r"Asked\.x\[\]\.extras: an open dict"),
        (Any, None, r"Asked\.x: a value of any type"),
        (tuple[int, str], None, r"Asked\.x: a tuple"),
        (Callable[[int], int], None, "Asked has a field of a type that JSON cannot hold"),
    ],
)
def test_a_field_that_cannot_be_asked_is_named_when_the_class_is_made(annotation, field, problem):
    with pytest.raises(errors.BlueprintDefinitionError, match=f"^{problem}"):
        define(annotation, field)


def test_a_class_that_is_built_late_is_checked_when_it_is_asked():
    class Late(ARQ, defer_build=True):
        x: dict[str, int] = respond("X?")

    class Asked(ARQ):
        late: Late = respond("Late?")

    with pytest.raises(errors.BlueprintDefinitionError, match=r"Asked\.late\.x: an open dictionary"):
        Asked.response_schema()


# Schema

STRING, NULL = {"type": "string"}, {"type": "null"}


def test_types_are_asked_in_the_subset_and_validated_by_pydantic():
    blueprint = define(tuple[Decimal, ...])
    items = {"type": "array", "items": STRING}
    assert blueprint.response_schema()["properties"]["x"] == {"description": "X?", **items}
    for mode in ("arq", "direct"):
        assert read_answer(blueprint, {"x": ["0.10"]}, mode).model_dump(mode="json") == {"x": ["0.10"]}


@pytest.mark.parametrize(
    ("own_schema", "strict"),
    [
        ({"type": "string", "minLength": 1, "pattern": "a", "format": "date"}, STRING),
        ({"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}),
        ({"oneOf": [NULL, STRING]}, {"anyOf": [NULL, STRING]}),
        ({"enum": [True, None]}, {"anyOf": [{"type": "boolean", "enum": [True]}, NULL]}),
        ({"type": "object", "patternProperties": {"a": {}}}, "open dictionary"),
        ({"properties": {"größe": STRING}}, r"x\.größe: a property name"),
        ({"allOf": [{"type": "integer"}, STRING]}, "several things"),
        ({"enum": [{"a": 1}]}, "cannot be a value"),
    ],
)
def test_a_schema_of_ones_own_is_converted_to_the_subset_or_refused(own_schema, strict):
    annotation = Annotated[Any, WithJsonSchema(own_schema)]
    if isinstance(strict, str):
        with pytest.raises(errors.BlueprintDefinitionError, match=strict):
            define(annotation)
    else:
        assert define(annotation).response_schema()["properties"]["x"] == {"description": "X?", **strict}


# Conditional queries


class Applied(ARQ):
    applied: Literal["no", "partially"] = query("Was it applied before?")
    missing: str | None = query("What is missing?", when=lambda a: a.applied == "partially")
    again: bool | None = respond("Apply it again?", when=lambda a: a.missing is not None)
    known: bool = respond("Is it known?")
    reason: str | None = respond("Why?", when=lambda a: a.known)


def test_null_is_an_answer_only_if_the_query_does_not_apply():
    assert Applied(applied="no", missing=None, again=None, known=False, reason="").missing is None
    with pytest.raises(errors.BlueprintError) as raised:
        read_answer(
            Applied, {"applied": "partially", "missing": None, "again": None, "known": True, "reason": None}
        )
    assert raised.value.attempts[0].error.split("\n") == [
        'Applied.missing: null is not an answer here: the query applies ("What is missing?")',
        'Applied.reason: null is not an answer here: the query applies ("Why?")',
    ]


def test_a_condition_on_a_query_counts_as_false_in_modes_without_queries():
    assert read_answer(Applied, {"again": None, "known": False, "reason": None}, "direct").again is None
    with pytest.raises(errors.BlueprintError, match=r"Applied\.reason: null is not an answer"):
        read_answer(Applied, {"again": None, "known": True, "reason": None}, "direct")


# Verification


def test_a_failed_verification_is_reported_with_its_question_and_answer():
    class Checked(ARQ):
        cites: bool = respond("Does it cite?")
        score: int = verify("How good is it?", must_be=lambda score: score >= 7)
        flaw: str | None = verify("What is wrong with it?", must_be=None)
        cited: bool | None = verify("Are its sources real?", must_be=True, when=lambda a: a.cites)

    assert Checked(cites=False, score=7, flaw=None, cited=False).unmet() == []
    assert [
        str(complaint) for complaint in Checked(cites=True, score=6, flaw="all", cited=False).unmet()
    ] == [
        'Checked.score: "How good is it?" was answered 6, which is not acceptable',
        "Checked.flaw: \"What is wrong with it?\" was answered 'all', which must be None",
        'Checked.cited: "Are its sources real?" was answered False, which must be True',
    ]


# Modes


def test_a_mode_asks_for_the_response_alone_at_every_depth():
    value = {"first": {"score": 3}, "others": [None, {"score": 4}], "held": {"judgement": {"score": 5}}}
    answer = read_answer(Batch, value, "direct")
    assert isinstance(answer, Batch)
    assert isinstance(answer.held, Holder)
    assert (answer.first.score, answer.others[1].score, answer.held.judgement.score) == (3, 4, 5)
    assert answer.unmet() == []
    assert not hasattr(answer, "topic")
    with pytest.raises(AttributeError, match=r"Judgement\.applies was not asked"):
        _ = answer.first.applies
    for first in ({"score": 11}, {"score": 1, "applies": True}):
        with pytest.raises(errors.BlueprintError, match=r"Batch\.first"):
            read_answer(Batch, {**value, "first": first}, "direct")
    with pytest.raises(errors.InputError, match="mode is 'fast'"):
        read_answer(Batch, value, "fast")


def test_names_are_sent_in_characters_that_providers_take_and_a_response_may_be_named_reasoning():
    blueprint = create_model("Tools[ä]", __base__=ARQ, reasoning=(int, respond("The tool named reasoning.")))
    model = ScriptedChatModel([{"reasoning_": "So.", "reasoning": 3}])
    answer = Reasoner(model).ask(blueprint, [HumanMessage("?")], mode="cot")
    assert (answer.reasoning, answer.value.reasoning) == ("So.", 3)
    assert model.calls[0].kwargs["response_format"]["json_schema"]["name"] == "Tools___"


def test_config_validators_and_methods_of_a_blueprint_work_in_every_mode():
    class Named(ARQ):
        model_config = ConfigDict(str_strip_whitespace=True)

        doubt: str = query("Any doubt?")
        name: Annotated[str, AfterValidator(str.title)] = respond("The name.", max_length=10)
        code: str = respond("The code.")

        @field_validator("code", "doubt", mode="before")
        @classmethod
        def _upper(cls, value: Any) -> Any:
            return value.upper()

        @model_validator(mode="after")
        def _differ(self) -> Self:
            if self.name == self.code:
                raise ValueError("they are the same")
            return self

        def label(self) -> str:
            return f"{self.name}/{self.code}"

    for mode, queries in (("arq", {"doubt": "no"}), ("cot", {"reasoning": "So."}), ("direct", {})):
        good = {**queries, "name": " ada ", "code": "x"}
        assert read_answer(Named, good, mode).label() == "Ada/X"
        for wrong in ({"name": "x" * 11}, {"name": "x"}, {"unknown": "none"}):
            with pytest.raises(errors.BlueprintError):
                read_answer(Named, {**good, **wrong}, mode)


def test_a_union_of_blueprints_is_told_apart_in_every_mode():
    class Cat(ARQ):
        fur: str = query("Its fur?")
        kind: Literal["cat"] = respond("cat")

    class Dog(ARQ):
        kind: Literal["dog"] = respond("dog")

    owner = define(Cat | Dog, respond("The pet.", discriminator="kind"))
    assert_strict(owner.response_schema("direct"))
    assert type(read_answer(owner, {"x": {"kind": "cat"}}, "direct").x) is Cat
    assert read_answer(owner, {"x": {"kind": "dog"}}).x == Dog(kind="dog")
