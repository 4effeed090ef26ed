"""Models inside LangChain's wrappers, fallback models, and a reasoner that several parts share."""

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
from tests.reasoning.cases import GOOD, OUT_OF_RANGE, PROMPT, Verdict, make_reasoner, script_model
from tests.reasoning.endpoint import Endpoint, ok, status


def answering() -> ScriptedChatModel:
    return script_model(lambda call: GOOD)


def failing(error: Exception | None = None) -> ScriptedChatModel:
    return script_model(lambda call: error or ConnectionError("no route to host"))


def returning(*answers) -> ScriptedChatModel:
    """Return a model that loses two calls, which hands the ask over, and then answers."""
    return script_model([ConnectionError("gone"), ConnectionError("gone"), *answers])


class Gateway(BaseChatModel):
    """A company's own model: its fields don't tell its models apart."""

    _behind: ScriptedChatModel = PrivateAttr()

    def __init__(self, behind):
        super().__init__()
        self._behind = behind

    @property
    def _llm_type(self):
        return "gateway"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return self._behind._generate(messages, stop, run_manager, **kwargs)


class RejectedError(Exception):
    status_code = 401


def alternatives(model, other):
    return model.configurable_alternatives(ConfigurableField(id="which"), default_key="first", other=other)


OTHER = {"configurable": {"which": "other"}}

# Wrappers


@pytest.mark.parametrize(
    ("wrap", "config", "chosen"),
    [
        (lambda a, b: a.with_retry().bind(stop=["x"]).with_config(tags=["t"]), None, "a"),
        (lambda a, b: failing().with_fallbacks([b.with_retry(), a]).with_retry(), None, "b"),
        (alternatives, OTHER, "b"),
        (lambda a, b: alternatives(a, b).bind(stop=["x"]).with_config(OTHER), None, "b"),
        (lambda a, b: failing().with_fallbacks([alternatives(a, b)]), OTHER, "b"),
        (lambda a, b: a.configurable_fields(model_name=ConfigurableField(id="name")), None, "a"),
    ],
)
def test_the_chat_model_inside_a_wrapper_is_asked(wrap, config, chosen):
    models = {"a": answering(), "b": answering()}
    reasoner = make_reasoner(wrap(*models.values()))
    for answer in (
        reasoner.ask(Verdict, PROMPT, config=config),
        asyncio.run(reasoner.aask(Verdict, PROMPT, config=config)),
    ):
        (attempt,) = answer.attempts
        assert (attempt.method, attempt.model) == ("json_schema", models[chosen].model_name)
    assert {name: len(model.calls) for name, model in models.items()} == {"a": 0, "b": 0, chosen: 2}


def test_bound_arguments_and_config_reach_every_call():
    model = script_model([OUT_OF_RANGE, TimeoutError(), GOOD])
    inner = model.bind(seed=1, user="u").with_config(metadata={"part": "inner"}).with_retry()
    bound = alternatives(inner, answering()).with_config(metadata={"team": "desk"}).bind(seed=2)
    make_reasoner(bound, module="matcher").ask(Verdict, PROMPT, config={"metadata": {"thread": "T"}})
    assert len(model.calls) == 3
    labels = {"part": "inner", "team": "desk", "thread": "T", "arq_module": "matcher"}
    for call in model.calls:
        assert (call.kwargs["seed"], call.kwargs["user"], call.blueprint) == (2, "u", "Verdict")
        assert labels.items() <= call.metadata.items()


def test_a_configurable_model_is_made_from_the_config_of_each_run():
    with Endpoint(lambda request: ok(GOOD)) as endpoint:
        model = init_chat_model(
            "model-a",
            model_provider="openai",
            configurable_fields=("model", "temperature"),
            base_url=endpoint.base_url,
            api_key="k",
        )
        reasoner = make_reasoner(model.bind(seed=4), temperature=0.3)
        for configurable in ({}, {"model": "model-b", "thread_id": "T"}, {"temperature": 0.9}):
            reasoner.ask(Verdict, PROMPT, config={"configurable": configurable})
    bodies = [request.body for request in endpoint.requests]
    assert [(body["model"], body["temperature"], body["seed"]) for body in bodies] == [
        ("model-a", 0.3, 4),
        ("model-b", 0.3, 4),
        ("model-a", 0.9, 4),
    ]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (7, "model is a int: it must be a chat model"),
        (answering() | (lambda reply: reply), "RunnableSequence.* Of a chain, give the chat model inside it"),
        (answering().bind_tools([answering]), "bound to tools and tool_choice, .* tools to the agent"),
        (alternatives(answering(), answering()).bind(response_format={}), "bound to response_format"),
    ],
)
def test_a_wrapper_that_cannot_be_asked_is_refused_at_once(model, message):
    with pytest.raises(errors.InputError, match=message):
        Reasoner(model)
    with pytest.raises(errors.InputError, match=message):
        Reasoner(answering(), fallbacks=[model])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (alternatives(answering(), answering()), "Unknown alternative: third"),
        (init_chat_model(configurable_fields=("model",)), "'model'"),
        (
            init_chat_model("openai:m", configurable_fields=("model",), api_key="k").bind_tools([answering]),
            "to tools",
        ),
    ],
)
def test_a_config_that_makes_no_model_is_refused_when_it_is_used(model, message):
    with pytest.raises(errors.InputError, match=message):
        Reasoner(model).ask(Verdict, PROMPT, config={"configurable": {"which": "third"}})


