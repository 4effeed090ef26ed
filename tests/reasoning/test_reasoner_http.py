"""The reasoner and a real HTTP endpoint: by which method it asks, and what it does when requests fail."""

import json
import re

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from arq_graph import ARQ, Question, Reasoner, errors, respond, track_usage
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, Verdict, make_reasoner
from tests.reasoning.endpoint import Endpoint, Reply, hang, ok, status, text, tool_call

METHODS = ["json_schema", "function_calling", "json_mode", "none"]


def reasoner_for(endpoint: Endpoint, *, model: dict | None = None, **settings) -> Reasoner:
    return make_reasoner(endpoint.chat_model(**(model or {})), **settings)


def settled_reasoner_for(endpoint: Endpoint, **settings) -> Reasoner:
    """Return a reasoner whose endpoint has given a valid answer, so that its method is known to work."""
    reasoner = reasoner_for(endpoint, **settings)
    reasoner.ask(Verdict, PROMPT)
    endpoint.requests.clear()
    return reasoner


# Which method


@pytest.mark.parametrize("codes", [(), (501, 501), (422, 500, 500), (400, 404, 415)], ids=METHODS)
def test_the_first_method_that_a_server_takes_carries_the_schema_from_then_on(codes, caplog):
    caplog.set_level("INFO", "arq_graph")
    with Endpoint([*map(status, codes), ok(GOOD), ok(GOOD)]) as endpoint:
        for _ in range(2):
            answer = reasoner_for(endpoint, max_attempts=1).ask(Verdict, PROMPT)
    refused = sorted(set(codes))
    tried = []
    for method, code in zip(METHODS, refused, strict=False):
        tried += [method] * codes.count(code)
    taken = METHODS[len(refused)]
    assert endpoint.methods == [*tried, taken, taken]
    logged = [line for line in caplog.messages if "from now on" in line]
    assert len(logged) == bool(codes)
    if codes:
        method = answer.attempts[0].method
        assert re.search(f"is asked by {method} from now on, as it said: .*status {codes[0]}", logged[0])
    assert json.loads(answer.text) == GOOD
    request, schema = endpoint.requests[-1], Verdict.response_schema()
    system = request.messages[0]["content"]
    assert system.startswith(PROMPT[0].text)
    if taken in ("json_mode", "none"):
        assert json.loads(system[system.index("{") :]) == schema
        return
    assert system == PROMPT[0].text
    if taken == "json_schema":
        carrier = request.body["response_format"]["json_schema"]
    else:
        carrier = request.body["tools"][0]["function"]
        del schema["description"]  # the function has it
    assert (carrier["name"], carrier["strict"]) == ("Verdict", True)
    assert request.schema == schema


@pytest.mark.parametrize(
    "system", [[SystemMessage([{"type": "text", "text": "You are a judge."}])], []], ids=["blocks", "none"]
)
def test_a_server_that_ignores_the_schema_finds_it_in_a_system_message(system):
    with Endpoint([*[text("I would say eight.")] * 2, ok(OUT_OF_RANGE), ok(GOOD)]) as endpoint:
        reasoner_for(endpoint, max_attempts=4).ask(Verdict, [*system, HumanMessage("Where?")])
    assert endpoint.methods == [*METHODS[:3], METHODS[2]]
    first, second = endpoint.requests[-2:]
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert "JSON schema" in first.prompt
    assert second.messages[:2] == first.messages


