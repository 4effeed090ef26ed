from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import weakref
from abc import ABC
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from threading import Barrier
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    ValidationError,
    ValidationInfo,
    create_model,
    field_validator,
    model_validator,
)
from typing_extensions import TypeAliasType, TypedDict

from arq_graph.errors import BlueprintDefinitionError, InputError
from arq_graph.reasoning.annotations import mentions, replaced
from arq_graph.reasoning.blueprint import ARQ, Mode, query, reinstate, respond, verify
from tests.reasoning.strict_subset import assert_strict

T = TypeVar("T")
REDUCED: tuple[Mode, ...] = ("cot", "direct")


class Judgement(ARQ):
    """Judge one guideline."""

    condition: str = reinstate("The condition.")
    applies: bool = query("Does it apply?")
    score: int = respond("How much, 1 to 10?", ge=1, le=10)


class Batch(ARQ):
    """Judge each guideline."""

    topic: str = reinstate("The topic.")
    first: Judgement = respond("The first.")
    others: list[Judgement | None] = respond("The others.")
    complete: bool = verify("Is none left out?", must_be=True)


class Holder(BaseModel):
    """Holds a judgement."""

    label: str = "none"
    judgement: Judgement

    def shout(self) -> str:
        return self.label.upper()


class Held(ARQ):
    note: str = query("A note.")
    holder: Holder | None = respond("The holder.")


class Part(ARQ):
    note: str = query("What is this?")
    whole: Whole | None = respond("What it is a part of.")


class Whole(ARQ):
    parts: list[Part] = respond("Its parts.")
    tree: Tree = respond("Its tree.")
    size: int = query("How many parts?")


class Tree(BaseModel):
    left: Tree | None
    leaves: list[Part] = []


def names(blueprint: type[BaseModel]) -> list[str]:
    return list(blueprint.model_fields)


def field_type(blueprint: type[BaseModel], name: str) -> Any:
    return blueprint.model_fields[name].annotation


def asked(annotation: Any) -> type[ARQ]:
    fields: dict[str, Any] = {"q": (str, query("Q?")), "x": (annotation, respond("X?"))}
    return create_model("Asked", __base__=ARQ, **fields)


# Fields -----------------------------------------------------------------------------------------------------


def test_arq_mode_is_the_blueprint_itself() -> None:
    assert Batch.in_mode("arq") is Batch


def test_cot_has_free_reasoning_before_the_response() -> None:
    assert names(Batch.in_mode("cot")) == ["reasoning", "first", "others"]
    assert list(Batch.response_schema("cot")["properties"]) == ["reasoning", "first", "others"]


def test_direct_has_the_response_alone() -> None:
    assert names(Batch.in_mode("direct")) == ["first", "others"]


@pytest.mark.parametrize("mode", REDUCED)
def test_blueprints_inside_the_response_are_reduced_without_reasoning_of_their_own(mode: Mode) -> None:
    schema = Batch.response_schema(mode)
    assert_strict(schema)
    assert list(schema["$defs"]["Judgement"]["properties"]) == ["score"]
    answer = Batch.in_mode(mode).model_validate(
        {"first": {"score": 3}, "others": [None, {"score": 4}]}
        | ({"reasoning": "So."} if mode == "cot" else {})
    )
    assert answer.first.score == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", REDUCED)
def test_a_variant_has_the_name_docstring_and_module_of_its_blueprint(mode: Mode) -> None:
    variant = Batch.in_mode(mode)
    assert (variant.__name__, variant.__doc__, variant.__module__) == ("Batch", Batch.__doc__, __name__)
    assert Batch.response_schema(mode)["description"] == "Judge each guideline."
    assert Batch.response_schema(mode)["$defs"]["Judgement"]["description"] == "Judge one guideline."


def test_a_mode_is_made_once() -> None:
    assert Batch.in_mode("cot") is Batch.in_mode("cot")
    assert Batch.in_mode("cot") is not Batch.in_mode("direct")
    assert Batch.in_mode("direct").model_fields["first"].annotation is Judgement.in_mode("direct")


