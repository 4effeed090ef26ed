"""A yes is spent when the call is written: what was cut off is finished on resume, and nothing runs twice."""

from __future__ import annotations

import pytest

from arq_graph import resume_or_invoke
from tests.agreement.desk import SETTINGS, THREAD, Cut, Desk


@pytest.fixture(params=SETTINGS)
def cut_off(request: pytest.FixtureRequest) -> Desk:
    """A desk that lost its process while the call ran that the customer had agreed to."""
    desk = Desk(request.param)
    desk.asked()
    desk.cut = True
    with pytest.raises(Cut):
        desk.say("Yes")
    assert desk.done == []
    return desk


def test_resuming_finishes_a_call_whose_yes_is_spent(cut_off):
    resume_or_invoke(cut_off.app, None, THREAD, durability="sync")
    assert cut_off.done == [("A-1", True)]
    cut_off.say("Yes")
    assert cut_off.done == [("A-1", True)]


def test_a_new_message_abandons_it_and_no_second_yes_runs_it(cut_off):
    cut_off.say("Yes")
    (result,) = [message for message in cut_off.state["messages"] if message.type == "tool"]
    assert result.text.startswith("abandoned")
    assert cut_off.done == []


@pytest.mark.parametrize("strategy", SETTINGS)
def test_a_turn_that_was_cut_off_before_its_reply_put_nothing(strategy):
    desk = Desk(strategy)
    answer = desk.answer

    def cut(call):
        if call.module == "message":
            raise Cut
        return answer(call)

    desk.answer = cut
    with pytest.raises(Cut):
        desk.say("Please cancel A-1.")
    assert desk.state.get("agreements", []) == []
