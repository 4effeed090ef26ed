"""Collects the model calls of each turn: the prompt and the answer of every step, bounded in memory."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from pydantic_core import to_jsonable_python

from arq_graph.errors import describe_error
from arq_graph.reasoning.sections import clean

MAX_CALLS = 500
"""The number of the last model calls whose prompts and answers are stored."""
MAX_CHARACTERS = 30_000_000
"""The most characters of all prompts, schemas and answers that are stored."""

_TEXTS = {"prompt", "answer", "schema"}


class CallRecorder(BaseCallbackHandler):
    """Adds a turn's model calls to `calls` as JSON, and reports each without its texts when it begins and ends."""

    run_inline = True  # in async runs, too: what it does takes no time

    def __init__(self, calls: dict[str, dict[str, Any]], report: Callable[[dict[str, Any]], None]) -> None:
        self._calls = calls
        self._report = report

    def on_chat_model_start(self, serialized: Any, messages: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Record a prompt, and the schema or the tools that it comes with."""
        labels = kwargs.get("metadata") or {}
        settings = kwargs.get("invocation_params") or {}
        schema = settings.get("response_format") or settings.get("tools")
        call: dict[str, Any] = {
            "id": str(run_id),
            "step": labels.get("arq_module") or labels.get("langgraph_node") or "model",
            "about": labels.get("arq_batch") or "",
            "started": time.time(),
            "seconds": None,
            "prompt": [(message.type, clean(str(message.text))) for message in messages[0]],
            "schema": _format_json(schema) if schema else "",
        }
        self._calls[call["id"]] = call
        self._report_call(call)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Record an answer and its tokens."""
        message: Any = getattr(response.generations[0][0], "message", None)
        if message is not None:
            answer = clean(str(message.text)) or _format_json(message.tool_calls)
            usage = message.usage_metadata or {}
            tokens = {name: usage.get(name) for name in ("input_tokens", "output_tokens")}
            self._end(run_id, answer=answer, **tokens)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Record why there is no answer."""
        self._end(run_id, error=clean(describe_error(error)))

    def _end(self, run_id: UUID, **results: Any) -> None:
        if call := self._calls.get(str(run_id)):
            call |= results | {"seconds": time.time() - call["started"]}
            self._report_call(call)

    def _report_call(self, call: dict[str, Any]) -> None:
        self._forget_oldest()
        self._report({name: value for name, value in call.items() if name not in _TEXTS})

    def _forget_oldest(self) -> None:
        sizes = list(map(_count_characters, self._calls.values()))
        while len(sizes) > MAX_CALLS or sum(sizes) > MAX_CHARACTERS:
            del sizes[0], self._calls[next(iter(self._calls))]


def _count_characters(call: dict[str, Any]) -> int:
    prompt = sum(len(text) for _, text in call["prompt"])
    return prompt + len(call["schema"]) + len(call.get("answer", ""))


def _format_json(value: Any) -> str:
    return clean(json.dumps(to_jsonable_python(value, fallback=str), indent=2, ensure_ascii=False))
