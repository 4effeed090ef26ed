from __future__ import annotations

import pytest

from arq_graph.milestones import MilestoneGraph, score
from tests.milestones.conversations import agent, called, conversation, user

GRAPH = MilestoneGraph.from_actions([{"name": "x"}])


def invented_arguments(transcript):
    return score(GRAPH, transcript).invented_arguments


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("my id is Mia_Li-3668.", "mia_li_3668"),
        ("ORDER  #W-17", "order #w-17"),
        ("it's ORD-123 45", "ORD12345"),
        ("call (555) 010-2020", "5550102020"),
        ("that is $1,203.50", 1203.5),
        ("that is 1203.5 dollars", "1,203.50"),
        ("one way, please", "one_way"),
        ("on May 20", "2024-05-20"),
        ("on May 20th, 2024", "2024-05-20"),
        ("on the 20th of May 2024", "2024-05-20"),
        ("on 5/20", "2024-05-20"),
        ("on 20.5.2024", "2024-05-20"),
        ("CAFÉ Zoë", "café zoë"),
        ("ﬁne", "fine"),
        ("anything", True),
        ("anything", None),
        ("anything", ""),
        ("anything", "--"),
    ],
)
def test_a_value_that_was_said_in_other_spelling_is_grounded(said, value):
    assert invented_arguments(conversation(user(said), called("x", it=value))) == {}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("my order 255", 25),
        ("flight HAT136", 136),
        ("from New York", "JFK"),
        ("on May 19", "2024-05-20"),
        ("on May 21", "2024-05-20"),
        ("Mia and Tom Li", "Mia Li"),
        ("it was for dinner", "ordinn"),
        ("nothing", 0),
        ("order 12 and 345", "A12345"),
    ],
)
def test_a_value_that_was_not_said_may_be_invented(said, value):
    assert invented_arguments(conversation(user(said), called("x", it=value))) == {2: ("it",)}


def test_only_what_the_customer_or_a_tool_said_before_the_call_counts():
    talk = conversation(
        agent("Is it order 17?"),
        called("find", "order 18", id=17),
        called("get", id=18),
        called("get", id=19),
        user("It is 19."),
    )
    assert invented_arguments(talk) == {2: ("id",), 6: ("id",)}


def test_values_inside_lists_and_objects_are_named_by_their_path():
    talk = conversation(
        user("For Mia Li"),
        called(
            "book",
            people=[{"first": "Mia", "last": "Li"}, {"first": "Tom", "last": "Li"}],
            options={"a": {"b": 3}},
        ),
    )
    assert invented_arguments(talk) == {2: ("people[1].first", "options.a.b")}


def test_arguments_nested_deeper_than_the_stack_are_looked_at():
    value: object = "Rome"
    for _ in range(3_000):
        value = [value]
    assert invented_arguments(conversation(user("to Rome"), called("book", to=value))) == {}
    assert invented_arguments(conversation(user("to Oslo"), called("book", to=value))) == {
        2: ("to" + "[0]" * 3_000,)
    }


def test_numbers_end_where_their_digits_do():
    talk = conversation(
        user("1,234,5678 and 1,234.56x and 7,890a"), called("x", a=1, b=234, c=1234, d=7, e=1234.56, f=5678)
    )
    assert invented_arguments(talk) == {2: ("a", "b", "e")}


def test_the_score_says_what_may_be_invented():
    graph = MilestoneGraph.from_actions([{"name": "get"}])
    measured = score(graph, conversation(user("hi"), called("get", id=17)))
    assert measured.goal_completed is True
    assert measured.invented_arguments == {2: ("id",)}
