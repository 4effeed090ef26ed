"""Blueprints: their order, their definition, their schema, and the answers that they take in each mode."""

from __future__ import annotations

import copy
import json
from abc import ABC
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import HumanMessage
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    field_validator,
)

from arq_graph import ARQ, Reasoner, ScriptedChatModel, errors, query, reinstate, respond, verify
from tests.reasoning.random_blueprints import RandomBlueprint, blueprints
from tests.reasoning.strict_subset import assert_strict

T = TypeVar("T")
MODES = ("arq", "cot", "direct")


class Option(ARQ):
    """One restaurant."""

    fits: bool = verify("Does its menu fit the diets?")
    name: str = respond("Its name.", min_length=1)
    distance: float = query("How many kilometres away is it?", ge=0)


class Recommendation(ARQ):
    """Recommend one restaurant to the group."""

    fits_everyone: bool = verify("Does the answer respect every diet?", must_be=True)
    answer: str = respond("The recommendation, in one sentence.")
    diet: list[str] = reinstate("Every dietary constraint, word for word.")
    in_range: list[Option] = query("Which restaurants are in range?")


class OnBudget(Recommendation):
    budget: Annotated[int, reinstate("What may it cost?", ge=0)]
    within_budget: bool = verify("Is it within the budget?", must_be=True)
    table: str = respond("The table to book.")


class Judgement(ARQ):
    """Judge one guideline."""

    condition: str = reinstate("The condition.")
    applies: bool = query("Does it apply?")
    score: int = respond("How much, 1 to 10?", ge=1, le=10)


class Holder(BaseModel):
    """Holds a judgement."""

    label: str = "none"
    judgement: Judgement


class Batch(ARQ):
    """Judge each guideline."""

    topic: str = reinstate("The topic.")
    first: Judgement = respond("The first.")
    others: list[Judgement | None] = respond("The others.")
    held: Holder | None = respond("One more.")
    complete: bool = verify("Is none left out?", must_be=True)


class Author(ARQ):
    books: list[Book] = respond("What they wrote.")
    name: Annotated[str, query("Who?")]


class Book(ARQ):
    title: str = respond("Its title.")
    author: Annotated[Author | None, respond("Who wrote it?")]
    pages: Annotated[int, query("How long?")]


def defined(annotation: Any, field: Any = None) -> type[ARQ]:
    """A blueprint with one field `x` of a type."""
    fields: dict[str, Any] = {"x": (annotation, respond("X?") if field is None else field)}
    return create_model("Asked", __base__=ARQ, **fields)


def answered(blueprint: type[ARQ], value: Any, mode: Any = "arq") -> Any:
    """What a model's answer becomes in a mode."""
    reasoner = Reasoner(ScriptedChatModel([json.dumps(value)]), max_attempts=1, max_candidates=1)
    return reasoner.ask(blueprint, [HumanMessage("?")], mode=mode).value