def test_if_no_method_is_taken_the_first_refusal_is_raised_but_a_server_that_is_down_is_waited_for():
    with (
        Endpoint(lambda request: status(400, f"no {request.method} here")) as endpoint,
        pytest.raises(errors.ModelRequestError, match="no json_schema here"),
    ):
        reasoner_for(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == METHODS
    with Endpoint([status(500)] * 10 + [ok(GOOD)]) as endpoint:
        reasoner_for(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == sorted(METHODS * 2, key=METHODS.index) + ["json_schema"] * 3


NO_COMPLETION = Reply(body="<html>Bad gateway</html>")


@pytest.mark.parametrize("replies", [[status(501)], [NO_COMPLETION], [status(500), status(503)]])
def test_one_error_that_may_pass_does_not_change_the_method(replies):
    with Endpoint([*replies, ok(GOOD), ok(GOOD)]) as endpoint:
        for _ in range(2):
            reasoner_for(endpoint).ask(Verdict, PROMPT)
    assert set(endpoint.methods) == {"json_schema"}


def test_an_unlucky_first_call_does_not_undo_what_others_have_found_out_meanwhile():
    def answer(request):
        if endpoint.calls == 3:  # by the second method
            reasoner_for(endpoint).ask(Verdict, PROMPT)  # which ends before the one that is under way
        return ok(GOOD) if endpoint.calls > 2 else status(500)

    with Endpoint(answer) as endpoint:
        for _ in range(2):
            reasoner_for(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == ["json_schema"] * 2 + ["function_calling"] + ["json_schema"] * 2


def test_the_method_that_was_answered_in_words_is_asked_again_if_all_others_are_refused():
    replies = iter([text("It is late."), ok(GOOD)])
    with Endpoint(lambda request: next(replies) if request.method == "none" else status(400)) as endpoint:
        assert reasoner_for(endpoint).ask(Verdict, PROMPT).satisfied
    assert endpoint.methods == [*METHODS, "none"]
    assert "holds no complete JSON object" in endpoint.requests[-1].prompt


async def test_parallel_first_calls_each_look_for_a_method_and_then_all_know_it():
    questions = [Question(Verdict, PROMPT)] * 6
    with Endpoint(lambda request: ok(GOOD) if request.method == "json_mode" else status(400)) as endpoint:
        reasoner = reasoner_for(endpoint)
        first = await reasoner.aask_all(questions)
        endpoint.requests.clear()
        second = reasoner.ask_all(questions)
    assert all(answer.satisfied for answer in [*first, *second])
    assert endpoint.methods == ["json_mode"] * 6


def test_the_same_model_with_other_settings_has_a_method_of_its_own():
    def answer(request):
        method = "json_mode" if "reasoning_effort" in request.body else "function_calling"
        return ok(GOOD) if request.method == method else status(400)

    with Endpoint(answer) as endpoint:
        plain = endpoint.chat_model()
        thinking = endpoint.chat_model(reasoning_effort="low")
        other_key = endpoint.chat_model(api_key="another")
        for model in (plain, thinking, plain.bind(reasoning_effort="high"), other_key):
            assert Reasoner(model).ask(Verdict, PROMPT).satisfied
    assert endpoint.methods == [*METHODS[:2], *METHODS[:3], *METHODS[:3], *METHODS[:2]]


# One test for each kind of failure


@pytest.mark.parametrize("reply", [tool_call("Verdict", '{"score": 8, "certain": tru'), text("Eight.")])
def test_bad_arguments_of_the_forced_tool_are_asked_again(reply):
    good = text(f"Sure: {json.dumps(GOOD)}")  # a text that holds the object is enough
    with Endpoint([status(400), ok(GOOD), reply, good]) as endpoint:
        answer = settled_reasoner_for(endpoint).ask(Verdict, PROMPT)
    assert [attempt.method for attempt in answer.attempts] == ["function_calling"] * 2
    assert answer.attempts[0].text


@pytest.mark.parametrize(
    "reply", [status(429, "slow down"), Reply(), NO_COMPLETION], ids=["429", "lost connection", "page"]
)
def test_a_failure_that_may_pass_is_retried_and_logged(reply, caplog):
    caplog.set_level("INFO", "arq_graph")
    with Endpoint([ok(GOOD), reply, reply, ok(GOOD)]) as endpoint:
        reasoner = settled_reasoner_for(endpoint, model={"max_retries": 5})
        with track_usage() as usage:
            answer = reasoner.ask(Verdict, PROMPT)
    assert len(answer.attempts) == 1
    assert endpoint.methods == ["json_schema"] * 3
    assert usage.calls == len(usage.failures) + 1 == 3
    assert [message.split(" (")[0] for message in caplog.messages] == ["no answer yet"] * 2


async def test_a_lasting_failure_ends_after_eight_requests_whatever_the_client_retries_itself():
    with Endpoint(lambda request: Reply()) as endpoint:
        reasoner = reasoner_for(endpoint, model={"max_retries": 5})
        with pytest.raises(errors.ModelUnavailableError, match=r"8 tries.*base_url"):
            reasoner.ask(Verdict, PROMPT)
        with pytest.raises(errors.ModelUnavailableError, match="8 tries"):
            await reasoner.aask(Verdict, PROMPT)
    assert endpoint.calls == 8 + 8


def test_the_timeout_ends_a_call_that_hangs_and_skips_a_pause_that_would_not_fit():
    with Endpoint([hang(), status(429)]) as endpoint:
        for reasoner in (
            reasoner_for(endpoint, model={"max_retries": 5}, timeout=0.3),
            reasoner_for(endpoint, backoff=1_000),
        ):
            with pytest.raises(errors.ModelUnavailableError, match="1 try, timeout"):
                reasoner.ask(Verdict, PROMPT)
    assert endpoint.calls == 2


def test_a_shorter_timeout_of_the_model_leaves_time_for_further_tries():
    with Endpoint(lambda request: hang() if endpoint.calls == 1 else ok(GOOD)) as endpoint:
        assert reasoner_for(endpoint, model={"timeout": 0.3}).ask(Verdict, PROMPT).satisfied


TOO_LONG = status(400, "This model's maximum context length is 10", error_code="context_length_exceeded")


@pytest.mark.parametrize(
    ("earlier_replies", "reply", "advice"),
    [
        ([ok(GOOD)], status(404, "the provider's words"), "the provider's words.*model name"),
        ([], status(401), r"API key of ChatOpenAI \(OPENAI_API_KEY, unless your code gives another\)"),
        ([], TOO_LONG, "shorten the history"),
    ],
    ids=["name", "key", "long"],
)
def test_a_rejected_request_is_an_error_at_once_with_advice(earlier_replies, reply, advice):
    with Endpoint([*earlier_replies, reply]) as endpoint:
        reasoner = settled_reasoner_for(endpoint) if earlier_replies else reasoner_for(endpoint)
        with pytest.raises(errors.ModelRequestError, match=advice):
            reasoner.ask(Verdict, PROMPT)
    assert endpoint.calls == 1


@pytest.mark.parametrize(
    ("base_url", "key", "message"),
    [
        ("localhost:8000/v1", "k", r"unsupported protocol.*base_url: it begins with http"),
        (None, "sk-12345\n", r"a header is empty, or holds a line break\. Look at the API key"),
    ],
)
def test_an_address_or_a_key_that_cannot_be_sent_is_an_error_at_once(base_url, key, message):
    with Endpoint([]) as endpoint:
        model = ChatOpenAI(model="m", base_url=base_url or endpoint.base_url, api_key=key)
        with track_usage() as usage, pytest.raises(errors.ModelRequestError, match=message) as raised:
            make_reasoner(model).ask(Verdict, PROMPT)
    assert usage.calls == 1
    assert "12345" not in str(raised.value)


def test_an_address_without_chat_completions_is_an_error_after_each_method_was_tried():
    body = '{"error": {"message": "no credits"}}'
    with (
        Endpoint(lambda request: Reply(body=body)) as endpoint,
        pytest.raises(errors.ModelRequestError, match=r"no credits.*base_url"),
    ):
        reasoner_for(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == sorted(METHODS * 2, key=METHODS.index)


class Verdicts(ARQ):
    """Judge both cases."""

    first: Verdict | None = respond("")
    second: Verdict | None = respond("")


@pytest.mark.parametrize("is_complex_first", [False, True])
def test_a_schema_that_is_too_complex_for_a_method_leads_to_the_next_one_for_good(is_complex_first):
    def answer(request):
        schema = json.dumps(request.schema)
        if request.method == "json_schema" and "anyOf" in schema:
            return status(400, "Schemas contains too many parameters with union types (2, limit: 1)")
        return ok({"first": GOOD, "second": None} if "anyOf" in schema else GOOD)

    blueprints = [Verdicts, Verdict] if is_complex_first else [Verdict, Verdicts]
    with Endpoint(answer) as endpoint:
        reasoner = reasoner_for(endpoint)
        for blueprint in blueprints * 2:
            reasoner.ask(blueprint, PROMPT)
    refused = ["json_schema"] if is_complex_first else ["json_schema", "json_schema"]
    taken = endpoint.methods[len(refused) :]
    assert endpoint.methods[: len(refused)] == refused
    assert set(taken) == {"function_calling"} and endpoint.calls == len(refused) + len(taken) <= 5


# Settings


def test_a_temperature_is_sent_unless_the_model_takes_none_or_the_endpoint_refuses_it():
    def answer(request):
        if request.body.get("temperature") == 0.15:
            return status(400, "Unsupported value: 'temperature' does not support 0.15 with this model.")
        return ok(GOOD)

    with Endpoint(answer) as endpoint:
        reasoner_for(endpoint, model={"profile": {"temperature": False}}, temperature=0.3).ask(
            Verdict, PROMPT
        )
        reasoner_for(endpoint, model={"temperature": 0.7}, temperature=0.3).ask(Verdict, PROMPT)
        for temperature in (0.3, 0.15, 0.3):
            reasoner = reasoner_for(endpoint, temperature=temperature, max_attempts=1)
            assert len(reasoner.ask(Verdict, PROMPT).attempts) == 1
    sent = [request.body.get("temperature") for request in endpoint.requests]
    assert sent == [None, 0.7, 0.3, 0.15, None, None]
