"""Several votes on each milestone: what most of them say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import BlueprintError, ModelRequestError
from arq_graph.milestones import score
from arq_graph.milestones.judging.llm_judge import LLMJudge
from tests.milestones.conversations import agent, called, user
from tests.milestones.judged import ALL_GOOD, GRAPH, model, says, talk

YES = says(True, 6, "I agree to wait", "they agree")
NO = says(False, reason="they do not")
LATER = says(True, 8, "I agree to that", "they agree at last")
UNCLEAR = says(None, reason="who knows")
INVENTED = says(True, 6, "I agree to everything")


def elected(*words, votes=None, **options):
    transcript = talk(agent("So?"), user("I agree to that, too."))
    brain = model(*(word if isinstance(word, BaseException) else {**ALL_GOOD, "M4": word} for word in words))
    return score(GRAPH, transcript, judge=LLMJudge(brain, votes=votes or len(words), **options))


@pytest.mark.parametrize(
    ("words", "step", "agreement"),
    [
        ((YES, YES, NO), 6, 2 / 3),
        ((YES, LATER, LATER), 8, 2 / 3),
        ((YES, YES, YES, NO, UNCLEAR), 6, 3 / 5),
        ((YES, YES, INVENTED), 6, 2 / 3),
    ],
)
def test_what_more_than_half_of_the_votes_say_is_the_verdict(words, step, agreement):
    measured = elected(*words)
    assert measured.reached["User Agrees"] == step
    assert measured.agreement["User Agrees"] == agreement
    assert measured.agreement["Offer Later"] == 1
    assert measured.reasons["User Agrees"].startswith("they agree")


def test_one_vote_decides_and_has_nobody_to_agree_with():
    measured = elected(YES)
    assert measured.reached["User Agrees"] == 6
    assert measured.agreement == {}


@pytest.mark.parametrize(
    ("words", "agreement"),
    [
        ((YES, NO), 1 / 2),
        ((YES, LATER, NO), 1 / 3),
        ((YES, YES, NO, NO), 1 / 2),
        ((UNCLEAR, UNCLEAR, YES), 2 / 3),
        ((INVENTED, INVENTED, YES), 2 / 3),
    ],
)
def test_without_a_majority_it_stays_undecided(words, agreement):
    measured = elected(*words)
    assert measured.undecided == ("User Agrees",)
    assert measured.goal_completed is None
    assert measured.agreement["User Agrees"] == agreement


def test_a_tie_is_told():
    assert elected(YES, NO).reasons["User Agrees"] == (
        "[undecided: no majority among 1 × achieved (step 6), 1 × not achieved]"
    )


def test_a_denial_is_one_word_whatever_step_it_names():
    measured = elected(NO, {**NO, "step": 5}, {**NO, "quote": "I agree to wait"})
    assert measured.goal_completed is False
    assert measured.agreement["User Agrees"] == 1


def test_vetoes_are_voted_on_too():
    def vetoed(*words):
        brain = model(*({**ALL_GOOD, "M2": word} for word in words))
        judge = LLMJudge(brain, votes=len(words))
        return score(GRAPH, talk(called("get_status", "at 90 %")), judge=judge)

    veto, stands, second = says(False), says(True, 3), says(True, 7)
    assert vetoed(veto, veto, stands).progress_rate == 0
    assert vetoed(veto, stands, stands).observations.events["get_status"] == (3, 7)
    assert vetoed(second, second, stands).observations.events["get_status"] == (7,)
    assert vetoed(stands, says(True)).agreement["get_status"] == 1
    torn = vetoed(veto, stands)
    assert torn.observations.events["get_status"] == (3, 7)
    assert torn.agreement["get_status"] == 1 / 2


def test_votes_that_failed_are_missing_and_do_not_count():
    measured = elected(YES, ModelRequestError("no such model"), NO, YES)
    assert measured.reached["User Agrees"] == 6
    assert measured.agreement["User Agrees"] == 2 / 3
    assert "1 of 4 votes are missing: ModelRequestError: no such model" in measured.reasons["User Agrees"]


def test_only_if_all_votes_failed_the_judge_did():
    lost = ModelRequestError("no such model")
    with pytest.raises(ModelRequestError):
        elected(lost, votes=3)
    assert elected(lost, votes=3, on_failure="undecided").undecided == ("Offer Later", "User Agrees")
    assert elected(lost, lost, YES).reached["User Agrees"] == 6


def test_an_answer_that_never_fits_is_a_missing_vote():
    measured = elected(YES, BlueprintError("no valid answer"), YES)
    assert measured.agreement["User Agrees"] == 1


@given(words=st.lists(st.sampled_from([YES, NO, LATER, UNCLEAR, INVENTED]), min_size=2, max_size=6))
@settings(max_examples=25)
def test_the_order_of_the_votes_does_not_matter(words):
    one, other = elected(*words), elected(*reversed(words))
    assert one.reached == other.reached
    assert one.undecided == other.undecided
    assert one.agreement == other.agreement
    assert 0 < one.agreement["User Agrees"] <= 1
