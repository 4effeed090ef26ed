"""The reasoner with a scripted model: the same rules as over HTTP, for chat models of any class."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar
from itertools import count
from types import SimpleNamespace

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ContextOverflowError, ModelRateLimitError
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import BaseModel, create_model

from arq_graph.errors import (
    BlueprintError,
    InputError,
    ModelRequestError,
    ModelUnavailableError,
    RefusalError,
    UnsatisfiedError,
)
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.reasoning.answer import Complaint, Question
from arq_graph.reasoning.blueprint import ARQ, respond, verify
from arq_graph.reasoning.reasoner import Reasoner
from tests.reasoning.verdict import GOOD, OUT_OF_RANGE, PROMPT, UNCERTAIN, Verdict

numbers = count()


def scripted(answers, **fields) -> ScriptedChatModel:
    """A scripted model that no other test's endpoint is remembered for."""
    return ScriptedChatModel(answers, model_name=f"scripted-{next(numbers)}", **fields)


def reasoner_with(model, **settings) -> Reasoner:
    return Reasoner(model, **{"backoff": 0, "timeout": 10, **settings})


class Recorder(BaseCallbackHandler):
    """Keeps what callbacks are told when a model call starts."""

    def __init__(self):
        self.started = []

    def on_chat_model_start(
        self, serialized, messages, *, name=None, tags=None, metadata=None, run_id, **kwargs
    ):
        self.started.append(SimpleNamespace(name=name, tags=tags, metadata=metadata, run_id=run_id))


# Calls


def test_every_call_names_module_blueprint_batch_and_mode_for_traces(asks):
    recorder = Recorder()
    config = {"callbacks": [recorder], "tags": ["mine"], "metadata": {"thread": "T"}, "run_id": None}
    reasoner = reasoner_with(scripted([OUT_OF_RANGE, GOOD]), module="matcher")
    asks.one(reasoner, name="B2", config=config)
    asks.one(reasoner_with(scripted([GOOD])), config={"callbacks": [recorder]})
    first, second, unnamed = recorder.started
    assert (first.name, unnamed.name) == ("matcher:B2", "reasoner:Verdict")
    assert set(first.tags) == {"mine", "nostream"}
    wanted = {
        "thread": "T",
        "arq_module": "matcher",
        "arq_blueprint": "Verdict",
        "arq_batch": "B2",
        "arq_mode": "arq",
    }
    assert wanted.items() <= first.metadata.items()
    assert first.run_id != second.run_id


def test_a_run_id_of_the_caller_is_not_given_to_each_call(asks):
    from uuid import uuid4

    recorder = Recorder()
    own = uuid4()
    asks.one(reasoner_with(scripted([OUT_OF_RANGE, GOOD])), config={"callbacks": [recorder], "run_id": own})
    assert own not in [call.run_id for call in recorder.started]


def test_a_call_never_streams_and_carries_only_what_was_set(asks):
    model = scripted([GOOD, GOOD])
    asks.one(reasoner_with(model))
    asks.one(reasoner_with(model, temperature=0.1))
    plain, warm = [call.kwargs for call in model.calls]
    assert set(plain) == {"response_format"}
    assert warm["temperature"] == 0.1


def test_a_zero_temperature_is_a_temperature(asks):
    model = scripted([GOOD, GOOD])
    asks.one(reasoner_with(model, temperature=0))
    own = scripted([GOOD], temperature=0.0)
    asks.one(reasoner_with(own, temperature=0.5))
    assert model.calls[0].kwargs["temperature"] == 0
    assert own.calls[0].kwargs["temperature"] == 0


def test_a_model_class_without_a_temperature_gets_none(asks):
    class Plain(FakeListChatModel):
        def _call(self, messages, stop=None, run_manager=None, **kwargs):
            assert "temperature" not in kwargs
            return super()._call(messages, stop, run_manager, **kwargs)

    model = Plain(responses=['{"rationale": "x", "score": 8, "certain": true}'])
    assert asks.one(reasoner_with(model, temperature=0.5)).satisfied


