from __future__ import annotations

import copy
import json
import pickle
import warnings
from abc import ABC
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
    field_validator,
)

from arq_graph.errors import BlueprintDefinitionError
from arq_graph.reasoning.blueprint import ARQ, Mode, Unmet, query, reinstate, respond, verify
from tests.reasoning.strict_subset import assert_strict, describes

T = TypeVar("T")
MODES: tuple[Mode, ...] = ("arq", "cot", "direct")


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


class Node(ARQ):
    note: str = query("What is this?")
    children: list[Node] = respond("Its parts.")


class Author(ARQ):
    books: list[Book] = respond("What they wrote.")
    name: Annotated[str, query("Who?")]


class Book(ARQ):
    title: str = respond("Its title.")
    author: Annotated[Author | None, query("Who wrote it?")]


class Judgement(ARQ, Generic[T]):
    verdict: T = respond("The verdict.")
    why: list[T] = query("What speaks for it?")


def recommendation(**changes: Any) -> Recommendation:
    option = Option(fits=True, name="Lemon", distance=1)
    values: dict[str, Any] = {
        "fits_everyone": True,
        "answer": "Lemon.",
        "diet": ["vegan"],
        "in_range": [option],
    }
    return Recommendation(**(values | changes))


def defined(annotation: Any, field: Any = None) -> type[ARQ]:
    """A blueprint with one field `x` of a type."""
    fields: dict[str, Any] = {"x": (annotation, respond("X?") if field is None else field)}
    return create_model("Asked", __base__=ARQ, **fields)


# Order ------------------------------------------------------------------------------------------------------


def test_the_schema_is_ordered_by_stage_whatever_the_order_of_definition() -> None:
    schema = Recommendation.response_schema()
    assert list(schema["properties"]) == ["diet", "in_range", "answer", "fits_everyone"]
    assert schema["required"] == ["diet", "in_range", "answer", "fits_everyone"]


def test_a_domain_query_of_a_subclass_lands_in_its_stage_after_the_inherited_ones() -> None:
    order = ["diet", "in_range", "budget", "answer", "table", "fits_everyone", "within_budget"]
    assert list(OnBudget.response_schema()["properties"]) == order


def test_a_redefined_field_keeps_its_place_within_its_stage() -> None:
    class Stricter(OnBudget):
        diet: list[str] = reinstate("Every diet, and allergies first.", min_length=1)

    assert list(Stricter.response_schema()["properties"]) == list(OnBudget.response_schema()["properties"])
    assert (
        Stricter.response_schema()["properties"]["diet"]["description"] == "Every diet, and allergies first."
    )


def test_a_field_that_is_redefined_in_another_stage_moves_there() -> None:
    class Asking(Recommendation):
        fits_everyone: bool = query("Would anything fit everyone?")

    assert list(Asking.response_schema()["properties"]) == ["fits_everyone", "diet", "in_range", "answer"]


def test_several_base_classes_are_ordered_by_stage() -> None:
    class Cost(ARQ, ABC):
        cost: int = query("What does it cost?")
        cheap: bool = verify("Is it cheap?")

    class Both(Recommendation, Cost):
        pass

    order = ["cost", "diet", "in_range", "answer", "cheap", "fits_everyone"]
    assert list(Both.response_schema()["properties"]) == order


def test_pydantics_own_schemas_are_in_order_too_also_inside_a_plain_model() -> None:
    order = ["diet", "in_range", "answer", "fits_everyone"]
    for kind in ("validation", "serialization"):
        assert list(Recommendation.model_json_schema(mode=kind)["properties"]) == order
        assert Recommendation.model_json_schema(mode=kind)["required"] == order

    class Message(BaseModel):
        recommendation: Recommendation

    assert list(Message.model_json_schema()["$defs"]["Recommendation"]["properties"]) == order