def test_a_wrapper_has_the_names_of_the_models_inside():
    first, offline = script_model([], model_name="first"), OfflineChatModel()
    for model, name in (
        (first.with_retry(), "first"),
        (first.with_fallbacks([offline]).with_retry(), "first or offline"),
        (Reasoner(first, fallbacks=["offline"]), "first or offline"),
    ):
        assert (get_model_name(model), is_offline(model)) == (name, "offline" in name)


# Fallbacks


def test_a_model_out_of_reach_hands_the_ask_over_with_the_answers_so_far():
    first = script_model([OUT_OF_RANGE, *[ConnectionError("gone")] * 2])
    second = script_model(["I would say 8.", GOOD])
    with track_usage() as usage:
        answer = make_reasoner(first, fallbacks=[second]).ask(Verdict, PROMPT)
    assert [(attempt.model, attempt.error is None) for attempt in answer.attempts] == [
        (first.model_name, False),
        (second.model_name, False),
        (second.model_name, True),
    ]
    assert "less than or equal to 10" in second.calls[0].messages[-1].text
    calls = {name: part.calls for name, part in usage.by_model.items()}
    assert calls == {first.model_name: 3, second.model_name: 2}


def test_each_model_has_its_own_method_temperature_and_token_limit():
    def answer(request):
        if request.body.get("temperature"):
            return status(400, "temperature is not supported")
        return ok(GOOD) if request.method == "none" else status(400, "not supported")

    cut = AIMessage('{"rationale": "Th', response_metadata={"stop_reason": "max_tokens"})
    with Endpoint(answer) as endpoint:
        first = script_model([cut, *[ConnectionError("gone")] * 2], max_tokens=30)
        third = failing()
        second = endpoint.chat_model(max_tokens=50)
        reasoner = make_reasoner(first, fallbacks=[second, third], temperature=0.3)
        for _ in range(2):
            assert reasoner.ask(Verdict, PROMPT).satisfied
    assert endpoint.methods[-1] == "none"
    assert {request.body["max_completion_tokens"] for request in endpoint.requests} == {50}
    assert {call.kwargs["temperature"] for call in first.calls} == {0.3}
    assert [call.kwargs["max_tokens"] for call in first.calls] == [30, 60, 60]
    assert third.calls == []


def test_a_model_that_was_out_of_reach_is_asked_last_for_a_minute(monkeypatch):
    first, second = returning(GOOD), script_model([GOOD] * 3)
    for reasoner in (
        make_reasoner(first, fallbacks=[second]),
        make_reasoner(first.with_fallbacks([second])),
    ):
        reasoner.ask(Verdict, PROMPT)
    assert (len(first.calls), len(second.calls)) == (2, 2)
    lost_at = time.monotonic()
    for seconds, calls in ((59, 2), (61, 3)):
        monkeypatch.setattr(time, "monotonic", lambda now=lost_at + seconds: now)
        assert reasoner.ask(Verdict, PROMPT).satisfied
        assert len(first.calls) == calls


def test_models_that_cannot_be_told_apart_share_no_knowledge_of_their_endpoints():
    first, second = failing(), answering()
    reasoner = make_reasoner(Gateway(first), fallbacks=[Gateway(second)])
    for _ in range(2):
        assert reasoner.ask(Verdict, PROMPT).satisfied
    assert (len(first.calls), len(second.calls)) == (2, 2)


@pytest.mark.parametrize(
    ("reply", "error"),
    [(status(401, "the key was revoked"), errors.ModelRequestError), (ok("no"), errors.BlueprintError)],
)
def test_only_failures_that_may_pass_hand_an_ask_over(reply, error):
    fallback = answering()
    with Endpoint(lambda request: reply) as endpoint, pytest.raises(error):
        make_reasoner(endpoint.chat_model(), fallbacks=[fallback], max_attempts=1).ask(Verdict, PROMPT)
    assert fallback.calls == []


