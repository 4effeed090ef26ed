"""A span for each step, model call and tool of a turn, with plain OpenTelemetry and no content.

pip install opentelemetry-sdk
python -m examples.opentelemetry_spans
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphBubbleUp
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from arq_graph import Agent, Guideline, create_guided_agent

LABELS = ("arq_module", "arq_batch", "arq_blueprint", "arq_mode", "arq_guidelines", "langgraph_node")


class Spans(BaseCallbackHandler):
    """Opens a span where a run of LangChain's begins, inside that of the run around it, and closes it at its end.

    It is told prompts and answers as well, and writes none of them down.
    """

    run_inline = True

    def __init__(self, tracer: trace.Tracer) -> None:
        self.tracer = tracer
        self.open: dict[UUID, trace.Span] = {}

    def _begin(self, serialized: Any, *_: Any, **told: Any) -> Any:
        around = self.open.get(told["parent_run_id"])
        context = trace.set_span_in_context(around) if around else None
        name = told.get("name") or (serialized or {}).get("name") or "run"
        metadata = told.get("metadata") or {}
        labels = {label: metadata[label] for label in LABELS if metadata.get(label)}
        self.open[told["run_id"]] = self.tracer.start_span(name, context, attributes=labels)

    def _end(self, *results: Any, **told: Any) -> Any:
        (result,) = results
        span = self.open.pop(told["run_id"])
        if isinstance(result, BaseException) and not isinstance(result, GraphBubbleUp):  # no interrupt
            span.set_status(trace.StatusCode.ERROR, type(result).__name__)
        for generation, *_ in getattr(result, "generations", None) or ():
            usage = generation.message.usage_metadata or {}
            for kind in ("input", "output"):
                span.set_attribute(f"gen_ai.usage.{kind}_tokens", usage.get(f"{kind}_tokens", 0))
        span.end()

    on_chain_start = on_chat_model_start = on_tool_start = _begin
    on_chain_end = on_llm_end = on_tool_end = on_chain_error = on_llm_error = on_tool_error = _end


class WithoutErrorTexts(SpanProcessor):
    """Keeps the texts of errors out of the status of spans, whoever writes them, such as OpenInference."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        set_status = span.set_status
        span.set_status = lambda status, *_, **__: set_status(getattr(status, "status_code", status))


def main() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    greeter = Agent("Greeter", "You greet.", [Guideline("the customer says hello", 'say "Welcome!"')])
    app = create_guided_agent("offline", greeter)
    spans = Spans(provider.get_tracer("arq_graph"))
    print(app.invoke({"messages": [("user", "Hello!")]}, {"callbacks": [spans]})["messages"][-1].text)


if __name__ == "__main__":
    main()