def test_a_dump_is_in_order_at_every_depth() -> None:
    asked = recommendation()
    assert list(asked.model_dump()) == ["diet", "in_range", "answer", "fits_everyone"]
    assert list(asked.model_dump()["in_range"][0]) == ["distance", "name", "fits"]
    assert asked.model_dump_json() == (
        '{"diet":["vegan"],"in_range":[{"distance":1.0,"name":"Lemon","fits":true}],'
        '"answer":"Lemon.","fits_everyone":true}'
    )


def test_a_dump_takes_what_pydantics_dump_takes() -> None:
    asked = recommendation()
    assert asked.model_dump(include={"fits_everyone", "diet"}) == {"diet": ["vegan"], "fits_everyone": True}
    assert list(asked.model_dump(exclude={"in_range"})) == ["diet", "answer", "fits_everyone"]
    assert asked.model_dump(include={"in_range": {0: {"name"}}}) == {"in_range": [{"name": "Lemon"}]}
    assert TypeAdapter(list[Recommendation]).dump_python([asked]) == [asked.model_dump()]


# Definition -------------------------------------------------------------------------------------------------


def test_a_query_may_stand_in_annotated() -> None:
    assert OnBudget.model_fields["budget"].is_required()
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        OnBudget.model_validate(
            recommendation().model_dump() | {"budget": -1, "within_budget": True, "table": "3"}
        )


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        (int, "Asked.x has no stage"),
        ((int, Field(description="X?")), "Asked.x has no stage"),
        (Annotated[int, respond("X?")] | None, "Asked.x has no stage"),
        ((Annotated[int, query("X?")], respond("X?")), "Asked.x is asked twice"),
        ((Annotated[int, Field(default=1)], respond("X?")), "Asked.x has a default"),
        ((Annotated[int, Field(alias="y")], respond("X?")), "Asked.x has an alias"),
        ((Annotated[int, Field(serialization_alias="y")], respond("X?")), "Asked.x has an alias"),
        ((int, query("X?")), "Asked has no response"),
        ((int, verify("X?")), "Asked has no response"),
    ],
)
def test_a_wrong_field_is_named_when_the_class_is_made(field: Any, problem: str) -> None:
    fields: dict[str, Any] = {"x": field}
    with pytest.raises(BlueprintDefinitionError, match=problem):
        create_model("Asked", __base__=ARQ, **fields)


def test_a_default_beside_the_stage_is_refused() -> None:
    with pytest.raises(BlueprintDefinitionError, match="x has a default"):

        class Asked(ARQ):
            x: Annotated[int, respond("X?")] = 3


def test_an_alias_generator_is_refused() -> None:
    with pytest.raises(BlueprintDefinitionError, match="x has an alias"):

        class Asked(ARQ):
            model_config = ConfigDict(alias_generator=str.upper)
            x: int = respond("X?")


def test_an_empty_blueprint_is_refused() -> None:
    with pytest.raises(BlueprintDefinitionError, match="Nothing has no response"):

        class Nothing(ARQ):
            pass


@pytest.mark.parametrize("stage", [reinstate, query, respond, verify])
@pytest.mark.parametrize("question", ["", "  \n", None, 3])
def test_a_query_needs_a_question(stage: Callable[[Any], Any], question: Any) -> None:
    with pytest.raises(BlueprintDefinitionError, match="needs a question"):
        stage(question)


@pytest.mark.parametrize("stage", [reinstate, query, respond, verify])
@pytest.mark.parametrize("keyword", ["default", "default_factory", "alias", "description", "minimum"])
def test_a_query_takes_no_keyword_that_is_no_constraint(stage: Callable[..., Any], keyword: str) -> None:
    with pytest.raises(BlueprintDefinitionError, match=keyword):
        stage("X?", **{keyword: 1})


@pytest.mark.parametrize("name", ["unmet", "response_schema", "model_fields"])
@pytest.mark.filterwarnings("ignore:Field name:UserWarning")
def test_a_field_cannot_take_the_place_of_a_method(name: str) -> None:
    fields: dict[str, Any] = {name: (int, respond("X?"))}
    with pytest.raises(BlueprintDefinitionError, match="name of a method"):
        create_model("Asked", __base__=ARQ, **fields)