def describes(schema: dict[str, Any], value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def keys(blueprint: type[ARQ], mode: Any = "arq") -> list[str]:
    return list(blueprint.response_schema(mode)["properties"])


# Order


def test_stages_order_fields_schema_and_dump_whatever_the_order_of_definition():
    order = ["diet", "in_range", "answer", "fits_everyone"]
    answer = Recommendation(
        fits_everyone=True, answer="Lemon.", diet=[], in_range=[Option(fits=True, name="L", distance=1)]
    )
    assert keys(Recommendation) == Recommendation.response_schema()["required"] == order
    assert list(Recommendation.model_json_schema()["properties"]) == list(answer.model_dump()) == order
    assert list(answer.model_dump()["in_range"][0]) == ["distance", "name", "fits"]


def test_a_query_of_a_subclass_lands_in_its_stage_after_the_inherited_ones():
    order = ["diet", "in_range", "budget", "answer", "table", "fits_everyone", "within_budget"]
    assert keys(OnBudget) == order

    class Stricter(OnBudget):
        diet: list[str] = reinstate("Every diet, and allergies first.", min_length=1)

    assert keys(Stricter) == order

    class Moved(Recommendation):
        fits_everyone: bool = query("Would anything fit everyone?")

    assert keys(Moved) == ["fits_everyone", "diet", "in_range", "answer"]

    class Cost(ARQ, ABC):
        cost: int = query("What does it cost?")
        cheap: bool = verify("Is it cheap?")

    class Both(Recommendation, Cost):
        pass

    assert keys(Both) == ["cost", "diet", "in_range", "answer", "cheap", "fits_everyone"]


def test_blueprints_that_refer_to_each_other_are_ordered_everywhere():
    for blueprint in (Author, Book):
        schema = blueprint.response_schema()
        assert_strict(schema)
        assert list(schema["$defs"]["Author"]["properties"]) == ["name", "books"]
        assert list(schema["$defs"]["Book"]["properties"]) == ["pages", "title", "author"]


# Definition


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (int, r"Asked\.x has no stage"),
        (Annotated[int, respond("X?")] | None, r"Asked\.x has no stage"),
        ((Annotated[int, query("X?")], respond("X?")), r"Asked\.x has no stage, or several"),
        ((Annotated[int, Field(default=1)], respond("X?")), r"Asked\.x has a default"),
        ((Annotated[int, Field(alias="y")], respond("X?")), r"Asked\.x has a default or an alias"),
        ((int, query("X?")), "Asked has no response"),
    ],
)
def test_a_wrong_field_is_named_when_the_class_is_made(field, problem):
    with pytest.raises(errors.BlueprintDefinitionError, match=problem):
        create_model("Asked", __base__=ARQ, x=field)


def test_a_query_needs_a_question():
    for question in ("", "  \n", None, 3):
        with pytest.raises(errors.BlueprintDefinitionError, match="needs a question"):
            query(question)


@pytest.mark.parametrize("name", ["unmet", "model_fields"])
@pytest.mark.filterwarnings("ignore:Field name:UserWarning")
def test_a_field_cannot_take_the_place_of_a_method(name):
    with pytest.raises(errors.BlueprintDefinitionError, match="name of a method"):
        create_model("Asked", __base__=ARQ, **{name: (int, respond("X?"))})


def test_a_forward_reference_is_checked_when_it_is_resolved():
    class Late(ARQ):
        x: Later = respond("X?")
        y: int

    with pytest.raises(errors.BlueprintDefinitionError, match="Late refers to 'Later'"):
        Late.response_schema()

    class Later(ARQ):
        z: int = respond("Z?")

    with pytest.raises(errors.BlueprintDefinitionError, match=r"Late\.y has no stage"):
        Late.model_rebuild()


def test_ids_may_be_field_names():
    names = ("G1", "G-2", "a.b", "9", "class", "self", "cls")
    batch = create_model("Batch", __base__=ARQ, **{name: (Option, respond(f"{name}?")) for name in names})
    assert_strict(batch.response_schema())
    answer = answered(batch, {name: {"name": name} for name in names}, "direct")
    assert [getattr(answer, name).name for name in names] == list(names)


# Schema


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


class NotJson:
    pass


