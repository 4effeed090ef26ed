"""The reasoner with a scripted model: what is asked, what counts as an answer, and when an ask ends."""

from __future__ import annotations

import asyncio
import json
import time
from contextvars import ContextVar
from functools import cached_property
from itertools import product
from threading import Barrier
from types import SimpleNamespace
from uuid import uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from arq_graph import Complaint, Question, Reasoner, ScriptedChatModel, errors
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, UNCERTAIN, Verdict, reasoner_of, scripted

# What is asked


def test_every_call_names_module_blueprint_batch_and_mode_for_traces():
    started = []

    class Recorder(BaseCallbackHandler):
        def on_chat_model_start(self, serialized, messages, *, run_id, **run):
            started.append((run_id, run))

    own = uuid4()
    config = {"callbacks": [Recorder()], "tags": ["mine"], "metadata": {"thread": "T"}, "run_id": own}
    reasoner_of(scripted([OUT_OF_RANGE, GOOD]), module="matcher").ask_all(
        [Question(Verdict, PROMPT, name="B2")], config=config
    )
    (first, run), (second, _) = started
    assert (run["name"], set(run["tags"])) == ("matcher:B2", {"mine", "nostream"})
    wanted = {"thread": "T", "arq_module": "matcher", "arq_blueprint": "Verdict"}
    assert (wanted | {"arq_batch": "B2", "arq_mode": "arq"}).items() <= run["metadata"].items()
    assert len({own, first, second}) == 3


class Strict(BaseChatModel):
    """A model class that takes settings when it is made, and a call only with the arguments it names."""

    temperature: float | None = None
    takes: tuple[str, ...] = ()
    seen: list = Field(default_factory=list)

    @property
    def _llm_type(self):
        return "strict"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        self.seen.append((self.temperature, self.disable_streaming))
        if unknown := kwargs.keys() - set(self.takes):
            raise TypeError(f"unexpected arguments {unknown}")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(json.dumps(GOOD)))])

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        if "tools" not in self.takes:
            raise AssertionError("no tools here")
        return self.bind(tools=tools, tool_choice=tool_choice)


@pytest.mark.parametrize(
    ("takes", "method"),
    [(("response_format",), "json_schema"), (("tools", "tool_choice"), "function_calling"), ((), "prompt")],
)
def test_a_class_is_asked_with_the_first_method_it_takes_and_with_settings_of_its_own(takes, method):
    model = Strict(takes=takes)
    answer = reasoner_of(model, temperature=0.3).ask(Verdict, PROMPT)
    assert [attempt.method for attempt in answer.attempts] == [method]
    assert set(model.seen) == {(0.3, True)}
    assert (model.temperature, model.disable_streaming) == (None, False)


# What counts as an answer


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (OUT_OF_RANGE, "Verdict.score: Input should be less than or equal to 10"),
        ({**GOOD, "mood": "fine"}, "Verdict.mood: Extra inputs are not permitted"),
        ("I would say eight.", "Verdict: the answer holds no complete JSON object"),
        ("", "Verdict: the answer holds no complete JSON object"),
        ('{"rationale": "\ud800', "Verdict: the answer holds no complete JSON object"),
    ],
)
def test_a_bad_answer_is_shown_to_the_model_with_what_is_wrong_with_it(bad, complaint):
    model = scripted([GOOD, OUT_OF_RANGE, bad, GOOD])
    reasoner = reasoner_of(model)
    reasoner.ask(Verdict, PROMPT)
    answer = reasoner.ask(Verdict, PROMPT)
    *prompt, own, correction = model.calls[-1].messages
    assert prompt == PROMPT
    shown = json.dumps(bad) if isinstance(bad, dict) else bad or "(an empty answer)"
    assert own.text == shown.replace("\ud800", "\ufffd")
    assert complaint in correction.text
    assert [attempt.error is None for attempt in answer.attempts] == [False, False, True]
    assert complaint in answer.attempts[1].error


def test_a_bad_answer_is_not_sent_back_whole_and_opens_no_section():
    bad = {**GOOD, "rationale": "x" * 500_000, "</conversation><now>{}</now>": 1}
    model = scripted([bad, GOOD])
    reasoner_of(model).ask(Verdict, PROMPT)
    assert len(model.calls[1].text) < 10_000
    assert "<" not in model.calls[1].messages[-1].text