def test_a_mode_is_made_once_by_many_threads() -> None:
    fields: dict[str, Any] = {f"G{n}": (asked(Judgement), respond("One of them.")) for n in range(20)}
    blueprint = create_model("Large", __base__=ARQ, **fields)
    together = Barrier(8)

    def variant(_: int) -> type[ARQ]:
        together.wait()
        return blueprint.in_mode("cot")

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(variant, range(8)))) == 1


def test_a_variant_leads_back_to_its_blueprint() -> None:
    for mode in REDUCED:
        assert Batch.in_mode(mode).in_mode("arq") is Batch
        assert Batch.in_mode(mode).in_mode("direct") is Batch.in_mode("direct")


def test_a_blueprint_made_in_code_does_not_outlive_its_use() -> None:
    blueprint = asked(Judgement)
    for mode in REDUCED:
        blueprint.response_schema(mode)
    gone = weakref.ref(blueprint)
    del blueprint
    gc.collect()
    assert gone() is None


def test_a_subclass_has_modes_of_its_own() -> None:
    Batch.in_mode("direct")

    class Larger(Batch):
        last: Judgement = respond("The last.")

    assert names(Larger.in_mode("direct")) == ["first", "others", "last"]


def test_a_response_field_named_reasoning_keeps_its_name() -> None:
    blueprint = create_model("Tools", __base__=ARQ, reasoning=(int, respond("The tool named reasoning.")))
    assert names(blueprint.in_mode("cot")) == ["reasoning_", "reasoning"]
    assert names(blueprint.in_mode("direct")) == ["reasoning"]


def test_an_unknown_mode_is_an_error() -> None:
    with pytest.raises(InputError, match="'fast' is not a mode"):
        Batch.in_mode("fast")  # type: ignore[arg-type]


def test_there_is_nothing_to_verify_without_queries() -> None:
    assert Judgement.in_mode("direct").model_validate({"score": 1}).unmet() == []


# Validation -------------------------------------------------------------------------------------------------


class Named(ARQ):
    model_config = ConfigDict(str_strip_whitespace=True)

    doubt: str = query("Any doubt?")
    name: Annotated[str, AfterValidator(str.title)] = respond("The name.", max_length=10)
    code: str = respond("The code.")
    other: str = respond("Another code.")

    @field_validator("code", "doubt")
    @classmethod
    def _upper(cls, value: str) -> str:
        return value.upper()

    @field_validator("*", mode="before")
    @classmethod
    def _not_empty(cls, value: Any, info: ValidationInfo) -> Any:
        if value == "":
            raise ValueError(f"{info.field_name} is empty")
        return value

    @field_validator("other", mode="wrap")
    @classmethod
    def _as_code(cls, value: Any, handler: Any, info: ValidationInfo) -> str:
        return f"{info.data.get('code')}-{handler(value)}"


@pytest.mark.parametrize("mode", REDUCED)
def test_constraints_config_and_validators_of_the_response_hold_in_every_mode(mode: Mode) -> None:
    variant = Named.in_mode(mode)
    thought = {"reasoning": ""} if mode == "cot" else {}
    answer = variant.model_validate(thought | {"name": " ada ", "code": "x", "other": "y"})
    assert answer.model_dump(exclude={"reasoning"}) == {"name": "Ada", "code": "X", "other": "X-y"}
    for wrong in ({"name": "x" * 11}, {"code": ""}, {"name": ""}, {"doubt": "none"}):
        with pytest.raises(ValidationError):
            variant.model_validate(thought | {"name": "ada", "code": "x", "other": "y"} | wrong)


def test_a_validator_of_a_subclass_replaces_the_inherited_one_in_every_mode() -> None:
    class Lower(Named):
        @field_validator("code", "doubt")
        @classmethod
        def _upper(cls, value: str) -> str:
            return value.lower()

    answer = Lower.in_mode("direct").model_validate({"name": "a", "code": "X", "other": "y"})
    assert answer.model_dump()["code"] == "x"


