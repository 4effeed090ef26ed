"""An arm of one's own that takes something else than it is given is refused before a conversation is held."""

from __future__ import annotations

import functools

import pytest

from arq_graph.apps.arms import arm
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import Arms
from arq_graph.milestones.evaluation.running import evaluate
from tests.apps.test_arms import agent, suite

WRONG = "cannot be called with (scenario, agent, model): it takes (messages)"


class Echo:
    """An app that says back what it is told."""

    def invoke(self, input, config=None):
        return input["messages"][-1].text


def plain(messages):
    return messages


def right(scenario, agent, model):
    return Echo()


class Maker:
    def __call__(self, *given):
        return Echo()


def with_further(scenario, agent, model, *, further):
    return Echo()


def test_a_function_of_the_messages_is_told_what_it_is_given():
    with pytest.raises(InputError) as raised:
        evaluate(suite(agent()), {"mine": plain}, model="offline")
    assert WRONG in str(raised.value)
    assert "'mine'" in str(raised.value)


def test_a_function_that_is_named_is_refused_as_it_is_read(tmp_path):
    (tmp_path / "named_arms.py").write_text("def plain(messages):\n    return messages\n", encoding="utf-8")
    with pytest.raises(InputError) as raised:
        arm("named_arms:plain", folder=tmp_path)
    assert WRONG in str(raised.value)


@pytest.mark.parametrize("made", [right, Maker(), functools.partial(with_further, further=1), Echo(), type])
def test_whatever_takes_the_three_is_an_arm(made):
    assert Arms({"mine": made}).names == ("mine",)


def test_a_class_of_apps_makes_one_where_it_takes_the_three_and_is_refused_otherwise():
    class Takes(Echo):
        def __init__(self, scenario, agent, model):
            pass

    report = evaluate(suite(agent()), {"mine": Takes}, model="offline")
    assert [one.error for one in report.conversations] == [None]
    with pytest.raises(InputError, match="cannot be called with"):
        Arms({"mine": Echo})


def test_a_keyword_that_nothing_gives_is_refused():
    with pytest.raises(InputError, match=r"it takes .*further"):
        Arms({"mine": with_further})


def test_a_type_error_of_a_right_functions_own_is_told_as_it_is():
    def calls_wrongly(scenario, agent, model):
        return plain(scenario, agent)

    (broken,) = evaluate(suite(agent()), {"mine": calls_wrongly}, model="offline").broken
    assert "the arm could not be made: TypeError: plain() takes 1 positional argument" in broken.error