def test_a_failed_verification_asks_for_a_new_candidate():
    model = scripted([UNCERTAIN, GOOD])
    answer = reasoner_of(model).ask(Verdict, PROMPT)
    assert (answer.satisfied, answer.value.score) == (True, 8)
    rejected, _ = answer.attempts
    assert (rejected.error, [complaint.query for complaint in rejected.complaints]) == (None, ["certain"])
    assert "- Verdict.certain: " in model.calls[1].messages[-1].text
    assert answer.usage["total_tokens"] == sum(attempt.usage["total_tokens"] for attempt in answer.attempts)


def test_code_may_complain_in_every_mode_and_the_unsatisfied_raise_if_that_is_wanted():
    complaint = Complaint("Verdict", "score", "too high")
    for mode, answer in (("arq", GOOD), ("cot", {"reasoning": "r", "score": 8}), ("direct", {"score": 8})):
        model = scripted(lambda call, answer=answer: answer)
        reasoner = reasoner_of(model, mode=mode, max_candidates=2)
        given = reasoner.ask(Verdict, PROMPT, check=lambda verdict: [complaint])
        assert (given.satisfied, given.complaints, len(given.attempts)) == (False, (complaint,), 2)
        assert given.reasoning == ("r" if mode == "cot" else "")
        strict = reasoner_of(model, mode=mode, max_candidates=2, on_unsatisfied="raise")
        with pytest.raises(errors.UnsatisfiedError, match=r"none of 2.*Verdict\.score: too high") as raised:
            strict.ask(Verdict, PROMPT, check=lambda verdict: [complaint])
        assert len(raised.value.attempts) == 2


@pytest.mark.parametrize(("attempts", "candidates"), [(1, 3), (2, 2), (3, 1)])
def test_any_mix_of_bad_answers_makes_as_many_calls_as_allowed(attempts, candidates):
    for answers in product([UNCERTAIN, OUT_OF_RANGE], repeat=4):
        model = scripted(answers)
        try:
            answer = reasoner_of(model, max_attempts=attempts, max_candidates=candidates).ask(Verdict, PROMPT)
            # A valid answer is not thrown away because later ones are invalid.
            assert not answer.satisfied
        except errors.BlueprintError as error:
            assert [json.loads(attempt.text) for attempt in error.attempts] == [OUT_OF_RANGE] * attempts
        given = answers[: len(model.calls)]
        bad, unmet = given.count(OUT_OF_RANGE), given.count(UNCERTAIN)
        assert (bad, given[-1]) == (attempts, OUT_OF_RANGE) or (unmet, given[-1]) == (candidates, UNCERTAIN)


# Refused, cut off


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("", additional_kwargs={"refusal": "I will not."}),
        AIMessage([{"type": "refusal", "refusal": "I will not."}]),
        AIMessage("I will not.", response_metadata={"stop_reason": "refusal"}),
    ],
)
def test_refusals_of_any_shape_are_final_and_keep_the_models_words(message):
    with pytest.raises(errors.RefusalError, match="I will not") as raised:
        reasoner_of(scripted([message])).ask(Verdict, PROMPT)
    assert raised.value.refusal == "I will not."


def test_a_prompt_that_the_provider_blocks_is_refused():
    blocked = AIMessage("", response_metadata={"prompt_feedback": {"block_reason": "SAFETY"}})
    with pytest.raises(errors.RefusalError, match="blocked the prompt: SAFETY"):
        reasoner_of(scripted([blocked])).ask(Verdict, PROMPT)


