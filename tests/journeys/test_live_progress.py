"""How far a conversation is on the agent's journeys, while it runs."""

from typing import Any

import pytest

from arq_graph import Journey, JourneyStep, create_guided_agent
from arq_graph.errors import InputError
from arq_graph.milestones import parse_milestones
from arq_graph.nodes import ProgressTracker
from tests.brain import act, get_prompts, say
from tests.journeys.returns import RETURN, Talk, get_order, make_shop

A301 = {"order_id": "A-301"}
ASKS = {"asks_for_something": True}
GRAPH = parse_milestones("""
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: End, type: NFC, dependencies: [get_order]}
""")


def begin(**options: Any) -> Talk:
    talk = Talk(**options)
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    return talk


def test_progress_on_a_journey_is_live_without_another_setting():
    talk = begin()
    (progress,) = talk.state["progress"]
    assert (progress["journey"], progress["reached"]) == ("return", ["Start", "order"])
    assert (progress["progress_rate"], progress["goal_completed"]) == (0.25, False)
    assert [milestone["name"] for milestone in progress["next"]] == ["reason"]


def test_what_was_skipped_does_not_come_next_and_nothing_does_while_the_journey_is_left():
    talk = begin()
    talk.steps["return-reason"] = ASKS | {"answered_by": "M4"}
    talk.steps["return-exchange"] = {"condition_holds": "no"}
    talk.say("It is broken.")
    talk.say("Well?")
    (progress,) = talk.state["progress"]
    assert [milestone["name"] for milestone in progress["next"]] == ["refund", "close"]
    talk.judge["return"] = 2
    talk.say("When do you close?")
    talk.say("Thanks.")
    (progress,) = talk.state["progress"]
    assert progress["next"] == []
    assert "reason" in progress["reached"]


def test_a_journey_that_has_not_begun_has_no_progress():
    talk = Talk()
    talk.judge["return"] = 2
    talk.say("When do you close?")
    assert "progress" not in talk.state


def test_a_graph_of_milestones_is_measured_beside_the_journeys():
    talk = begin(milestones=GRAPH)
    journey, graph = talk.state["progress"]
    assert (journey["journey"], graph["reached"]) == ("return", ["Start", "get_order", "End"])
    assert "journey" not in graph


def test_a_journey_that_is_only_a_step_of_another_is_measured_there():
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    order = JourneyStep("order", "look the order up", tools=[get_order], after="who")
    steps = [JourneyStep("who", journey="identify"), order]
    journeys = [Journey("return", "the customer wants to return an item", steps), identify]
    talk = Talk(make_shop(journeys=journeys))
    talk.steps["identify-name"] = ASKS | {"answered_by": "M1"}
    talk.say("I am Ada. I want to return a lamp.")
    (progress,) = talk.state["progress"]
    assert progress["reached"] == ["Start", "who/name", "who"]


def test_a_planner_is_shown_what_could_come_next():
    talk = Talk(moves=[act("get_order", A301), say("Here.")], strategy="pre-act")
    talk.steps["return-reason"] = ASKS
    talk.say("I want to return order A-301.")
    shown = [prompt.now.get("next_milestones") for prompt in get_prompts(talk.model, "planner")]
    assert shown[0] is None
    assert shown[1][0]["name"] == "reason"


def test_each_change_is_an_event_that_names_its_journey():
    talk = Talk()
    talk.call["get_order"] = A301
    talk.steps["return-reason"] = ASKS
    app = create_guided_agent(talk.model, talk.agent)
    events = list(app.stream({"messages": [("user", "I want to return A-301.")]}, stream_mode="custom"))
    changes = [event for event in events if event.type == "progress_made"]
    assert [(event.progress.journey, event.newly_reached) for event in changes] == [
        ("return", ("Start", "order"))
    ]


def test_a_tracker_of_your_own_measures_an_agents_journeys():
    talk = begin()
    update = ProgressTracker(agent=talk.agent).invoke(talk.state)
    assert [progress["reached"] for progress in update["progress"]] == [["Start", "order"]]
    with pytest.raises(InputError, match="nothing to measure on: give a graph, or an agent with journeys"):
        ProgressTracker(agent=make_shop(journeys=[]))
    with pytest.raises(InputError, match="give milestones= too"):
        create_guided_agent(talk.model, make_shop(journeys=[RETURN]), judge=lambda *_: [])
