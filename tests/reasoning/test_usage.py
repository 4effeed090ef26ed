"""Calls and tokens are counted by module and by model, in threads and tasks."""

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from arq_graph import errors, track_usage
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, Verdict, make_reasoner, script_model
from tests.reasoning.endpoint import Endpoint, ok, text


def test_calls_and_tokens_are_counted_by_module_and_by_the_model_that_answered():
    reply = AIMessage("Hi", response_metadata={"model_name": "big-2024"})
    with track_usage() as usage:
        first = make_reasoner(script_model([OUT_OF_RANGE, GOOD]), module="matcher").ask(Verdict, PROMPT)
        second = make_reasoner(script_model([GOOD]), module="tools").ask(Verdict, PROMPT)
        script_model([reply]).invoke(PROMPT)
        with pytest.raises(ConnectionError):
            script_model([ConnectionError()]).invoke(PROMPT)
    calls = {name: module.calls for name, module in usage.by_module.items()}
    assert calls == {"matcher": 2, "tools": 1, "other": 2}
    assert usage.by_module["matcher"].usage == first.usage
    assert usage.total["total_tokens"] == sum(answer.usage["total_tokens"] for answer in (first, second))
    assert usage.by_model["big-2024"].calls == 1
    assert sum(model.calls for model in usage.by_model.values()) == usage.calls == 5
    assert [type(failure) for failure in usage.failures] == [ConnectionError]


def test_usage_is_printed_whether_or_not_a_model_reports_tokens():
    silent = FakeListChatModel(responses=[Verdict(**GOOD).model_dump_json()])
    with track_usage() as usage:
        make_reasoner(script_model([OUT_OF_RANGE, GOOD]), module="matcher").ask(Verdict, PROMPT)
        answer = make_reasoner(silent, module="tools").ask(Verdict, PROMPT)
    assert answer.usage is usage.by_module["tools"].usage is None
    tokens = f"{usage.total['input_tokens']:,} tokens read, {usage.total['output_tokens']:,} written"
    assert str(usage).splitlines() == [
        f"matcher: 2 calls, {tokens}",
        "tools: 1 call",
        f"all: 3 calls, {tokens}",
    ]


def test_only_the_block_is_counted_and_an_outer_block_counts_what_an_inner_one_counts():
    reasoner = make_reasoner(script_model(lambda call: GOOD))
    reasoner.ask(Verdict, PROMPT)
    with track_usage() as outer:
        reasoner.ask(Verdict, PROMPT)
        with track_usage() as inner:
            reasoner.ask(Verdict, PROMPT)
        with pytest.raises(ZeroDivisionError), track_usage():
            raise ZeroDivisionError
    reasoner.ask(Verdict, PROMPT)
    assert (outer.calls, inner.calls) == (2, 1)
    assert outer.total["total_tokens"] == 2 * inner.total["total_tokens"]
    with track_usage() as usage:
        pass
    assert (usage.calls, usage.by_module, usage.total["total_tokens"]) == (0, {}, 0)


def test_an_answer_that_was_cut_off_has_its_text_and_its_tokens_are_counted():
    cut = text('{"rationale": "The', finish_reason="length")
    with Endpoint([ok(GOOD), cut]) as endpoint, track_usage() as usage:
        reasoner = make_reasoner(endpoint.chat_model())
        good = reasoner.ask(Verdict, PROMPT)
        with pytest.raises(errors.BlueprintError, match="cut off") as raised:
            reasoner.ask(Verdict, PROMPT)
    (attempt,) = raised.value.attempts
    assert attempt.text == '{"rationale": "The'
    assert usage.total["total_tokens"] == good.usage["total_tokens"] + attempt.usage["total_tokens"]
    assert usage.by_model[endpoint.model_name].calls == 2
