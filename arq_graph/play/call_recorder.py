"""Collects the model calls of each turn: the prompt and the answer of every step, bounded in memory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from arq_graph.errors import describe_error

MAX_CALLS = 500
"""The number of the last model calls whose prompts and answers are kept."""
MAX_CHARACTERS = 30_000_000
"""The most characters of all prompts that are kept."""


class ModelCall(BaseModel):
    """A model call. `schema_text` is the schema that it had to fill or its tools, as JSON."""

    id: str
    step: str
    about: str
    started: float
    prompt: list[tuple[str, str]]
    schema_text: str = ""
    answer: str = ""
    error: str = ""
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class CallRecorder(BaseCallbackHandler):
    """Records the model calls of a run, and reports each when it begins and when it ends.

    Args:
        report: Called with what is shown of the call in a list: everything but its texts.
    """

    run_inline = True  # in async runs, too: what it does takes no time

    def __init__(self, report: Callable[[dict[str, Any]], None]) -> None:
        self._report = report
        self._calls: dict[str, ModelCall] = {}

    def get_call(self, id: str) -> ModelCall | None:
        """Return a call; None if it isn't kept any more."""
        return self._calls.get(id)

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record a prompt."""
        labels = metadata or {}
        settings = kwargs.get("invocation_params") or {}
        schema = settings.get("response_format") or settings.get("tools")
        call = ModelCall(
            id=str(run_id),
            step=labels.get("arq_module") or labels.get("langgraph_node") or "model",
            about=str(labels.get("arq_batch") or ""),
            started=time.time(),
            prompt=[(message.type, str(message.text)) for message in messages[0]],
            schema_text=_format_json(schema) if schema else "",
        )
        self._calls[call.id] = call
        self._forget_oldest()
        self._report_call(call)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Record an answer."""
        message: Any = getattr(response.generations[0][0], "message", None)
        call = self._calls.get(str(run_id))
        if call is None or message is None:
            return
        call.answer = str(message.text) or _format_json(message.tool_calls)
        usage = message.usage_metadata or {}
        call.input_tokens, call.output_tokens = usage.get("input_tokens"), usage.get("output_tokens")
        self._end(call)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record why there is no answer."""
        if call := self._calls.get(str(run_id)):
            call.error = describe_error(error)
            self._end(call)

    def _end(self, call: ModelCall) -> None:
        call.seconds = time.time() - call.started
        self._report_call(call)

    def _report_call(self, call: ModelCall) -> None:
        self._report(call.model_dump(mode="json", exclude={"prompt", "schema_text", "answer"}))

    def _forget_oldest(self) -> None:
        size = sum(len(text) for call in self._calls.values() for _, text in call.prompt)
        while self._calls and (len(self._calls) > MAX_CALLS or size > MAX_CHARACTERS):
            oldest = self._calls.pop(next(iter(self._calls)))
            size -= sum(len(text) for _, text in oldest.prompt)


def _format_json(value: Any) -> str:
    return json.dumps(to_jsonable_python(value, fallback=str), indent=2, ensure_ascii=False)
