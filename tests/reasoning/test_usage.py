"""What calls cost is counted by module and by model, in threads and tasks."""

from __future__ import annotations

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage

from arq_graph import errors, track_usage
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, Verdict, reasoner_of, scripted
from tests.reasoning.endpoint import Endpoint, ok, text


def test_calls_and_tokens_are_counted_by_module_and_by_the_model_that_answered():
    told = AIMessage("Hi", response_metadata={"model_name": "big-2024"})
    with track_usage() as used:
        first = reasoner_of(scripted([OUT_OF_RANGE, GOOD]), module="matcher").ask(Verdict, PROMPT)
        second = reasoner_of(scripted([GOOD]), module="tools").ask(Verdict, PROMPT)
        scripted([told]).invoke(PROMPT)
        with pytest.raises(ConnectionError):
            scripted([ConnectionError()]).invoke(PROMPT)
    calls = {name: module.calls for name, module in used.by_module.items()}
    assert calls == {"matcher": 2, "tools": 1, "other": 2}
    assert used.by_module["matcher"].usage == first.usage
    assert used.total["total_tokens"] == sum(answer.usage["total_tokens"] for answer in (first, second))
    assert used.by_model["big-2024"].calls == 1
    assert sum(model.calls for model in used.by_model.values()) == used.calls == 5
    assert [type(failure) for failure in used.failures] == [ConnectionError]


def test_what_was_counted_can_be_printed_whether_or_not_a_model_reports_tokens():
    silent = FakeListChatModel(responses=[Verdict(**GOOD).model_dump_json()])
    with track_usage() as used:
        reasoner_of(scripted([OUT_OF_RANGE, GOOD]), module="matcher").ask(Verdict, PROMPT)
        answer = reasoner_of(silent, module="tools").ask(Verdict, PROMPT)
    assert answer.usage is used.by_module["tools"].usage is None
    spent = f"{used.total['input_tokens']:,} tokens read, {used.total['output_tokens']:,} written"
    assert str(used).splitlines() == [f"matcher: 2 calls, {spent}", "tools: 1 call", f"all: 3 calls, {spent}"]


def test_only_the_block_is_counted_and_an_outer_block_counts_what_an_inner_one_counts():
    reasoner = reasoner_of(scripted(lambda call: GOOD))
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
    with track_usage() as used:
        pass
    assert (used.calls, used.by_module, used.total["total_tokens"]) == (0, {}, 0)


def test_text_and_tokens_of_an_answer_that_was_cut_off_are_kept_and_counted():
    cut = text('{"rationale": "The', finish_reason="length")
    with Endpoint([ok(GOOD), cut]) as endpoint, track_usage() as used:
        reasoner = reasoner_of(endpoint.chat_model())
        good = reasoner.ask(Verdict, PROMPT)
        with pytest.raises(errors.BlueprintError, match="cut off") as raised:
            reasoner.ask(Verdict, PROMPT)
    (attempt,) = raised.value.attempts
    assert attempt.text == '{"rationale": "The'
    assert used.total["total_tokens"] == good.usage["total_tokens"] + attempt.usage["total_tokens"]
    assert used.by_model[endpoint.model_name].calls == 2
