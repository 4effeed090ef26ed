"""Who may judge, where a judge is asked, and how much of its word counts."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from arq_graph import errors
from arq_graph.milestones import Verdict, ascore, parse_milestones, score
from tests.milestones.conversations import agent, called, conversation, graph_of, user
from tests.milestones.judged import GRAPH, talk

OFFER = Verdict("Offer Later", True, 5, "try again later", "the agent offers it")
CONSENT = Verdict("User Agrees", True, 6, "i  agree to WAIT")
TWICE = talk(called("get_status", "stuck"))  # its calls are 3 and 7


def judged(*verdicts, graph=GRAPH, transcript=None):
    return score(graph, transcript or talk(), judge=lambda *_: verdicts)


def test_a_function_of_ones_own_is_a_judge_and_closes_the_range():
    assert score(GRAPH, talk()).progress_range == (1 / 4, 1)
    seen = []

    def judge(graph, transcript, observations):
        seen.append((graph, transcript.id, observations.undecided, observations.events))
        yield OFFER
        yield CONSENT

    measured = score(GRAPH, talk(id="t1"), judge=judge)
    assert seen == [(GRAPH, "t1", ("Offer Later", "User Agrees"), {"get_status": (3,)})]
    assert (measured.goal_completed, measured.progress_rate) == (True, 1)
    assert measured.reached["Offer Later"] == 5
    assert measured.judgement.reasons == {"Offer Later": "the agent offers it"}


def test_a_word_that_says_no_closes_the_range_and_one_that_cannot_tell_does_not():
    denied = judged(OFFER, Verdict("User Agrees", False, reason="nobody agrees"))
    assert (denied.goal_completed, denied.progress_rate, denied.undecided) == (False, 2 / 4, ())
    unclear = judged(OFFER, Verdict("User Agrees", None, reason="unclear"))
    assert (unclear.goal_completed, unclear.progress_range) == (None, (2 / 4, 1))
    assert unclear.judgement.reasons["User Agrees"] == "unclear"


@pytest.mark.parametrize(
    ("step", "quote", "why"),
    [
        (5, "call back tomorrow", "the quote is not in step 5"),
        (2, "try again later", "the quote is not in step 2"),
        (99, "try again later", "there is no step 99: the conversation has 6"),
        (None, "try again later", "no step is named"),
        (5, "  ", "the quote is not in step 5"),
        (5, "in", "too little to show anything"),
    ],
)
def test_a_word_without_evidence_counts_for_nothing_and_the_score_says_why(step, quote, why):
    measured = judged(Verdict("Offer Later", True, step, quote), CONSENT)
    assert "Offer Later" in measured.undecided
    assert measured.goal_completed is None
    assert why in measured.judgement.reasons["Offer Later"]


@pytest.mark.parametrize(
    ("quote", "text", "is_there"),
    [
        ("TRY  again\n later", "Please try\tagain later.", True),
        ("I don’t agree", "Well, I don't agree.", True),
        ("cafe\u0301 au lait", "One caf\u00e9 au lait", True),
        ("同意取消", "我同意取消", True),
        ("Yes", "Yes.", True),
        ("?!", "?!", True),
        ("in the", "It is in the box", False),
        ("yes", "Yes, and then some", False),
        ("again lat", "Please try again later.", False),
        ("order one", "I reorder one thing.", False),
        ("total is 10", "The total is 100", False),
    ],
)
def test_a_quote_is_found_in_whole_words_and_says_more_than_stands_in_any_text(quote, text, is_there):
    graph = graph_of(
        "[{name: Start, type: NFC}, {name: End, type: NFC, dependencies: [Said]}, {name: Said, type: NFC}]"
    )
    said = Verdict("Said", True, 1, quote)
    assert ("Said" in score(graph, conversation(agent(text)), judge=lambda *_: [said]).reached) is is_there


@pytest.mark.parametrize(
    ("step", "quote", "left", "why"),
    [
        (3, "", (7,), ""),
        (4, "", (7,), ""),
        (None, "", None, ""),
        (5, "", (3, 7), "step 5 is no call of it"),
        (3, "the wrong id", (3, 7), "the quote is nowhere"),
    ],
)
def test_a_veto_takes_a_call_away_by_its_step_or_that_of_its_result_or_all_of_them(step, quote, left, why):
    measured = judged(Verdict("get_status", False, step, quote), transcript=TWICE)
    assert measured.observations.events.get("get_status") == left
    assert why in measured.judgement.reasons.get("get_status", "")


def test_a_judge_grants_no_call_that_code_did_not_see_and_changes_nothing_that_code_decides():
    graph = parse_milestones("""
