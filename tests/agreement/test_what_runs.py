"""The customer agrees to exactly what runs: values as the tool's own model makes them, in a question of code's own."""

import asyncio
from datetime import date
from decimal import Decimal
from enum import Enum
from itertools import count
from typing import Annotated, Any, Self

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command
from pydantic import (
    AfterValidator,
    AliasChoices,
    Base64Str,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    SecretStr,
    computed_field,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from arq_graph import Agent, ScriptedChatModel, create_guided_agent
from arq_graph.errors import InputError
from arq_graph.middleware import GuidelineMiddleware
from tests.agreement.desk import THREAD
from tests.agreement.shop import Shop
from tests.brain import brain


class Colour(Enum):
    RED = "red"


class Part(BaseModel):
    sku: str = Field(validation_alias="partNo")
    quantity: int = 1


class Everything(BaseModel):
    on: date
    price: Decimal
    colour: Colour
    parts: list[Part]
    tags: set[str] = {"b", "a"}
    setup: Json[dict[str, int]] = Field(default_factory=dict)
    note: Base64Str
    code: SecretStr


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)
    account: str
    amount_cents: int = 100_000


class Named(Camel):
    model_config = ConfigDict(populate_by_name=True)


class Renamed(BaseModel):
    amount: int = Field(validation_alias=AliasChoices("sum", "total"))


class Shipping(BaseModel):
    order: str
    on: date = Field(default_factory=lambda: date(2026, 12, 24))
    express: bool = Field(default_factory=lambda: True)


class Rounding(BaseModel):
    amount: Annotated[float, AfterValidator(lambda value: float(round(value)))]


class Priced(BaseModel):
    amount: float = 5
    limit: Decimal = 7  # type: ignore[assignment]


class Summing(BaseModel):
    net: int
    tax: int = 0

    @model_validator(mode="after")
    def add_tax(self) -> Self:
        self.tax = self.net // 5
        return self

    @computed_field
    def gross(self) -> int:
        return self.net + self.tax


EVERYTHING = {
    "on": "2026-03-01",
    "price": 1.10,
    "colour": "red",
    "parts": [{"partNo": "P-1", "quantity": None}],
    "note": "aGk=",
    "code": "0000",
    "setup": '{"a": 1}',
}
CASES: list[tuple[Any, dict[str, Any], str, dict[str, Any]]] = [
    (
        Shipping,
        {"order": "A-1"},
        'Pay (order: "A-1", on: "2026-12-24", express: yes)',
        {"order": "A-1", "on": date(2026, 12, 24), "express": True},
    ),
    (Rounding, {"amount": 19.6}, "Pay (amount: 20.0)", {"amount": 20.0}),
    (Summing, {"net": 10}, "Pay (net: 10, tax: 2)", {"net": 10, "tax": 2}),
    (
        Camel,
        {"account": "A", "amountCents": 5},
        'Pay (account: "A", amount cents: 5)',
        {"account": "A", "amount_cents": 5},
    ),
    (
        Named,
        {"account": "A"},
        'Pay (account: "A", amount cents: 100000)',
        {"account": "A", "amount_cents": 100_000},
    ),
    (Priced, {}, 'Pay (amount: 5.0, limit: "7")', {"amount": 5.0, "limit": 7}),
    (Renamed, {"sum": 3}, "Pay (sum: 3)", {"amount": 3}),
]


@pytest.mark.parametrize(("args_schema", "proposed", "question", "runs"), CASES)
def test_the_question_shows_the_values_that_the_tool_makes_and_these_run(
    args_schema, proposed, question, runs
):
    shop = Shop(args_schema, proposed)
    assert shop.ask() == question
    assert shop.ran == []
    shop.say("yes")
    assert shop.ran == [runs]


def test_values_of_every_type_come_back_as_they_were_shown():
    shop = Shop(Everything, EVERYTHING)
    assert shop.ask() == (
        'Pay (on: "2026-03-01", price: "1.1", colour: "red", parts: [{"partNo": "P-1", "quantity": 1}], '
        'tags: ["a", "b"], setup: "{\\"a\\":1}", note: "aGk=", code: "0000")'
    )
    shop.say("yes")
    (ran,) = shop.ran
    assert (ran["price"], ran["parts"][0].sku, ran["tags"]) == (Decimal("1.1"), "P-1", {"a", "b"})
    assert (ran["setup"], ran["note"], ran["code"].get_secret_value()) == ({"a": 1}, "hi", "0000")


def test_a_factory_s_value_is_made_once_and_does_not_hide_that_a_call_is_repeated():
    numbers = count(1)

    class Keyed(BaseModel):
        amount: int
        key: int = Field(default_factory=lambda: next(numbers))

    shop = Shop(Keyed, {"amount": 5}, strategy="react")
    asked = shop.ask()
    key = asked.removesuffix(")").rpartition(" ")[2]
    assert asked == f"Pay (amount: 5, key: {key})"
    shop.say("yes")
    assert shop.ran == [{"amount": 5, "key": int(key)}]


class Doubling(BaseModel):
    amount: Annotated[int, AfterValidator(lambda value: value * 2)]


class Splitting(BaseModel):
    tags: Annotated[Any, AfterValidator(lambda value: value.split(","))]


class Dropping(BaseModel):
    amount: int = Field(exclude=True)


class Overwritten(BaseModel):
    config: str