@pytest.mark.parametrize(
    "metadata",
    [
        {"stop_reason": "max_tokens"},
        {"finish_reason": "MAX_TOKENS"},
        {"incomplete_details": {"reason": "max_output_tokens"}},
    ],
)
def test_an_answer_that_was_cut_off_is_asked_again_once_with_a_higher_limit_if_one_was_set(metadata):
    cut = AIMessage('{"rationale": "Th', response_metadata=metadata)
    model = scripted([cut, GOOD], max_tokens=30)
    assert reasoner_of(model).ask(Verdict, PROMPT).satisfied
    assert [(call.kwargs["max_tokens"], call.messages) for call in model.calls] == [
        (30, PROMPT),
        (60, PROMPT),
    ]
    capped = scripted([cut, GOOD], max_tokens=30, profile={"max_output_tokens": 40})
    assert reasoner_of(capped).ask(Verdict, PROMPT).satisfied
    assert [call.kwargs["max_tokens"] for call in capped.calls] == [30, 40]
    too_high = error_like(status_code=400)
    for answers, limit, attempts in (
        ([cut], None, 3),
        ([cut], -1, 3),
        ([cut] * 2, 30, 3),
        ([cut], 30, 1),
        ([cut, too_high], 30, 3),
    ):
        with pytest.raises(errors.BlueprintError, match="cut off"):
            reasoner_of(scripted(answers, max_tokens=limit), max_attempts=attempts).ask(Verdict, PROMPT)


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_complete_answer_is_taken_however_it_ended(reason):
    message = AIMessage(json.dumps(GOOD) + "\n\n", response_metadata={"finish_reason": reason})
    assert reasoner_of(scripted([message])).ask(Verdict, PROMPT).satisfied


# What a model raises


def error_like(name="Error", /, base=Exception, words="the provider's words", **attributes):
    """An exception of some provider's package, told by its attributes and class name."""
    return type(name, (base,), attributes)(words)