def test_the_prompt_is_left_as_it_was(asks):
    prompt = list(PROMPT)
    asks.one(reasoner_with(scripted([OUT_OF_RANGE, GOOD])), messages=prompt)
    assert prompt == PROMPT


def test_a_schema_is_made_once_for_all_asks(asks):
    model = scripted([GOOD, GOOD])
    reasoner = reasoner_with(model)
    asks.one(reasoner)
    asks.one(reasoner)
    first, second = [call.kwargs["response_format"]["json_schema"]["schema"] for call in model.calls]
    assert first is second


def test_a_blueprint_that_is_gone_is_not_kept():
    reasoner = reasoner_with(scripted(lambda call: {"G1": 3}))
    batch = create_model("Batch", __base__=ARQ, G1=(int, respond("How many?")))
    assert reasoner.ask(batch, PROMPT).value.G1 == 3
    gone = weakref.ref(batch)
    del batch
    gc.collect()
    assert gone() is None


def test_names_of_classes_become_names_that_providers_take(asks):
    blueprint = create_model("Frage[ä.b]", __base__=ARQ, answer=(str, respond("Was?")))
    model = scripted([{"answer": "x"}])
    asks.one(reasoner_with(model), blueprint)
    assert model.calls[0].blueprint == "Frage___b_"
    long = create_model("A" * 80, __base__=ARQ, answer=(str, respond("What?")))
    model = scripted([{"answer": "x"}])
    asks.one(reasoner_with(model), long)
    assert model.calls[0].blueprint == "A" * 64


def test_a_mode_may_be_given_to_the_reasoner_or_the_ask(asks):
    model = scripted([{"score": 8}, {"reasoning": "r", "score": 8}])
    reasoner = reasoner_with(model, mode="direct")
    assert asks.one(reasoner).mode == "direct"
    assert asks.one(reasoner, mode="cot").reasoning == "r"
    assert [call.metadata["arq_mode"] for call in model.calls] == ["direct", "cot"]


# Candidates


def test_code_may_complain_and_the_model_is_told(asks):
    def check(verdict):
        return (
            [Complaint("Verdict", "rationale", "must name the order")]
            if "O1" not in verdict.rationale
            else []
        )

    model = scripted([GOOD, {**GOOD, "rationale": "O1 is late."}])
    answer = asks.one(reasoner_with(model), check=check)
    assert answer.value.rationale == "O1 is late."
    assert "- Verdict.rationale: must name the order" in model.calls[1].messages[-1].text
    assert model.calls[1].messages[-2].type == "ai"


@pytest.mark.parametrize("mode", ["cot", "direct"])
def test_code_may_complain_in_every_mode(asks, mode):
    fields = {"cot": {"reasoning": "r", "score": 8}, "direct": {"score": 8}}[mode]
    model = scripted([fields] * 2)
    complaint = Complaint("Verdict", "score", "too high")
    answer = asks.one(reasoner_with(model, mode=mode), check=lambda verdict: [complaint], max_candidates=2)
    assert (answer.satisfied, answer.complaints) == (False, (complaint,))
    assert len(model.calls) == 2


def test_an_ask_may_allow_fewer_candidates_than_the_reasoner(asks):
    model = scripted([UNCERTAIN])
    answer = asks.one(reasoner_with(model, max_candidates=5), max_candidates=1)
    assert not answer.satisfied
    assert len(model.calls) == 1


def test_unsatisfied_answers_raise_if_that_is_wanted(asks):
    model = scripted([UNCERTAIN, UNCERTAIN])
    with pytest.raises(UnsatisfiedError, match=r"Verdict\.certain") as raised:
        asks.one(reasoner_with(model, on_unsatisfied="raise", max_candidates=2))
    assert [attempt.error for attempt in raised.value.attempts] == [None, None]
    assert len(model.calls) == 2


def test_a_verification_may_be_a_predicate(asks):
    class Estimate(ARQ):
        days: int = respond("How many days?")
        doubt: int = verify("How much doubt remains, in percent?", must_be=lambda percent: percent < 20)

    model = scripted([{"days": 3, "doubt": 60}, {"days": 4, "doubt": 5}])
    answer = asks.one(reasoner_with(model), Estimate)
    assert (answer.value.days, len(answer.attempts)) == (4, 2)


