"""Models inside what LangChain makes of them, models that stand in for others, and a reasoner that parts share."""

from __future__ import annotations

import asyncio
import time

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import ConfigurableField
from pydantic import PrivateAttr

from arq_graph import OfflineChatModel, Reasoner, ScriptedChatModel, errors, track_usage
from arq_graph.models.resolve import get_model_name, is_offline
from arq_graph.nodes import BlueprintNode
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, Verdict, reasoner_of, scripted
from tests.reasoning.endpoint import Endpoint, ok, status


def up() -> ScriptedChatModel:
    return scripted(lambda call: GOOD)


def down(error: Exception | None = None) -> ScriptedChatModel:
    return scripted(lambda call: error or ConnectionError("no route to host"))


class Gateway(BaseChatModel):
    """A company's own model: nothing that can be seen of it tells one from another."""

    _behind: ScriptedChatModel = PrivateAttr()

    def __init__(self, behind):
        super().__init__()
        self._behind = behind

    @property
    def _llm_type(self):
        return "gateway"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return self._behind._generate(messages, stop, run_manager, **kwargs)


class Refused(Exception):
    status_code = 401


def alternatives(model, other):
    return model.configurable_alternatives(ConfigurableField(id="which"), default_key="first", other=other)


OTHER = {"configurable": {"which": "other"}}

# What is unwrapped


@pytest.mark.parametrize(
    ("wrapped", "config", "answers"),
    [
        (lambda a, b: a.with_retry(), None, "a"),
        (lambda a, b: a.with_retry().bind(stop=["x"]).with_config(tags=["t"]), None, "a"),
        (lambda a, b: a.with_fallbacks([b]), None, "a"),
        (lambda a, b: down().with_fallbacks([b.with_retry(), a]).with_retry(), None, "b"),
        (alternatives, None, "a"),
        (alternatives, OTHER, "b"),
        (lambda a, b: alternatives(a, b).with_config(OTHER), None, "b"),
        (lambda a, b: alternatives(a, b).bind(stop=["x"]).with_config(OTHER), None, "b"),
        (lambda a, b: down().with_fallbacks([alternatives(a, b)]), OTHER, "b"),
        (lambda a, b: a.configurable_fields(model_name=ConfigurableField(id="name")), None, "a"),
    ],
)
def test_the_chat_model_inside_is_asked(wrapped, config, answers):
    models = {"a": up(), "b": up()}
    reasoner = reasoner_of(wrapped(*models.values()))
    for answer in (
        reasoner.ask(Verdict, PROMPT, config=config),
        asyncio.run(reasoner.aask(Verdict, PROMPT, config=config)),
    ):
        (attempt,) = answer.attempts
        assert (attempt.method, attempt.model) == ("json_schema", models[answers].model_name)
    assert {name: len(model.calls) for name, model in models.items()} == {"a": 0, "b": 0} | {answers: 2}


def test_what_was_bound_reaches_every_call_and_so_does_its_config():
    model = scripted([OUT_OF_RANGE, TimeoutError(), GOOD])
    inner = model.bind(seed=1, user="u").with_config(metadata={"part": "inner"}).with_retry()
    bound = alternatives(inner, up()).with_config(metadata={"team": "desk"}).bind(seed=2)
    reasoner_of(bound, module="matcher").ask(Verdict, PROMPT, config={"metadata": {"thread": "T"}})
    assert len(model.calls) == 3
    for call in model.calls:
        assert (call.kwargs["seed"], call.kwargs["user"], call.blueprint) == (2, "u", "Verdict")
        assert {
            "part": "inner",
            "team": "desk",
            "thread": "T",
            "arq_module": "matcher",
        }.items() <= call.metadata.items()


