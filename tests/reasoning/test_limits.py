"""The bounds of a call, whatever the endpoint sends: its time, its length, its threads, and a caller who gives up."""

import asyncio
import json
import threading
from socket import gaierror

import pytest
from langchain_core.messages import AIMessage
from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

from arq_graph import Question, errors, track_usage
from arq_graph.reasoning.deadlines import MAX_ABANDONED
from tests.reasoning.cases import GOOD, PROMPT, Verdict, make_reasoner, script_model
from tests.reasoning.endpoint import Endpoint, drip, endless, ok, status, text, tool_call
from tests.running import Runs

SYNC = Runs(None)
WORDS = {"content": "aaaa "}
MANY_WORDS = {"content": "aaaa " * 5_000}
ARGUMENTS = {"tool_calls": [{"index": 0, "function": {"arguments": "aaaa " * 5_000}}]}


def ask(model, runs=SYNC, on_partial=None, **settings):
    """Return the answer, or the error that it ended with."""
    reasoner = make_reasoner(model, **settings)
    question = Question(Verdict, PROMPT, on_partial=on_partial)
    (answer,) = runs.call(reasoner.ask_all, reasoner.aask_all, [question])
    return answer


def ignore(partial):
    """Stream the answer, and do nothing with it."""


# Time


@pytest.mark.parametrize("on_partial", [None, ignore], ids=["whole", "streamed"])
def test_an_answer_that_comes_byte_by_byte_ends_when_its_time_is_up(runs, on_partial):
    with Endpoint(lambda request: drip(GOOD)) as endpoint:
        answer = ask(endpoint.chat_model(), runs, on_partial, timeout=0.5)
        if endpoint.calls:  # otherwise a busy machine took all the time
            endpoint.has_lost_client.wait()
    assert isinstance(answer, errors.ModelUnavailableError)


def test_a_fallback_answers_for_a_model_whose_answer_never_ends(runs):
    with Endpoint(lambda request: drip(GOOD)) as endpoint:
        answer = ask(endpoint.chat_model(), runs, timeout=0.5, fallbacks=[script_model([GOOD])])
    assert answer.value.model_dump() == GOOD


def test_an_answer_that_comes_when_its_time_is_up_does_not_end_the_call_after_it():
    is_given_up = threading.Event()
    late_threads = []

    def answer_late(call):
        late_threads.append(threading.current_thread())
        is_given_up.wait()
        return GOOD

    def answer_after_the_late_one(call):
        is_given_up.set()
        late_threads[0].join()
        return GOOD | {"rationale": "the fallback's"}

    answer = ask(script_model(answer_late), timeout=0.1, fallbacks=[script_model(answer_after_the_late_one)])
    assert answer.value.rationale == "the fallback's"


def test_a_streamed_answer_without_an_end_is_reported_until_its_time_is_up(runs):
    partials = []
    with Endpoint(lambda request: endless(WORDS)) as endpoint:
        answer = ask(endpoint.chat_model(), runs, partials.append, timeout=0.5)
        count = len(partials)
    assert isinstance(answer, errors.ModelUnavailableError)
    assert len(partials) == count > 0


async def test_a_caller_who_is_cancelled_ends_the_call():
    begun = asyncio.Event()
    opening = {"content": '{"rationale": "a'}
    with Endpoint(lambda request: endless(opening)) as endpoint:
        reasoner = make_reasoner(endpoint.chat_model())
        question = Question(Verdict, PROMPT, on_partial=lambda partial: partial and begun.set())
        for _ in range(5):
            begun.clear()
            asking = asyncio.create_task(reasoner.aask_all([question]))
            await begun.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
    assert endpoint.calls == 5


def test_only_so_many_calls_can_be_left_open_when_their_time_is_up():
    is_closed = threading.Event()

    def answer(call):
        is_closed.wait()
        return GOOD

    model = script_model(answer)
    for _ in range(MAX_ABANDONED):
        assert isinstance(ask(model, timeout=0.01), errors.ModelUnavailableError)
    refused = ask(model)
    assert isinstance(refused, errors.ModelUnavailableError)
    assert f"{MAX_ABANDONED} earlier calls were still being answered" in str(refused)
    assert len(model.calls) <= MAX_ABANDONED
    is_closed.set()
    for thread in threading.enumerate():
        if thread.name == "arq_graph-call":
            thread.join()
    assert ask(model).value.model_dump() == GOOD


# Length


