"""An answer that is streamed: what is told of it while it grows, and that nothing else differs from one that is not."""

from __future__ import annotations

import json

import pytest

from arq_graph import Question, errors, track_usage
from tests.reasoning.cases import GOOD, PROMPT, Verdict, scripted
from tests.reasoning.cases import reasoner_of as reasoner_with
from tests.reasoning.endpoint import Endpoint, broken, ok, refusal, status, text, tool_call

OVERLOADED = 'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'


def ask(runs, model, **settings):
    """The answer, or the error that it ended with, and what was told while it was written."""
    told = []
    reasoner = reasoner_with(model, **settings)
    question = Question(Verdict, PROMPT, on_partial=told.append)
    (answer,) = runs.call(reasoner.ask_all, reasoner.aask_all, [question])
    return answer, told


@pytest.mark.parametrize("refused", range(4))
def test_an_answer_is_told_as_it_grows_whatever_the_method_and_its_tokens_are_counted(runs, refused):
    around = f"<think>{{a}}</think> Sure: {json.dumps(GOOD)} That is it." if refused == 3 else GOOD
    with Endpoint([*[status(400)] * refused, ok(around)]) as endpoint, track_usage() as used:
        answer, told = ask(runs, endpoint.chat_model())
    assert (answer.value.model_dump(), told[-1]) == (GOOD, GOOD)
    assert all(request.body["stream"] for request in endpoint.requests)
    assert answer.usage["total_tokens"] == used.total["total_tokens"] > 0
    rationales = [each["rationale"] for each in told if "rationale" in each]
    assert len(set(rationales)) > 3
    assert all(GOOD["rationale"].startswith(each) for each in rationales)


@pytest.mark.parametrize("breaking", [broken(GOOD), broken(GOOD, OVERLOADED)], ids=["lost", "overloaded"])
def test_an_answer_that_breaks_off_is_asked_for_again_and_told_from_its_beginning(runs, breaking):
    with Endpoint([breaking, ok(GOOD)]) as endpoint:
        answer, told = ask(runs, endpoint.chat_model())
    begins = [number for number, each in enumerate(told) if not each]
    assert (answer.value.model_dump(), begins[0], len(begins), endpoint.calls) == (GOOD, 0, 2, 2)
    assert told[begins[1] - 1].keys() < GOOD.keys()


def test_a_provider_that_refuses_to_stream_gives_its_answers_at_once_from_then_on(runs):
    no = status(400, "Your organization must be verified to stream this model.")
    with Endpoint([no, ok(GOOD), ok(GOOD)]) as endpoint:
        asked = [ask(runs, endpoint.chat_model()) for _ in range(2)]
    assert [told[-2:] for _, told in asked] == [[{}, GOOD]] * 2
    assert [bool(request.body.get("stream")) for request in endpoint.requests] == [True, False, False]
    assert endpoint.methods == ["json_schema"] * 3


def test_an_error_upstream_is_no_refusal_to_stream(runs):
    with Endpoint([status(500, "upstream connect error"), ok(GOOD)]) as endpoint:
        ask(runs, endpoint.chat_model())
    assert all(request.body["stream"] for request in endpoint.requests)


def test_a_model_that_is_set_not_to_stream_does_not():
    with Endpoint([ok(GOOD)]) as endpoint:
        reasoner = reasoner_with(endpoint.chat_model(disable_streaming=True))
        told = []
        reasoner.ask_all([Question(Verdict, PROMPT, on_partial=told.append)])
    assert (told, bool(endpoint.requests[0].body.get("stream"))) == ([{}, GOOD], False)


def test_a_refusal_is_one_and_arguments_that_were_cut_off_are_not_taken_for_whole(runs):
    with Endpoint([refusal("I will not.")]) as endpoint:
        answer, _ = ask(runs, endpoint.chat_model())
    assert isinstance(answer, errors.RefusalError)
    cut = tool_call("Verdict", '{"score": 3, "certain": true, "rationale": "The order is')
    with Endpoint([status(400), cut, ok(GOOD)]) as endpoint:
        answer, _ = ask(runs, endpoint.chat_model())
    assert (answer.value.model_dump(), len(answer.attempts)) == (GOOD, 2)
    cut = text(json.dumps(GOOD)[:40], finish_reason="length")
    with Endpoint([cut, ok(GOOD)]) as endpoint:
        ask(runs, endpoint.chat_model(max_tokens=10))
    assert [each.body["max_completion_tokens"] for each in endpoint.requests] == [10, 20]


def test_an_answer_that_goes_on_beyond_its_time_ends():
    answer, told = ask_sync(scripted(lambda call: GOOD), timeout=1e-5)
    assert isinstance(answer, errors.ModelUnavailableError)
    assert told


def ask_sync(model, **settings):
    told = []
    (answer,) = reasoner_with(model, **settings).ask_all([Question(Verdict, PROMPT, on_partial=told.append)])
    return answer, told


SMILE = "\\ud83d\\ude00"


@pytest.mark.parametrize(
    ("written", "last"),
    [
        (f'{{"rationale": "a{SMILE}\\"b\\\\{SMILE}", "score": 8, "certain": true}}', 'a😀"b\\😀'),
        ('{"rationale": "a\n  b", "score": 8, "certain": true}', "a\n  b"),  # which JSON forbids
        ('{"rationale": "a' + "\\u00e4" * 9 + '", "score": 8, "certain": true}', "a" + "ä" * 9),
        ('{"rationale": [1] oh {"rationale": "a", "score": 8, "certain": true}', "a"),
    ],
)
def test_what_is_told_is_a_beginning_of_what_comes(written, last):
    answer, told = ask_sync(scripted([written]))
    assert answer.value.rationale == last
    heard = [each.get("rationale", "") for each in told]
    assert heard[-1] == last
    assert all(last.startswith(each) for each in heard if isinstance(each, str))
