"""Traces: a span for each step and each question to a model, and no texts where they are hidden."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
from arq_graph.errors import RefusalError
from tests.brain import brain
from tests.order_tools import A1, get_order

pytest.importorskip("opentelemetry.sdk", reason="opentelemetry-sdk is not installed")

from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

pytestmark = pytest.mark.slow

DESK = Agent(
    "Desk",
    "You help.",
    [Guideline("they ask for an order", "tell it", tools=[get_order]), Guideline("they greet", "greet")],
)
QUESTIONS = {
    ("match", "matcher:batch-1"): ["G1", "G2"],
    ("call_tools", "tools:get_order"): ["G1"],
    ("match_again", "matcher:batch-1"): ["G2"],
    ("call_tools_again", "tools:get_order"): ["G1"],
    ("message", "message:MessageBlueprint"): ["G1"],
}
TEXT = "Where is my parcel?"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider(span_limits=SpanLimits(max_events=0))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture(params=[False, True], ids=["content", "no content"])
def hidden(request: pytest.FixtureRequest, provider: TracerProvider) -> Iterator[bool]:
    """OpenInference's tracing, switched on as the documentation shows it."""
    pytest.importorskip("openinference.instrumentation.langchain")
    from openinference.instrumentation import TraceConfig
    from openinference.instrumentation.langchain import LangChainInstrumentor

    hide = dict.fromkeys(("hide_inputs", "hide_outputs", "hide_llm_invocation_parameters"), request.param)
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider, config=TraceConfig(**hide))
    yield bool(request.param)
    instrumentor.uninstrument()


async def run_turn(use_async: bool, **config: Any) -> None:
    model = brain(judge={"G1": 9}, call={"get_order": A1}, reply="It is on its way.")
    app: Any = create_guided_agent(model, DESK)
    message = {"messages": [("user", TEXT)]}
    if use_async:
        await app.ainvoke(message, config)
    else:
        app.invoke(message, config)


def index_by_place(spans: tuple[ReadableSpan, ...]) -> dict[tuple[str, str], ReadableSpan]:
    """Return each span by the name of its parent and its own name."""
    names = {span.context.span_id: span.name for span in spans if span.context}
    index = {}
    for span in spans:
        parent = names.get(span.parent.span_id, "") if span.parent else ""
        index[parent, span.name] = span
    return index


@pytest.mark.parametrize("use_async", [False, True])
async def test_openinference_has_a_span_for_each_question_and_hides_texts(
    hidden: bool, exporter: InMemorySpanExporter, use_async: bool
) -> None:
    await run_turn(use_async)
    spans = index_by_place(exporter.get_finished_spans())
    assert {("", "Desk"), ("Desk", "match"), ("tools", "get_order")} <= spans.keys()
    for place, guidelines in QUESTIONS.items():
        attributes = spans[place].attributes or {}
        assert json.loads(str(attributes["metadata"]))["arq_guidelines"] == guidelines
        assert int(str(attributes["llm.token_count.completion"])) > 0
    all_spans = "".join(span.to_json() for span in spans.values())
    for text in (TEXT, "on its way", "they greet"):
        assert (text in all_spans) is not hidden


@pytest.mark.parametrize("use_async", [False, True])
async def test_the_examples_handler_has_the_same_spans_with_plain_attributes(
    provider: TracerProvider, exporter: InMemorySpanExporter, use_async: bool
) -> None:
    from examples.opentelemetry_spans import Spans

    handler = Spans(provider.get_tracer("test"))
    await run_turn(use_async, callbacks=[handler])
    assert handler.open == {}
    spans = index_by_place(exporter.get_finished_spans())
    for (node, question), guidelines in QUESTIONS.items():
        attributes = spans[node, question].attributes or {}
        assert list(attributes["arq_guidelines"]) == guidelines  # type: ignore[arg-type]
        assert attributes["langgraph_node"] == node
        assert int(str(attributes["gen_ai.usage.output_tokens"])) > 0
    assert not any(TEXT in span.to_json() for span in spans.values())


def test_the_call_that_an_operator_decides_on_is_hidden_too(
    provider: TracerProvider, exporter: InMemorySpanExporter, hidden: bool
) -> None:
    agent = DESK.replace(confirm={"get_order": "operator"})
    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-77"}})
    app = create_guided_agent(model, agent, checkpointer=MemorySaver())
    message = {"messages": [("user", TEXT)]}
    assert app.invoke(message, {"configurable": {"thread_id": "1"}})["__interrupt__"]  # type: ignore[call-overload]
    spans = exporter.get_finished_spans()
    assert ("A-77" in "".join(span.to_json() for span in spans)) is not hidden
    assert {span.status.status_code for span in spans} == {StatusCode.OK}


@pytest.mark.parametrize("hidden", [True], indirect=True)
def test_the_examples_processor_removes_the_text_of_a_refusal(
    provider: TracerProvider, exporter: InMemorySpanExporter, hidden: bool
) -> None:
    from examples.opentelemetry_spans import WithoutErrorTexts

    refusal = AIMessage("", additional_kwargs={"refusal": "Parcels are secret."})
    app = create_guided_agent(ScriptedChatModel([refusal] * 2), DESK)
    for is_processor_added in (False, True):
        if is_processor_added:
            provider.add_span_processor(WithoutErrorTexts())
        with pytest.raises(RefusalError):
            app.invoke({"messages": [("user", TEXT)]})  # type: ignore[call-overload]
        spans = exporter.get_finished_spans()
        assert StatusCode.ERROR in {span.status.status_code for span in spans}
        all_spans = "".join(span.to_json() for span in spans)
        assert ("Parcels are secret." in all_spans) is not is_processor_added
        exporter.clear()
