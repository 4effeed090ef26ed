"""The offline model as judge: plain word overlap, with quotes that stand."""

from __future__ import annotations

import pytest

from arq_graph.milestones import parse_yaml, score
from arq_graph.milestones.judging.llm_judge import LLMJudge
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.judged import GRAPH, talk

MODES = ("arq", "cot", "direct")


@pytest.mark.parametrize("mode", MODES)
def test_it_quotes_the_sentence_that_says_it(mode):
    measured = score(GRAPH, talk(), judge=LLMJudge("offline", mode=mode))
    assert measured.goal_completed is True
    assert measured.reached["Offer Later"] == 5
    assert measured.judgement.remarks == ()
    offer = next(verdict for verdict in measured.verdicts if verdict.milestone == "Offer Later")
    assert "try again later" in offer.quote


@pytest.mark.parametrize("mode", MODES)
def test_what_nobody_says_is_not_achieved(mode):
    transcript = conversation(
        user("My download is stuck."), called("get_status", "stuck"), agent("Your parcel is on its way.")
    )
    measured = score(GRAPH, transcript, judge=LLMJudge("offline", mode=mode))
    assert measured.goal_completed is False
    assert measured.undecided == ()
    assert measured.reasons["Offer Later"] == "Nobody says anything like it."


def test_the_words_have_to_be_those_of_the_one_whom_the_description_names():
    graph = parse_yaml("""
milestones:
- {name: Start, type: NFC}
- {name: Confirmed, type: NFC, description: The customer confirms the cancellation.}
- {name: End, type: NFC, dependencies: [Confirmed]}
""")
    agents = conversation(user("Cancel it."), agent("I confirm the cancellation."), user("Hm."))
    assert "Confirmed" not in score(graph, agents, judge=LLMJudge("offline")).reached
    users = conversation(agent("Shall I?"), user("Yes, I confirm the cancellation."))
    assert score(graph, users, judge=LLMJudge("offline")).reached["Confirmed"] == 2


def test_it_looks_after_the_calls_that_come_before():
    transcript = conversation(
        agent("You may want to try again later."),
        called("get_status", "stuck"),
        agent("As I offer: please try again later."),
    )
    measured = score(GRAPH, transcript, judge=LLMJudge("offline"))
    assert measured.reached["Offer Later"] == 4
