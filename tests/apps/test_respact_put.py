"""What a customer has to hear before a call that they have to agree to: each value, each flag, and what is taken."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import MessagesState, StateGraph

from arq_graph import Agent, AgentState, Guideline, create_guided_agent, create_respact_agent
from tests.apps.desk import says, thread
from tests.speaking import Made, speaker


def insisting(function, arguments, question, *, proposes=True, **options):
    """An agent that puts a call to the customer in these words, and then insists on it."""
    asked = Made("speak", question, asks_for=[(function.__name__, None)], fields={"asks": True})
    moves = iter(
        [
            *([Made(function.__name__, args=arguments)] if proposes else []),
            *[asked] * (1 if proposes else 3),
            *[Made(function.__name__, args=arguments, affirmed_in="M3")] * 4,
            *[Made("speak", "Done.")] * 9,
        ]
    )
    return create_respact_agent(
        speaker(lambda _: next(moves)), [function], consequential=[function.__name__], **options
    )


def asked_and_ran(app, wish="Please do it.", answer="Yes"):
    """What the customer is asked, and the arguments of the calls that their answer leads to."""
    asked = app.invoke(says(wish), thread())["messages"][-1].text
    return asked, calls_in(app.invoke(says(answer), thread()))


def calls_in(state):
    return [call["args"] for message in state["messages"] for call in getattr(message, "tool_calls", ())]


def donate(fund: str, amount: int = 50, monthly: bool = False, thanks: bool = True) -> str:
    """Donate money to a fund.

    Args:
        fund: Name of the fund.
        amount: Euros.
        monthly: Whether it is repeated every month.
        thanks: Whether a letter of thanks is sent.
    """
    return "given"


def book_ferry(day: str, passengers: int, cars: int = 1) -> str:
    """Book the ferry.

    Args:
        day: The day.
        passengers: How many come.
        cars: How many cars.
    """
    return "booked"


def set_alarm(zone: str, on: bool) -> str:
    """Set the alarm of a zone.

    Args:
        zone: The zone.
        on: Whether it is on.
    """
    return "set"


def ship_box(box: str, options: dict) -> str:
    """Ship a box.

    Args:
        box: Its number.
        options: Switches.
    """
    return "shipped"


BEES = {"fund": "Bees", "amount": 50}
FIFTH = {"day": "2026-03-05", "passengers": 3}


@pytest.mark.parametrize(
    ("function", "arguments", "question", "told"),
    [
        (donate, {**BEES, "monthly": True}, "Shall I donate 50 euros to Bees?", "monthly: yes"),
        (donate, {**BEES, "monthly": True}, "Shall I donate 50 euros to Bees, not monthly?", "monthly: yes"),
        (donate, {**BEES, "thanks": False}, "Shall I donate 50 euros to Bees?", "thanks: no"),
        (donate, {**BEES, "thanks": False}, "Shall I donate 50 euros to Bees with thanks?", "thanks: no"),
        (donate, {"fund": "Bees"}, "Shall I donate to Bees?", "amount: 50"),
        (set_alarm, {"zone": "Z1", "on": False}, "Shall I set the alarm of zone Z1 on?", "on: no"),
        (ship_box, {"box": "B1", "options": {"express": True}}, "Shall I ship box B1?", '"express": true'),
        (book_ferry, FIFTH, "Shall I book the ferry on 2026-03-05?", "passengers: 3"),
        (
            book_ferry,
            {**FIFTH, "cars": 3},
            "Shall I book the ferry on 2026-03-05 for 3 passengers?",
            "cars: 3",
        ),
    ],
)
def test_a_question_that_leaves_something_out_is_put_by_code_in_full(function, arguments, question, told):
    asked, _ = asked_and_ran(insisting(function, arguments, question, checkpointer=MemorySaver()))
    assert asked.startswith("Before I go on, please confirm this:")
    assert told in asked


@pytest.mark.parametrize(
    ("function", "arguments", "question"),
    [
        (donate, {**BEES, "monthly": True}, "Shall I donate 50 euros to Bees monthly?"),
        (donate, {**BEES, "monthly": True}, "Shall I donate 50 euros to Bees (monthly: yes)?"),
        (donate, {**BEES, "monthly": False, "thanks": True}, "Shall I donate 50 euros to Bees?"),
        (set_alarm, {"zone": "Z1", "on": False}, "Shall I set the alarm of zone Z1 (on: no)?"),
        (book_ferry, FIFTH, "Shall I book the ferry on 2026-03-05 for 3 passengers?"),
        (book_ferry, FIFTH, "Shall I book the ferry on 2026-03-05 for three passengers?"),
    ],
)
def test_a_question_that_tells_all_is_asked_and_its_yes_is_one(function, arguments, question):
    app = insisting(function, arguments, question, checkpointer=MemorySaver())
    assert asked_and_ran(app) == (question, [arguments])


def test_a_default_may_be_spelled_out_once_it_was_agreed_to():
    question = "Shall I donate 50 euros to Bees?"
    saver = MemorySaver()
    insisting(donate, {"fund": "Bees"}, question, checkpointer=saver).invoke(says("Give to Bees."), thread())
    spelled_out = {**BEES, "monthly": False}
    moves = iter([Made("donate", args=spelled_out, affirmed_in="M3"), Made("speak", "Done.")])
    app = create_respact_agent(
        speaker(lambda _: next(moves)), [donate], consequential=["donate"], checkpointer=saver
    )
    assert calls_in(app.invoke(says("Yes"), thread())) == [spelled_out]


def parent_of(app, state=MessagesState):
    graph = StateGraph(state)
    graph.add_node("desk", app)
    graph.set_entry_point("desk")
    return graph.compile(checkpointer=MemorySaver())


@pytest.mark.parametrize(
    ("question", "answer", "runs"),
    [
        ("Shall I donate 50 euros to Bees?", "Yes please!", True),
        ("I will not say.", "Yes please!", True),  # code asks in its place
        ("Shall I donate 50 euros to Bees?", "No", False),
        ("Shall I donate 50 euros to Bees?", "Yes, 60", False),
        ("Shall I keep 50 euros for Bees?", "Keep it", False),
    ],
)
def test_where_a_graph_keeps_messages_alone_they_tell_what_was_agreed_to(question, answer, runs):
    graph = parent_of(insisting(donate, BEES, question))
    _, ran = asked_and_ran(graph, "Donate 50 euros to Bees.", answer)
    assert ran == ([BEES] if runs else [])


def test_the_question_that_code_asks_tells_the_tool_where_messages_alone_are_kept():
    moves = iter(
        [*[Made("donate", args=BEES)] * 3, Made("donate", args=BEES, affirmed_in="M3"), Made("speak", "Ok.")]
    )
    tools = [donate, donate_later]  # "Shall I donate 50 euros to Bees?" could be about either
    app = create_respact_agent(
        speaker(lambda _: next(moves)), tools, consequential=[each.__name__ for each in tools]
    )
    asked, ran = asked_and_ran(parent_of(app), "Donate 50 euros to Bees.")
    assert "confirm this: Donate money to a fund (fund: Bees, amount: 50)" in asked
    assert ran == [BEES]


@pytest.mark.parametrize(
    ("arguments", "question", "runs"),
    [
        (BEES, "Shall I donate 50 euros to Bees?", True),
        ({**BEES, "monthly": True}, "Shall I donate 50 euros to Bees?", False),
        ({**BEES, "amount": 500}, "Shall I donate 50 euros to Bees?", False),
        (BEES, "Shall I look up Bees and 50 euros?", False),
        (BEES, "Soll ich 50 Euro an Bees geben?", False),  # what it asks cannot be read
        (BEES, "I would donate 50 euros to Bees.", False),
    ],
)
def test_a_model_that_asks_before_it_proposes_is_held_to_what_it_asked(arguments, question, runs):
    app = insisting(donate, arguments, question, proposes=False, checkpointer=MemorySaver())
    answer = "Ja" if "Soll" in question else "Yes"
    assert asked_and_ran(app, "Donate to Bees.", answer) == (question, [arguments] if runs else [])


def lend(fund: str, amount: int) -> str:
    """Lend money to a fund.

    Args:
        fund: Name of the fund.
        amount: Euros.
    """
    return "lent"


def donate_later(fund: str, amount: int) -> str:
    """Donate money to a fund later on.

    Args:
        fund: Name of the fund.
        amount: Euros.
    """
    return "noted"


@pytest.mark.parametrize(
    ("question", "other", "ran"),
    [
        ("Shall I donate 50 euros to Bees?", donate, ["donate"]),
        ("Shall I donate 50 euros to Bees?", lend, ["donate"]),
        ("Shall I donate 50 euros to Bees?", donate_later, []),  # either may have been meant
    ],
)
def test_a_yes_to_what_no_call_was_proposed_for_covers_one_call_of_one_tool(question, other, ran):
    moves = iter(
        [
            *[Made("speak", question, fields={"asks": True})],
            *[Made("donate", args=BEES, affirmed_in="M3")] * (1 if ran else 2),
            *[Made(other.__name__, args={**BEES, "fund": "bees"}, affirmed_in="M3")] * 2,
            *[Made("speak", "Well.")] * 9,
        ]
    )
    app = create_respact_agent(
        speaker(lambda _: next(moves)),
        list(dict.fromkeys([donate, other])),
        consequential=["donate", other.__name__],
        checkpointer=MemorySaver(),
    )
    app.invoke(says("Donate 50 euros to Bees."), thread())
    messages = app.invoke(says("Yes"), thread())["messages"]
    assert [call["name"] for m in messages for call in getattr(m, "tool_calls", ())] == ran


def test_a_part_of_a_date_is_no_number_that_somebody_told():
    moves = iter(
        [Made("book_ferry", args=FIFTH, bases={"passengers": "this_request"}), *[Made("speak", "Hm.")] * 9]
    )
    app = create_respact_agent(speaker(lambda _: next(moves)), [book_ferry])
    assert calls_in(app.invoke(says("Book the ferry on 2026-03-05."))) == []
    moves = iter([Made("book_ferry", args=FIFTH), Made("speak", "Booked.")])
    assert calls_in(app.invoke(says("Book the ferry on 2026-03-05 for 3 of us."))) == [FIFTH]


GERMAN = "Soll ich 50 Euro an Bees geben?"


@pytest.mark.parametrize(("state", "keeps"), [(AgentState, None), (MessagesState, True)])
def test_a_larger_graph_keeps_what_was_put_in_any_language(state, keeps):
    graph = parent_of(insisting(donate, BEES, GERMAN, checkpointer=keeps), state)
    assert asked_and_ran(graph, "50 Euro an Bees, bitte.", "Ja") == (GERMAN, [BEES])


@pytest.mark.skip(reason="until code puts the question before a call that needs agreement")
@pytest.mark.parametrize(("state", "keeps"), [(AgentState, None), (MessagesState, True)])
def test_a_larger_graph_keeps_what_a_guided_agent_waits_for(state, keeps):
    agent = Agent(
        "Desk",
        "You collect for Bees.",
        [Guideline("the customer wants to donate", "donate", tools=[donate])],
        confirm={"donate": "customer"},
    )
    graph = parent_of(create_guided_agent("offline", agent, checkpointer=keeps), state)
    _, ran = asked_and_ran(graph, "I want to donate 50 euros to the fund Bees.")
    assert [call["fund"] for call in ran] == ["Bees"]
