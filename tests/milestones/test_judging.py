"""Judges: what may be one, when it is called, and which of its verdicts count."""

import pytest
from pydantic import ValidationError

from arq_graph import errors
from arq_graph.milestones import Verdict, ascore, parse_milestones, score
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.judged import GRAPH, make_talk

OFFER = Verdict("Offer Later", True, 5, "try again later", "the agent offers it")
CONSENT = Verdict("User Agrees", True, 6, "i  agree to WAIT")
TWO_CALLS = make_talk(called("get_status", "stuck"))  # calls 3 and 7


def score_with(*verdicts, graph=GRAPH, transcript=None):
    return score(graph, transcript or make_talk(), judge=lambda *_: verdicts)


def test_a_function_is_a_judge_that_closes_the_range_and_is_called_only_if_its_verdict_can_matter():
    assert score(GRAPH, make_talk()).progress_range == (1 / 4, 1)
    calls = []

    def judge(graph, transcript, observations):
        calls.append((graph, transcript.id, observations.undecided, observations.events))
        yield OFFER
        yield CONSENT

    result = score(GRAPH, make_talk(id="t1"), judge=judge)
    assert (result.goal_completed, result.progress_rate) == (True, 1)
    assert result.reached["Offer Later"] == 5
    assert result.judgement.verdicts == (OFFER, CONSENT)
    assert result.judgement.reasons == {"Offer Later": "the agent offers it"}
    # Without the call, what comes after it is out of reach, whatever a judge would say.
    score(GRAPH, conversation(user("hi"), agent("Please try again later.")), judge=judge)
    assert calls == [(GRAPH, "t1", ("Offer Later", "User Agrees"), {"get_status": (3,)})]


def test_a_denial_closes_the_range_and_an_undecided_verdict_does_not():
    denied = score_with(OFFER, Verdict("User Agrees", False, reason="nobody agrees"))
    assert (denied.goal_completed, denied.progress_rate, denied.undecided) == (False, 2 / 4, ())
    unclear = score_with(OFFER, Verdict("User Agrees", None, reason="unclear"))
    assert (unclear.goal_completed, unclear.progress_range) == (None, (2 / 4, 1))
    assert unclear.judgement.reasons["User Agrees"] == "unclear"


@pytest.mark.parametrize(
    ("step", "quote", "reason"),
    [
        (5, "call back tomorrow", "the quote is not in step 5"),
        (2, "try again later", "the quote is not in step 2"),
        (99, "try again later", "there is no step 99: the conversation has 6"),
        (None, "try again later", "no step is named"),
        (5, "  ", "the quote is not in step 5"),
        (5, "in", "too little to show anything"),
    ],
)
def test_a_verdict_without_evidence_does_not_count_and_the_score_says_why(step, quote, reason):
    result = score_with(Verdict("Offer Later", True, step, quote), CONSENT)
    assert "Offer Later" in result.undecided
    assert result.goal_completed is None
    assert reason in result.judgement.reasons["Offer Later"]


@pytest.mark.parametrize(
    ("quote", "text", "is_found"),
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
def test_a_quote_is_found_in_whole_words_and_must_be_long_enough(quote, text, is_found):
    graph = parse_milestones(
        "[{name: Start, type: NFC}, {name: Said, type: NFC}, {name: End, type: NFC, dependencies: [Said]}]"
    )
    result = score_with(Verdict("Said", True, 1, quote), graph=graph, transcript=conversation(agent(text)))
    assert ("Said" in result.reached) is is_found


@pytest.mark.parametrize(
    ("step", "quote", "calls", "reason"),
    [
        (3, "", (7,), ""),
        (4, "", (7,), ""),
        (None, "", None, ""),
        (5, "", (3, 7), "step 5 is no call of it"),
        (3, "the wrong id", (3, 7), "the quote is nowhere"),
    ],
)
def test_a_veto_names_a_call_by_its_step_or_that_of_its_result_or_means_every_call(
    step, quote, calls, reason
):
    result = score_with(Verdict("get_status", False, step, quote), transcript=TWO_CALLS)
    assert result.observations.events.get("get_status") == calls
    assert reason in result.judgement.reasons.get("get_status", "")


@pytest.mark.parametrize("achieved", [True, False])
def test_a_judge_grants_no_call_that_code_did_not_see_and_changes_nothing_that_code_decides(achieved):
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
    transcript = make_talk(called("other"), agent("Please try again later."))
    names = ("get_status", "Told", "Warned", "End")
    verdicts = [Verdict(name, achieved, 3, "get_status") for name in names]
    result = score_with(*verdicts, graph=graph, transcript=transcript)
    assert result.reached == score(graph, transcript).reached
    reasons = result.judgement.reasons
    assert "`check:` decides it" in reasons["Told"]
    assert "follows from its dependencies" in reasons["End"]
    assert ("code saw no genuine call" in reasons.get("get_status", "")) is achieved


def test_mistakes_of_a_judge_are_named():
    with pytest.raises(errors.InputError, match="'Offer Latr', which isn't a milestone"):
        score_with(Verdict("Offer Latr", True, 5, "try again later"))
    with pytest.raises(ValidationError, match="achieved"):
        Verdict("User Agrees", achieved="no")

    def my_judge(*_):
        return [OFFER, ("User Agrees", True)]

    with pytest.raises(errors.InputError, match=r"my_judge.* iterable of `Verdict`"):
        score(GRAPH, make_talk(), judge=my_judge)
    with pytest.raises(errors.InputError, match=r"int isn't a judge"):
        score(GRAPH, make_talk(), judge=42)


async def test_a_judge_may_be_a_coroutine_function_or_an_object_with_ajudge():
    async def judge(_graph, _transcript, _observations):
        return [OFFER, CONSENT]

    class Panel:
        async def ajudge(self, graph, transcript, observations):
            return [OFFER, CONSENT]

    expected = score_with(OFFER, CONSENT)
    for async_judge in (judge, Panel()):
        assert await ascore(GRAPH, make_talk(), judge=async_judge) == expected
        with pytest.raises(errors.InputError, match="for an async judge use `ascore`"):
            score(GRAPH, make_talk(), judge=async_judge)
    assert await ascore(GRAPH, make_talk(), judge=lambda *_: (OFFER, CONSENT)) == expected