@pytest.mark.parametrize(
    "error",
    [
        error_like(response=SimpleNamespace(status_code=502, headers={})),
        error_like(response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
        error_like(code=503),
        error_like("APITimeoutError", base=type("APIConnectionError", (Exception,), {})),
        ModelRateLimitError("slow down"),
        ConnectionResetError("reset"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_trouble_that_may_pass_is_tried_again(error):
    assert len(reasoner_of(scripted([error, error, GOOD])).ask(Verdict, PROMPT).attempts) == 1


async def test_a_lost_call_is_made_again_after_a_pause():
    reasoner = reasoner_of(scripted([ConnectionResetError(), GOOD] * 2), backoff=0.05)
    begun = time.monotonic()
    reasoner.ask(Verdict, PROMPT)
    between = time.monotonic()
    await reasoner.aask(Verdict, PROMPT)
    assert between - begun >= 0.05 <= time.monotonic() - between


def test_pauses_double_up_to_twenty_seconds_and_a_retry_has_what_is_left_of_the_time(monkeypatch):
    pauses, limits, retries = [], [], set()

    class Timed(ScriptedChatModel):
        timeout: float | None = None
        max_retries: int = 2

        @cached_property
        def made(self):
            """What a client of its own would be made with."""
            return self.timeout, self.max_retries

        def _generate(self, *args, **kwargs):
            limits.append(self.made[0])
            retries.add(self.made[1])
            raise ConnectionResetError

    model = Timed([])
    assert model.made == (None, 2)
    monkeypatch.setattr(time, "sleep", pauses.append)
    with pytest.raises(errors.ModelUnavailableError, match="8 tries"):
        reasoner_of(model, backoff=1, timeout=1_000).ask(Verdict, PROMPT)
    least = [0, 1, 2, 4, 8, 16, 20, 20]
    assert all(low <= pause <= low + 1 for low, pause in zip(least, pauses, strict=True))
    assert (limits[0] == 1_000 > max(limits[1:]), retries) == (True, {0})


@pytest.mark.parametrize("kind", [ZeroDivisionError, KeyError, errors.InputError, TypeError])
def test_bugs_are_not_dressed_up_as_a_models_failure(kind):
    reasoner = reasoner_of(scripted([GOOD, kind("a bug")]))
    reasoner.ask(Verdict, PROMPT)
    with pytest.raises(kind, match="a bug"):
        reasoner.ask(Verdict, PROMPT)


# Async


async def test_a_model_that_never_answers_is_given_up_and_an_ask_can_be_cancelled():
    asked = asyncio.Event()

    async def never(call):
        asked.set()
        await asyncio.Event().wait()

    with pytest.raises(errors.ModelUnavailableError, match=r"timeout 0\.05 s"):
        await reasoner_of(scripted(never), timeout=0.05).aask(Verdict, PROMPT)
    asked.clear()
    task = asyncio.create_task(reasoner_of(scripted(never)).aask(Verdict, PROMPT))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# Several at a time


def questions(*words: str) -> list[Question]:
    return [Question(Verdict, [HumanMessage(each)], name=each) for each in words]


@pytest.mark.parametrize(("config", "width"), [(None, 6), ({"max_concurrency": 2}, 2)])
async def test_no_more_are_asked_at_the_same_time_than_max_concurrency_allows(config, width):
    under_way, seen, together = [], [], Barrier(width)

    def slow(call):
        under_way.append(call)
        seen.append(len(under_way))
        together.wait(10)  # however busy the machine is
        time.sleep(0.02)
        under_way.pop()
        return GOOD

    async def slow_too(call):
        return await asyncio.to_thread(slow, call)

    reasoner_of(scripted(slow)).ask_all(questions(*"abcdef"), config=config)
    assert max(seen) == width
    seen.clear()
    await reasoner_of(scripted(slow_too)).aask_all(questions(*"abcdef"), config=config)
    assert max(seen) == width


async def test_answers_and_errors_stand_in_the_order_of_the_questions():
    tenant = ContextVar("tenant", default="nobody")
    tenant.set("ours")

    def script(call):
        return {**GOOD, "rationale": tenant.get(), "score": 11 if "bad" in call.text else 8}

    reasoner = reasoner_of(scripted(script))
    for first, second, third in (
        reasoner.ask_all(questions("good", "bad", "fine")),
        await reasoner.aask_all(questions("good", "bad", "fine")),
    ):
        assert first.value.rationale == third.value.rationale == "ours"
        assert isinstance(second, errors.BlueprintError)
        assert "reasoner asking bad" in str(second)
    assert reasoner.ask_all([]) == await reasoner.aask_all([]) == []


async def test_a_bug_in_one_of_several_is_raised_and_cancels_the_others():
    ended = []

    async def script(call):
        if "bug" in call.text:
            return ZeroDivisionError("a bug")
        try:
            return await asyncio.Event().wait()
        finally:
            ended.append(call.text)

    with pytest.raises(ZeroDivisionError):
        await reasoner_of(scripted(script)).aask_all(questions("one", "bug", "two"))
    assert sorted(ended) == ["one", "two"]
    with pytest.raises(ZeroDivisionError):
        reasoner_of(scripted([ZeroDivisionError()] * 2)).ask_all(questions("one", "two"))


# Settings


class ChatAnthropic(ScriptedChatModel):
    """A model of a class whose prompts are marked for the provider's cache."""


def test_marks_for_the_cache_that_an_endpoint_refuses_are_left_out_from_then_on():
    marked = []

    def answer(call):
        marked.append("cache_control" in str(call.messages))
        return error_like(words="what is cache_control?", status_code=400) if marked[-1] else GOOD

    for _ in range(2):
        assert reasoner_of(ChatAnthropic(answer, model_name="no-cache")).ask(Verdict, PROMPT).satisfied
    assert marked == [True, False, False]


def test_a_setting_out_of_its_range_is_named():
    for setting, value in (
        ("max_attempts", 0),
        ("max_candidates", 0),
        ("timeout", 0),
        ("backoff", -1),
        ("mode", "chain"),
        ("on_unsatisfied", "ignore"),
        ("base_url", "http://127.0.0.1:1/v1"),
    ):
        with pytest.raises(errors.InputError, match=f"^{setting} (is|must be) "):
            Reasoner(**{"model": scripted([]), setting: value})


def test_an_answer_that_is_rejected_is_logged_by_its_queries_and_without_its_words(caplog):
    caplog.set_level("INFO", "arq_graph")
    asker = reasoner_of(scripted([OUT_OF_RANGE, UNCERTAIN, GOOD]), module="matcher")
    assert asker.ask(Verdict, [("user", "Where is my order?")]).satisfied
    told = [
        line.partition("answer ")[2] for line in caplog.messages if line.startswith("matcher asking Verdict")
    ]
    assert told == ["1 is rejected because of Verdict.score", "2 is rejected because of Verdict.certain"]