def test_a_valid_answer_is_not_thrown_away_because_later_ones_are_invalid(asks):
    model = scripted([UNCERTAIN, OUT_OF_RANGE, OUT_OF_RANGE, OUT_OF_RANGE])
    answer = asks.one(reasoner_with(model, max_attempts=3, max_candidates=3))
    assert (answer.satisfied, answer.value.score) == (False, 3)
    assert len(model.calls) == 4


@pytest.mark.parametrize("attempts", [1, 2, 4])
@pytest.mark.parametrize("candidates", [1, 2, 4])
def test_no_mix_of_bad_answers_makes_more_calls_than_allowed(asks, attempts, candidates):
    for pattern in range(2**6):
        answers = [UNCERTAIN if pattern >> bit & 1 else OUT_OF_RANGE for bit in range(6)] + [UNCERTAIN] * 4
        model = scripted(answers)
        try:
            answer = asks.one(reasoner_with(model, max_attempts=attempts, max_candidates=candidates))
            assert not answer.satisfied
        except BlueprintError as error:
            assert len(error.attempts) == attempts
        assert len(model.calls) <= attempts + candidates - 1


# Refused, cut off


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("", additional_kwargs={"refusal": "I will not."}),
        AIMessage([{"type": "refusal", "refusal": "I will not."}]),
        AIMessage([{"type": "non_standard", "value": {"type": "refusal", "refusal": "I will not."}}]),
        AIMessage("I will not.", response_metadata={"stop_reason": "refusal"}),
    ],
)
def test_refusals_of_any_shape_are_recognised(asks, message):
    model = scripted([message])
    with pytest.raises(RefusalError) as raised:
        asks.one(reasoner_with(model))
    assert raised.value.refusal == "I will not."


@pytest.mark.parametrize("reason", ["content_filter", "SAFETY"])
def test_an_empty_filtered_answer_is_a_refusal(asks, reason):
    model = scripted([AIMessage("", response_metadata={"finish_reason": reason})])
    with pytest.raises(RefusalError, match="content filter"):
        asks.one(reasoner_with(model))


def test_a_valid_answer_is_taken_although_a_filter_ended_it(asks):
    message = AIMessage(
        Verdict(**GOOD).model_dump_json(), response_metadata={"finish_reason": "content_filter"}
    )
    assert asks.one(reasoner_with(scripted([message]))).satisfied


def test_a_refusal_that_is_raised_is_recognised_by_its_name(asks):
    class OpenAIRefusalError(Exception):
        pass

    with pytest.raises(RefusalError, match="I will not"):
        asks.one(reasoner_with(scripted([OpenAIRefusalError("I will not.")])))


@pytest.mark.parametrize(
    "metadata",
    [
        {"stop_reason": "max_tokens"},
        {"finish_reason": "MAX_TOKENS"},
        {"done_reason": "length"},
        {"stopReason": "max_tokens"},
    ],
)
def test_answers_cut_off_are_recognised_for_other_providers(asks, metadata):
    cut = AIMessage('{"rationale": "Th', response_metadata=metadata)
    model = scripted([cut, GOOD], max_tokens=30)
    assert asks.one(reasoner_with(model)).satisfied
    assert model.calls[1].kwargs["max_tokens"] == 60
    assert len(model.calls[1].messages) == len(PROMPT)
    with pytest.raises(BlueprintError, match="cut off"):
        asks.one(reasoner_with(scripted([cut])))


def test_a_limit_that_means_none_is_not_doubled(asks):
    model = scripted([AIMessage("{", response_metadata={"finish_reason": "length"})], max_tokens=-1)
    with pytest.raises(BlueprintError, match="cut off"):
        asks.one(reasoner_with(model))


def test_a_cut_off_answer_counts_as_an_attempt(asks):
    cut = AIMessage("{", response_metadata={"finish_reason": "length"})
    with pytest.raises(BlueprintError):
        asks.one(reasoner_with(scripted([cut], max_tokens=30), max_attempts=1))


# What a model raises


def error_like(name="Error", /, base=Exception, **attributes):
    """An exception of some provider's package, told by its attributes and class name."""
    return type(name, (base,), attributes)("the provider's words")


