"""Offers: what an agent may mention unasked, judged and revised like guidelines."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, Offer, create_guided_agent
from arq_graph.errors import SpecError
from tests.apps.desk import get_active, make_input, make_thread
from tests.brain import DONE, brain, get_prompts

WRAP = "wrap an order as a gift"
STRATEGIES = ("tools", "pre-act", "react", "respact")


def make_desk(*offers: Any, **fields: Any) -> Agent:
    guidelines = [Guideline("the customer is angry", "calm them down", id="angry", overrides=["wrap"])]
    return Agent("Desk", "You help.", **{"guidelines": guidelines, "offers": offers, **fields})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_offer_that_fits_is_mentioned_once_and_is_a_source_of_the_service(strategy):
    services = [{"service": "gift wrapping", "source": "wrap"}]
    replies = [{"content": "We can wrap it as a gift.", "offered_services": services}, "You are welcome."]
    judgements: dict[str, Any] = {"wrap": 9}
    model = brain(judgements, reply=replies)
    desk = make_desk(Offer(WRAP, "they buy a present", id="wrap"))
    app = create_guided_agent(model, desk, strategy=strategy, checkpointer=MemorySaver())
    state = app.invoke(make_input("It is for my sister's birthday."), make_thread())
    assert get_active(state) == ["wrap"]
    assert state["revisions"][-1]["violations"] == []
    assert [record["guideline"] for record in state["applied_guidelines"]] == ["wrap"]
    (guideline,) = get_prompts(model, "message")[0].section("active_guidelines")
    assert (guideline["id"], guideline["condition"], guideline["priority"]) == (
        "wrap",
        "they buy a present",
        -1,
    )
    assert WRAP in guideline["action"]
    judgements["wrap"] = DONE
    assert get_active(app.invoke(make_input("Thanks!"), make_thread())) == []


def test_a_guideline_can_keep_an_offer_from_being_mentioned():
    model = brain({"angry": 9, "wrap": 9})
    desk = make_desk(Offer(WRAP, "they buy a present", id="wrap"))
    state = create_guided_agent(model, desk).invoke(make_input("You forgot my sister's birthday present!"))
    assert get_active(state) == ["angry"]


def test_an_offer_without_a_judgement_is_left_out():
    model = brain({"offer-1": None})
    desk = make_desk(WRAP, guidelines=())
    assert get_active(create_guided_agent(model, desk).invoke(make_input("Hello"))) == []


def test_what_a_function_decides_is_offered_without_a_model():
    model = brain()
    desk = make_desk(Offer(WRAP, lambda state: len(state["messages"]) == 1), guidelines=())
    assert get_active(create_guided_agent(model, desk).invoke(make_input("Hello"))) == ["offer-1"]


FILE = f"""
name: Desk
profile: You help.
guidelines:
- {{id: angry, condition: they are angry, action: calm them down, overrides: [offer-1, ship]}}
offers:
- {WRAP}
- {{id: ship, what: ship it today, when: they are in a hurry}}
"""


def test_a_file_lists_offers_as_texts_or_with_their_condition(tmp_path: Path) -> None:
    (tmp_path / "desk.yaml").write_text(FILE)
    agent = Agent.from_yaml(tmp_path / "desk.yaml")
    assert [(offer.id, offer.what, offer.when) for offer in agent.offers] == [
        ("offer-1", WRAP, None),
        ("ship", "ship it today", "they are in a hurry"),
    ]
    schema = Agent.model_json_schema()
    jsonschema.validate({"name": "n", "profile": "p", "offers": [WRAP, {"what": "w", "when": "x"}]}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "n", "profile": "p", "offers": [{"when": "x"}]}, schema)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "id: ship, what",
            "id: angry, what",
            r"desk.yaml:8: .* leads to the id 'angry', which a guideline",
        ),
        ("what: ship it today, ", "", r"desk.yaml:8: `offers\[1\].what` is missing$"),
        ("offer-1, ship", "offer-3", r"desk.yaml:5: .*offer-3.*\n?.*offer-"),
    ],
)
def test_a_mistake_in_an_offer_is_reported_with_its_line(tmp_path, old, new, message):
    (tmp_path / "desk.yaml").write_text(FILE.replace(old, new))
    with pytest.raises(SpecError, match=message):
        Agent.from_yaml(tmp_path / "desk.yaml")