def test_an_unknown_field_is_an_invalid_answer() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        recommendation(mood="good")


# Types ------------------------------------------------------------------------------------------------------


class NotJson:
    pass


@pytest.mark.parametrize(
    ("annotation", "where", "reason"),
    [
        (dict[str, int], "Asked.x", "open dictionary"),
        (dict, "Asked.x", "open dictionary"),
        (list[dict[str, Option]], r"Asked.x\[\]", "a list of models"),
        (Any, "Asked.x", "any type"),
        (object, "Asked.x", "any type"),
        (list, r"Asked.x\[\]", "any type"),
        (list[Any] | None, r"Asked.x\[\]", "any type"),
        (tuple[int, str], "Asked.x", "tuple"),
        (set[int], "Asked.x", "use a list"),
        (frozenset[int], "Asked.x", "use a list"),
        (bytes, "Asked.x", "use a string"),
        (Callable[[int], int], "Asked.x", "no JSON form"),
        (NotJson, "Asked.x", "NotJson"),
        (list[NotJson], "Asked.x", "NotJson"),
        (Annotated[int, Field(json_schema_extra={"not": {}})], "Asked.x", "must not be"),
    ],
)
def test_a_type_outside_the_subset_is_refused_with_class_field_and_what_to_use(
    annotation: Any, where: str, reason: str
) -> None:
    with pytest.raises(BlueprintDefinitionError, match=rf"^{where}\b.*: .*{reason}|^{where}: .*{reason}"):
        defined(annotation)


def test_a_type_outside_the_subset_is_found_inside_a_plain_model() -> None:
    class Line(BaseModel):
        extras: dict[str, int] = {}

    class Order(BaseModel):
        lines: list[Line]

    with pytest.raises(BlueprintDefinitionError, match=r"^Asked\.x\.lines\[\]\.extras: an open dictionary"):
        defined(Order | None)


def test_a_model_that_takes_any_field_is_refused() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        x: int

    with pytest.raises(BlueprintDefinitionError, match="open dictionary"):
        defined(Open)


@pytest.mark.parametrize(
    ("name", "problem"), [("größe", "größe"), ("a b", "a b"), ("x" * 65, "x" * 65), ("a/b", "a/b")]
)
def test_a_property_name_that_a_provider_refuses_is_refused(name: str, problem: str) -> None:
    fields: dict[str, Any] = {name: (int, respond("X?"))}
    with pytest.raises(BlueprintDefinitionError, match=rf"Asked\.{problem}: a property name"):
        create_model("Asked", __base__=ARQ, **fields)