def test_a_model_validator_needs_the_whole_answer_and_stays_with_arq() -> None:
    class Consistent(ARQ):
        applies: bool = query("Does it apply?")
        act: bool = respond("Act?")

        @model_validator(mode="after")
        def _agree(self) -> Consistent:
            if self.applies != self.act:
                raise ValueError("act as it applies")
            return self

    with pytest.raises(ValidationError, match="act as it applies"):
        Consistent(applies=True, act=False)
    assert Consistent.in_mode("direct").model_validate({"act": False}).model_dump() == {"act": False}


def test_a_discriminator_in_the_response_works_in_every_mode() -> None:
    class Cat(ARQ):
        fur: str = query("Its fur?")
        kind: Literal["cat"] = respond("cat")

    class Dog(ARQ):
        kind: Literal["dog"] = respond("dog")

    class Owner(ARQ):
        pet: Cat | Dog = respond("The pet.", discriminator="kind")

    for mode in REDUCED:
        assert_strict(Owner.response_schema(mode))
    answer = Owner.in_mode("direct").model_validate({"pet": {"kind": "cat"}})
    assert type(answer.pet) is Cat.in_mode("direct")  # type: ignore[attr-defined]


def test_a_discriminator_that_is_no_response_is_named() -> None:
    class Cat(ARQ):
        kind: Literal["cat"] = query("cat")
        name: str = respond("Its name.")

    class Dog(ARQ):
        kind: Literal["dog"] = query("dog")
        name: str = respond("Its name.")

    class Owner(ARQ):
        pet: Cat | Dog = respond("The pet.", discriminator="kind")

    with pytest.raises(BlueprintDefinitionError, match=r"Owner cannot be asked in mode 'direct'.*kind"):
        Owner.in_mode("direct")


# Conditions -------------------------------------------------------------------------------------------------


class Conditional(ARQ):
    asked: bool = query("Was it asked?")
    known: bool = respond("Is it known?")
    parts: list[Judgement] = respond("Judgements.")
    by_query: str | None = respond("A.", when=lambda a: a.asked)
    by_response: str | None = respond("B.", when=lambda a: a.known)
    by_nested_query: str | None = respond("C.", when=lambda a: any(part.applies for part in a.parts))


@pytest.mark.parametrize("mode", REDUCED)
def test_a_condition_on_a_query_counts_as_false_where_there_are_no_queries(mode: Mode) -> None:
    answer: dict[str, Any] = {"known": False, "parts": [{"score": 1}]}
    answer |= {"by_query": None, "by_response": None, "by_nested_query": None}
    if mode == "cot":
        answer["reasoning"] = "So."
    Conditional.in_mode(mode).model_validate(answer)
    with pytest.raises(ValidationError) as raised:
        Conditional.in_mode(mode).model_validate(answer | {"known": True})
    assert [error["loc"] for error in raised.value.errors()] == [("by_response",)]


def test_a_condition_on_a_query_holds_in_arq_mode() -> None:
    judgement = {"condition": "c", "applies": True, "score": 1}
    with pytest.raises(ValidationError) as raised:
        Conditional.model_validate(
            {
                "asked": True,
                "known": True,
                "parts": [judgement],
                "by_query": None,
                "by_response": None,
                "by_nested_query": None,
            }
        )
    assert len(raised.value.errors()) == 3


def test_a_condition_with_a_mistake_in_it_is_not_hidden() -> None:
    class Mistaken(ARQ):
        x: int | None = respond("X?", when=lambda a: a.no_such_field)

    for mode in ("arq", "direct"):
        with pytest.raises(AttributeError, match="no_such_field"):
            Mistaken.in_mode(mode).model_validate({"x": None})


