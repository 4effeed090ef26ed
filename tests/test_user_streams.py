"""What a user's stream shows of a turn: its calls, their results and the reply that was sent, and nothing else."""

import json
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelFallbackMiddleware
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import ScriptedChatModel, create_guided_agent, create_tool_agent
from arq_graph.middleware import GuidelineMiddleware
from tests.apps.desk import judge_late, make_desk, make_input, make_thread
from tests.brain import Brain, act, say
from tests.middleware.shop import LOOK_UP, make_calls
from tests.order_tools import A1, get_order
from tests.test_examples import load

REPLY = "It is late, and I am sorry."


METADATA: ContextVar[Any] = ContextVar("METADATA")


class TokenModel(ScriptedChatModel):
    """A scripted model that LangChain streams by itself wherever somebody listens, as it does a provider's."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        METADATA.set((config or {}).get("metadata"))
        return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        METADATA.set((config or {}).get("metadata"))
        return await super().ainvoke(input, config, **kwargs)

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[Any]:
        manager = SimpleNamespace(metadata=METADATA.get())  # LangChain gives it none
        message: Any = self._generate(messages, stop, manager, **kwargs).generations[0].message
        for word in message.text.split(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(f"{word} "))
        calls = []
        for number, call in enumerate(message.tool_calls):
            args = json.dumps(call["args"])
            calls.append({"name": call["name"], "args": args, "id": call["id"], "index": number})
        yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=calls))


class OwnConfigModel(TokenModel):
    """A model that is called with a config of its own."""

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return super().invoke(input, {"tags": ["mine"], "metadata": {"mine": True}}, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return await super().ainvoke(input, {"tags": ["mine"], "metadata": {"mine": True}}, **kwargs)


def look_up(prompt: Any) -> Any:
    """Return the call, however often it is asked for in parallel, until the turn has its result."""
    return [] if any("result" in line for line in prompt.turn) else A1


def make_brain() -> TokenModel:
    moves = [act("get_order", A1), say("A draft.")]
    return TokenModel(Brain({"G1": 9, "G2": judge_late}, {"get_order": look_up}, REPLY, moves))


def make_app(model: Any = None, **settings: Any) -> Any:
    return create_guided_agent(model or make_brain(), make_desk(), checkpointer=MemorySaver(), **settings)


def make_writer(kind: type[TokenModel] = TokenModel) -> TokenModel:
    """Return the agent's own model, which writes beside its call, and a draft."""
    return kind([make_calls(LOOK_UP, text="Let me see."), "A draft."])


def make_agent(make_middleware: Callable[[Any], list[Any]], model: Any = None) -> Any:
    rules = GuidelineMiddleware(make_brain(), make_desk(), mode="direct")
    middleware = make_middleware(rules)
    return create_agent(model or make_writer(), middleware=middleware, checkpointer=MemorySaver())


def route_to(model: Any) -> Any:
    """Return a middleware that puts another model in the place of the agent's."""

    class Router(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(model=model))

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request.override(model=model))

    return Router()


UNUSED = ScriptedChatModel([])
APPS: dict[str, Callable[[], Any]] = {
    "guided": make_app,
    "streaming": lambda: make_app(stream=True),
    "eager": lambda: make_app(stream=True, eager=True),
    "pre-act": lambda: make_app(strategy="pre-act"),
    "respact": lambda: make_app(strategy="respact", stream=True),
    "tools only": lambda: create_tool_agent(make_brain(), [get_order], checkpointer=MemorySaver()),
    "wired by hand": lambda: load("wired_by_hand").build(make_brain(), make_desk()),
    "middleware": lambda: make_agent(lambda rules: [rules]),
    "router before": lambda: make_agent(lambda rules: [route_to(make_writer()), rules], UNUSED),
    "router behind": lambda: make_agent(lambda rules: [rules, route_to(make_writer())], UNUSED),
    "own config": lambda: make_agent(lambda rules: [rules, route_to(make_writer(OwnConfigModel))], UNUSED),
    "fallback": lambda: make_agent(lambda rules: [rules, ModelFallbackMiddleware(make_writer())], UNUSED),
}
QUESTION = make_input("Where is A-1?")


def join_texts(parts: list[Any]) -> dict[str, str]:
    """Return the texts of a stream of messages and their chunks, by the messages' ids."""
    texts: dict[str, str] = {}
    for message, _ in parts:
        texts[message.id] = texts.get(message.id, "") + message.text
    return texts


@pytest.mark.parametrize("kind", APPS)
def test_the_messages_of_a_stream_are_those_of_the_thread(kind, runs):
    app = APPS[kind]()
    parts = runs.stream(app, QUESTION, make_thread(), stream_mode="messages")
    _, *sent = app.get_state(make_thread()).values["messages"]
    assert join_texts(parts) == {message.id: message.text for message in sent}
    assert len(sent) == 3


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
@pytest.mark.parametrize("kind", APPS)
async def test_a_stream_of_the_third_version_shows_the_same(kind):
    app = APPS[kind]()
    run = await app.astream_events(QUESTION, make_thread(), version="v3")
    shown = [await message.output async for message in run.messages]
    _, *sent = app.get_state(make_thread()).values["messages"]
    expected = [(message.id, message.text) for message in sent if message.type == "ai"]
    assert [(message.id, message.text) for message in shown] == expected


@pytest.mark.slow
@pytest.mark.parametrize("kind", APPS)
async def test_a_front_end_behind_the_official_adapter_is_shown_no_model_call(kind):
    adapter = pytest.importorskip("ag_ui_langgraph")
    core = pytest.importorskip("ag_ui.core")
    app = APPS[kind]()
    message = core.UserMessage(id="u1", content="Where is A-1?")
    given = core.RunAgentInput(thread_id="1", run_id="r1", messages=[message], state={}, tools=[], context=[])
    agent = adapter.LangGraphAgent(name="desk", graph=app, emit_raw_events=False)
    events = [event async for event in agent.run(given)]
    kinds = [event.type.value for event in events]
    assert [kind for kind in kinds if kind.startswith(("TEXT", "REASONING", "RAW"))] == []
    starts = [event.tool_call_name for event in events if event.type.value == "TOOL_CALL_START"]
    assert set(starts) <= {"get_order"}
    assert kinds.count("TOOL_CALL_RESULT") == 1
    (*_, snapshot) = [event for event in events if event.type.value == "MESSAGES_SNAPSHOT"]
    assert snapshot.messages[-1].content == app.get_state(make_thread()).values["messages"][-1].text