TRANSIENT = [
    error_like(status_code=429),
    error_like(status_code=503),
    error_like(response=SimpleNamespace(status_code=502, headers={})),
    error_like(response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
    error_like(code=503),
    error_like(http_status=429),
    error_like("APITimeoutError", base=type("APIConnectionError", (Exception,), {})),
    error_like("ReadTimeout", base=type("TransportError", (Exception,), {})),
    error_like("ResourceExhausted"),
    ModelRateLimitError("slow down"),
    ConnectionResetError("reset"),
    TimeoutError("too late"),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__name__)
def test_passing_trouble_of_any_provider_is_tried_again(asks, error):
    model = scripted([error, error, GOOD])
    answer = asks.one(reasoner_with(model))
    assert answer.satisfied
    assert len(answer.attempts) == 1


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: type(error).__name__)
def test_lasting_trouble_of_any_provider_is_bounded(asks, error):
    model = scripted(lambda call: error)
    with pytest.raises(ModelUnavailableError) as raised:
        asks.one(reasoner_with(model))
    assert raised.value.__cause__ is error
    assert len(model.calls) == 8


@pytest.mark.parametrize(("code", "setting"), [(401, "API key"), (403, "API key"), (402, "setting")])
def test_rejections_of_any_provider_are_final(asks, code, setting):
    with pytest.raises(ModelRequestError, match=f"the provider's words.*{setting}"):
        asks.one(reasoner_with(scripted([error_like(status_code=code)])))


def test_a_prompt_that_is_too_long_is_no_question_of_method(asks):
    error = error_like(base=ContextOverflowError, status_code=400)
    with pytest.raises(ModelRequestError, match="shorten the history"):
        asks.one(reasoner_with(scripted([error])))


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), KeyError("a bug"), InputError("a bug")])
def test_bugs_are_not_dressed_up_as_a_models_failure(asks, error):
    model = scripted([error])
    with pytest.raises(type(error)) as raised:
        asks.one(reasoner_with(model))
    assert raised.value is error


def test_a_check_that_fails_itself_is_the_callers_bug(asks):
    with pytest.raises(ZeroDivisionError):
        asks.one(reasoner_with(scripted([GOOD])), check=lambda verdict: 1 / 0)


def test_a_type_error_of_a_model_that_worked_before_is_a_bug(asks):
    model = scripted([GOOD, TypeError("a bug")])
    reasoner = reasoner_with(model)
    asks.one(reasoner)
    with pytest.raises(TypeError, match="a bug"):
        asks.one(reasoner)


# Methods that a class does not know


class Wordy(BaseChatModel):
    """A model class that takes only the arguments it names, as some do."""

    takes: tuple[str, ...] = ()

    @property
    def _llm_type(self):
        return "wordy"

    def _generate(self, messages, stop=None, run_manager=None, *, stream=False, **kwargs):
        if unknown := set(kwargs) - set(self.takes):
            raise TypeError(f"unexpected arguments {unknown}")
        text = Verdict(**GOOD).model_dump_json()
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        return self.bind(tools=tools, tool_choice=tool_choice)


def test_a_class_that_does_not_know_an_argument_is_asked_with_another_method(asks):
    answer = asks.one(reasoner_with(Wordy(takes=("tools", "tool_choice"))))
    assert answer.attempts[0].method == "function_calling"


def test_a_class_that_takes_no_arguments_is_asked_by_the_prompt_alone(asks):
    assert asks.one(reasoner_with(Wordy())).attempts[0].method == "prompt"


def test_a_class_without_tools_is_asked_in_json_mode(asks):
    model = FakeListChatModel(responses=["Eight.", Verdict(**GOOD).model_dump_json()])
    answer = asks.one(reasoner_with(model))
    assert [attempt.method for attempt in answer.attempts] == ["json_schema", "json_mode"]


# Time


async def test_a_model_that_never_answers_is_given_up_in_async():
    async def never(call):
        await asyncio.Event().wait()

    with pytest.raises(ModelUnavailableError, match=r"timeout 0\.05 s"):
        await reasoner_with(scripted(never), timeout=0.05).aask(Verdict, PROMPT)


