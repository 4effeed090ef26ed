"""Random tools and calls: what is shown runs, what a tool accepts isn't refused, and what it refuses never runs."""

import json
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import MemorySaver
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, create_model
from pydantic_core import to_jsonable_python

from arq_graph import Agent, Guideline, create_guided_agent
from arq_graph.nodes.tool_arguments import ToolSchema
from tests.brain import brain

pytestmark = pytest.mark.slow
RANDOM = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
THREAD: Any = {"configurable": {"thread_id": "1"}}
TEXTS = st.text(alphabet='ab<"\\ \n‮é', max_size=5)
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9).map(lambda n: round(n, 2)) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda part: st.lists(part, max_size=2) | st.dictionaries(TEXTS, part, max_size=2)
)


def run_call(args_schema: Any, arguments: dict[str, Any]) -> tuple[str | None, list[dict[str, Any]]]:
    """Propose a call and say yes; return the question, if there is one, and the arguments that the tool got."""
    ran: list[dict[str, Any]] = []

    def run(**given_arguments: Any) -> str:
        ran.append(given_arguments)
        return "done"

    tool = StructuredTool(name="do_it", description="Do it.", args_schema=args_schema, func=run)
    agent = Agent("Desk", "You help.", [Guideline("x", "y", tools=[tool])], confirm={"do_it": "customer"})
    # A text of any type is asked for as JSON.
    answers = dict(arguments)
    for argument in ToolSchema(tool).arguments:
        if argument.strict_schema is None and isinstance(answers.get(argument.name), str):
            answers[argument.name] = json.dumps(answers[argument.name])
    model = brain({"G1": 9}, call={"do_it": answers}, reply="Fine.", wants=lambda: True)
    app = create_guided_agent(model, agent, mode="direct", checkpointer=MemorySaver())
    question: str | None = None
    for text in ("Do it.", "yes"):
        reply = app.invoke({"messages": [("user", text)]}, THREAD)["messages"][-1].text
        if text == "Do it." and reply.endswith("Reply yes to go ahead."):
            question = reply.split("\n")[-2]
    return question, ran


def show(value: Any) -> str:
    """Return how a question shows a value."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    text = json.dumps(value, ensure_ascii=False).replace("\u202e", "\\u202e")
    for letter in "ab":
        text = text.replace(f"<{letter}", f"\\u003c{letter}")
    return text


class Line(BaseModel):
    sku: str = Field(alias="partNo")
    count: Annotated[int, AfterValidator(abs)] = 1


FIELDS: list[Any] = [
    int,
    float,
    bool,
    str,
    Decimal,
    date,
    Literal["a", "b"],
    str | None,
    list[int],
    list[Line],
    dict[str, int],
    Annotated[float, AfterValidator(round)],
    Annotated[str, AfterValidator(str.strip)],
    Annotated[int, AfterValidator(lambda value: min(value, 3))],
    Annotated[int, AfterValidator(lambda value: value + 1)],  # changes each time
    Annotated[int, BeforeValidator(lambda value: value if value is not None else 7)],
]
DEFAULTS: list[dict[str, Any]] = [
    {},
    {},
    {"alias": "other name"},
    {"validation_alias": "other"},
    {"default": None},
    {"default_factory": lambda: 5},
]


@st.composite
def model_calls(draw: st.DrawFn) -> tuple[type[BaseModel], dict[str, Any]]:
    fields: dict[str, Any] = {}
    arguments: dict[str, Any] = {}
    for number in range(draw(st.integers(1, 3))):
        kind, options = draw(st.sampled_from(FIELDS)), dict(draw(st.sampled_from(DEFAULTS)))
        for key in options.keys() & {"alias", "validation_alias"}:
            options[key] += str(number)
        fields[f"field_{number}"] = (kind, Field(**options))
        name = options.get("alias", options.get("validation_alias", f"field_{number}"))
        good = [
            1,
            -4,
            2.5,
            "a",
            " b ",
            "2026-03-01",
            True,
            [1],
            [{"partNo": "a", "count": -2}],
            {"a": 1},
        ]
        if draw(st.integers(0, 4)):
            arguments[name] = draw(st.sampled_from(good) | VALUES)
    return create_model("DoIt", **fields), arguments


@RANDOM
@given(model_calls())
def test_a_model_s_values_are_shown_as_they_run(call: tuple[type[BaseModel], dict[str, Any]]) -> None:
    model, arguments = call
    question, ran = run_call(model, arguments)
    try:
        validated = model.model_validate(arguments)
    except ValueError:
        assert (question, ran) == (None, [])
        return
    expected = {name: getattr(validated, name) for name in model.model_fields}
    if question is None:  # only because the values are others the second time
        assert ran == []
        again = {}
        for name, field in model.model_fields.items():
            again[field.validation_alias or name] = to_jsonable_python(expected[name], by_alias=True)
        try:
            second = model.model_validate(again)
        except ValueError:
            return
        assert {name: getattr(second, name) for name in expected} != expected
        return
    assert ran == [expected]
    for value in ran[0].values():
        assert show(to_jsonable_python(value, by_alias=True)) in question


SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "string", "enum": ["a", "b"]},
            {"type": "string", "pattern": "^a", "maxLength": 3},
            {"type": "integer", "minimum": 0, "multipleOf": 2},
            {"type": "number", "exclusiveMaximum": 5},
            {"type": "boolean"},
            {"type": ["string", "null"]},
            {"const": "a"},
            {},
        ]
    ),
    lambda part: (
        st.builds(lambda items: {"type": "array", "items": items}, part)
        | st.builds(lambda one, other: {"anyOf": [one, other]}, part, part)
        | st.builds(lambda one, other: {"type": "object", "properties": {"a": one, "b": other}}, part, part)
    ),
    max_leaves=4,
)


@st.composite
def served_calls(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    names = ["a", "b c", "d"]
    properties = {name: draw(SCHEMAS) for name in names}
    required = draw(st.lists(st.sampled_from(names), unique=True))
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        choices = [{"properties": {name: part}, "required": [name]} for name, part in properties.items()]
        schema = {"type": "object", "anyOf": choices}
    good = [0, 2, 4.5, "a", "b", True, ["a"], [2], {"a": "a"}, {"b": None}]
    given_names = draw(st.lists(st.sampled_from(names), unique=True))
    arguments = {}
    for name in given_names:
        value = draw(st.sampled_from(good) | VALUES)
        # A value is asked for as the property's own schema describes it, also if another choice allows any value.
        if Draft202012Validator(properties[name]).is_valid(value) or "anyOf" not in schema:
            arguments[name] = value
    return schema, arguments


@RANDOM
@given(served_calls())
def test_a_schema_s_values_are_shown_as_they_run(call: tuple[dict[str, Any], dict[str, Any]]) -> None:
    schema, arguments = call
    question, ran = run_call(schema, arguments)
    if not Draft202012Validator(schema).is_valid(arguments):
        # A null that stands for what is left out is dropped before the check.
        assert not ran or ran != [arguments]
        return
    assert question is not None
    (got,) = ran
    assert got.keys() == arguments.keys()
    for name, value in got.items():
        assert Draft202012Validator(schema).is_valid(got)
        assert f"{name}: {show(value)}" in question or f'"{name}": {show(value)}' in question