@pytest.mark.parametrize("replies", [[endless(MANY_WORDS)], [status(400), endless(ARGUMENTS)]])
def test_a_streamed_answer_without_an_end_is_an_error_once_it_is_too_long(runs, replies):
    with Endpoint(replies) as endpoint:
        answer = ask(endpoint.chat_model(), runs, ignore)
    assert isinstance(answer, errors.BlueprintError)
    assert "longer than 400,000 characters" in str(answer)
    assert answer.attempts[0].text.startswith("aaaa aaaa")


LONG = "a" * 400_001


@pytest.mark.parametrize(
    "replies", [[text(LONG)], [status(400), tool_call("Verdict", json.dumps({"rationale": LONG}))]]
)
def test_an_answer_that_is_too_long_is_an_error_without_streaming_too(runs, replies):
    with Endpoint(replies) as endpoint:
        answer = ask(endpoint.chat_model(), runs)
    assert isinstance(answer, errors.BlueprintError)
    assert "set max_tokens on the model" in str(answer)


@pytest.mark.parametrize("on_partial", [None, ignore], ids=["whole", "streamed"])
def test_reasoning_counts_as_part_of_an_answer(on_partial):
    thinking = AIMessage([{"type": "thinking", "thinking": LONG}])
    for message in (thinking, AIMessage("{}", additional_kwargs={"reasoning_content": LONG})):
        answer = ask(script_model([message]), on_partial=on_partial)
        assert "longer than 400,000 characters, reasoning included" in str(answer)


def test_a_models_own_http_client_makes_the_requests(runs):
    seen = []

    def look(request):
        seen.append(request.headers["X-Desk"])

    async def look_async(request):
        look(request)

    headers = {"X-Desk": "west"}
    client = DefaultHttpxClient(headers=headers, event_hooks={"request": [look]})
    async_client = DefaultAsyncHttpxClient(headers=headers, event_hooks={"request": [look_async]})
    with Endpoint([ok(GOOD), ok(GOOD)]) as endpoint:
        model = endpoint.chat_model(http_client=client, http_async_client=async_client)
        for on_partial in (None, ignore):
            assert ask(model, runs, on_partial).satisfied
    assert seen == ["west"] * 2
    assert not client.is_closed


# What several asks find out at the same time


async def test_two_asks_that_are_both_refused_streaming_both_go_on_without():
    both_stream = threading.Barrier(2)

    def answer(request):
        if not request.body.get("stream"):
            return ok(GOOD)
        both_stream.wait()
        return status(400, "Your organization must be verified to stream this model.")

    with Endpoint(answer) as endpoint:
        question = Question(Verdict, PROMPT, on_partial=ignore)
        answers = await make_reasoner(endpoint.chat_model()).aask_all([question] * 2)
    assert [answer.value.model_dump() for answer in answers] == [GOOD] * 2
    assert endpoint.methods == ["json_schema"] * 4


def test_a_refused_temperature_leaves_a_raised_token_limit_as_it_is():
    cut = text('{"rationale": "The or', finish_reason="length")
    with Endpoint([cut, status(400, "temperature is not supported"), ok(GOOD)]) as endpoint:
        assert ask(endpoint.chat_model(max_tokens=10), temperature=0.3).satisfied
    sent = [
        (request.body.get("temperature"), request.body["max_completion_tokens"])
        for request in endpoint.requests
    ]
    assert sent == [(0.3, 10), (0.3, 20), (None, 20)]


# Addresses


def test_an_address_that_refuses_the_connection_is_reported_after_three_tries(runs):
    with Endpoint([]) as endpoint:
        model = endpoint.chat_model()
    with track_usage() as usage:
        error = ask(model, runs)
    assert isinstance(error, errors.ModelUnavailableError)
    assert "no server can be reached" in str(error)
    assert "look at base_url" in str(error).lower()
    assert usage.calls == 3


UNKNOWN_NAME = gaierror(-2, "Name or service not known")
REFUSED_TWICE = ExceptionGroup("two addresses", [ConnectionRefusedError("refused"), ConnectionRefusedError()])


@pytest.mark.parametrize(
    ("cause", "words"), [(UNKNOWN_NAME, "Name or service not known"), (REFUSED_TWICE, "refused")]
)
def test_what_a_client_hides_of_an_address_is_found_and_named(cause, words):
    hidden = ConnectionError("Connection error.")
    hidden.__cause__ = cause
    model = script_model(lambda call: hidden)
    error = ask(model)
    assert "no server can be reached" in str(error)
    assert words in str(error)
    assert len(model.calls) == 3
