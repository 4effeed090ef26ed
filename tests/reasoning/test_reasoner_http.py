"""Every row of what may come back from an endpoint, over real HTTP, with the requests counted."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph.errors import (
    BlueprintError,
    ModelRequestError,
    ModelUnavailableError,
    RefusalError,
)
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.reasoner import Reasoner
from tests.reasoning.conftest import Asks
from tests.reasoning.endpoint import (
    Endpoint,
    completion,
    drop,
    filtered,
    hang,
    ok,
    raw,
    refusal,
    status,
    taking,
    text,
    tool_call,
    truncated,
)
from tests.reasoning.verdict import GOOD, OUT_OF_RANGE, PROMPT, UNCERTAIN, Verdict

GOOD_TEXT = json.dumps(GOOD)


def reasoner_of(endpoint: Endpoint, *, model: dict | None = None, **settings) -> Reasoner:
    return Reasoner(endpoint.chat_model(**(model or {})), **{"backoff": 0, "timeout": 10, **settings})


def settled(asks: Asks, endpoint: Endpoint, **settings) -> Reasoner:
    """A reasoner whose endpoint has given a valid answer, so that its method is known to work."""
    reasoner = reasoner_of(endpoint, **settings)
    asks.one(reasoner)
    endpoint.requests.clear()
    return reasoner


# What is sent, and what comes back


def test_a_valid_answer_takes_one_request_with_the_strict_schema(asks):
    with Endpoint([ok(GOOD)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint))
    assert answer.value == Verdict(**GOOD)
    assert (answer.text, answer.mode, answer.satisfied, answer.complaints) == (GOOD_TEXT, "arq", True, ())
    (request,) = endpoint.requests
    assert request.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "Verdict", "schema": Verdict.response_schema(), "strict": True},
    }
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert not request.body.get("stream")
    assert "temperature" not in request.body


def test_usage_and_every_attempt_are_reported(asks):
    with Endpoint([ok(OUT_OF_RANGE), ok(GOOD)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint))
    bad, good = answer.attempts
    assert (json.loads(bad.text), bad.method) == (OUT_OF_RANGE, "json_schema")
    assert bad.error.startswith("Verdict.score: ")
    assert (good.text, good.error) == (GOOD_TEXT, None)
    assert bad.usage["total_tokens"] > 0
    assert answer.usage["total_tokens"] == bad.usage["total_tokens"] + good.usage["total_tokens"]


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_a_mode_asks_for_its_own_fields(asks, mode):
    fields = {"cot": {"reasoning": "The order is late.", "score": 8}, "direct": {"score": 8}}[mode]
    with Endpoint([ok(fields)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint), mode=mode)
    assert (answer.mode, answer.value.score, answer.satisfied) == (mode, 8, True)
    assert list(endpoint.requests[0].schema["properties"]) == list(fields)


def test_the_responses_api_is_served_as_well(asks):
    with Endpoint([ok(OUT_OF_RANGE), ok(GOOD)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint, model={"use_responses_api": True}))
    assert answer.value.score == 8
    assert [request.path for request in endpoint.requests] == ["/v1/responses"] * 2
    assert endpoint.methods == ["json_schema"] * 2


def test_refusals_and_cut_answers_of_the_responses_api_are_recognised(asks):
    with Endpoint([ok(GOOD), refusal("I will not."), truncated('{"rationale": "The')]) as endpoint:
        reasoner = settled(asks, endpoint, model={"use_responses_api": True})
        with pytest.raises(RefusalError) as refused:
            asks.one(reasoner)
        with pytest.raises(BlueprintError, match="cut off"):
            asks.one(reasoner)
    assert refused.value.refusal == "I will not."
    assert endpoint.calls == 2


# Answers that are not valid


@pytest.mark.parametrize(
    "words",
    [
        f"```json\n{GOOD_TEXT}\n```",
        f"Here you are: {GOOD_TEXT} Hope that helps!",
        f'<think>Perhaps {{"score": 1}}, or {{wait}}.</think>\n{GOOD_TEXT}',
        f"First {json.dumps(OUT_OF_RANGE)}. No, rather {GOOD_TEXT}",
        f"{GOOD_TEXT}\nI had thought of {json.dumps(OUT_OF_RANGE)}.",
    ],
)
def test_words_around_the_answer_are_tolerated(asks, words):
    with Endpoint([text(words)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint))
    assert answer.value == Verdict(**GOOD)
    assert answer.text == words


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ({**GOOD, "score": "high"}, "Verdict.score: Input should be a valid integer"),
        (OUT_OF_RANGE, "Verdict.score: Input should be less than or equal to 10"),
        ({**GOOD, "mood": "fine"}, "Verdict.mood: Extra inputs are not permitted"),
        ({"score": 8}, "Verdict.rationale: Field required"),
        ("I would say eight.", "Verdict: the answer holds no complete JSON object"),
        ('{"rationale": "The order', "Verdict: the answer holds no complete JSON object"),
    ],
)
def test_a_bad_answer_is_shown_to_the_model_with_what_is_wrong_with_it(asks, bad, complaint):
    with Endpoint([ok(GOOD), ok(bad), ok(GOOD)]) as endpoint:
        reasoner = settled(asks, endpoint)
        answer = asks.one(reasoner)
    assert answer.value.score == 8
    first, second = endpoint.requests
    assert second.messages[:2] == first.messages
    own, correction = second.messages[2:]
    assert own["role"] == "assistant"
    assert own["content"] == (bad if isinstance(bad, str) else json.dumps(bad))
    assert correction["role"] == "user"
    assert complaint in correction["content"]


def test_after_three_bad_answers_the_error_holds_each_of_them(asks):
    bad = [{**GOOD, "score": score} for score in (11, 12, 13)]
    with (
        Endpoint([ok(each) for each in bad]) as endpoint,
        pytest.raises(BlueprintError, match=r"matcher asking Verdict.*Verdict\.score") as raised,
    ):
        asks.one(reasoner_of(endpoint, module="matcher"))
    assert endpoint.calls == 3
    assert [json.loads(attempt.text) for attempt in raised.value.attempts] == bad


def test_a_retry_repeats_only_the_last_answer(asks):
    with Endpoint([ok(OUT_OF_RANGE), ok({**GOOD, "score": 12}), ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint))
    assert [len(request.messages) for request in endpoint.requests] == [2, 4, 4]


def test_a_huge_bad_answer_is_not_sent_back_whole(asks):
    with Endpoint([ok({**GOOD, "rationale": "x" * 500_000, "score": 11}), ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint))
    assert len(endpoint.requests[1].prompt) < 10_000


def test_an_empty_bad_answer_is_not_sent_back_empty(asks):
    with Endpoint([ok(GOOD), text(""), ok(GOOD)]) as endpoint:
        asks.one(settled(asks, endpoint))
    assert endpoint.requests[1].messages[2]["content"]


@pytest.mark.parametrize("broken", ["\ud800", "\\ud800", "\x00", "\\u0000\ufeff"])
def test_text_that_cannot_be_encoded_leads_to_another_attempt_and_no_crash(asks, broken):
    with Endpoint([ok(GOOD), text('{"rationale": "' + broken), ok(GOOD)]) as endpoint:
        answer = asks.one(settled(asks, endpoint))
    assert len(answer.attempts) == 2


# Candidates


def test_a_failed_verification_asks_for_a_new_candidate(asks):
    with Endpoint([ok(UNCERTAIN), ok(GOOD)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint))
    assert (answer.satisfied, answer.value.score) == (True, 8)
    rejected, _ = answer.attempts
    assert rejected.error is None
    assert [complaint.query for complaint in rejected.complaints] == ["certain"]
    assert "Verdict.certain" in endpoint.requests[1].messages[-1]["content"]


def test_candidates_are_bounded_and_the_last_is_returned_unsatisfied(asks):
    with Endpoint([ok({**UNCERTAIN, "score": score}) for score in (1, 2)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint, max_candidates=2))
    assert (answer.satisfied, answer.value.score) == (False, 2)
    assert str(answer.complaints[0]).startswith("Verdict.certain: ")
    assert endpoint.calls == 2


def test_one_ask_never_makes_more_calls_than_attempts_and_candidates_allow(asks):
    worst = [ok(UNCERTAIN), ok(OUT_OF_RANGE), ok(UNCERTAIN), ok(OUT_OF_RANGE), ok(UNCERTAIN)]
    with Endpoint(worst) as endpoint:
        answer = asks.one(reasoner_of(endpoint, max_attempts=3, max_candidates=3))
    assert endpoint.calls == 3 + 3 - 1
    assert not answer.satisfied


# Cut off, refused


def test_an_answer_cut_off_without_a_limit_of_the_callers_is_an_error_at_once(asks):
    with (
        Endpoint([truncated('{"rationale": "The')]) as endpoint,
        pytest.raises(BlueprintError, match="cut off at the token limit") as raised,
    ):
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 1
    assert raised.value.attempts[0].text == '{"rationale": "The'
    assert raised.value.attempts[0].usage is not None


def test_an_answer_cut_off_at_the_callers_limit_is_asked_again_once_with_twice_as_much(asks):
    with Endpoint([truncated('{"rationale": "The'), ok(GOOD)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint, model={"max_tokens": 40}))
    assert answer.value.score == 8
    assert [request.body["max_completion_tokens"] for request in endpoint.requests] == [40, 80]
    assert [len(request.messages) for request in endpoint.requests] == [2, 2]


def test_an_answer_cut_off_twice_is_an_error(asks):
    with (
        Endpoint([truncated("{"), truncated("{")]) as endpoint,
        pytest.raises(BlueprintError, match="max_tokens"),
    ):
        asks.one(reasoner_of(endpoint, model={"max_tokens": 40}))
    assert endpoint.calls == 2


def test_a_provider_that_rejects_the_higher_limit_is_told_from_one_that_rejects_the_request(asks):
    with Endpoint([ok(GOOD), truncated("{"), status(400, "max_tokens is too large")]) as endpoint:
        reasoner = settled(asks, endpoint, model={"max_tokens": 40})
        with pytest.raises(BlueprintError, match=r"cut off.*rejects a limit of 80"):
            asks.one(reasoner)


def test_a_complete_answer_is_taken_although_the_limit_was_reached(asks):
    with Endpoint([truncated(GOOD_TEXT + "\n\n\n")]) as endpoint:
        assert asks.one(reasoner_of(endpoint)).value.score == 8


def test_a_cut_off_tool_call_is_recognised(asks):
    cut = completion(
        {
            "content": None,
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "Verdict", "arguments": '{"rationale": "T'},
                }
            ],
        },
        finish_reason="length",
    )
    with Endpoint(taking("function_calling", then=[ok(GOOD), cut])) as endpoint:
        reasoner = settled(asks, endpoint)
        with pytest.raises(BlueprintError, match="cut off"):
            asks.one(reasoner)
    assert endpoint.calls == 1


def test_a_refusal_is_final_and_keeps_the_models_words(asks):
    with (
        Endpoint([refusal("I cannot judge people.")]) as endpoint,
        pytest.raises(RefusalError, match="I cannot judge people") as raised,
    ):
        asks.one(reasoner_of(endpoint))
    assert raised.value.refusal == "I cannot judge people."
    assert endpoint.calls == 1


def test_a_content_filter_is_a_refusal(asks):
    with Endpoint([filtered()]) as endpoint, pytest.raises(RefusalError):
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 1


def test_a_refusal_in_answer_to_a_forced_tool_is_a_refusal(asks):
    with Endpoint(taking("function_calling", then=[refusal("No."), filtered()])) as endpoint:
        reasoner = reasoner_of(endpoint)
        for _ in range(2):
            with pytest.raises(RefusalError):
                asks.one(reasoner)


# Overload, lost connections


@pytest.mark.parametrize(
    "trouble",
    [
        status(429, "slow down"),
        status(408),
        status(500, "oops"),
        status(502),
        status(503, "overloaded"),
        status(529),
        drop(),
        raw("<html>Bad gateway</html>", content_type="text/html"),
    ],
    ids=["429", "408", "500", "502", "503", "529", "reset", "page"],
)
def test_passing_trouble_is_waited_out(asks, trouble):
    with Endpoint([ok(GOOD), trouble, trouble, ok(GOOD)]) as endpoint:
        answer = asks.one(settled(asks, endpoint))
    assert answer.value.score == 8
    assert endpoint.calls == 3
    assert len(answer.attempts) == 1
    assert set(endpoint.methods) == {"json_schema"}


@pytest.mark.parametrize(
    "trouble", [status(429, "slow down"), status(503), drop()], ids=["429", "503", "reset"]
)
def test_lasting_trouble_ends_in_an_error_after_a_bounded_number_of_requests(asks, trouble):
    with Endpoint(lambda request: trouble) as endpoint, pytest.raises(ModelUnavailableError, match="8 tries"):
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 8
    assert set(endpoint.methods) == {"json_schema"}


def test_an_endpoint_that_hangs_is_given_up_when_the_time_is_over(asks):
    with (
        Endpoint(lambda request: hang()) as endpoint,
        pytest.raises(ModelUnavailableError, match=r"timeout 1 s"),
    ):
        asks.one(reasoner_of(endpoint, timeout=1))
    assert endpoint.calls == 1


def test_a_shorter_timeout_of_the_model_leaves_time_for_further_tries(asks):
    with Endpoint([hang(), ok(GOOD)]) as endpoint:
        answer = asks.one(reasoner_of(endpoint, model={"timeout": 1}, timeout=60))
    assert answer.value.score == 8
    assert endpoint.calls == 2


def test_nothing_listens_at_the_address(asks):
    with Endpoint([]) as endpoint:
        model = endpoint.chat_model()
    with pytest.raises(ModelUnavailableError, match="base_url"):
        asks.one(Reasoner(model, backoff=0, timeout=60))


@pytest.mark.parametrize("header", [{"Retry-After": "0"}, {"retry-after-ms": "1"}])
def test_the_providers_word_on_when_to_try_again_is_honoured(asks, header):
    with Endpoint([status(429, headers=header), ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint, backoff=1_000, timeout=100))
    assert endpoint.calls == 2


@pytest.mark.parametrize("value", ["86400", "Fri, 31 Dec 2100 23:59:59 GMT", "soon"])
def test_a_wait_that_does_not_fit_into_the_timeout_is_not_waited(asks, value):
    with Endpoint([status(429, headers={"Retry-After": value}), ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 2


def test_a_pause_that_would_outlast_the_timeout_is_not_begun(asks):
    with Endpoint([status(429)]) as endpoint, pytest.raises(ModelUnavailableError, match="1 try"):
        asks.one(reasoner_of(endpoint, backoff=1_000, timeout=10))


# Requests that the provider rejects


@pytest.mark.parametrize(
    ("code", "setting"),
    [
        (400, "what the provider says"),
        (401, "API key"),
        (403, "API key"),
        (404, "model name"),
        (413, "setting"),
    ],
)
def test_a_rejected_request_is_an_error_at_once_that_names_the_setting(asks, code, setting):
    with Endpoint([ok(GOOD), status(code, "the provider's words")]) as endpoint:
        reasoner = settled(asks, endpoint)
        with pytest.raises(ModelRequestError, match=f"(?s)the provider's words.*{setting}"):
            asks.one(reasoner)
    assert endpoint.calls == 1


@pytest.mark.parametrize("code", [401, 403])
def test_a_bad_key_is_told_by_the_very_first_request(asks, code):
    with Endpoint([status(code)]) as endpoint, pytest.raises(ModelRequestError, match="API key"):
        asks.one(reasoner_of(endpoint))


def test_a_prompt_that_is_too_long_is_told_at_once(asks):
    too_long = status(400, "This model's maximum context length is 10", error_code="context_length_exceeded")
    with Endpoint([too_long]) as endpoint, pytest.raises(ModelRequestError, match="shorten the history"):
        asks.one(reasoner_of(endpoint))


def test_an_address_without_http_is_told_at_once(asks):
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", base_url="127.0.0.1:1/v1", api_key="k", max_retries=0)
    with pytest.raises(ModelRequestError, match="http://"):
        asks.one(Reasoner(model))


@pytest.mark.parametrize(
    "body",
    [
        raw("<html>Log in</html>", content_type="text/html"),
        raw("{not json"),
        raw("{}"),
        raw("null"),
        raw('{"choices": null}'),
        raw('{"choices": []}'),
        raw('{"error": {"message": "no credits"}}'),
        raw('{"choices": [{"index": 0, "message": null, "finish_reason": "stop"}]}'),
    ],
    ids=["page", "broken", "empty", "null", "null choices", "no choices", "error", "null message"],
)
def test_an_address_that_serves_no_chat_completions_is_told_after_a_look_at_each_method(asks, body):
    with Endpoint(lambda request: body) as endpoint, pytest.raises(ModelRequestError, match="base_url"):
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 4


def test_an_error_that_is_sent_as_a_success_is_told_in_its_own_words(asks):
    body = raw('{"error": {"message": "out of credits"}}')
    with Endpoint(lambda request: body) as endpoint, pytest.raises(ModelRequestError, match="out of credits"):
        asks.one(reasoner_of(endpoint))


# Methods


@pytest.mark.parametrize("code", [400, 404, 415, 422, 500, 501])
@pytest.mark.parametrize("method", ["function_calling", "json_mode"])
def test_a_server_that_knows_another_method_is_asked_with_that(asks, method, code):
    with Endpoint(taking(method, then=lambda request: ok(GOOD), code=code)) as endpoint:
        reasoner = reasoner_of(endpoint, max_attempts=1)
        answer = asks.one(reasoner)
        asked_to_find_out = list(endpoint.methods)
        asks.one(reasoner)
        asks.one(reasoner_of(endpoint))
    order = ["json_schema", "function_calling", "json_mode"]
    assert asked_to_find_out == order[: order.index(method) + 1]
    assert endpoint.methods == [*asked_to_find_out, method, method]
    assert [attempt.method for attempt in answer.attempts] == [method]


def test_a_server_that_ignores_the_schema_is_asked_with_the_next_method(asks):
    def script(request):
        return ok(GOOD) if request.method == "json_mode" else text("I would say eight.")

    with Endpoint(script) as endpoint:
        answer = asks.one(reasoner_of(endpoint))
    assert endpoint.methods == ["json_schema", "function_calling", "json_mode"]
    assert [attempt.method for attempt in answer.attempts] == endpoint.methods
    assert len(endpoint.requests[-1].messages) == 2


def test_words_instead_of_json_count_as_attempts_with_every_method(asks):
    with Endpoint(lambda request: text("Eight.")) as endpoint:
        with pytest.raises(BlueprintError):
            asks.one(reasoner_of(endpoint, max_attempts=2))
        assert endpoint.methods == ["json_schema", "function_calling"]
        with pytest.raises(BlueprintError):
            asks.one(reasoner_of(endpoint, max_attempts=5))
    assert endpoint.calls == 2 + 5


def test_a_model_that_answers_without_json_is_asked_otherwise_the_next_time(asks):
    def script(request):
        return ok(GOOD) if request.method == "function_calling" else text("Eight.")

    with Endpoint(script) as endpoint:
        reasoner = reasoner_of(endpoint, max_attempts=1)
        with pytest.raises(BlueprintError):
            asks.one(reasoner)
        assert asks.one(reasoner).value.score == 8
    assert endpoint.methods == ["json_schema", "function_calling"]


def test_a_method_that_never_led_to_a_valid_answer_is_not_where_the_next_ask_begins(asks):
    def script(request):
        return ok(GOOD) if request.method == "function_calling" else ok({"verdict": "late"})

    with Endpoint(script) as endpoint:
        reasoner = reasoner_of(endpoint)
        with pytest.raises(BlueprintError):
            asks.one(reasoner)
        assert asks.one(reasoner).value.score == 8
    assert endpoint.methods == ["json_schema"] * 3 + ["function_calling"]


def test_after_an_answer_with_a_json_object_a_server_error_is_not_blamed_on_the_method(asks):
    with Endpoint([ok(OUT_OF_RANGE), status(500), ok(GOOD)]) as endpoint:
        assert asks.one(reasoner_of(endpoint)).value.score == 8
    assert endpoint.methods == ["json_schema"] * 3


def test_if_no_method_is_known_the_first_refusal_is_told(asks):
    def script(request):
        return status(400, f"no {request.method} here")

    with Endpoint(script) as endpoint, pytest.raises(ModelRequestError, match="no json_schema here"):
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 4


def test_a_server_that_is_down_for_every_method_is_waited_for(asks):
    down = [status(500)] * 6
    with Endpoint([*down, ok(GOOD)]) as endpoint:
        assert asks.one(reasoner_of(endpoint)).value.score == 8
    assert endpoint.methods == ["json_schema", "function_calling", "json_mode", "none"] + ["json_schema"] * 3


def test_a_server_that_stays_down_for_every_method_ends_in_an_error(asks):
    with (
        Endpoint(lambda request: status(500, "down")) as endpoint,
        pytest.raises(ModelUnavailableError, match="down"),
    ):
        asks.one(reasoner_of(endpoint))
    assert endpoint.calls == 4 + 8


def test_a_forced_tool_call_carries_the_schema(asks):
    with Endpoint(taking("function_calling", then=[ok(GOOD)])) as endpoint:
        answer = asks.one(reasoner_of(endpoint))
    request = endpoint.requests[-1]
    (tool,) = request.body["tools"]
    assert (tool["function"]["name"], tool["function"]["strict"]) == ("Verdict", True)
    assert tool["function"]["description"] == "Judge the case."
    assert list(tool["function"]["parameters"]["properties"]) == ["rationale", "score", "certain"]
    assert request.body["tool_choice"] == {"type": "function", "function": {"name": "Verdict"}}
    assert json.loads(answer.text) == GOOD


@pytest.mark.parametrize(
    "reply",
    [
        tool_call("Verdict", '{"rationale": "late", "score": 8, "certain": tru'),
        tool_call("Verdict", "[]"),
        text("Eight."),
        tool_call("Verdict", json.dumps(OUT_OF_RANGE)),
    ],
    ids=["broken", "list", "words", "out of range"],
)
def test_bad_arguments_of_the_forced_tool_are_asked_again(asks, reply):
    with Endpoint(taking("function_calling", then=[ok(GOOD), reply, ok(GOOD)])) as endpoint:
        answer = asks.one(settled(asks, endpoint))
    assert [attempt.method for attempt in answer.attempts] == ["function_calling"] * 2
    assert answer.attempts[0].text


def test_a_forced_tool_answered_in_words_that_hold_the_object_is_enough(asks):
    with Endpoint(taking("function_calling", then=[text(f"Sure: {GOOD_TEXT}")])) as endpoint:
        assert asks.one(reasoner_of(endpoint)).value.score == 8


@pytest.mark.parametrize(
    "prompt",
    [
        PROMPT,
        [SystemMessage([{"type": "text", "text": "You are a judge."}]), HumanMessage("Where?")],
        [HumanMessage("Where?")],
    ],
    ids=["text", "blocks", "no system message"],
)
def test_in_json_mode_the_schema_ends_the_first_system_message(asks, prompt):
    with Endpoint(taking("json_mode", then=[ok(OUT_OF_RANGE), ok(GOOD)])) as endpoint:
        asks.one(reasoner_of(endpoint), messages=prompt)
    first, second = endpoint.requests[-2:]
    assert first.messages[0]["role"] == "system"
    content = first.messages[0]["content"]
    head = content if isinstance(content, str) else content[-1]["text"]
    assert json.loads(head[head.index("{") :]) == Verdict.response_schema()
    assert second.messages[: len(first.messages)] == first.messages
    assert "schema" not in json.dumps(first.messages[1:])


def test_a_reasoner_given_a_string_and_a_base_url_asks_that_endpoint(asks, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Endpoint([status(429), ok(GOOD)]) as endpoint:
        reasoner = Reasoner(endpoint.model_name, base_url=endpoint.base_url, backoff=0)
        assert asks.one(reasoner).value.score == 8
    assert {request.body["model"] for request in endpoint.requests} == {endpoint.model_name}


# Temperature


def test_a_temperature_is_sent_with_each_call(asks):
    with Endpoint([ok(OUT_OF_RANGE), ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint, temperature=0.15))
    assert [request.body["temperature"] for request in endpoint.requests] == [0.15, 0.15]


def test_the_models_own_temperature_wins(asks):
    with Endpoint([ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint, model={"temperature": 0.7}, temperature=0.15))
    assert endpoint.requests[0].body["temperature"] == 0.7


def test_a_model_known_to_take_no_temperature_gets_none(asks):
    with Endpoint([ok(GOOD)]) as endpoint:
        asks.one(reasoner_of(endpoint, model={"profile": {"temperature": False}}, temperature=0.15))
    assert "temperature" not in endpoint.requests[0].body


def test_a_model_that_refuses_a_temperature_is_asked_without_from_then_on(asks):
    def script(request):
        if "temperature" in request.body:
            return status(400, "Unsupported value: 'temperature' does not support 0.15 with this model.")
        return ok(GOOD)

    with Endpoint(script) as endpoint:
        reasoner = reasoner_of(endpoint, temperature=0.15, max_attempts=1)
        assert len(asks.one(reasoner).attempts) == 1
        asks.one(reasoner)
        asks.one(reasoner_of(endpoint, temperature=0.3))
    assert ["temperature" in request.body for request in endpoint.requests] == [True, False, False, False]
    assert set(endpoint.methods) == {"json_schema"}


# Several at a time


def test_several_questions_are_asked_at_the_same_time_and_answered_in_order(asks):
    def script(request):
        return ok({**GOOD, "rationale": request.messages[-1]["content"]})

    questions = [Question(Verdict, [HumanMessage(f"Case {number}")]) for number in range(12)]
    with Endpoint(script, gather=12) as endpoint:
        answers = asks.all(reasoner_of(endpoint), questions)
    assert [answer.value.rationale for answer in answers] == [f"Case {number}" for number in range(12)]
    assert len(endpoint.waves) == 1
    assert max(request.concurrency for request in endpoint.requests) == 12


def test_the_error_of_one_question_stands_in_its_place(asks):
    def script(request):
        return refusal("No.") if "Case 1" in request.prompt else ok(GOOD)

    questions = [Question(Verdict, [HumanMessage(f"Case {number}")]) for number in range(3)]
    with Endpoint(script) as endpoint:
        first, second, third = asks.all(reasoner_of(endpoint), questions)
    assert first.satisfied
    assert third.satisfied
    assert isinstance(second, RefusalError)


def test_max_concurrency_of_the_config_is_kept(asks):
    questions = [Question(Verdict, PROMPT)] * 6
    with Endpoint(lambda request: ok(GOOD), latency=0.01) as endpoint:
        asks.all(reasoner_of(endpoint), questions, config={"max_concurrency": 2})
    assert max(request.concurrency for request in endpoint.requests) <= 2


# Tokens do not leak


@pytest.mark.parametrize("streaming", [False, True])
def test_no_tokens_of_an_answer_reach_the_message_stream_of_a_graph(asks, streaming):
    from langgraph.graph import START, MessagesState, StateGraph

    model = {"streaming": True} if streaming else {}
    with Endpoint([ok(GOOD), ok(GOOD)]) as endpoint:
        reasoner = reasoner_of(endpoint, model=model)

        def judge(state: MessagesState) -> dict:
            reasoner.ask(Verdict, PROMPT)
            reasoner.ask_all([Question(Verdict, PROMPT)])
            return {}

        async def ajudge(state: MessagesState) -> dict:
            await reasoner.aask(Verdict, PROMPT)
            await reasoner.aask_all([Question(Verdict, PROMPT)])
            return {}

        graph = StateGraph(MessagesState)
        graph.add_node("judge", ajudge if asks.is_async else judge)
        graph.add_edge(START, "judge")
        streamed = asks.stream(graph.compile(), {"messages": []}, stream_mode="messages")
    assert streamed == []
    assert not any(request.body.get("stream") for request in endpoint.requests)
    assert endpoint.calls == 2
