"""What may come back from an endpoint, over real HTTP, with the requests counted."""

from __future__ import annotations

import json
import re

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph import Question, Reasoner, errors, track_usage
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, UNCERTAIN, Verdict
from tests.reasoning.cases import reasoner_of as reasoner_with
from tests.reasoning.endpoint import Endpoint, Reply, hang, ok, refusal, status, text, tool_call

ORDER = ["json_schema", "function_calling", "json_mode", "none"]


def reasoner_of(endpoint: Endpoint, *, model: dict | None = None, **settings) -> Reasoner:
    return reasoner_with(endpoint.chat_model(**(model or {})), **settings)


def settled(endpoint: Endpoint, **settings) -> Reasoner:
    """A reasoner whose endpoint has given a valid answer, so that its method is known to work."""
    reasoner = reasoner_of(endpoint, **settings)
    reasoner.ask(Verdict, PROMPT)
    endpoint.requests.clear()
    return reasoner


# Which method


@pytest.mark.parametrize("codes", [(), (501, 501), (422, 500, 500), (400, 404, 415)], ids=ORDER)
def test_the_first_method_that_a_server_takes_carries_the_schema_from_then_on(codes, caplog):
    caplog.set_level("INFO", "arq_graph")
    with Endpoint([*map(status, codes), ok(GOOD), ok(GOOD)]) as endpoint:
        for _ in range(2):
            answer = reasoner_of(endpoint, max_attempts=1).ask(Verdict, PROMPT)
    refused = len({*codes})
    tried = [
        method
        for method, code in zip(ORDER, sorted({*codes}), strict=False)
        for _ in range(codes.count(code))
    ]
    assert endpoint.methods == [*tried, ORDER[refused], ORDER[refused]]
    told = [line for line in caplog.messages if "from now on" in line]
    said = (
        f"is asked by {answer.attempts[0].method} from now on, as it said: .*status {codes[0]}"
        if codes
        else ""
    )
    assert [bool(re.search(said, line)) for line in told] == [True] * bool(codes)
    assert json.loads(answer.text) == GOOD
    request, wanted = endpoint.requests[-1], Verdict.response_schema()
    head, _ = request.messages
    assert head["content"].startswith(PROMPT[0].text)
    if request.method in ORDER[:2]:
        tools, format_ = request.body.get("tools"), request.body.get("response_format")
        carrier = tools[0]["function"] if tools else format_["json_schema"]
        assert (carrier["name"], carrier["strict"]) == ("Verdict", True)
        beside = {"description"} if tools else set()  # said of the function
        assert request.schema == {key: value for key, value in wanted.items() if key not in beside}
        assert head["content"] == PROMPT[0].text
    else:
        assert json.loads(head["content"][head["content"].index("{") :]) == wanted


@pytest.mark.parametrize("head", [[SystemMessage([{"type": "text", "text": "You are a judge."}])], []])
def test_a_server_that_ignores_the_schema_finds_it_in_a_system_message_of_blocks_or_in_one_of_its_own(head):
    with Endpoint([*[text("I would say eight.")] * 2, ok(OUT_OF_RANGE), ok(GOOD)]) as endpoint:
        reasoner_of(endpoint, max_attempts=4).ask(Verdict, [*head, HumanMessage("Where?")])
    assert endpoint.methods == [*ORDER[:3], ORDER[2]]
    first, second = endpoint.requests[-2:]
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert "JSON schema" in first.prompt
    assert second.messages[:2] == first.messages


