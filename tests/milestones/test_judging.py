"""Who may judge, where a judge is asked, and how much of its word counts."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from arq_graph.errors import InputError
from arq_graph.milestones import MilestoneGraph, Verdict, observe, score
from arq_graph.milestones.judging.judge import in_question
from arq_graph.milestones.reports.records import conversation_record
from arq_graph.milestones.scoring import ascore
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.judged import GRAPH, talk

OFFER = Verdict("Offer Later", True, 5, "try again later", "the agent offers it")
CONSENT = Verdict("User Agrees", True, 6, "i  agree to WAIT")


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
    assert measured.goal_completed is True
    assert measured.progress_rate == 1
    assert measured.reached["Offer Later"] == 5
    assert measured.verdicts == (OFFER, CONSENT)
    assert measured.reasons == {"Offer Later": "the agent offers it"}


def test_a_word_that_says_no_closes_the_range_too():
    measured = judged(OFFER, Verdict("User Agrees", False, reason="nobody agrees"))
    assert measured.goal_completed is False
    assert measured.progress_rate == 2 / 4
    assert measured.undecided == ()


def test_what_the_judge_cannot_tell_stays_undecided():
    measured = judged(OFFER, Verdict("User Agrees", None, reason="unclear"))
    assert measured.goal_completed is None
    assert measured.progress_range == (2 / 4, 1)
    assert measured.undecided == ("User Agrees",)
    assert measured.reasons["User Agrees"] == "unclear"


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (Verdict("Offer Later", True, 5, "call back tomorrow"), "the quote is not in step 5"),
        (Verdict("Offer Later", True, 2, "try again later"), "the quote is not in step 2"),
        (Verdict("Offer Later", True, 99, "try again later"), "there is no step 99: the conversation has 6"),
        (Verdict("Offer Later", True, None, "try again later"), "no step is named"),
        (Verdict("Offer Later", True, 5, "  "), "nothing is quoted from step 5"),
        (Verdict("Offer Later", True, 5, "in"), "too little to show anything"),
    ],
)
def test_a_word_without_evidence_counts_for_nothing_and_the_score_says_why(verdict, why):
    measured = judged(verdict, CONSENT)
    assert "Offer Later" in measured.undecided
    assert "Offer Later" not in measured.reached
    assert measured.goal_completed is None
    assert why in measured.reasons["Offer Later"]
    assert any(why in str(remark) for remark in measured.judgement.remarks)


def test_a_judge_takes_a_call_away():
    twice = talk(called("get_status", "stuck"))
    assert score(GRAPH, twice).observations.events["get_status"] == (3, 7)
    first = judged(Verdict("get_status", False, 3), transcript=twice)
    assert first.observations.events["get_status"] == (7,)
    every = judged(Verdict("get_status", False), transcript=twice)
    assert "get_status" not in every.observations.events
    assert every.progress_rate == 0


def test_a_veto_may_name_the_result_instead_of_the_call():
    assert "get_status" not in judged(Verdict("get_status", False, 4)).reached


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (Verdict("get_status", False, 5), "step 5 is no call of it"),
        (Verdict("get_status", False, 99), "step 99 is no call of it"),
        (Verdict("get_status", False, 3, quote="the wrong id"), "the quote is nowhere in the conversation"),
    ],
)
def test_a_veto_of_what_is_no_call_or_with_an_invented_quote_takes_nothing_away(verdict, why):
    measured = judged(verdict)
    assert measured.reached["get_status"] == 3
    assert why in measured.reasons["get_status"]


def test_a_judge_grants_no_call_that_code_did_not_see():
    failing = conversation(user("hi"), called("get_status", "stuck"), called("other", "ok"))
    graph = MilestoneGraph.parse_yaml("""
