"""What no argument is: a refusal to tell it, and what is left of a sentence that gave something else."""

from __future__ import annotations

import pytest

from arq_graph import create_respact_agent
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.withheld import is_no_value, what_is_given, without_denials
from tests.models.desks import ask
from tests.models.prompts import TEXT, arguments_of, list_of, tool

USE = "the customer needs it: use the tool"
THINGS = {
    "street": ("Street and house number.", "What is the street?"),
    "telescope": ("The name of the telescope, like Big Eye.", "Which telescope would you like?"),
    "observer": ("The name of the person who observes.", "Who is the observer?"),
    "title": ("The title of the book.", "What is the title?"),
}
WITHHELD = (
    "I don't know",
    "I do not remember it right now",
    "No idea",
    "I'd rather not say",
    "I have forgotten it",
    "I am not sure",
    "we don’t have one yet",
    "It is not decided yet",
    "that's private",
    "you choose",
    "Perhaps try whatever comes first",
    "Never mind",
    "as I said",
    "can we do it later",
    "I think so",
    "the",
    "I think the {name} is",
    "The {name} is unknown",
    "the {name} is a secret",
    "the {name}",
    "The {name} is not at hand",
    "I do not have the {name} at hand.",
    "Nobody told me the {name}",
    "I would rather not give my {name}.",
    "I cannot tell you the {name}.",
    "I am unable to give you the {name}",
)


def told(name: str, answer: str) -> object:
    described, question = THINGS[name]
    using = tool("use_it", "", USE, **{name: (TEXT, described)})
    return arguments_of(using, "Please use it", f"agent: {question}", answer.format(name=name)).get(name)


@pytest.mark.parametrize("name", THINGS)
@pytest.mark.parametrize("answer", WITHHELD)
def test_who_does_not_tell_it_has_given_nothing(name, answer):
    assert told(name, answer) is None


@pytest.mark.parametrize(
    ("name", "answer", "value"),
    [
        ("street", "I do not know the day, but the street is Elm Road 4", "Elm Road 4"),
        ("street", "I don't know exactly. Elm Road 4, I think", "Elm Road 4"),
        ("street", "It's not Elm Road 4 but Oak Road 5", "Oak Road 5"),
        ("street", "We live at Rosenweg 3", "Rosenweg 3"),
        ("telescope", "I think the telescope is Big Eye", "Big Eye"),
        ("telescope", "I don't mind, Small Eye", "Small Eye"),
        ("telescope", "Not Big Ear, Small Eye", "Small Eye"),
        ("telescope", "the second biggest", "second biggest"),
        ("observer", "Ada, I don't know the night", "Ada"),
        ("observer", "I think it's ada quill", "ada quill"),
        ("title", "Never Let Me Go", "Never Let Me Go"),
        ("title", "Let It Be", "Let It Be"),
        ("title", "Up", "Up"),
    ],
)
def test_what_is_told_beside_a_denial_or_written_like_one_counts(name, answer, value):
    assert told(name, answer) == value


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("I can't remember my password", "I can't remember my password"),
        ("I do not have hot water", "I do not have hot water"),
        ("not working at all", "not working at all"),
        ("I do not know", None),
        ("The text is not at hand", None),
        ("I do not have the text at hand", None),
    ],
)
def test_a_text_may_speak_of_what_one_lacks_but_not_of_the_text_itself(answer, value):
    using = tool("use_it", "", USE, text=(TEXT, "What is broken, in a few words."))
    asked = "agent: What is broken, in a few words?"
    assert arguments_of(using, "Please use it", asked, answer).get("text") == value


def test_no_list_holds_a_refusal():
    using = tool("use_it", "", USE, extras=(list_of(TEXT), "The extras."))
    asked = "agent: Which extras would you like?"
    assert "extras" not in arguments_of(using, "Please use it", asked, "I do not know")
    assert arguments_of(using, "Please use it", asked, "a lamp").get("extras") == ["lamp"]