failed_if: stuck
milestones:
- {name: Start, type: NFC}
- {name: get_status, type: FC}
- {name: other, type: FC}
- {name: Told, type: NFC, check: {said_by: agent, pattern: again}, dependencies: [other]}
- {name: Warned, type: NFC, check: {said_by: agent, pattern: careful}, dependencies: [other]}
- {name: End, type: NFC, dependencies: [get_status, Told, Warned], requires: all}
""")
    transcript = talk(called("other"), agent("Please try again later."))
    for achieved in (True, False):
        names = ("get_status", "Told", "Warned", "End")
        said = [Verdict(name, achieved, 3, "get_status") for name in names]
        measured = judged(*said, graph=graph, transcript=transcript)
        assert measured.reached == score(graph, transcript).reached
        assert "`check:` decides it" in measured.judgement.reasons["Told"]
        assert "follows from its dependencies" in measured.judgement.reasons["End"]
        assert ("code saw no genuine call" in measured.judgement.reasons.get("get_status", "")) is achieved


def test_a_judge_is_asked_only_where_its_word_can_matter():
    asked = []

    def judge(_graph, _transcript, seen):
        asked.append(seen.undecided)
        return [OFFER, CONSENT]

    measured = score(GRAPH, talk(), judge=judge)
    assert measured.judgement.verdicts == (OFFER, CONSENT)
    assert (measured.goal_completed, measured.judgement.reasons) == (
        True,
        {"Offer Later": "the agent offers it"},
    )
    # Nothing was called: what comes after the call is out of reach, whatever a judge would say.
    score(GRAPH, conversation(user("hi"), agent("Please try again later.")), judge=judge)
    assert asked == [("Offer Later", "User Agrees")]


def test_mistakes_of_a_judge_are_named():
    with pytest.raises(errors.InputError, match="'Offer Latr', which isn't a milestone"):
        judged(Verdict("Offer Latr", True, 5, "try again later"))
    with pytest.raises(ValidationError, match="achieved"):
        Verdict("User Agrees", achieved="no")

    def my_judge(*_):
        return [OFFER, ("User Agrees", True)]

    with pytest.raises(errors.InputError, match=r"my_judge.* iterable of `Verdict`"):
        score(GRAPH, talk(), judge=my_judge)
    with pytest.raises(errors.InputError, match=r"int isn't a judge"):
        score(GRAPH, talk(), judge=42)


async def test_a_judge_may_be_async_a_coroutine_function_or_an_object_with_ajudge():
    async def judge(_graph, _transcript, observations):
        assert observations.undecided == ("Offer Later", "User Agrees")
        return [OFFER, CONSENT]

    class Panel:
        async def ajudge(self, graph, transcript, observations):
            return [OFFER, CONSENT]

    for each in (judge, Panel()):
        assert await ascore(GRAPH, talk(), judge=each) == judged(OFFER, CONSENT)
        with pytest.raises(errors.InputError, match="for an async judge use `ascore`"):
            score(GRAPH, talk(), judge=each)
    assert await ascore(GRAPH, talk(), judge=lambda *_: (OFFER, CONSENT)) == judged(OFFER, CONSENT)