failed_if: stuck
milestones:
- {name: Start, type: NFC}
- {name: get_status, type: FC}
- {name: other, type: FC}
- {name: End, type: NFC, dependencies: [get_status]}
""")
    measured = judged(Verdict("get_status", True, 2, quote="get_status({})"), graph=graph, transcript=failing)
    assert measured.goal_completed is False
    assert "code saw no genuine call" in measured.reasons["get_status"]


@pytest.mark.parametrize("achieved", [True, False])
def test_what_a_check_decides_no_judge_changes(achieved):
    graph = MilestoneGraph.parse_yaml("""
milestones:
- {name: Start, type: NFC}
- {name: get_status, type: FC}
- {name: Told, type: NFC, check: {said_by: agent, pattern: stuck}, dependencies: [get_status]}
- {name: Warned, type: NFC, check: {said_by: agent, pattern: "careful"}, dependencies: [get_status]}
- {name: End, type: NFC, dependencies: [Told, Warned], requires: all}
""")
    verdicts = [Verdict(name, achieved, 5, "Please try again later") for name in ("Told", "Warned")]
    alone, measured = score(graph, talk()), judged(*verdicts, graph=graph)
    assert measured.reached == alone.reached
    assert "Told" in measured.reached
    assert "Warned" not in measured.reached
    assert "`check:` decides it" in measured.reasons["Told"]


def test_joins_and_the_two_ends_follow_from_what_is_before_them():
    measured = judged(Verdict("End", True, 6, "I agree to wait"))
    assert measured.goal_completed is None
    assert "follows from its dependencies" in measured.reasons["End"]


def test_verdicts_that_were_given_before_are_not_asked_again():
    asked = []

    def judge(_graph, _transcript, observations):
        asked.append(observations.undecided)
        return [CONSENT]

    measured = score(GRAPH, talk(), verdicts=[OFFER], judge=judge)
    assert asked == [("User Agrees",)]
    assert measured.verdicts == (OFFER, CONSENT)
    assert measured.goal_completed is True


def test_a_judge_is_not_asked_where_its_word_cannot_matter():
    def judge(*_):
        raise AssertionError("asked")

    # Nothing was called: what comes after the call is out of reach, whatever a judge would say.
    measured = score(GRAPH, conversation(user("hi"), agent("Please try again later.")), judge=judge)
    assert measured.progress_rate == 0
    assert measured.goal_completed is False


def test_in_question_are_the_undecided_and_the_calls_as_far_as_they_can_be_reached():
    def names(transcript, **options):
        observations = observe(GRAPH, transcript)
        return [milestone.name for milestone in in_question(GRAPH, observations, **options)]

    assert names(talk()) == ["get_status", "Offer Later", "User Agrees"]
    assert names(talk(), veto=False) == ["Offer Later", "User Agrees"]
    # After the result of the call there is one event left: enough for the offer, not for the consent.
    assert names(conversation(called("get_status", "ok"))) == ["get_status", "Offer Later"]
    assert names(conversation(user("hi"))) == []


def test_a_word_on_an_unknown_milestone_is_an_error():
    with pytest.raises(InputError, match="'Offer Latr', which is no milestone"):
        judged(Verdict("Offer Latr", True, 5, "try again later"))


@pytest.mark.parametrize("field", [{"achieved": "no"}, {"event": 6.0}, {"event": True}, {"quote": None}])
def test_a_verdict_with_a_field_of_another_kind_is_refused(field):
    with pytest.raises(ValidationError, match=next(iter(field))):
        Verdict(**{"milestone": "User Agrees", "achieved": True, "event": 6, **field})


def test_a_denial_that_another_verdict_contradicts_does_not_count_and_that_is_said():
    denial = Verdict("User Agrees", False, reason="nobody does")
    for verdicts in ((CONSENT, denial), (denial, CONSENT)):
        measured = judged(OFFER, *verdicts)
        assert measured.reached["User Agrees"] == 6
        assert [str(remark) for remark in measured.judgement.remarks] == [
            "User Agrees: not counted: another verdict finds it achieved at step 6"
        ]
    assert judged(OFFER, denial, denial).judgement.remarks == ()
    assert judged(OFFER, CONSENT, CONSENT).judgement.remarks == ()
    later = score(GRAPH, talk(), verdicts=[OFFER, CONSENT], judge=lambda *_: [denial])
    assert "another verdict finds it achieved at step 6" in later.reasons["User Agrees"]


def test_a_veto_that_is_repeated_is_no_mistake():
    twice = talk(called("get_status", "stuck"))
    first, every = Verdict("get_status", False, 3), Verdict("get_status", False)
    for verdicts in ((first, first), (first, every), (every, first), (every, every)):
        measured = judged(*verdicts, transcript=twice)
        assert measured.observations.events.get("get_status") == ((7,) if every not in verdicts else None)
        assert measured.judgement.remarks == ()


@pytest.mark.parametrize(
    ("event", "veto", "why"),
    [
        (3, Verdict("get_status", False, 3), "another verdict takes the call at step 3 away"),
        (4, Verdict("get_status", False), "another verdict takes the call at step 3 away"),
        (None, Verdict("get_status", False), "other verdicts take all of its calls away"),
        (7, Verdict("get_status", False, 3), None),
        (None, Verdict("get_status", False, 3), None),
    ],
)
def test_a_call_that_one_verdict_confirms_and_another_takes_away_is_said(event, veto, why):
    confirms = Verdict("get_status", True, event)
    for verdicts in ((confirms, veto), (veto, confirms)):
        measured = judged(*verdicts, transcript=talk(called("get_status", "stuck")))
        assert [remark.text for remark in measured.judgement.remarks] == (
            [f"not counted: {why}"] if why else []
        )


@pytest.mark.parametrize("said", [None, 7, "achieved", [True], [OFFER, ("User Agrees", True)]])
def test_a_judge_that_gives_no_verdicts_is_named(said):
    def my_judge(*_):
        return said

    with pytest.raises(InputError, match=r"my_judge.* iterable of `Verdict`"):
        score(GRAPH, talk(), judge=my_judge)


async def test_a_coroutine_function_is_an_async_judge():
    async def judge(_graph, _transcript, observations):
        assert observations.undecided == ("Offer Later", "User Agrees")
        return [OFFER, CONSENT]

    measured = await ascore(GRAPH, talk(), judge=judge)
    assert measured == judged(OFFER, CONSENT)
    with pytest.raises(InputError, match="async judge: use `ascore`"):
        score(GRAPH, talk(), judge=judge)


async def test_an_object_with_ajudge_is_an_async_judge():
    class Panel:
        async def ajudge(self, graph, transcript, observations):
            return [OFFER, CONSENT]

    class Callable(Panel):
        async def __call__(self, graph, transcript, observations):
            raise AssertionError("`ajudge` is preferred")

    for judge in (Panel(), Callable()):
        assert (await ascore(GRAPH, talk(), judge=judge)).goal_completed is True
        with pytest.raises(InputError, match=r"(Panel|Callable)\b.* is an async judge: use `ascore`"):
            score(GRAPH, talk(), judge=judge)


async def test_a_plain_function_judges_in_an_async_score_too():
    assert await ascore(GRAPH, talk(), judge=lambda *_: (OFFER, CONSENT)) == judged(OFFER, CONSENT)
    assert await ascore(GRAPH, talk(), verdicts=[OFFER]) == score(GRAPH, talk(), verdicts=[OFFER])
    with pytest.raises(InputError, match="iterable of `Verdict`"):
        await ascore(GRAPH, talk(), judge=42)


def test_a_report_tells_why_the_judge_decided_so():
    transcript = talk()
    measured = judged(OFFER, Verdict("User Agrees", True, 6, "never said", "they do"))
    record = conversation_record(transcript, measured)
    assert record.reasons["Offer Later"] == "the agent offers it"
    assert record.reasons["User Agrees"] == (
        "they do [not counted: the quote is not in step 6: 'never said']"
    )
    assert type(record).model_validate_json(record.model_dump_json()) == record


def test_without_a_judge_nothing_is_said():
    measured = score(GRAPH, talk())
    assert measured.verdicts == ()
    assert measured.reasons == {} == measured.agreement
