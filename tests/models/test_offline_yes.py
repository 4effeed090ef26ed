"""What the offline model takes for a yes, and how it puts a call to the customer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent, create_respact_agent
from arq_graph.models.offline import dialogue
from tests.models.prompts import judge

ARMS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pre-act": {"planning": "pre-act"},
    "react": {"planning": "react"},
    "speaking": {"speaking": True},
}
NO_YES = [
    "Yes, if the wind is gentle on that morning.",
    "ok, let me think about it",
    "sure, tomorrow maybe",
    "Yes, once my sister has landed.",
    "Right, I am not sure.",
    "I guess so",
    "Okay, probably later",
    "Yes, the other one",
]
A_YES = [
    "Yes please",
    "Sure, go ahead",
    "ok",
    "Yes, scrub it",
    "Yes, if you would be so kind.",
    "Yes, please. That is so nice of you!",
    "No problem, go ahead",
    "Sure, scrub BLN-52",
    "Scrub flight BLN-52, please",
]


def scrub_flight(flight_id: str) -> str:
    """Scrub a balloon flight.

    Args:
        flight_id: The flight, like BLN-52.
    """
    return f"{flight_id} is scrubbed"


def balloons(arm: str) -> Any:
    scrubs = Guideline("the customer wants to scrub a flight", "scrub the flight", tools=[scrub_flight])
    agent = Agent("Balloons", "You fly balloons.", guidelines=[scrubs], confirm={"scrub_flight": "customer"})
    return create_guided_agent("offline", agent, checkpointer=MemorySaver(), **ARMS[arm])


def respact(*tools: Callable[..., Any]) -> Any:
    names = [tool.__name__ for tool in tools]
    return create_respact_agent(
        "offline", list(tools), consequential=names, policies=[], checkpointer=MemorySaver()
    )


def turn(app: Any, text: str) -> tuple[list[dict[str, Any]], str]:
    """The arguments of a turn's calls, and what the customer is told at its end."""
    thread = {"configurable": {"thread_id": "1"}}
    before = len(app.get_state(thread).values.get("messages", []))
    new: list[BaseMessage] = app.invoke({"messages": [("user", text)]}, thread)["messages"][before:]
    calls = [c["args"] for m in new if isinstance(m, AIMessage) for c in m.tool_calls]
    return calls, str(new[-1].text)


def asked(arm: str) -> Any:
    """An agent that has just asked whether to scrub BLN-52."""
    app = balloons(arm)
    calls, reply = turn(app, "Please scrub my flight BLN-52")
    assert (calls, reply.count("?")) == ([], 1), reply
    assert "Shall I scrub the flight (flight id: BLN-52)?" in reply
    return app


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("answer", NO_YES)
def test_what_is_no_plain_yes_scrubs_nothing_and_is_asked_again(arm, answer):
    calls, reply = turn(asked(arm), answer)
    assert calls == []
    assert "BLN-52" in reply
    assert "?" in reply


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("answer", A_YES)
def test_a_yes_stays_a_yes(arm, answer):
    assert turn(asked(arm), answer)[0] == [{"flight_id": "BLN-52"}]


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("answer", ["Yes, BLN-77", "Sure, BLN-77", "Yes. BLN-77 please"])
def test_another_value_is_put_to_the_customer_and_only_that_one_is_scrubbed(arm, answer):
    app = asked(arm)
    calls, reply = turn(app, answer)
    assert (calls, "BLN-77" in reply, "BLN-52" in reply) == ([], True, False), reply
    assert turn(app, "Yes")[0] == [{"flight_id": "BLN-77"}]


@pytest.mark.parametrize("arm", ARMS)
def test_who_would_rather_keep_it_keeps_it(arm):
    calls, reply = turn(asked(arm), "right, hmm, I'd prefer to keep it")
    assert (calls, "BLN-52" in reply) == ([], False)
    assert reply.startswith("All right.")


@pytest.mark.parametrize("arm", ["plain", "pre-act", "react"])
def test_a_yes_that_asks_to_be_told_depends_on_nothing(arm):
    assert turn(asked(arm), "Yes, and let me know when it is done")[0] == [{"flight_id": "BLN-52"}]


def test_a_yes_that_code_does_not_take_for_one_is_asked_about_again():
    calls, reply = turn(asked("speaking"), "Yes, and let me know when it is done")
    assert (calls, "Shall I scrub the flight (flight id: BLN-52)?".lower() in reply.lower()) == ([], True), (
        reply
    )