@pytest.mark.parametrize(("code", "calls"), [(400, 4), (401, 1)])
def test_a_fallback_that_is_rejected_does_not_hide_that_the_first_model_is_back(code, calls):
    first = script_model([*[ConnectionError("gone")] * 4, GOOD, GOOD, ConnectionError("gone"), GOOD])
    with Endpoint(lambda request: status(code, "rejected")) as endpoint:
        reasoner = make_reasoner(first, fallbacks=[endpoint.chat_model()])
        for tries in (5, 6, 8):  # two lost calls hand over; one does not
            assert reasoner.ask(Verdict, PROMPT).attempts[0].model == first.model_name
            assert len(first.calls) == tries
    assert endpoint.calls == calls  # once, by each method where that may help


@pytest.mark.parametrize(
    ("kinds", "tries"),
    [
        ("lost rejected lost", (2, 1, 8)),
        ("lost lost rejected", (4, 10, 1)),
    ],
)
def test_if_all_models_fail_the_error_has_a_line_for_each(kinds, tries):
    models = []
    for kind in kinds.split():
        models.append(failing() if kind == "lost" else failing(RejectedError("bad key")))
    with pytest.raises(errors.ModelUnavailableError) as raised:
        make_reasoner(models[0], fallbacks=models[1:]).ask(Verdict, PROMPT)
    assert tuple(len(model.calls) for model in models) == tries
    for model, kind, line in zip(models, kinds.split(), str(raised.value).splitlines(), strict=True):
        rejection = "failed: RejectedError: bad key. Look at the API key"
        message = rejection if kind == "rejected" else "did not answer ("
        assert f"{model.model_name} {message}" in line


def test_if_both_are_rejected_once_the_first_is_back_no_later_try_helps():
    first = returning(RejectedError("old"))
    reasoner = make_reasoner(first, fallbacks=[script_model([GOOD, RejectedError("new")])])
    reasoner.ask(Verdict, PROMPT)
    with pytest.raises(errors.ModelRequestError, match=r"new.*\n.*old"):
        reasoner.ask(Verdict, PROMPT)


def test_a_server_error_hands_over_after_two_tries_even_in_the_first_call():
    with Endpoint(lambda request: status(503)) as endpoint:
        reasoner = make_reasoner(endpoint.chat_model(), fallbacks=[answering()])
        assert reasoner.ask(Verdict, PROMPT).satisfied
    assert endpoint.methods == ["json_schema"] * 2


# One reasoner for several parts

STATE = {"messages": [("user", "Where is it?")]}
TEMPLATE = "{% block head %}Judge.{% endblock %}{% block tail %}Now.{% endblock %}"


def make_node(reasoner, module, **settings):
    write = {"score": lambda answer: answer.value.score}
    return BlueprintNode(reasoner, Verdict, TEMPLATE, write=write, module=module, **settings)


def test_nodes_that_share_a_reasoner_ask_under_their_own_names_with_their_own_settings():
    model = script_model(lambda call: OUT_OF_RANGE if "strict" in call.module else GOOD)
    shared = Reasoner(model, backoff=0, temperature=0.7, max_attempts=2, mode="arq")
    with track_usage() as usage:
        assert make_node(shared, "mild").invoke(STATE) == {"score": 8}
        for module, settings, tries in (("strict", {}, 2), ("strictest", {"max_attempts": 1}, 1)):
            with pytest.raises(errors.BlueprintError, match=f"{module} asking Verdict: .*attempts: {tries}"):
                make_node(shared, module, temperature=0.2, **settings).invoke(STATE)
    calls = {module: part.calls for module, part in usage.by_module.items()}
    assert calls == {"mild": 1, "strict": 2, "strictest": 1}
    assert [call.kwargs["temperature"] for call in model.calls] == [0.7, 0.2, 0.2, 0.2]


def test_a_node_may_have_a_timeout_of_its_own():
    shared = Reasoner(failing(), backoff=0)
    for settings, seconds in (({}, 60), ({"timeout": 5}, 5)):
        with pytest.raises(errors.ModelUnavailableError, match=f"timeout {seconds} s"):
            make_node(shared, "slow", **settings).invoke(STATE)
    with pytest.raises(errors.InputError, match="timeout is -1"):
        make_node(shared, "never", timeout=-1)


def test_images_are_shown_only_if_no_fallback_is_known_to_take_none():
    shared = Reasoner(answering(), fallbacks=[script_model([], profile={"image_inputs": False})])
    image = {"type": "image", "base64": "iVBO", "mime_type": "image/png"}
    with pytest.raises(errors.InputError, match="cannot be shown"):
        make_node(shared, "seeing").invoke({"messages": [HumanMessage([image])]})