async def test_an_ask_can_be_cancelled():
    asked = asyncio.Event()

    async def never(call):
        asked.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(reasoner_with(scripted(never)).aask(Verdict, PROMPT))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# Several at a time


def test_answers_and_errors_stand_in_the_order_of_the_questions(asks):
    def script(call):
        return RuntimeError if "bug" in call.text else {**GOOD, "score": 11 if "bad" in call.text else 8}

    questions = [Question(Verdict, [HumanMessage(words)], name=words) for words in ("good", "bad", "fine")]
    first, second, third = asks.all(reasoner_with(scripted(script)), questions)
    assert first.satisfied
    assert third.satisfied
    assert isinstance(second, BlueprintError)
    assert "reasoner asking bad" in str(second)


def test_a_bug_in_one_of_several_is_raised(asks):
    def script(call):
        return ZeroDivisionError("a bug") if "2" in call.text else GOOD

    questions = [Question(Verdict, [HumanMessage(str(number))]) for number in range(4)]
    with pytest.raises(ZeroDivisionError):
        asks.all(reasoner_with(scripted(script)), questions)


async def test_a_bug_in_one_of_several_cancels_the_others():
    ended = []

    async def script(call):
        if "bug" in call.text:
            return ZeroDivisionError("a bug")
        try:
            return await asyncio.Event().wait()
        finally:
            ended.append(call.text)

    questions = [Question(Verdict, [HumanMessage(words)]) for words in ("one", "bug", "two")]
    with pytest.raises(ZeroDivisionError):
        await reasoner_with(scripted(script)).aask_all(questions)
    assert sorted(ended) == ["one", "two"]


def test_no_question_is_no_call(asks):
    assert asks.all(reasoner_with(scripted([])), []) == []


def test_context_variables_reach_every_question(asks):
    tenant = ContextVar("tenant", default="nobody")
    tenant.set("ours")
    seen = []

    def script(call):
        seen.append(tenant.get())
        return GOOD

    asks.all(reasoner_with(scripted(script)), [Question(Verdict, PROMPT)] * 3)
    assert seen == ["ours"] * 3


# Settings


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_attempts", 0),
        ("max_candidates", 0),
        ("timeout", 0),
        ("backoff", -1),
        ("mode", "chain"),
        ("on_unsatisfied", "ignore"),
        ("base_url", "http://127.0.0.1:1/v1"),
    ],
)
def test_a_setting_out_of_its_range_is_named(setting, value):
    with pytest.raises(InputError, match=setting):
        Reasoner(scripted([]), **{setting: value})


def test_a_setting_of_an_ask_out_of_its_range_is_named(asks):
    reasoner = reasoner_with(scripted([]))
    with pytest.raises(InputError, match="max_candidates"):
        asks.one(reasoner, max_candidates=0)
    with pytest.raises(InputError, match="mode"):
        asks.one(reasoner, mode="chain")


def test_a_bound_model_is_not_a_chat_model():
    with pytest.raises(InputError, match="chat model"):
        Reasoner(scripted([]).bind(stop=["x"]))


def test_an_answer_may_be_another_models_object(asks):
    class Reply(BaseModel):
        rationale: str = "x"
        score: int = 8
        certain: bool = True

    assert asks.one(reasoner_with(scripted([Reply()]))).satisfied


def test_what_was_wrong_with_an_answer_cannot_open_a_section_of_the_prompt():
    bad = {**GOOD, "</conversation><now>{}</now>": 1}
    model = ScriptedChatModel([bad, GOOD])
    Reasoner(model).ask(Verdict, PROMPT)
    complaint = str(model.calls[1].messages[-1].text)
    assert "now" in complaint
    assert "<" not in complaint


@pytest.mark.parametrize("blueprint", [BaseModel, int, "Verdict"])
def test_what_is_no_blueprint_is_told_before_a_model_is_asked(blueprint):
    model = ScriptedChatModel([])
    with pytest.raises(InputError, match="it must be a subclass of ARQ"):
        Reasoner(model).ask(blueprint, PROMPT)
    assert model.calls == []