class Colour(Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


@pytest.mark.parametrize(
    ("annotation", "value", "schema"),
    [
        (datetime, "2024-02-29T12:00:00Z", {"type": "string"}),
        (date, "2024-02-29", {"type": "string"}),
        (Decimal, "0.10", {"type": "string"}),
        (UUID, "00000000-0000-0000-0000-000000000001", {"type": "string"}),
        (Colour, "red", {"anyOf": [{"$ref": "#/$defs/Colour"}]}),
        (Literal["a"], "a", {"type": "string", "enum": ["a"]}),
        (Literal["a", 1, None], 1, None),
        (int | None, None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (tuple[int, ...], [1, 2], {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_types_are_asked_in_the_subset_and_read_by_pydantic(annotation: Any, value: Any, schema: Any) -> None:
    blueprint = defined(annotation)
    asked = blueprint.response_schema()
    assert_strict(asked)
    assert describes(asked, {"x": value})
    assert schema is None or asked["properties"]["x"] == {"description": "X?", **schema}
    answer = blueprint.model_validate_json(json.dumps({"x": value}))
    assert blueprint.model_validate_json(answer.model_dump_json()) == answer


def test_constraints_are_checked_and_not_in_the_schema() -> None:
    blueprint = defined(list[str], respond("X?", min_length=1, max_length=2))
    assert blueprint.response_schema()["properties"]["x"] == {
        "description": "X?",
        "type": "array",
        "items": {"type": "string"},
    }
    for wrong in ([], ["a", "b", "c"]):
        with pytest.raises(ValidationError):
            blueprint.model_validate({"x": wrong})


def test_docstrings_and_questions_are_in_the_schema() -> None:
    schema = Recommendation.response_schema()
    assert schema["description"] == "Recommend one restaurant to the group."
    assert schema["$defs"]["Option"]["description"] == "One restaurant."
    assert schema["properties"]["diet"]["description"] == "Every dietary constraint, word for word."
    assert "description" not in OnBudget.response_schema()


def test_a_default_inside_a_plain_model_is_asked_and_may_be_left_out() -> None:
    class Plain(BaseModel):
        x: int = 3

    blueprint = defined(Plain)
    assert blueprint.response_schema()["$defs"]["Plain"]["required"] == ["x"]
    assert blueprint.model_validate({"x": {}}).model_dump() == {"x": {"x": 3}}


def test_the_schema_is_the_same_each_time_and_a_caller_cannot_change_it() -> None:
    first = Recommendation.response_schema()
    text = json.dumps(first)
    first["properties"].clear()
    first["required"].append("x")
    assert json.dumps(Recommendation.response_schema()) == text


# Conditional queries ----------------------------------------------------------------------------------------


class Applied(ARQ):
    applied: Literal["no", "partially"] = query("Was it applied before?")
    missing: str | None = query("What is missing?", when=lambda a: a.applied == "partially")
    again: bool | None = respond("Apply it again?", when=lambda a: a.missing is not None)


def test_null_is_no_answer_where_a_query_applies() -> None:
    with pytest.raises(ValidationError) as raised:
        Applied(applied="partially", missing=None, again=None)
    (error,) = raised.value.errors()
    assert error["loc"] == ("missing",)
    assert "What is missing?" in error["msg"]


def test_every_query_that_is_wrongly_null_is_named() -> None:
    class Two(ARQ):
        x: int | None = query("X?", when=lambda _: True)
        y: int | None = respond("Y?", when=lambda _: True)

    with pytest.raises(ValidationError) as raised:
        Two(x=None, y=None)
    assert [error["loc"] for error in raised.value.errors()] == [("x",), ("y",)]


def test_any_value_is_tolerated_where_a_query_does_not_apply() -> None:
    assert Applied(applied="no", missing=None, again=None).missing is None
    assert Applied(applied="no", missing="nothing", again=True).missing == "nothing"


def test_a_conditional_query_is_nullable_in_the_schema() -> None:
    missing = Applied.response_schema()["properties"]["missing"]
    assert missing["anyOf"] == [{"type": "string"}, {"type": "null"}]


@pytest.mark.parametrize("annotation", [int, Literal["a", "b"], list[int | None], Option])
def test_a_conditional_query_whose_type_does_not_admit_none_is_refused(annotation: Any) -> None:
    with pytest.raises(BlueprintDefinitionError, match=r"Asked\.x has when=.*\| None"):
        defined(annotation, respond("X?", when=lambda _: True))


@pytest.mark.parametrize("annotation", [int | None, Literal["a", None], None, Option | None])
def test_a_conditional_querys_type_may_admit_none_in_any_way(annotation: Any) -> None:
    blueprint = defined(annotation, respond("X?", when=lambda _: False))
    assert blueprint.model_validate({"x": None}).model_dump() == {"x": None}


def test_the_condition_of_a_nested_query_sees_its_own_answer_and_the_error_its_place() -> None:
    class Batch(ARQ):
        items: list[Applied] = respond("Each.")

    with pytest.raises(ValidationError) as raised:
        Batch.model_validate(
            {
                "items": [
                    {"applied": "no", "missing": None, "again": None},
                    {"applied": "partially", "missing": None, "again": None},
                ]
            }
        )
    assert [error["loc"] for error in raised.value.errors()] == [("items", 1, "missing")]


# Verification -----------------------------------------------------------------------------------------------


def test_a_verification_that_fails_is_named_with_its_question_value_and_what_it_must_be() -> None:
    (unmet,) = recommendation(fits_everyone=False).unmet()
    assert unmet == Unmet(
        "Recommendation", "fits_everyone", "Does the answer respect every diet?", False, True
    )
    assert str(unmet) == (
        'Recommendation.fits_everyone: "Does the answer respect every diet?" was answered False, '
        "which must be True"
    )
    assert recommendation().unmet() == []


def test_a_verification_may_be_a_predicate() -> None:
    blueprint = create_model(
        "Scored",
        __base__=ARQ,
        answer=(str, respond("The answer.")),
        score=(int, verify("How good is it?", must_be=lambda score: score >= 7)),
    )
    assert blueprint.model_validate({"answer": "", "score": 7}).unmet() == []
    (unmet,) = blueprint.model_validate({"answer": "", "score": 6}).unmet()
    assert "not acceptable" in str(unmet)


def test_a_verification_must_be_none_if_so_written() -> None:
    blueprint = create_model(
        "Checked",
        __base__=ARQ,
        answer=(str, respond("The answer.")),
        flaw=(str | None, verify("What is wrong with it?", must_be=None)),
    )
    assert blueprint.model_validate({"answer": "", "flaw": None}).unmet() == []
    assert [one.query for one in blueprint.model_validate({"answer": "", "flaw": "all"}).unmet()] == ["flaw"]


def test_a_verification_that_does_not_apply_is_not_unmet() -> None:
    class Checked(ARQ):
        cites: bool = respond("Does it cite?")
        cited: bool | None = verify("Are its sources real?", must_be=True, when=lambda a: a.cites)

    assert Checked(cites=False, cited=None).unmet() == []
    assert Checked(cites=False, cited=False).unmet() == []
    assert [one.query for one in Checked(cites=True, cited=False).unmet()] == ["cited"]


def test_verifications_inside_an_answer_are_not_those_of_the_answer() -> None:
    class Strict(Option):
        fits: bool = verify("Does it fit?", must_be=True)

    class Choice(ARQ):
        best: Strict = respond("The best.")

    assert Choice(best=Strict(fits=False, name="Lemon", distance=1)).unmet() == []


def test_verifications_are_listed_in_order_with_inherited_ones_first() -> None:
    answer = OnBudget.model_validate(
        recommendation(fits_everyone=False).model_dump() | {"budget": 1, "within_budget": False, "table": "1"}
    )
    assert [one.query for one in answer.unmet()] == ["fits_everyone", "within_budget"]
    assert {one.blueprint for one in answer.unmet()} == {"OnBudget"}


# Kinds of classes -------------------------------------------------------------------------------------------


def test_a_recursive_blueprint_refers_to_itself_through_defs() -> None:
    schema = Node.response_schema()
    assert_strict(schema)
    assert list(schema["$defs"]) == ["Node"]
    tree = Node(note="root", children=[Node(note="leaf", children=[])])
    assert Node.model_validate_json(tree.model_dump_json()) == tree


def test_blueprints_that_refer_to_each_other_are_ordered_by_stage_everywhere() -> None:
    for blueprint in (Author, Book):
        schema = blueprint.response_schema()
        assert_strict(schema)
        assert list(schema["$defs"]["Author"]["properties"]) == ["name", "books"]
        assert list(schema["$defs"]["Book"]["properties"]) == ["author", "title"]
    book = Book.model_validate({"title": "T", "author": {"books": [], "name": "N"}})
    assert list(book.model_dump()["author"]) == ["name", "books"]


def test_a_forward_reference_that_leads_nowhere_is_named_when_asked() -> None:
    class Unfinished(ARQ):
        x: Nowhere = respond("X?")  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(BlueprintDefinitionError, match="Unfinished refers to 'Nowhere'"):
        Unfinished.response_schema()


def test_a_wrong_field_behind_a_forward_reference_is_named_when_it_is_resolved() -> None:
    class Late(ARQ):
        x: Later = respond("X?")
        y: int

    class Later(ARQ):
        z: int = respond("Z?")

    with pytest.raises(BlueprintDefinitionError, match=r"Late\.y has no stage"):
        Late.model_rebuild()


def test_a_generic_blueprint_is_asked_with_its_parameter() -> None:
    schema = Judgement[bool].response_schema()
    assert_strict(schema)
    assert list(schema["properties"]) == ["why", "verdict"]
    assert Judgement[Option](verdict=Option(fits=True, name="L", distance=0), why=[]).verdict.name == "L"


def test_a_generic_blueprint_without_its_parameter_cannot_be_asked() -> None:
    with pytest.raises(BlueprintDefinitionError, match="Judgement is generic"):
        Judgement.response_schema()
    with pytest.raises(BlueprintDefinitionError, match="open dictionary"):
        Judgement[dict[str, int]]


def test_a_blueprint_made_in_code_takes_ids_as_field_names() -> None:
    fields: dict[str, Any] = {
        name: (Option, respond(f"{name}?")) for name in ("G1", "G-2", "a.b", "9", "class")
    }
    batch = create_model("Batch", __base__=ARQ, __doc__="Judge each.", **fields)
    schema = batch.response_schema()
    assert_strict(schema)
    assert list(schema["properties"]) == ["G1", "G-2", "a.b", "9", "class"]
    answer = batch.model_validate({n: {"fits": True, "name": n, "distance": 0} for n in schema["properties"]})
    assert [getattr(answer, name).name for name in schema["properties"]] == list(schema["properties"])


def test_a_class_that_only_holds_queries_says_so_with_abc() -> None:
    class Contextual(ARQ, ABC):
        situation: str = reinstate("The situation.")

    class Reply(Contextual):
        text: str = respond("The reply.")

    assert list(Reply.response_schema()["properties"]) == ["situation", "text"]
    with pytest.raises(BlueprintDefinitionError, match="Another has no response"):

        class Another(Contextual):
            mood: str = query("The mood?")


def test_a_discriminated_union_is_a_plain_choice() -> None:
    class Cat(ARQ):
        kind: Literal["cat"] = respond("cat")
        lives: int = respond("Lives left.")

    class Dog(ARQ):
        kind: Literal["dog"] = respond("dog")

    class Owner(ARQ):
        pet: Cat | Dog = respond("The pet.", discriminator="kind")

    schema = Owner.response_schema()
    assert_strict(schema)
    assert schema["properties"]["pet"]["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert Owner.model_validate({"pet": {"kind": "dog"}}).pet == Dog(kind="dog")


def test_validators_work_as_in_pydantic() -> None:
    class Named(ARQ):
        first: Annotated[str, AfterValidator(str.strip)] = respond("First name.")
        last: str = respond("Last name.")

        @field_validator("last")
        @classmethod
        def _upper(cls, value: str) -> str:
            return value.upper()

    assert Named(first=" Ada ", last="l").model_dump() == {"first": "Ada", "last": "L"}


def test_an_answer_can_be_copied_and_pickled() -> None:
    answer = recommendation()
    assert copy.deepcopy(answer) == answer
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert answer.model_copy(update={"answer": "No."}).answer == "No."


def test_making_and_asking_a_blueprint_warns_of_nothing() -> None:
    class Plain(BaseModel):
        when: date = date(2024, 1, 1)
        what: object = Field(default=NotJson(), exclude=True, json_schema_extra={"type": "string"})

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        blueprint = defined(Plain | None)
        for mode in MODES:
            blueprint.response_schema(mode)