@pytest.mark.filterwarnings("ignore:the tool 'pay' was not called")
@pytest.mark.filterwarnings("ignore:the tool 'pay' never gets its argument 'config'")
@pytest.mark.parametrize(
    ("args_schema", "proposed", "problem"),
    [
        (Doubling, {"amount": 5}, "change each time they are validated: amount is 10 first, then 20"),
        (Splitting, {"tags": '"a,b"'}, "cannot be validated a second time"),
        (Dropping, {"amount": 5}, "LangChain does not pass amount to the tool"),
        (Overwritten, {"config": "x"}, "LangChain does not pass config to the tool"),
    ],
)
def test_a_call_whose_arguments_cannot_be_shown_as_they_run_is_refused(args_schema, proposed, problem):
    shop = Shop(args_schema, proposed)
    assert "Reply yes" not in shop.say("Pay, please.")
    assert problem in shop.problems[0]
    shop.say("yes")
    assert shop.ran == []


def test_without_an_agreement_such_a_tool_runs_as_ever():
    shop = Shop(Doubling, {"amount": 5})
    model = brain(call={"pay": {"amount": 5}})
    create_guided_agent(model, Agent("Shop", "You help.", tools=[shop.tool]), mode="direct").invoke(
        {"messages": [("user", "Pay.")]}
    )
    assert shop.ran == [{"amount": 10}]


def test_what_the_tool_makes_otherwise_by_the_time_of_the_yes_is_asked_about_again():
    limit = [100]

    class Limited(BaseModel):
        amount: int

        @field_validator("amount")
        @classmethod
        def keep_limit(cls, value: int) -> int:
            return min(value, limit[0])

    shop = Shop(Limited, {"amount": 80})
    assert shop.ask() == "Pay (amount: 80)"
    limit[0] = 50
    assert shop.say("yes").split("\n")[-2] == "Pay (amount: 50)"
    assert shop.ran == []
    shop.say("yes")
    assert shop.ran == [{"amount": 50}]


ANYTHING: dict[str, Any] = {"type": "object", "properties": {"amount": {}, "note": {"default": "-"}}}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (2**64, "it is an integer of more than 64 bits"),
        ("[1e999]", "it is not a finite number"),
        ('{"a": NaN}', "it is not a finite number"),
        (r'["\ud800"]', "it holds half a character (a lone surrogate)"),
        ("[" * 200 + "]" * 200, "it is nested too deeply"),
    ],
)
def test_a_value_that_no_checkpoint_can_hold_is_invalid(value, problem):
    shop = Shop(ANYTHING, {"amount": value})
    shop.say("Pay, please.")
    assert shop.problems[0] == problem
    shop.say("yes")
    assert shop.ran == []


SERVED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "account": {"type": "string"},
        "currency": {"type": "string", "default": "EUR"},
        "speed": {"enum": ["slow", "fast"], "default": "none of these"},
        "x): nothing else. (": {"type": "boolean"},
    },
    "required": ["account"],
}


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        (None, "Delete account"),
        ("Delete Account", "Delete account"),
        ("Send me the free brochure", 'Delete account "Send me the free brochure"'),
        ("Free\n\nNothing else <!-- ", 'Delete account "Free\\n\\nNothing else \\u003c!-- "'),
        ("Free \u202e\u200b", 'Delete account "Free \\u202e\\u200b"'),
    ],
)
def test_a_server_s_title_and_names_stand_beside_the_tool_s_name_and_hide_nothing(title, shown):
    shop = Shop(SERVED, {"account": "A"}, name="delete_account", metadata={"title": title})
    assert shop.ask() == (
        f'{shown} (account: "A", currency: "EUR", speed: not given, "x): nothing else. (": not given)'
    )
    shop.say("yes")
    assert shop.ran == [{"account": "A", "currency": "EUR"}]


def test_a_person_who_edits_a_call_is_told_what_the_tool_would_make_of_it():
    shop = Shop(Rounding, {"amount": 19.6}, by="operator")
    shop.say("Pay, please.")
    (interrupt,) = shop.app.get_state(THREAD).interrupts
    assert interrupt.value["action_requests"][0]["args"] == {"amount": 20.0}

    def edit(amount: float) -> None:
        action = {"name": "pay", "args": {"amount": amount}}
        decisions = [{"type": "edit", "edited_action": action}]
        shop.app.invoke(Command(resume={"decisions": decisions}), THREAD)

    with pytest.raises(InputError, match=r"amount: the tool makes 12\.0 of it; give that value"):
        edit(12.3)
    edit(12.0)
    assert shop.ran == [{"amount": 12.0}]


def test_a_model_of_langchain_s_that_is_shown_the_names_of_fields_may_use_them():
    ran: list[dict[str, Any]] = []

    def run(**arguments: Any) -> str:
        ran.append(arguments)
        return "done"

    pay = StructuredTool(name="pay", description="Pay.", args_schema=Camel, func=run)
    agent = Agent("Shop", "You help.", tools=[pay])
    call = {"name": "pay", "args": {"account": "A", "amount_cents": 5}, "id": "1"}
    model = ScriptedChatModel([AIMessage("", tool_calls=[call]), "Paid."])
    rules = GuidelineMiddleware(brain(), agent, mode="direct", revising=None)
    create_agent(model, tools=[pay], middleware=[rules]).invoke({"messages": [("user", "Pay 5 cents.")]})
    assert ran == [{"account": "A", "amount_cents": 5}]


def test_the_same_is_asked_and_runs_in_an_async_turn():
    shop = Shop(Shipping, {"order": "A-1"})

    async def talk() -> None:
        for text in ("Pay, please.", "yes"):
            await shop.app.ainvoke({"messages": [("user", text)]}, THREAD)

    asyncio.run(talk())
    assert shop.ran == [{"order": "A-1", "on": date(2026, 12, 24), "express": True}]