def test_reading_a_query_of_an_answer_without_queries_says_so() -> None:
    answer: Any = Judgement.in_mode("direct").model_validate({"score": 1})
    with pytest.raises(AttributeError, match=r"answered in mode 'direct', which does not ask 'applies'"):
        _ = answer.applies
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = answer.nothing
    assert getattr(answer, "applies", None) is None


# Members ----------------------------------------------------------------------------------------------------


class Scoring:
    def doubled(self) -> int:
        return 2 * self.score  # type: ignore[attr-defined, no-any-return]


class Rated(Scoring, ARQ):
    LIMIT: ClassVar[int] = 6

    why: str = query("Why?")
    score: int = respond("The score.")

    @property
    def active(self) -> bool:
        return self.score >= self.LIMIT

    @cached_property
    def halved(self) -> float:
        return self.score / 2

    @staticmethod
    def unit() -> str:
        return "points"

    @classmethod
    def worst(cls) -> int:
        return 1


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_methods_and_properties_work_in_every_mode(mode: Mode) -> None:
    variant = Rated.in_mode(mode)
    answer: Any = variant.model_validate(
        {name: 7 if name == "score" else "So." for name in variant.model_fields}
    )
    assert (answer.active, answer.halved, answer.doubled()) == (True, 3.5, 14)
    assert (answer.unit(), answer.worst(), answer.LIMIT) == ("points", 1, 6)


def test_a_subclass_overrides_methods_in_every_mode() -> None:
    class Never(Rated):
        @property
        def active(self) -> bool:
            return False

    answer: Any = Never.in_mode("direct").model_validate({"score": 9})
    assert not answer.active
    assert answer.doubled() == 18


# Where blueprints may stand ---------------------------------------------------------------------------------

Alias = TypeAliasType("Alias", list[Judgement] | None)
GenericAlias = TypeAliasType("GenericAlias", list[T] | None, type_params=(T,))


class Box(BaseModel, Generic[T]):
    content: T


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Judgement, {"score": 1}),
        (Judgement | None, None),
        (Judgement | int, {"score": 1}),
        (list[Judgement], [{"score": 1}]),
        (list[list[Judgement] | None], [[{"score": 1}], None]),
        (tuple[Judgement, ...], [{"score": 1}]),
        (Annotated[Judgement, Field(description="One.")], {"score": 1}),
        (list[Annotated[Judgement, "one"]], [{"score": 1}]),
        (Holder, {"label": "a", "judgement": {"score": 1}}),
        (list[Holder | None], [{"label": "a", "judgement": {"score": 1}}]),
        (RootModel[list[Judgement]], [{"score": 1}]),
        (Box[Judgement], {"content": {"score": 1}}),
        (Box[Box[Judgement]], {"content": {"content": {"score": 1}}}),
        (Alias, [{"score": 1}]),
        (GenericAlias[Judgement], [{"score": 1}]),
        (GenericAlias[int], [1]),
        (Tree, {"left": {"left": None, "leaves": [{"whole": None}]}, "leaves": []}),
        (Literal["a"] | Judgement, "a"),
    ],
)
def test_a_blueprint_is_reduced_wherever_it_stands(annotation: Any, value: Any) -> None:
    blueprint = asked(annotation)
    assert_strict(blueprint.response_schema("direct"))
    variant = blueprint.in_mode("direct")
    answer = variant.model_validate({"x": value})
    assert answer.model_dump(mode="json") == {"x": value}
    assert variant.model_validate_json(answer.model_dump_json()) == answer


def test_a_plain_model_that_holds_a_blueprint_stays_what_it_is() -> None:
    answer: Any = Held.in_mode("direct").model_validate({"holder": {"label": "a", "judgement": {"score": 1}}})
    assert isinstance(answer.holder, Holder)
    assert answer.holder.shout() == "A"
    answer = Held.in_mode("direct").model_validate({"holder": {"judgement": {"score": 1}}})
    assert answer.holder.label == "none"
    assert Held.response_schema("direct")["$defs"]["Holder"]["description"] == "Holds a judgement."