@pytest.mark.parametrize(
    ("annotation", "value", "schema"),
    [
        (date, "2024-02-29", {"type": "string"}),
        (Decimal, "0.10", {"type": "string"}),
        (UUID, "00000000-0000-0000-0000-000000000001", {"type": "string"}),
        (Colour, "red", {"anyOf": [{"$ref": "#/$defs/Colour"}]}),
        (Literal["a"], "a", {"type": "string", "enum": ["a"]}),
        (int | None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (tuple[int, ...], [1, 2], {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_types_are_asked_in_the_subset_and_read_by_pydantic(annotation, value, schema):
    blueprint = defined(annotation)
    asked = blueprint.response_schema()
    assert_strict(asked)
    assert describes(asked, {"x": value})
    assert asked["properties"]["x"] == {"description": "X?", **schema}
    for mode in ("arq", "direct"):
        assert answered(blueprint, {"x": value}, mode).model_dump(mode="json") == {"x": value}


@pytest.mark.parametrize(
    ("annotation", "where", "reason"),
    [
        (dict[str, int], r"Asked\.x", "open dictionary"),
        (Any, r"Asked\.x", "any type"),
        (list, r"Asked\.x\[\]", "any type"),
        (tuple[int, str], r"Asked\.x", "tuple"),
        (Callable[[int], int], "Asked", "JSON cannot hold"),
        (list[NotJson], "Asked", "NotJson"),
    ],
)
def test_a_type_outside_the_subset_is_refused_with_class_field_and_what_to_use(annotation, where, reason):
    with pytest.raises(errors.BlueprintDefinitionError, match=rf"^{where}.*{reason}"):
        defined(annotation)


def test_a_type_outside_the_subset_is_found_inside_a_plain_model():
    class Line(BaseModel):
        extras: dict[str, int] = {}

    class Order(BaseModel):
        lines: list[Line]

    with pytest.raises(errors.BlueprintDefinitionError, match=r"^Asked\.x\.lines\[\]\.extras: an open dict"):
        defined(Order | None)


@pytest.mark.parametrize("name", ["größe", "x" * 65])
def test_a_property_name_that_a_provider_refuses_is_refused(name):
    with pytest.raises(errors.BlueprintDefinitionError, match=rf"Asked\.{name}: a property name"):
        create_model("Asked", __base__=ARQ, **{name: (int, respond("X?"))})


@pytest.mark.parametrize(
    ("given_", "strict"),
    [
        ({"type": "string", "minLength": 1, "pattern": "a", "format": "date"}, {"type": "string"}),
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"oneOf": [{"type": "null"}, {"type": "integer"}]},
            {"anyOf": [{"type": "null"}, {"type": "integer"}]},
        ),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]}, {"type": "string"}),
        ({"allOf": [{"type": "integer"}]}, {"type": "integer"}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        (
            {"enum": [1, True]},
            {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "boolean", "enum": [True]}]},
        ),
        ({"items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "object", "properties": {}, "additionalProperties": True}, "open dictionary"),
        (
            {"properties": {"b": {"type": "string"}}},
            {
                "type": "object",
                "properties": {"b": {"type": "string"}},
                "required": ["b"],
                "additionalProperties": False,
            },
        ),
        ({"type": "object", "patternProperties": {"a": {}}}, "open dictionary"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "tuple"),
        ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "several things"),
        ({"not": {"type": "string"}}, "conditional"),
        ({"type": "object", "properties": {}, "if": {}}, "conditional"),
        ({"type": "file"}, "any type"),
        ({"enum": []}, "without values"),
        ({"enum": [{"a": 1}]}, "cannot be a value"),
        ({"anyOf": []}, "any type"),
    ],
)
def test_a_schema_of_ones_own_is_written_in_the_subset_or_refused(given_, strict):
    annotation = Annotated[Any, WithJsonSchema(given_)]
    if isinstance(strict, str):
        with pytest.raises(errors.BlueprintDefinitionError, match=strict):
            defined(annotation)
        return
    assert defined(annotation).response_schema()["properties"]["x"] == {"description": "X?", **strict}


def test_docstrings_and_questions_are_in_the_schema_and_constraints_are_not():
    schema = Recommendation.response_schema()
    assert schema["description"] == "Recommend one restaurant to the group."
    assert schema["$defs"]["Option"]["description"] == "One restaurant."
    assert schema["$defs"]["Option"]["properties"]["name"] == {"description": "Its name.", "type": "string"}
    with pytest.raises(ValidationError, match="at least 1 character"):
        Option(fits=True, name="", distance=0)


# Conditional queries


class Applied(ARQ):
    applied: Literal["no", "partially"] = query("Was it applied before?")
    missing: str | None = query("What is missing?", when=lambda a: a.applied == "partially")
    again: bool | None = respond("Apply it again?", when=lambda a: a.missing is not None)
    known: bool = respond("Is it known?")
    reason: str | None = respond("Why?", when=lambda a: a.known)