def test_a_model_of_init_chat_model_is_made_of_each_run_s_config():
    with Endpoint(lambda request: ok(GOOD)) as endpoint:
        model = init_chat_model(
            "model-a",
            model_provider="openai",
            configurable_fields=("model", "temperature"),
            base_url=endpoint.base_url,
            api_key="k",
        )
        reasoner = reasoner_of(model.bind(seed=4), temperature=0.3)
        for name in (None, "model-b"):
            chosen = {"model": name, "thread_id": "T"} if name else {}
            reasoner.ask(Verdict, PROMPT, config={"configurable": chosen})
        reasoner.ask(Verdict, PROMPT, config={"configurable": {"temperature": 0.9}})
    sent = [(each.body["model"], each.body["temperature"], each.body["seed"]) for each in endpoint.requests]
    assert sent == [("model-a", 0.3, 4), ("model-b", 0.3, 4), ("model-a", 0.9, 4)]


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (7, "model is a int: it must be a chat model"),
        (up() | (lambda message: message), "RunnableSequence.* Of a chain, give the chat model inside it"),
        (up().bind_tools([up]), "bound to tools and tool_choice, .* tools to the agent"),
        (up().with_fallbacks([up().bind(response_format={})]), "bound to response_format"),
        (alternatives(up(), up()).bind(response_format={}), "bound to response_format"),
    ],
)
def test_what_holds_no_chat_model_or_is_bound_to_an_answer_of_its_own_is_told_at_once(model, told):
    with pytest.raises(errors.InputError, match=told):
        Reasoner(model)
    with pytest.raises(errors.InputError, match=told):
        Reasoner(up(), fallbacks=[model])


def test_a_config_that_makes_no_model_is_told_when_it_is_used():
    for model, told in (
        (alternatives(up(), up()), "Unknown alternative: third"),
        (init_chat_model(configurable_fields=("model",)), "'model'"),
        (
            init_chat_model("openai:m", configurable_fields=("model",), api_key="k").bind_tools([up]),
            "to tools",
        ),
    ):
        with pytest.raises(errors.InputError, match=told):
            Reasoner(model).ask(Verdict, PROMPT, config={"configurable": {"which": "third"}})


def test_what_a_model_is_known_by_is_what_stands_inside():
    first, other = scripted([], model_name="first"), OfflineChatModel()
    for model, name in (
        (first.with_retry(), "first"),
        (first.with_fallbacks([other]).with_retry(), "first or offline"),
        (Reasoner(first, fallbacks=["offline"]), "first or offline"),
    ):
        assert (get_model_name(model), is_offline(model)) == (name, "offline" in name)


# Fallbacks


def test_a_model_out_of_reach_hands_the_ask_over_with_what_was_answered_so_far():
    first = scripted([OUT_OF_RANGE, *[ConnectionError("gone")] * 2])
    second = scripted(["I would say 8.", GOOD])
    with track_usage() as used:
        answer = reasoner_of(first, fallbacks=[second]).ask(Verdict, PROMPT)
    assert [(attempt.model, attempt.error is None) for attempt in answer.attempts] == [
        (first.model_name, False),
        (second.model_name, False),
        (second.model_name, True),
    ]
    assert "less than or equal to 10" in second.calls[0].messages[-1].text
    assert {name: part.calls for name, part in used.by_model.items()} == {
        first.model_name: 3,
        second.model_name: 2,
    }


def test_each_model_has_its_own_way_of_being_asked():
    def plain(request):
        if request.body.get("temperature"):
            return status(400, "temperature is not supported")
        return ok(GOOD) if request.method == "none" else status(400, "not supported")

    with Endpoint(plain) as endpoint:
        first, third = scripted([GOOD, *[ConnectionError("gone")] * 2]), down()
        reasoner = reasoner_of(first, fallbacks=[endpoint.chat_model(), third], temperature=0.3)
        for _ in range(3):
            reasoner.ask(Verdict, PROMPT)
    assert endpoint.methods[-2:] == ["none", "none"]
    assert {call.kwargs["temperature"] for call in first.calls} == {0.3}
    assert third.calls == []


