"""A chat model for tests that answers from a script and records every call."""

from __future__ import annotations

import inspect
import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import BaseModel, PrivateAttr

from arq_graph.errors import InputError
from arq_graph.models.in_process import (
    InProcessChatModel,
    get_forced_tool,
    get_requested_schema,
    make_message,
)

ScriptedAnswer = str | dict[str, Any] | BaseModel | AIMessage | BaseException
"""An answer of a script: an exception is raised; a dict or model becomes JSON, or a call of the forced tool."""


@dataclass(frozen=True)
class ScriptedCall:
    """A call of the scripted model.

    Args:
        messages: The messages of the prompt.
        kwargs: The keyword arguments of the call, with those that were bound to the model and its settings.
        schema: The JSON schema of the answer, from `response_format` or the forced tool.
        blueprint: The name of that schema, or else the blueprint that the call's metadata names.
        metadata: The run's metadata, such as `arq_module` and `arq_batch`.
    """

    messages: list[BaseMessage]
    kwargs: dict[str, Any]
    schema: dict[str, Any] | None = None
    blueprint: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text of all messages of the prompt."""
        return "\n\n".join(str(message.text) for message in self.messages)

    @property
    def module(self) -> str | None:
        """The module that asks, from the call's metadata: "matcher", "tools", "message"."""
        return self.metadata.get("arq_module")


class ScriptedChatModel(InProcessChatModel):
    """A chat model that gives a list of answers, in the order in which it is called.

    Calls may come from many threads or tasks; each takes the next answer. A function instead of a list computes each
    answer, and may be async if the model is only awaited.

    Args:
        answers: A list of answers, or a function of the `ScriptedCall`.
        model_name: The model's name. By this name, reasoners remember which method of asking works.
        temperature: As on any chat model; a reasoner asks a copy that may have another.
        max_tokens: As on any chat model.

    Raises:
        InputError: When it is called and the script has no answer left.
    """

    model_name: str = "scripted"
    temperature: float | None = None
    max_tokens: int | None = None

    _answer: Callable[[ScriptedCall], Any] = PrivateAttr()
    _calls: list[ScriptedCall] = PrivateAttr(default_factory=list)
    _remaining: deque[ScriptedAnswer] = PrivateAttr(default_factory=deque)

    def __init__(
        self, answers: Iterable[ScriptedAnswer] | Callable[[ScriptedCall], Any], **fields: Any
    ) -> None:
        super().__init__(**fields)
        if callable(answers):
            self._answer = answers
        else:
            self._answer = self._take_next
            self._remaining.extend(answers)

    @property
    def calls(self) -> list[ScriptedCall]:
        """All calls so far, in the order of their arrival, including those of the model's copies."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "arq-graph-scripted"

    def _take_next(self, call: ScriptedCall) -> ScriptedAnswer:
        if not self._remaining:
            raise InputError(
                f"ScriptedChatModel has no answer left for call {len(self._calls)}: module {call.module!r}, blueprint"
                f" {call.blueprint!r}. Add an answer to the script, or give a function of the call instead of a list."
                f" Its prompt ends: {call.text[-500:]}"
            )
        return self._remaining.popleft()

    def _record(self, messages: list[BaseMessage], manager: Any, kwargs: dict[str, Any]) -> ScriptedCall:
        name, schema = get_requested_schema(kwargs)
        metadata = dict((manager and manager.metadata) or {})
        # As with a provider's class, the model's own settings are part of a call.
        settings = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        sent = {key: value for key, value in settings.items() if value is not None} | kwargs
        call = ScriptedCall(list(messages), sent, schema, name or metadata.get("arq_blueprint"), metadata)
        self._calls.append(call)
        return call

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = self._record(messages, run_manager, kwargs)
        return _make_result(self._answer(call), call)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = self._record(messages, run_manager, kwargs)
        answer = self._answer(call)
        if inspect.isawaitable(answer):
            answer = await answer
        return _make_result(answer, call)


def _make_result(answer: ScriptedAnswer, call: ScriptedCall) -> ChatResult:
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, AIMessage):
        message = answer.model_copy()  # LangChain sets ids on the messages that it gets
    elif isinstance(answer, str):
        message = make_message(answer, call.text)
    else:
        if isinstance(answer, BaseModel):
            answer = answer.model_dump(mode="json")
        text = json.dumps(answer, ensure_ascii=False)
        message = make_message(text, call.text, get_forced_tool(call.kwargs))
    return ChatResult(generations=[ChatGeneration(message=message)])
