"""The offline model: a valid instance of any schema, always the same, and what it does not understand it says."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel

from arq_graph import ARQ, OfflineChatModel, Reasoner, query, respond, verify
from arq_graph.milestones import LLMJudge, Message, MilestoneGraph, Transcript, score

NAMES = st.sampled_from(["order_id", "score", "message", "finished", "value", "action", "steps"])
SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(lambda kind: {"type": kind})
CHOICES = st.lists(st.text(max_size=4) | st.integers(), min_size=1, max_size=3).map(
    lambda each: {"enum": each}
)


def nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """An object, a list or a choice of what is inside."""
    objects = st.dictionaries(NAMES, inner, max_size=4).map(closed)
    choices = st.lists(inner, min_size=1, max_size=3).map(lambda options: {"anyOf": options})
    return objects | choices | inner.map(lambda items: {"type": "array", "items": items})


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS = st.recursive(SCALARS | CHOICES, nested, max_leaves=8).map(lambda value: closed({"value": value}))


def answer(schema: dict[str, Any], *messages: Any) -> Any:
    wanted = {"type": "json_schema", "json_schema": {"name": "Asked", "schema": schema}}
    said = messages or ("Where is my order ORD-1001?",)
    return json.loads(OfflineChatModel().invoke(list(said), response_format=wanted).text)


@settings(max_examples=30, deadline=None)
@given(SCHEMAS)
def test_any_strict_schema_gets_a_valid_instance_and_always_the_same(schema: dict[str, Any]) -> None:
    first = answer(schema)
    Draft202012Validator(schema).validate(first)
    assert answer(schema) == first


class Mood(ARQ):
    """How does the customer feel?"""

    why: str = query("Why?")
    mood: Literal["calm", "angry"] = respond("The mood.")
    is_checked: bool = verify("Is it so?", must_be=True)


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_it_answers_by_every_method_that_langchain_knows(method: Any) -> None:
    class City(BaseModel):
        name: str

    asked = [
        SystemMessage(f"Answer as JSON.\n{json.dumps(City.model_json_schema())}"),
        HumanMessage("Which city?"),
    ]
    assert isinstance(OfflineChatModel().with_structured_output(City, method=method).invoke(asked), City)


def test_a_check_that_has_to_hold_is_met_when_it_is_asked_again() -> None:
    answered = Reasoner("offline").ask(Mood, [HumanMessage("I am so happy!")])
    assert answered.satisfied
    assert len(answered.attempts) == 2


async def test_it_says_what_it_does_not_understand_in_words_too() -> None:
    said = "(offline model) I did not understand this. A real model would."
    assert OfflineChatModel().invoke("How tall is the tower?").text == said
    assert (await OfflineChatModel().ainvoke("How tall is the tower?")).text == said
    assert Reasoner("offline").ask(Mood, [HumanMessage("Hm.")]).value.why == said


def test_as_a_judge_it_decides_nothing() -> None:
    graph = MilestoneGraph.parse_yaml("""
- {name: Start, type: NFC}
- {name: Helped, type: NFC, description: The agent offers to try again later., dependencies: [Start]}
- {name: End, type: NFC, dependencies: [Helped]}
""")
    said = Transcript((Message("user", "It is stuck."), Message("agent", "I offer to try again later.")))
    judged = score(graph, said, judge=LLMJudge("offline"))
    assert (judged.goal_completed, judged.undecided) == (None, ("Helped",))