def test_each_model_has_its_own_limit_raised():
    cut = AIMessage('{"rationale": "Th', response_metadata={"stop_reason": "max_tokens"})
    first = scripted([cut, *[ConnectionError("gone")] * 2], max_tokens=30)
    second = scripted([cut, GOOD], max_tokens=50)
    assert reasoner_of(first, fallbacks=[second]).ask(Verdict, PROMPT).satisfied
    limits = [[call.kwargs["max_tokens"] for call in model.calls] for model in (first, second)]
    assert limits == [[30, 60, 60], [50, 100]]


def test_a_model_that_was_out_of_reach_is_asked_last_for_a_minute(monkeypatch):
    first, second = scripted([*[ConnectionError("gone")] * 2, GOOD]), scripted([GOOD] * 3)
    for reasoner in (reasoner_of(first, fallbacks=[second]), reasoner_of(first.with_fallbacks([second]))):
        reasoner.ask(Verdict, PROMPT)
    assert (len(first.calls), len(second.calls)) == (2, 2)
    failed = time.monotonic()
    for seconds, asked in ((59, 2), (61, 3)):
        monkeypatch.setattr(time, "monotonic", lambda later=failed + seconds: later)
        assert reasoner.ask(Verdict, PROMPT).satisfied
        assert len(first.calls) == asked


def test_models_that_cannot_be_told_apart_share_nothing_of_what_is_known_of_one():
    first, second = down(), up()
    reasoner = reasoner_of(Gateway(first), fallbacks=[Gateway(second)])
    for _ in range(2):
        assert reasoner.ask(Verdict, PROMPT).satisfied
    assert (len(first.calls), len(second.calls)) == (2, 2)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (status(401, "the key was revoked"), errors.ModelRequestError),
        (status(404, "no such model"), errors.ModelRequestError),
        (ok("no"), errors.BlueprintError),
    ],
)
def test_only_what_may_pass_by_itself_hands_an_ask_over(reply, error):
    other = up()
    with Endpoint(lambda request: reply) as endpoint, pytest.raises(error):
        reasoner_of(endpoint.chat_model(), fallbacks=[other], max_attempts=1).ask(Verdict, PROMPT)
    assert other.calls == []


REJECTED = [status(code, "rejected") for code in (400, 401, 403, 404)]


@pytest.mark.parametrize("reply", REJECTED)
def test_a_fallback_that_is_rejected_hides_no_first_model_that_is_back(reply):
    first = scripted([*[ConnectionError("gone")] * 4, GOOD, GOOD, ConnectionError("gone"), GOOD])
    with Endpoint(lambda request: reply) as endpoint:
        reasoner = reasoner_of(first, fallbacks=[endpoint.chat_model()])
        for tries in (5, 6, 8):  # two lost ones hand over; one does not
            assert reasoner.ask(Verdict, PROMPT).attempts[0].model == first.model_name
            assert len(first.calls) == tries
    assert endpoint.calls == (
        4 if reply.status in (400, 404) else 1
    )  # once, with each method where that may help


def test_a_first_model_that_rests_is_asked_behind_a_fallback_that_is_rejected():
    first, second = stood_in = [scripted([*[ConnectionError("gone")] * 2, GOOD]), scripted([GOOD, Refused()])]
    reasoner = reasoner_of(first, fallbacks=[second])
    for answering in reversed(stood_in):
        assert reasoner.ask(Verdict, PROMPT).attempts[0].model == answering.model_name