def test_null_is_an_answer_only_where_a_query_does_not_apply():
    assert Applied(applied="no", missing=None, again=None, known=False, reason="").missing is None
    with pytest.raises(ValidationError) as raised:
        Applied(applied="partially", missing=None, again=None, known=True, reason=None)
    assert [error["loc"] for error in raised.value.errors()] == [("missing",), ("reason",)]
    assert "What is missing?" in raised.value.errors()[0]["msg"]


def test_a_condition_on_a_query_counts_as_false_where_there_are_no_queries():
    assert answered(Applied, {"again": None, "known": False, "reason": None}, "direct").again is None
    with pytest.raises(errors.BlueprintError, match=r"Applied\.reason: null is not an answer"):
        answered(Applied, {"again": None, "known": True, "reason": None}, "direct")


def test_the_type_of_a_conditional_query_admits_none():
    assert {"type": "null"} in Applied.response_schema()["properties"]["missing"]["anyOf"]
    for annotation in (int, Literal["a"], list[int | None], Option):
        with pytest.raises(errors.BlueprintDefinitionError, match=r"Asked\.x has when=.*\| None"):
            defined(annotation, respond("X?", when=lambda _: True))
    for annotation in (int | None, Literal["a", None], Option | None):
        assert answered(defined(annotation, respond("X?", when=lambda _: False)), {"x": None}).x is None


# Verification


def test_a_verification_that_fails_is_told_with_its_question_and_answer():
    answer = OnBudget(
        diet=[], in_range=[], budget=1, answer="", table="", fits_everyone=False, within_budget=False
    )
    assert [(one.blueprint, one.query) for one in answer.unmet()] == [
        ("OnBudget", "fits_everyone"),
        ("OnBudget", "within_budget"),
    ]
    assert str(answer.unmet()[0]) == (
        'OnBudget.fits_everyone: "Does the answer respect every diet?" was answered False, which must be True'
    )


def test_a_verification_may_be_a_predicate_none_or_conditional():
    class Checked(ARQ):
        cites: bool = respond("Does it cite?")
        score: int = verify("How good is it?", must_be=lambda score: score >= 7)
        flaw: str | None = verify("What is wrong with it?", must_be=None)
        cited: bool | None = verify("Are its sources real?", must_be=True, when=lambda a: a.cites)

    assert Checked(cites=False, score=7, flaw=None, cited=False).unmet() == []
    bad = Checked(cites=True, score=6, flaw="all", cited=False).unmet()
    assert [one.query for one in bad] == ["score", "flaw", "cited"]
    assert "not acceptable" in str(bad[0])


# Modes


def test_a_mode_asks_for_the_response_alone_at_every_depth():
    for mode, first in (("cot", ["reasoning"]), ("direct", [])):
        schema = Batch.response_schema(mode)
        assert_strict(schema)
        assert list(schema["properties"]) == [*first, "first", "others", "held"]
        assert list(schema["$defs"]["Judgement"]["properties"]) == ["score"]
        assert list(schema["$defs"]["Holder"]["properties"]) == ["label", "judgement"]
        assert schema["description"] == "Judge each guideline."
    answer = answered(
        Batch,
        {"first": {"score": 3}, "others": [None, {"score": 4}], "held": {"judgement": {"score": 5}}},
        "direct",
    )
    assert isinstance(answer, Batch)
    assert isinstance(answer.held, Holder)
    assert (answer.first.score, answer.others[1].score, answer.held.judgement.score) == (3, 4, 5)
    assert answer.model_dump()["first"] == {"score": 3}
    assert copy.deepcopy(answer) == answer
    assert answer.unmet() == []


def test_a_wrong_response_is_refused_in_every_mode():
    for first in ({"score": 11}, {"score": 1, "applies": True}):
        with pytest.raises(errors.BlueprintError, match=r"Batch\.first"):
            answered(Batch, {"first": first, "others": [], "held": None}, "direct")