def test_if_no_method_is_taken_the_first_refusal_is_told_and_a_server_that_is_down_is_waited_for():
    with (
        Endpoint(lambda request: status(400, f"no {request.method} here")) as endpoint,
        pytest.raises(errors.ModelRequestError, match="no json_schema here"),
    ):
        reasoner_of(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == ORDER
    with Endpoint([status(500)] * 10 + [ok(GOOD)]) as endpoint:
        reasoner_of(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == sorted(ORDER * 2, key=ORDER.index) + ["json_schema"] * 3


BAD_GATEWAY = Reply(body="<html>Bad gateway</html>")


@pytest.mark.parametrize(
    "troubles",
    [[status(500)], [status(501)], [BAD_GATEWAY], [status(429), status(500)], [status(500), status(503)]],
)
def test_one_error_that_may_pass_does_not_change_how_a_model_is_asked(troubles):
    with Endpoint([*troubles, ok(GOOD), ok(GOOD)]) as endpoint:
        for _ in range(2):
            reasoner_of(endpoint).ask(Verdict, PROMPT)
    assert set(endpoint.methods) == {"json_schema"}


def test_a_first_call_that_is_unlucky_does_not_undo_what_others_have_found_out_meanwhile():
    def script(request):
        if endpoint.calls == 3:  # by the second way
            reasoner_of(endpoint).ask(Verdict, PROMPT)  # which ends before the one that is under way
        return ok(GOOD) if endpoint.calls > 2 else status(500)

    with Endpoint(script) as endpoint:
        for _ in range(2):
            reasoner_of(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == ["json_schema"] * 2 + ["function_calling"] + ["json_schema"] * 2


def test_a_method_that_led_to_a_valid_answer_is_kept_when_the_next_one_is_in_words():
    with Endpoint([ok(UNCERTAIN), text("Let me think."), ok(GOOD)]) as endpoint:
        answer = reasoner_of(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == ["json_schema"] * 3
    assert "could not be used" in endpoint.requests[2].prompt
    assert answer.satisfied


def test_the_method_that_was_answered_in_words_is_asked_again_although_others_were_refused():
    words = iter([text("It is late."), ok(GOOD)])
    with Endpoint(lambda asked: next(words) if asked.method == "none" else status(400)) as endpoint:
        assert reasoner_of(endpoint).ask(Verdict, PROMPT).satisfied
    assert endpoint.methods == [*ORDER, "none"]
    assert "holds no complete JSON object" in endpoint.requests[-1].prompt


async def test_parallel_first_calls_find_out_each_for_itself_and_then_all_know():
    questions = [Question(Verdict, PROMPT)] * 6
    with Endpoint(lambda request: ok(GOOD) if request.method == "json_mode" else status(400)) as endpoint:
        reasoner = reasoner_of(endpoint)
        first = await reasoner.aask_all(questions)
        endpoint.requests.clear()
        second = reasoner.ask_all(questions)
    assert all(answer.satisfied for answer in [*first, *second])
    assert endpoint.methods == ["json_mode"] * 6


def test_the_same_model_with_other_settings_is_asked_in_a_way_of_its_own():
    def script(request):
        thinks = "reasoning_effort" in request.body
        return ok(GOOD) if request.method == ("json_mode" if thinks else "function_calling") else status(400)

    with Endpoint(script) as endpoint:
        model = endpoint.chat_model()
        for each in (model, endpoint.chat_model(reasoning_effort="low"), model.bind(reasoning_effort="high")):
            assert Reasoner(each).ask(Verdict, PROMPT).satisfied
        assert Reasoner(endpoint.chat_model(api_key="another")).ask(Verdict, PROMPT).satisfied
    assert endpoint.methods == [*ORDER[:2], *ORDER[:3], *ORDER[:3], *ORDER[:2]]


# One test a class of failure


@pytest.mark.parametrize("reply", [tool_call("Verdict", '{"score": 8, "certain": tru'), text("Eight.")])
def test_bad_arguments_of_the_forced_tool_are_asked_again(reply):
    good = text(f"Sure: {json.dumps(GOOD)}")  # words that hold the object are enough
    with Endpoint([status(400), ok(GOOD), reply, good]) as endpoint:
        answer = settled(endpoint).ask(Verdict, PROMPT)
    assert [attempt.method for attempt in answer.attempts] == ["function_calling"] * 2
    assert answer.attempts[0].text


def test_a_refusal_is_final_and_so_is_an_answer_that_the_filter_kept_back():
    with Endpoint([refusal("I cannot judge people."), text("", finish_reason="content_filter")]) as endpoint:
        reasoner = reasoner_of(endpoint)
        for words in ("I cannot judge people", "content filter"):
            with pytest.raises(errors.RefusalError, match=words):
                reasoner.ask(Verdict, PROMPT)


@pytest.mark.parametrize(
    "trouble",
    [status(429, "slow down"), status(503, "overloaded"), Reply(), Reply(body="<html>Bad gateway</html>")],
    ids=["429", "503", "lost connection", "page"],
)
def test_passing_trouble_is_waited_out_and_logged(trouble, caplog):
    caplog.set_level("INFO", "arq_graph")
    with Endpoint([ok(GOOD), trouble, trouble, ok(GOOD)]) as endpoint:
        reasoner = settled(endpoint, model={"max_retries": 5})
        with track_usage() as used:
            answer = reasoner.ask(Verdict, PROMPT)
    assert len(answer.attempts) == 1
    assert endpoint.methods == ["json_schema"] * 3
    assert used.calls == len(used.failures) + 1 == 3
    assert [record.getMessage().split(" (")[0] for record in caplog.records] == ["no answer yet"] * 2


async def test_lasting_trouble_ends_after_eight_requests_whatever_the_client_retries_itself():
    with Endpoint(lambda request: Reply()) as endpoint:
        reasoner = reasoner_of(endpoint, model={"max_retries": 5})
        with pytest.raises(errors.ModelUnavailableError, match=r"8 tries.*base_url"):
            reasoner.ask(Verdict, PROMPT)
        with pytest.raises(errors.ModelUnavailableError, match="8 tries"):
            await reasoner.aask(Verdict, PROMPT)
    assert endpoint.calls == 8 + 8


def test_the_timeout_ends_a_call_that_hangs_and_leaves_out_a_wait_that_would_not_fit():
    with Endpoint([hang(), status(429)]) as endpoint:
        for reasoner in (
            reasoner_of(endpoint, model={"max_retries": 5}, timeout=0.5),
            reasoner_of(endpoint, backoff=1_000, timeout=10),
        ):
            with pytest.raises(errors.ModelUnavailableError, match="1 try, timeout"):
                reasoner.ask(Verdict, PROMPT)
    assert endpoint.calls == 2


def test_a_shorter_timeout_of_the_model_leaves_time_for_further_tries():
    with Endpoint([hang(), ok(GOOD)]) as endpoint:
        assert reasoner_of(endpoint, model={"timeout": 0.5}, timeout=60).ask(Verdict, PROMPT).satisfied


LONG = status(400, "This model's maximum context length is 10", error_code="context_length_exceeded")


@pytest.mark.parametrize(
    ("before", "reply", "advice"),
    [
        ([ok(GOOD)], status(400, "the provider's words"), "the provider's words.*what the provider says"),
        ([ok(GOOD)], status(404), "model name"),
        ([], status(401), r"API key of ChatOpenAI \(OPENAI_API_KEY, unless your code gives another\)"),
        ([], LONG, "shorten the history"),
    ],
    ids=["setting", "name", "key", "long"],
)
def test_a_rejected_request_is_an_error_at_once_that_says_what_to_look_at(before, reply, advice):
    with Endpoint([*before, reply]) as endpoint:
        reasoner = settled(endpoint) if before else reasoner_of(endpoint)
        with pytest.raises(errors.ModelRequestError, match=advice):
            reasoner.ask(Verdict, PROMPT)
    assert endpoint.calls == 1


@pytest.mark.parametrize(
    ("base_url", "key", "told"),
    [
        ("localhost:8000/v1", "k", r"unsupported protocol.*base_url: it begins with http"),
        (None, "sk-12345\n", r"a header is empty, or holds a line break\. Look at the API key"),
    ],
)
def test_an_address_or_a_key_that_cannot_be_sent_is_told_at_once(base_url, key, told):
    with Endpoint([]) as endpoint:
        model = ChatOpenAI(model="m", base_url=base_url or endpoint.base_url, api_key=key)
        with track_usage() as used, pytest.raises(errors.ModelRequestError, match=told) as raised:
            reasoner_with(model).ask(Verdict, PROMPT)
    assert used.calls == 1
    assert "12345" not in str(raised.value)


@pytest.mark.parametrize("body", ["<html>Log in</html>", "null", '{"error": {"message": "no credits"}}'])
def test_an_address_that_serves_no_chat_completions_is_told_after_a_look_at_each_method(body):
    words = "no credits.*" if "credits" in body else ""
    with (
        Endpoint(lambda request: Reply(body=body)) as endpoint,
        pytest.raises(errors.ModelRequestError, match=f"{words}base_url"),
    ):
        reasoner_of(endpoint).ask(Verdict, PROMPT)
    assert endpoint.methods == sorted(ORDER * 2, key=ORDER.index)


# Settings


def test_a_temperature_is_sent_unless_the_model_takes_none_or_the_endpoint_refuses_it():
    def script(request):
        if request.body.get("temperature") == 0.15:
            return status(400, "Unsupported value: 'temperature' does not support 0.15 with this model.")
        return ok(GOOD)

    with Endpoint(script) as endpoint:
        reasoner_of(endpoint, model={"profile": {"temperature": False}}, temperature=0.3).ask(Verdict, PROMPT)
        reasoner_of(endpoint, model={"temperature": 0.7}, temperature=0.3).ask(Verdict, PROMPT)
        for temperature in (0.3, 0.15, 0.3):
            answer = reasoner_of(endpoint, temperature=temperature, max_attempts=1).ask(Verdict, PROMPT)
            assert len(answer.attempts) == 1
    sent = [request.body.get("temperature") for request in endpoint.requests]
    assert sent == [None, 0.7, 0.3, 0.15, None, None]


async def test_no_tokens_of_an_answer_reach_the_message_stream_of_a_graph():
    with Endpoint(lambda request: ok(GOOD)) as endpoint:
        reasoner = reasoner_of(endpoint, model={"streaming": True})

        def judge(state: MessagesState) -> dict:
            reasoner.ask(Verdict, PROMPT)
            return {"messages": [HumanMessage("Done.")]}

        async def ajudge(state: MessagesState) -> dict:
            await reasoner.aask(Verdict, PROMPT)
            return {}

        graph = StateGraph(MessagesState).add_sequence([judge, ajudge]).add_edge(START, "judge").compile()
        parts = [part async for part in graph.astream({"messages": []}, stream_mode="messages")]
    assert [message.type for message, _ in parts] == ["human"]
    assert [bool(request.body.get("stream")) for request in endpoint.requests] == [False] * 2
