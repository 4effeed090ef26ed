"""A streamed answer: what is reported while it is written; nothing else differs from an answer that isn't streamed."""

import json

import pytest

from arq_graph import Question, errors, track_usage
from tests.reasoning.cases import GOOD, PROMPT, Verdict, make_reasoner, script_model
from tests.reasoning.endpoint import Endpoint, broken, ok, refusal, status, text, tool_call
from tests.running import Runs

SYNC = Runs(None)
OVERLOADED = 'data: {"error": {"message": "overloaded", "type": "server_error"}}\n\n'


def ask(model, runs=SYNC, **settings):
    """Return the answer, or the error that it ended with, and the partial answers."""
    partials = []
    reasoner = make_reasoner(model, **settings)
    question = Question(Verdict, PROMPT, on_partial=partials.append)
    (answer,) = runs.call(reasoner.ask_all, reasoner.aask_all, [question])
    return answer, partials


@pytest.mark.parametrize(
    ("runs", "refused"), [("sync", 0), ("async", 1), ("sync", 2), ("async", 3)], indirect=["runs"]
)
def test_an_answer_is_reported_as_it_grows_by_every_method_and_its_tokens_are_counted(runs, refused):
    reply = f"<think>{{a}}</think> Sure: {json.dumps(GOOD)} That is it." if refused == 3 else GOOD
    with Endpoint([*[status(400)] * refused, ok(reply)]) as endpoint, track_usage() as usage:
        answer, partials = ask(endpoint.chat_model(), runs)
    assert (answer.value.model_dump(), partials[-1]) == (GOOD, GOOD)
    assert all(request.body["stream"] for request in endpoint.requests)
    assert answer.usage["total_tokens"] == usage.total["total_tokens"] > 0
    rationales = [partial["rationale"] for partial in partials if "rationale" in partial]
    assert len(set(rationales)) > 3
    assert all(GOOD["rationale"].startswith(rationale) for rationale in rationales)


@pytest.mark.parametrize("reply", [broken(GOOD), broken(GOOD, OVERLOADED)], ids=["lost", "overloaded"])
def test_an_answer_that_breaks_off_is_asked_again_and_reported_from_its_beginning(runs, reply):
    with Endpoint([reply, ok(GOOD)]) as endpoint:
        answer, partials = ask(endpoint.chat_model(), runs)
    starts = [index for index, partial in enumerate(partials) if not partial]
    assert (answer.value.model_dump(), starts[0], len(starts), endpoint.calls) == (GOOD, 0, 2, 2)
    assert partials[starts[1] - 1].keys() < GOOD.keys()


def test_a_provider_that_refuses_to_stream_is_asked_without_streaming_from_then_on():
    refused = status(400, "Your organization must be verified to stream this model.")
    with Endpoint([refused, ok(GOOD), ok(GOOD)]) as endpoint:
        for _ in range(2):
            _, partials = ask(endpoint.chat_model())
            assert partials[-2:] == [{}, GOOD]
    assert [bool(request.body.get("stream")) for request in endpoint.requests] == [True, False, False]
    assert endpoint.methods == ["json_schema"] * 3


def test_an_upstream_error_is_not_a_refusal_to_stream():
    with Endpoint([status(500, "upstream connect error"), ok(GOOD)]) as endpoint:
        ask(endpoint.chat_model())
    assert all(request.body["stream"] for request in endpoint.requests)


def test_a_model_that_is_set_not_to_stream_does_not():
    with Endpoint([ok(GOOD)]) as endpoint:
        _, partials = ask(endpoint.chat_model(disable_streaming=True))
    assert (partials, bool(endpoint.requests[0].body.get("stream"))) == ([{}, GOOD], False)


def test_refusals_and_cut_off_answers_are_recognized_in_a_stream():
    with Endpoint([refusal("I will not.")]) as endpoint:
        answer, _ = ask(endpoint.chat_model())
    assert isinstance(answer, errors.RefusalError)
    cut = tool_call("Verdict", '{"score": 3, "certain": true, "rationale": "The order is')
    with Endpoint([status(400), cut, ok(GOOD)]) as endpoint:
        answer, _ = ask(endpoint.chat_model())
    assert (answer.value.model_dump(), len(answer.attempts)) == (GOOD, 2)
    cut = text(json.dumps(GOOD)[:40], finish_reason="length")
    with Endpoint([cut, ok(GOOD)]) as endpoint:
        ask(endpoint.chat_model(max_tokens=10))
    assert [request.body["max_completion_tokens"] for request in endpoint.requests] == [10, 20]


SMILE = "\\ud83d\\ude00"


@pytest.mark.parametrize(
    ("reply", "rationale"),
    [
        (f'{{"rationale": "a{SMILE}\\"b\\\\{SMILE}", "score": 8, "certain": true}}', 'a😀"b\\😀'),
        ('{"rationale": "a\n  b", "score": 8, "certain": true}', "a\n  b"),  # which JSON forbids
        ('{"rationale": "a' + "\\u00e4" * 9 + '", "score": 8, "certain": true}', "a" + "ä" * 9),
        ('{"rationale": [1] oh {"rationale": "a", "score": 8, "certain": true}', "a"),
    ],
)
def test_every_partial_answer_is_a_beginning_of_the_answer(reply, rationale):
    answer, partials = ask(script_model([reply]))
    assert answer.value.rationale == rationale
    reported = [partial.get("rationale", "") for partial in partials]
    assert reported[-1] == rationale
    assert all(rationale.startswith(value) for value in reported if isinstance(value, str))