def test_the_day_that_was_put_may_be_said_in_other_words():
    assert dialogue.says_yes("Yes, on Monday, 7 June", "Shall I moor it (day: 2027-06-07)?")
    agreed = "the customer agrees"
    put = "agent: Shall I moor the barge on 2027-06-07?"
    assert judge(agreed, put, "Yes, on Monday, 7 June")["condition_applies"]
    assert not judge(agreed, put, "Yes, on 9 June")["condition_applies"]
    assert not judge(agreed, put, "Yes, on Tuesday the 7th if it is calm")["condition_applies"]


def test_a_value_of_another_kind_takes_nothing_from_a_yes_to_an_offer():
    assert judge("the customer agrees", "agent: Shall I moor the barge for you?", "Yes, for Friday")[
        "condition_applies"
    ]


def test_keeping_is_no_doubt_where_that_is_what_was_asked():
    assert dialogue.says_yes("Yes, keep it", "Shall I keep the mooring?")
    assert not dialogue.says_yes("Yes, keep it", "Shall I scrub the mooring?")


@pytest.mark.parametrize("answer", ["Yes, " + "9" * 6_000, "Yes, on 2027-99-99"])
def test_a_number_or_a_day_that_cannot_be_is_another_value_all_the_same(answer):
    calls, reply = turn(asked("plain"), answer)
    assert (calls, bool(reply)) == ([], True)


def berth_vacate(berth_id: str) -> str:
    """Vacate a berth.

    Args:
        berth_id: The berth, like BE-9.
    """
    return "vacated"


def licence_revocation_undo(licence_id: str) -> str:
    """Undo the revocation of a licence.

    Args:
        licence_id: The licence, like LI-4.
    """
    return "undone"


def rationShip_erase(manifest_id: str) -> str:  # noqa: N802
    """Erases a manifest.

    Args:
        manifest_id: The manifest, like MF-6.
    """
    return "erased"


def partnership_upgrade(tier: str) -> str:
    """Moves a partner to another tier.

    Args:
        tier: One of bronze, platinum.
    """
    return "moved"


def sign_out() -> str:
    """Sign out on every device."""
    return "signed out"


def moor(barge: str) -> str:
    """Moor a barge.

    Args:
        barge: The barge's name.
    """
    return "moored"


@pytest.mark.parametrize(
    ("called", "said", "question"),
    [
        (berth_vacate, "Please vacate berth BE-9", "Shall I vacate the berth (berth id: BE-9)?"),
        (
            licence_revocation_undo,
            "Please undo the revocation of licence LI-4",
            "Shall I undo the licence revocation (licence id: LI-4)?",
        ),
        (
            rationShip_erase,
            "Please erase the manifest MF-6 of the ration ship",
            "Shall I erase the ration ship (manifest id: MF-6)?",
        ),
        (
            partnership_upgrade,
            "Please upgrade my partnership to platinum",
            "Shall I upgrade the partnership (tier: platinum)?",
        ),
        (sign_out, "Please sign me out", "Shall I sign out on every device?"),
        (moor, "Please moor the barge Cygnet", "Shall I moor (barge: Cygnet)?"),
    ],
)
def test_the_question_is_its_own_and_names_the_verb_of_the_tool(called, said, question):
    app = respact(called)
    calls, reply = turn(app, said)
    assert (calls, reply) == ([], f"{question} Please confirm.")
    assert len(turn(app, "Yes, please.")[0]) == 1


def test_two_requests_are_put_one_after_the_other_and_neither_is_lost():
    app = respact(scrub_flight, berth_vacate)
    calls, reply = turn(app, "Please scrub flight BLN-52 and vacate berth BE-9")
    assert (calls, reply.count("?"), "Shall I " in reply) == ([], 1, True), reply
    calls, reply = turn(app, "Yes")
    assert (len(calls), reply.count("?")) == (1, 1), reply
    assert [*calls, *turn(app, "Yes")[0]] == [{"flight_id": "BLN-52"}, {"berth_id": "BE-9"}]


def test_a_rule_that_asks_something_waits_until_the_call_is_answered():
    scrubs = Guideline("the customer wants to scrub a flight", "scrub the flight", tools=[scrub_flight])
    asks = Guideline("the customer wants to scrub a flight", "ask whether they want a voucher")
    agent = Agent(
        "Balloons", "You fly balloons.", guidelines=[scrubs, asks], confirm={"scrub_flight": "customer"}
    )
    app = create_guided_agent("offline", agent, speaking=True, checkpointer=MemorySaver())
    _, reply = turn(app, "Please scrub my flight BLN-52")
    assert reply == "Shall I scrub the flight (flight id: BLN-52)? Please confirm."