def test_a_query_that_was_not_asked_says_so_when_it_is_read():
    answer = answered(Judgement, {"score": 3}, "direct")
    assert not hasattr(answer, "applies")
    with pytest.raises(AttributeError, match=r"Judgement\.applies was not asked"):
        _ = answer.applies


def test_recursive_blueprints_are_reduced_at_every_depth():
    for mode in ("cot", "direct"):
        assert_strict(Book.response_schema(mode))
        assert list(Book.response_schema(mode)["$defs"]["Book"]["properties"]) == ["title", "author"]
    value = {"title": "T", "author": {"books": [{"title": "U", "author": None}]}}
    assert answered(Book, value, "direct").model_dump() == value


def test_a_response_field_named_reasoning_keeps_its_name():
    blueprint = create_model("Tools", __base__=ARQ, reasoning=(int, respond("The tool named reasoning.")))
    assert keys(blueprint, "cot") == ["reasoning_", "reasoning"]
    model = ScriptedChatModel([{"reasoning_": "So.", "reasoning": 3}])
    answer = Reasoner(model).ask(blueprint, [HumanMessage("?")], mode="cot")
    assert (answer.reasoning, answer.value.reasoning) == ("So.", 3)


def test_config_validators_and_methods_of_a_blueprint_hold_in_every_mode():
    class Named(ARQ):
        model_config = ConfigDict(str_strip_whitespace=True)

        doubt: str = query("Any doubt?")
        name: Annotated[str, AfterValidator(str.title)] = respond("The name.", max_length=10)
        code: str = respond("The code.")

        @field_validator("code", "doubt")
        @classmethod
        def _upper(cls, value: str) -> str:
            return value.upper()

        @field_validator("*", mode="before")
        @classmethod
        def _not_empty(cls, value: Any) -> Any:
            if value == "":
                raise ValueError("it is empty")
            return value

        def label(self) -> str:
            return f"{self.name}/{self.code}"

    for mode, thought in (("cot", {"reasoning": "So."}), ("direct", {})):
        assert answered(Named, {**thought, "name": " ada ", "code": "x"}, mode).label() == "Ada/X"
        for wrong in ({"name": "x" * 11}, {"code": ""}, {"doubt": "none"}):
            with pytest.raises(errors.BlueprintError):
                answered(Named, {**thought, "name": "ada", "code": "x", **wrong}, mode)


def test_a_union_of_blueprints_is_told_apart_in_every_mode():
    class Cat(ARQ):
        fur: str = query("Its fur?")
        kind: Literal["cat"] = respond("cat")

    class Dog(ARQ):
        kind: Literal["dog"] = respond("dog")

    class Owner(ARQ):
        pet: Cat | Dog = respond("The pet.", discriminator="kind")

    assert_strict(Owner.response_schema("direct"))
    assert type(answered(Owner, {"pet": {"kind": "cat"}}, "direct").pet) is Cat
    assert answered(Owner, {"pet": {"kind": "dog"}}).pet == Dog(kind="dog")


def test_an_unknown_mode_is_an_error():
    with pytest.raises(errors.InputError, match="mode is 'fast'"):
        Batch.response_schema("fast")


# Any blueprint


@settings(max_examples=30)
@given(made=blueprints(), mode=st.sampled_from(MODES), data=st.data())
def test_any_blueprint_is_strict_ordered_and_reads_its_answers_in_each_mode(
    made: RandomBlueprint, mode: Any, data: st.DataObject
) -> None:
    schema = made.blueprint.response_schema(mode)
    assert_strict(schema)
    assert list(schema["properties"]) == made.order(mode)
    value = data.draw(made.answers(mode))
    answer = answered(made.blueprint, value, mode)
    text = json.loads(answer.model_dump_json())
    if mode == "cot":
        text = {made.order(mode)[0]: value[made.order(mode)[0]], **text}
    assert describes(schema, text)
    assert answered(made.blueprint, text, mode) == copy.deepcopy(answer)
