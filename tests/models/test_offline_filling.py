"""Whatever schema is asked for, the offline model's answer is an instance of it."""

import enum
import json
from datetime import date
from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from arq_graph.models import OfflineChatModel
from arq_graph.models.offline.answering import answer
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.reasoner import Reasoner
from tests.models.prompts import closed, list_of, nullable, one_of, prompt

TEXT = {"type": "string"}
NAMES = st.sampled_from(
    ["score", "reason", "items", "source", "content", "revisions", "arguments", "G1", "x", "date"]
)
LEAVES = st.sampled_from(
    [
        TEXT,
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "null"},
        one_of("yes", "no"),
        {"type": "integer", "enum": [3, 5]},
        {"const": "only"},
        {"type": "string", "enum": ["", "a b"]},
        {"$ref": "#/$defs/Node"},
        {"anyOf": [{"$ref": "#/$defs/Tree"}]},
    ]
)
NODE = closed(value=TEXT, next=nullable({"$ref": "#/$defs/Node"}))
TREE = closed(label={"type": "integer"}, children=list_of({"$ref": "#/$defs/Tree"}))


def objects(inner):
    return st.dictionaries(NAMES, inner, min_size=1, max_size=4).map(lambda fields: closed(**fields))


SCHEMAS = objects(
    st.recursive(
        LEAVES,
        lambda inner: st.one_of(
            objects(inner),
            inner.map(list_of),
            inner.map(nullable),
            st.lists(inner, min_size=2, max_size=3).map(lambda o: {"anyOf": o}),
        ),
        max_leaves=8,
    )
).map(lambda schema: {**schema, "$defs": {"Node": NODE, "Tree": TREE}})


@given(schema=SCHEMAS, text=st.text(max_size=60))
@settings(max_examples=150)
def test_an_answer_is_an_instance_of_any_strict_schema(schema, text):
    given_answer = answer(prompt(f"customer: {text}"), schema)
    Draft202012Validator(schema).validate(given_answer)
    json.dumps(given_answer)


@given(schema=SCHEMAS)
@settings(max_examples=60)
def test_any_schema_is_filled_for_any_steps_prompt(schema):
    head = {
        "guidelines": [{"id": "G1", "condition": "the customer asks", "action": "reply"}],
        "tools": [{"name": "x", "description": "y", "arguments": [], "granted_by": []}],
    }
    tail = {"active_guidelines": [{"id": "G1", "action": "offer help", "score": 8, "priority": 0}]}
    Draft202012Validator(schema).validate(answer(prompt("Where is it?", head=head, tail=tail), schema))


class Mood(enum.Enum):
    CALM = "calm"
    ANGRY = "angry"


class Step(BaseModel):
    number: int = Field(ge=1, le=3)
    what: str = Field(min_length=12, max_length=40)


class Report(ARQ):
    """Report on the conversation."""

    said: list[str] = reinstate("What did the customer say about the lamp?", min_length=2)
    mood: Mood = query("What is the customer's mood?")
    steps: list[Step] = query("The next steps.", min_length=3)
    score: int = respond("How bad is it?", ge=7, le=9)
    share: float = respond("The share of the price, from 0 to 1.", gt=0, lt=0.5)
    code: Annotated[str, Field(pattern=r"^[A-Z]{2}-\d{3}$")] = respond("A code.")
    day: date = respond("The day.")
    kind: Literal["a", "b"] = respond("Which one?")
    is_polite: bool = verify("Is the answer polite?", must_be=True)
    gives_advice: bool = verify("Does the answer give advice?", must_be=False)
    level: Literal["low", "high"] = verify("How risky is it?", must_be="high")


def test_what_the_schema_cannot_say_is_learned_from_what_was_wrong():
    messages = [SystemMessage("Report."), HumanMessage("My lamp is broken. I am so angry! It cost 40 euros.")]
    report = Reasoner(OfflineChatModel(), max_attempts=4, backoff=0).ask(Report, messages)
    assert report.satisfied
    assert report.value.mood is Mood.ANGRY
    assert any("lamp" in sentence for sentence in report.value.said)


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_every_mode_is_answered(mode):
    class Verdict(ARQ):
        """Judge it."""

        what: str = reinstate("What is it about?")
        score: int = respond("How good is it, 1 to 10?", ge=1, le=10)

    messages = [HumanMessage("It is about lamps.")]
    assert Reasoner(OfflineChatModel()).ask(Verdict, messages, mode=mode).satisfied


def test_a_question_is_answered_with_the_sentence_that_speaks_of_it():
    schema = closed(refund={"type": "string", "description": "What does the customer say about a refund?"})
    said = "Good evening. I bought a lamp. I expect a refund within a week."
    assert answer(prompt(said), schema) == {"refund": "I expect a refund within a week."}


def test_a_choice_falls_on_the_option_that_is_spoken_of():
    schema = closed(mood={**one_of("calm", "annoyed", "angry"), "description": "The customer's mood."})
    assert answer(prompt("I am so angry about this lamp"), schema) == {"mood": "angry"}


def test_lists_are_short_and_recursion_ends():
    schema = {**closed(tree={"$ref": "#/$defs/Tree"}, notes=list_of(TEXT)), "$defs": {"Tree": TREE}}
    filled = answer(prompt("a. b. c. d. e. f."), schema)
    assert len(filled["notes"]) <= 2
    assert len(json.dumps(filled)) < 1_000


def test_schemas_beyond_the_strict_subset_are_filled_as_well():
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": ["integer", "null"], "minimum": 18},
            "open": {"type": "object"},
            "pair": {"allOf": [{"type": "string"}, {"minLength": 30}]},
            "when": {"type": "string", "format": "date"},
            "tags": {"type": "array", "minItems": 2, "items": {"type": "string"}},
            "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        },
        "required": ["age", "open", "pair", "when", "tags", "either"],
    }
    Draft202012Validator(schema).validate(answer([HumanMessage("Hello")], schema))


def test_an_answer_that_was_refused_is_corrected():
    schema = closed(score={"type": "integer"}, name={"type": "string"}, ok={"type": "boolean"})
    messages = [
        *prompt("Hi"),
        AIMessage("{}"),
        HumanMessage(
            "Your answer could not be used:\n- Batch.score: Input should be greater than or equal to 6\n"
            "- Batch.name: String should have at least 30 characters\n"
            '- Batch.ok: "Is it?" was answered False, which must be True\nAnswer again.'
        ),
    ]
    filled = answer(messages, schema)
    assert filled["score"] >= 6
    assert len(filled["name"]) >= 30
    assert filled["ok"] is True
