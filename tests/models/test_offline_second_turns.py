"""What the offline model makes of a second message: an answer, a name off a list, a question that goes unanswered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_respact_agent
from arq_graph.apps.guided import create_guided_agent
from tests.models.desks import ask


def list_tours(valley: str) -> list[str]:
    """List the canoe tours of a valley.

    Args:
        valley: The valley, such as Lahn.
    """
    return ["Otter tour", "Heron tour"] if valley == "Altmuehl" else []


def reserve_tour(tour: str, paddlers: int) -> str:
    """Reserve a canoe tour.

    Args:
        tour: The tour's name.
        paddlers: How many come.
    """
    return f"{tour} is reserved"


def find_kennel(kennel: str) -> dict[str, str]:
    """Look up a kennel.

    Args:
        kennel: The number of the kennel, like KN-10.
    """
    return {"kennel": kennel, "state": "cleaned", "by": "Ines"}


CANOES = Agent(
    "Canoes",
    "You are the desk of a canoe club.",
    [
        Guideline("the paddler asks which tours there are", "list them", tools=[list_tours]),
        Guideline("the paddler wants to reserve a tour", "reserve it", tools=[reserve_tour]),
    ],
)
KENNELS = Agent(
    "Kennels",
    "You are the desk of a dog hotel.",
    [
        Guideline(
            "the customer asks about a kennel", "look the kennel up and tell its state", tools=[find_kennel]
        ),
        Guideline("the kennel is cleaned", "ask whether the dog feels at ease"),
    ],
)


class Talk:
    """A conversation: each line said yields the calls of the turn and the reply."""

    def __init__(self, app: Any) -> None:
        self._app, self._seen = app, 0

    def say(self, text: str) -> tuple[list[dict[str, Any]], str]:
        messages = self._app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "t"}})[
            "messages"
        ]
        new, self._seen = messages[self._seen :], len(messages)
        return [call for m in new if isinstance(m, AIMessage) for call in m.tool_calls], str(new[-1].text)


@pytest.fixture(params=[False, True], ids=["replying", "speaking"])
def talk(request: pytest.FixtureRequest) -> Callable[[Agent], Talk]:
    return lambda agent: Talk(
        create_guided_agent("offline", agent, speaking=request.param, checkpointer=MemorySaver())
    )


def test_which_tours_there_are_is_no_wish_to_reserve_one(talk: Callable[[Agent], Talk]) -> None:
    canoes = talk(CANOES)
    assert "paddlers" not in canoes.say("Which tours are there?")[1]
    calls, said = canoes.say("In the Altmuehl")
    assert [call["args"] for call in calls] == [{"valley": "Altmuehl"}]
    assert "paddlers" not in said


def test_a_name_is_taken_as_it_was_listed(talk: Callable[[Agent], Talk]) -> None:
    canoes = talk(CANOES)
    canoes.say("Which tours are there?")
    canoes.say("The valley is Altmuehl")
    calls, _ = canoes.say("Please reserve the heron tour for 3 paddlers")
    assert calls[-1]["args"] == {"tour": "Heron tour", "paddlers": 3}


@pytest.mark.parametrize(
    ("answer", "valley"), [("the Lahn", "Lahn"), ("in The Hague", "The Hague"), ("Lahn", "Lahn")]
)
def test_an_article_belongs_to_no_name_unless_it_is_written_large(answer: str, valley: str) -> None:
    calls, _ = ask([list_tours], "List the canoe tours, please.", answer)
    assert calls == [{"valley": valley}]


def test_who_confirms_that_all_is_well_is_not_told_that_nothing_is_known(
    talk: Callable[[Agent], Talk],
) -> None:
    kennels = talk(KENNELS)
    _, said = kennels.say("What about the kennel KN-10?")
    assert "whether the dog feels at ease" in said
    calls, said = kennels.say("Yes, the dog feels at ease.")
    assert calls == []
    assert "anything else" in said


def test_a_question_is_not_put_twice_in_the_same_words(talk: Callable[[Agent], Talk]) -> None:
    canoes = talk(CANOES)
    said = [canoes.say("I want to reserve the Otter tour")[1]]
    said += [canoes.say(aside)[1] for aside in ("It is for my birthday", "I am so looking forward", "Hm.")]
    assert all("paddlers" in text for text in said)
    assert said[1].startswith("I still need the paddlers")
    assert len(set(said)) == len(said)
    assert all(said[0] not in text for text in said[1:3])


def wind_clock(tower: str) -> str:
    """Wind up a tower clock.

    Args:
        tower: The number of the tower, like TW-3.
    """
    return f"clock of {tower} wound"


def test_to_try_again_is_asked_once_the_deed_is_done() -> None:
    guideline = Guideline(
        "the verger says that the clock has stopped",
        "wind the clock and ask the verger to try again",
        tools=[wind_clock],
    )
    app = create_guided_agent(
        "offline", Agent("Clocks", "You mind clocks.", [guideline]), checkpointer=MemorySaver()
    )
    clocks = Talk(app)
    assert "try again" not in clocks.say("The clock has stopped!")[1]
    calls, said = clocks.say("The tower is TW-3.")
    assert [call["args"] for call in calls] == [{"tower": "TW-3"}]
    assert said.endswith("Could you please try again?")


RULES = """You are the desk of the lighthouse Fairway.
The lighthouse is on Gull Rock.
- when the sailor says that a buoy is adrift: report the buoy and tell that a boat is on its way
- if the sailor is angry, apologise
- always: be brief"""


def report_buoy(buoy: str) -> str:
    """Report a buoy.

    Args:
        buoy: The number of the buoy, like BU-7.
    """
    return f"buoy {buoy} is reported"


@pytest.fixture
def lighthouse() -> Talk:
    agent = Agent("Lighthouse", RULES, tools=[report_buoy])
    return Talk(create_respact_agent("offline", agent, checkpointer=MemorySaver()))


def test_a_rule_of_the_profile_is_followed(lighthouse: Talk) -> None:
    _, said = lighthouse.say("There is a buoy adrift off the cape!")
    assert "buoy" in said
    assert said.endswith("?")
    calls, said = lighthouse.say("It is BU-7.")
    assert [call["args"] for call in calls] == [{"buoy": "BU-7"}]
    assert "BU-7" in said


def test_a_rule_of_the_profile_without_a_tool_is_followed(lighthouse: Talk) -> None:
    assert "I am sorry" in lighthouse.say("I am furious!")[1]


@pytest.mark.parametrize(
    "asked", ["What do you do when a buoy is adrift?", "Are you brief?", "Is the sailor angry?"]
)
def test_a_rule_of_the_profile_is_not_read_out(lighthouse: Talk, asked: str) -> None:
    said = lighthouse.say(asked)[1].lower()
    assert "sailor" not in said
    assert "always" not in said


def test_what_a_profile_with_rules_knows_is_still_told(lighthouse: Talk) -> None:
    assert "Gull Rock" in lighthouse.say("Where is the lighthouse?")[1]
