"""A chat model that answers from a script, and remembers every call: the stand-in for a model in tests."""

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
from arq_graph.models.in_process import InProcessChatModel, forced_tool, message_of, requested_schema

Answerish = str | dict[str, Any] | BaseModel | AIMessage | BaseException
"""What a script may answer with; an exception is raised, a dict becomes JSON or the forced tool call."""


@dataclass(frozen=True)
class ScriptedCall:
    """One call of the scripted model.

    Args:
        messages: The messages it was given.
        kwargs: The keyword arguments of the call, with those that were bound to the model and its settings.
        schema: The JSON schema that the answer must have, from `response_format` or the forced tool.
        blueprint: The name of that schema, or else what the call's metadata names; None if neither does.
        metadata: The run's metadata, such as `arq_module` and `arq_batch`.
    """

    messages: list[BaseMessage]
    kwargs: dict[str, Any]
    schema: dict[str, Any] | None = None
    blueprint: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The whole prompt: the text of all messages, joined."""
        return "\n\n".join(str(message.text) for message in self.messages)

    @property
    def module(self) -> str | None:
        """The module that asks, as the call's metadata names it: "matcher", "tools", "message"."""
        return self.metadata.get("arq_module")


class ScriptedChatModel(InProcessChatModel):
    """A chat model that gives the answers it was handed, in the order in which it is called.

    Calls may come from many threads or tasks; each takes the next answer of the list. A function is
    called for each call instead (and may be async, for a model that is only awaited).

    Args:
        answers: A list of answers, or a function of the `ScriptedCall`.
        model_name: The name it reports. A reasoner remembers by it how a model answers: another name begins anew.
        temperature: As on any chat model; a reasoner asks a copy that may have another.
        max_tokens: As on any chat model.

    Raises:
        InputError: When it is called once more than the script has answers.
    """

    model_name: str = "scripted"
    temperature: float | None = None
    max_tokens: int | None = None

    _answer: Callable[[ScriptedCall], Any] = PrivateAttr()
    _calls: list[ScriptedCall] = PrivateAttr(default_factory=list)
    _left: deque[Answerish] = PrivateAttr(default_factory=deque)

    def __init__(self, answers: Iterable[Answerish] | Callable[[ScriptedCall], Any], **fields: Any) -> None:
        super().__init__(**fields)
        if callable(answers):
            self._answer = answers
        else:
            self._answer = self._next
            self._left.extend(answers)

    @property
    def calls(self) -> list[ScriptedCall]:
        """Every call so far, in the order of arrival, those of the model's copies included."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "arq-graph-scripted"

    def _next(self, call: ScriptedCall) -> Answerish:
        if not self._left:
            raise InputError(
                f"ScriptedChatModel has no answer left for call {len(self._calls)}: module {call.module!r}, blueprint"
                f" {call.blueprint!r}. Add an answer to the script, or give a function of the call instead of a list."
                f" Its prompt ends: {call.text[-500:]}"
            )
        return self._left.popleft()

    def _recorded(self, messages: list[BaseMessage], manager: Any, kwargs: dict[str, Any]) -> ScriptedCall:
        name, schema = requested_schema(kwargs)
        metadata = dict((manager and manager.metadata) or {})
        # Settings of its own are part of a call, as in what a provider's class sends.
        own = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        sent = {key: value for key, value in own.items() if value is not None} | kwargs
        call = ScriptedCall(list(messages), sent, schema, name or metadata.get("arq_blueprint"), metadata)
        self._calls.append(call)
        return call

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = self._recorded(messages, run_manager, kwargs)
        return _result(self._answer(call), call)

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        call = self._recorded(messages, run_manager, kwargs)
        answer = self._answer(call)
        return _result(await answer if inspect.isawaitable(answer) else answer, call)


def _result(answer: Answerish, call: ScriptedCall) -> ChatResult:
    match answer:
        case BaseException():
            raise answer
        case AIMessage():
            message = answer.model_copy()  # LangChain sets ids on what it gets back
        case str():
            message = message_of(answer, call.text)
        case _:
            given = answer.model_dump(mode="json") if isinstance(answer, BaseModel) else answer
            text = json.dumps(given, ensure_ascii=False)
            message = message_of(text, call.text, forced_tool(call.kwargs))
    return ChatResult(generations=[ChatGeneration(message=message)])