def test_none_is_an_answer_to_what_there_may_be_none_of():
    using = tool("use_it", "", USE, allergies=(TEXT, "What the guest is allergic to."))
    asked = "agent: Which allergies are there?"
    assert arguments_of(using, "Please use it", asked, "None")["allergies"] == "None"
    assert told("observer", "Nobody") is None


def test_of_a_sentence_only_the_clauses_that_give_something_are_left():
    street, day = Wanted("street"), Wanted("day")
    said = "I do not have it, the day is Tuesday and the street is Elm Road 4"
    assert without_denials(said).lstrip("·") == ", the day is Tuesday and the street is Elm Road 4"
    assert "Elm Road 4" in what_is_given(said, street, [day])
    assert what_is_given("I think the day is ·······.", street, [day]).strip("·. ") == ""
    assert not is_no_value("the day", street, [day])
    assert is_no_value("the day is", street, [day])


def reserve(telescope: str, night: str, observer: str) -> dict[str, str]:
    """Reserve a telescope for one night.

    Args:
        telescope: The name of the telescope, like Big Eye.
        night: The date, like 2031-03-04.
        observer: The name of the person who observes.
    """
    return {"booking": "OB78", "night": night}


def collect_laundry(street: str, day: str) -> dict[str, bool]:
    """Have laundry collected at the customer's home.

    Args:
        street: Street and house number where it is.
        day: The weekday.
    """
    return {"booked": True}


@pytest.mark.parametrize(
    "answer",
    [
        "The day is Tuesday. I do not have the street at hand.",
        "Tuesday. I don't know the street",
        "Tuesday, but I cannot tell you the street.",
        "The street is not at hand. Tuesday.",
        "I would rather not give my street. Tuesday.",
    ],
)
def test_what_was_not_told_is_asked_again(answer):
    calls, reply = ask([collect_laundry], "Please collect my laundry.", answer)
    assert calls == []
    assert reply.endswith("?") and "street" in reply, reply


def test_what_is_left_of_a_date_is_no_name():
    calls, reply = ask([reserve], "I want to reserve a telescope.", "I think the night is 2031-03-11.")
    assert calls == []
    assert "telescope" in reply and "observer" in reply and "night" not in reply.split("telescope")[0], reply


def test_words_that_a_result_repeats_serve_no_other_argument():
    using = tool(
        "use_it", "", USE,
        night=(TEXT, "The date, like 2031-03-04."), telescope=(TEXT, "The name of the telescope."),
    )  # fmt: skip
    asked = "agent: What is the night and which telescope would you like?"
    found = ("look_up", {}, {"night": "2031-03-11"})
    assert "telescope" not in arguments_of(using, "Use it", asked, "2031-03-11", found)


def test_a_planning_agent_asks_again_as_well():
    agent = create_respact_agent("offline", [reserve])
    state = agent.invoke({"messages": [("user", "I want to reserve a telescope.")]})
    state = agent.invoke({"messages": [*state["messages"], ("user", "I do not know the telescope.")]})
    assert not any(getattr(message, "tool_calls", None) for message in state["messages"])
    assert "telescope" in state["messages"][-1].text


def test_no_idea_refuses_nothing_so_the_value_still_counts_later():
    calls, reply = ask(
        [collect_laundry], "Please collect my laundry on Tuesday.", "No idea which street it is"
    )
    assert calls == [] and "street" in reply, reply
    later = ("No idea which street it is", "Ah, Elm Road 4")
    calls, _ = ask([collect_laundry], "Please collect my laundry on Tuesday.", *later)
    assert calls == [{"street": "Elm Road 4", "day": "Tuesday"}]


def test_my_thing_is_this_answers_the_question_for_it():
    first = "Please reserve a telescope, the Big Eye, on 2031-03-11."
    calls, _ = ask([reserve], first, "my observer is Ole Berg, not me today")
    assert [call["observer"] for call in calls] == ["Ole Berg"]