@pytest.mark.parametrize(
    ("models", "tries"),
    [
        ("down down down", (2, 2, 8)),
        ("down rejected", (10, 1)),
        ("down rejected down", (2, 1, 8)),
        ("down down rejected", (4, 10, 1)),
    ],
)
def test_if_all_fail_the_error_says_what_each_model_said(models, tries):
    made = [down() if kind == "down" else down(Refused("bad key")) for kind in models.split()]
    with pytest.raises(errors.ModelUnavailableError) as raised:
        reasoner_of(made[0], fallbacks=made[1:]).ask(Verdict, PROMPT)
    assert tuple(len(model.calls) for model in made) == tries
    for model, kind, line in zip(made, models.split(), str(raised.value).splitlines(), strict=True):
        told = "failed: Refused: bad key. Look at the API key" if kind == "rejected" else "did not answer ("
        assert f"{model.model_name} {told}" in line


def test_if_both_are_rejected_once_the_first_is_back_no_later_try_helps():
    first, second = (
        scripted([*[ConnectionError("gone")] * 2, Refused("old")]),
        scripted([GOOD, Refused("new")]),
    )
    reasoner = reasoner_of(first, fallbacks=[second])
    reasoner.ask(Verdict, PROMPT)
    with pytest.raises(errors.ModelRequestError, match=r"new.*\n.*old"):
        reasoner.ask(Verdict, PROMPT)


@pytest.mark.parametrize("code", [500, 501, 503])
def test_a_server_s_own_error_hands_over_after_two_tries_even_of_the_first_call(code):
    other = up()
    with Endpoint(lambda request: status(code)) as endpoint:
        assert reasoner_of(endpoint.chat_model(), fallbacks=[other]).ask(Verdict, PROMPT).satisfied
    assert endpoint.methods == ["json_schema"] * 2


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"fallbacks": up()}, "fallbacks is a ScriptedChatModel: give a list"),
        ({"fallbacks": "offline"}, "fallbacks is a str: give a list"),
        ({"timeout": "20"}, "timeout is '20': it must be a number of seconds"),
        ({"backoff": None}, "backoff is None: it must be a number of seconds"),
    ],
)
def test_a_setting_of_another_type_is_told(settings, told):
    with pytest.raises(errors.InputError, match=told):
        Reasoner(up(), **settings)


# One reasoner for several parts


def test_nodes_that_share_a_reasoner_ask_under_their_own_names_with_settings_of_their_own():
    model = scripted(lambda call: OUT_OF_RANGE if "strict" in call.module else GOOD)
    shared = Reasoner(model, backoff=0, temperature=0.7, max_attempts=2, mode="arq")
    state = {"messages": [("user", "Where is it?")]}
    template = "{% block head %}Judge.{% endblock %}{% block tail %}Now.{% endblock %}"

    def node(module, **settings):
        return BlueprintNode(
            shared, Verdict, template, write={"v": lambda a: a.value.score}, module=module, **settings
        )

    with track_usage() as used:
        assert node("mild").invoke(state) == {"v": 8}
        for name, settings, tries in (("strict", {}, 2), ("strictest", {"max_attempts": 1}, 1)):
            with pytest.raises(errors.BlueprintError, match=f"{name} asking Verdict: .*attempts: {tries}"):
                node(name, temperature=0.2, **settings).invoke(state)
    assert {name: part.calls for name, part in used.by_module.items()} == {
        "mild": 1,
        "strict": 2,
        "strictest": 1,
    }
    assert [call.kwargs["temperature"] for call in model.calls] == [0.7, 0.2, 0.2, 0.2]
    shared = Reasoner(down(), backoff=0)
    for seconds in (60, 5):
        with pytest.raises(errors.ModelUnavailableError, match=f"timeout {seconds} s"):
            node("slow", **({} if seconds == 60 else {"timeout": seconds})).invoke(state)
    with pytest.raises(errors.InputError, match="timeout is -1"):
        node("never", timeout=-1)
    shared = Reasoner(up(), fallbacks=[scripted([], profile={"image_inputs": False})])
    image = {"type": "image", "base64": "iVBO", "mime_type": "image/png"}
    with pytest.raises(errors.InputError, match="cannot be shown"):
        node("seeing").invoke({"messages": [HumanMessage([image])]})