def test_a_plain_model_without_blueprints_is_left_as_it_is() -> None:
    class Plain(BaseModel):
        x: int

    assert field_type(asked(list[Plain]).in_mode("direct"), "x") == list[Plain]


def test_recursive_blueprints_are_reduced_at_every_depth() -> None:
    for blueprint in (Whole, Part):
        for mode in REDUCED:
            schema = blueprint.response_schema(mode)
            assert_strict(schema)
            assert list(schema["$defs"]["Part"]["properties"]) == ["whole"]
            assert list(schema["$defs"]["Whole"]["properties"]) == ["parts", "tree"]
    leaf: dict[str, Any] = {"left": None, "leaves": [{"whole": None}]}
    value = {"parts": [{"whole": {"parts": [], "tree": leaf}}], "tree": leaf}
    assert Whole.in_mode("direct").model_validate(value).model_dump() == value


def test_a_generic_blueprint_is_reduced_with_its_parameter() -> None:
    class Verdict(ARQ, Generic[T]):
        why: list[T] = query("Why?")
        verdict: T = respond("The verdict.")

    assert names(Verdict[Judgement].in_mode("cot")) == ["reasoning", "verdict"]
    assert field_type(Verdict[Judgement].in_mode("cot"), "verdict") is Judgement.in_mode("direct")
    with pytest.raises(BlueprintDefinitionError, match="Verdict is generic"):
        Verdict.in_mode("cot")


class Record(TypedDict):
    judgement: Judgement


@dataclasses.dataclass
class Data:
    judgement: Judgement


Recursive = TypeAliasType("Recursive", "list[Recursive] | Judgement")


@pytest.mark.parametrize("annotation", [Record, Data, list[Data] | None, Recursive])
def test_a_blueprint_that_cannot_be_reduced_where_it_stands_is_named(annotation: Any) -> None:
    blueprint = asked(annotation)
    assert_strict(blueprint.response_schema())
    for mode in REDUCED:
        with pytest.raises(
            BlueprintDefinitionError, match=r"Asked holds Judgement .* Use a BaseModel or an ARQ"
        ):
            blueprint.response_schema(mode)


class LazyAlias:
    """An alias as Python 3.12 makes it: `type LazyAlias = list[LazyAlias] | Judgement`."""

    @property
    def __value__(self) -> Any:
        return list.__class_getitem__(self) | Judgement


def test_an_alias_that_contains_itself_is_not_followed_for_ever() -> None:
    alias = LazyAlias()
    assert mentions(alias, Judgement)
    assert not mentions(alias, Batch)
    assert replaced(list.__class_getitem__(alias), Judgement, lambda _: int) == list.__class_getitem__(alias)


def test_a_nested_blueprint_without_a_response_cannot_be_reduced() -> None:
    class Context(ARQ, ABC):
        situation: str = reinstate("The situation.")

    with pytest.raises(BlueprintDefinitionError, match="Context has no response"):
        asked(Context).in_mode("direct")


# Copies -----------------------------------------------------------------------------------------------------


def test_answers_of_every_mode_can_be_copied_and_pickled() -> None:
    whole = {"parts": [{"whole": None}], "tree": {"left": None, "leaves": []}}
    answers: list[ARQ] = [
        Judgement.in_mode("direct").model_validate({"score": 1}),
        Judgement.in_mode("cot").model_validate({"reasoning": "So.", "score": 1}),
        Held.in_mode("cot").model_validate({"reasoning": "", "holder": {"judgement": {"score": 1}}}),
        Whole.in_mode("direct").model_validate(whole),
    ]
    for answer in answers:
        assert copy.deepcopy(answer) == answer
        assert copy.copy(answer) == answer
        again = pickle.loads(pickle.dumps(answer))
        assert again == answer
        assert type(again) is type(answer)
        assert again.model_fields_set == answer.model_fields_set
