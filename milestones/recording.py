"""Chat models that record the answers of another one in a file, and replay them from that file.

    {"conversation": "desk / late / guided / 1", "attempt": "5f3a90c1", "request": "2f1d…", "answer": {…}, …}

Each line is an answer. A request is recognized by a digest of its messages and of the schema or the tools that are
bound to it, and equal requests of one conversation by their order. The digest leaves out what differs from run to run
or between providers and doesn't change what is asked: ids, cache marks, settings such as a temperature, and the method
by which a `Reasoner` asks for a schema.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from arq_graph.agent.regular_file import require_regular_file
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones.recording_scope import RecordingScope, get_recording_scope
from arq_graph.milestones.store import convert_file_errors, read_json_lines, write_line
from arq_graph.models.in_process import InProcessChatModel
from arq_graph.models.resolve import BoundModel, get_model_name, make_chat_model
from arq_graph.reasoning.endpoints import METHODS, get_endpoint, read_request
from arq_graph.reasoning.replies import is_cut_off


class _Request(BaseModel):
    """A request, recognized by its digest and its occurrence in the conversation.

    Args:
        conversation: The name of the `recording_scope`.
        attempt: An id that differs if the conversation was run again from its beginning.
        digest: The digest of the request; its name in the file is `request`.
        occurrence: The number of equal requests before it in the conversation.
        method: The method by which a `Reasoner` asked for its schema.
        module: The step that asked, such as "matcher".
    """

    model_config = ConfigDict(populate_by_name=True)

    conversation: str
    attempt: str
    digest: str = Field(alias="request")
    occurrence: int
    method: str = ""
    module: str = "other"


class RecordedExchange(_Request):
    """A line of a recording: a request, and the answer as `message_to_dict` returns it."""

    model: str = ""
    answer: dict[str, Any]

    @property
    def message(self) -> BaseMessage:
        """The answer as a message."""
        (message,) = messages_from_dict([self.answer])
        return message


class _RecordedModel(InProcessChatModel):
    """A chat model that answers for another one, and recognizes its requests."""

    file: Path
    model_name: str = ""

    _default_scope: RecordingScope = PrivateAttr(default_factory=lambda: RecordingScope(""))

    @property
    def _llm_type(self) -> str:
        return "arq-graph-recording"

    def _make_request(
        self, messages: list[BaseMessage], arguments: Mapping[str, Any], run_manager: Any
    ) -> _Request:
        metadata = run_manager.metadata if run_manager else {}
        method, digest = _digest_request(messages, arguments, is_reasoner="arq_blueprint" in metadata)
        scope = get_recording_scope() or self._default_scope
        return _Request(
            conversation=scope.name,
            attempt=scope.attempt,
            digest=digest,
            occurrence=scope.count_request(self.file, digest),
            method=method,
            module=metadata.get("arq_module") or "other",
        )


class RecordingChatModel(_RecordedModel):
    """A chat model that asks another one, and appends every answer to a file. `ReplayChatModel` repeats the answers.

    An answer comes whole, even if it is streamed.

    Args:
        file: The recording, as JSON Lines.
        bound: The model to record, or a model string.

    Raises:
        InputError: The file cannot be written.
    """

    bound: Any  # under this name `Reasoner` finds the model, to ask it with settings of its own

    def __init__(self, file: str | Path, bound: BaseChatModel | str, **fields: Any) -> None:
        bound = make_chat_model(bound) if isinstance(bound, str) else bound
        super().__init__(**{"file": Path(file), "bound": bound, "model_name": get_model_name(bound)} | fields)
        _prepare_to_append(self.file)

    def __reduce__(self) -> Any:
        """Let a worker process open the file itself."""
        return partial(type(self), self.file, self.bound, model_name=self.model_name), ()

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any
    ) -> Runnable[Any, Any]:
        """Bind tools as the recorded model does."""
        bound_to_tools = self.bound.bind_tools(tools, tool_choice=tool_choice, **kwargs)
        return self.model_copy(update={"bound": bound_to_tools})

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        model, arguments = self._unwrap(kwargs)
        request = self._make_request(messages, arguments, run_manager)
        result = model._generate(messages, stop, run_manager, **arguments)
        self._record(request, result)
        return result

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        model, arguments = self._unwrap(kwargs)
        request = self._make_request(messages, arguments, run_manager)
        result = await model._agenerate(messages, stop, run_manager, **arguments)
        self._record(request, result)
        return result

    def _unwrap(self, arguments: dict[str, Any]) -> tuple[BaseChatModel, dict[str, Any]]:
        """Return the recorded model without the bindings around it, and the arguments with those of the bindings."""
        model = self.bound
        while isinstance(model, RunnableBinding):
            arguments = {**model.kwargs, **arguments}
            model = model.bound
        return model, arguments

    def _record(self, request: _Request, result: ChatResult) -> None:
        message = message_to_dict(result.generations[0].message)
        exchange = RecordedExchange(**dict(request), model=self.model_name, answer=message)
        line = json.dumps(exchange.model_dump(by_alias=True, exclude_defaults=True), default=str)
        _prepare_to_append(self.file)
        # One write without a buffer: other processes may append to the file, too.
        with (
            convert_file_errors(f"answers cannot be recorded in {self.file}"),
            self.file.open("ab", buffering=0) as stream,
        ):
            write_line(stream, line.encode("ascii") + b"\n")


class ReplayChatModel(_RecordedModel):
    """A chat model that answers from the file of a `RecordingChatModel`, without any network.

    Each request is answered as it was in the same conversation of `evaluate`: the same scenario, arm and run.

    Args:
        file: The recording; it may be compressed, as `.jsonl.gz`.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """

    _exchanges: dict[str, list[RecordedExchange]] = PrivateAttr(default_factory=dict)

    def __init__(self, file: str | Path) -> None:
        super().__init__(file=Path(file))
        self._exchanges = read_recording(self.file)
        if not self._exchanges and self.file.stat().st_size:
            raise InputError(f"{file} holds no recording: make one with RecordingChatModel(file, model)")
        for exchanges in self._exchanges.values():
            self.model_name = self.model_name or exchanges[0].model
        # A replay never falls back to another method. That isn't in the digest of a request, so the second request
        # would get the next recorded answer.
        get_endpoint(BoundModel(self)).methods = METHODS[:1]

    def __reduce__(self) -> Any:
        """Let a worker process read the file itself."""
        return type(self), (self.file,)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        request = self._make_request(messages, kwargs, run_manager)
        exchanges = self._exchanges.get(request.conversation)
        if exchanges is None:
            raise ModelUnavailableError(
                f"the recording {self.file} holds no answers for {request.conversation!r}: record it"
            )
        repetitions = [exchange for exchange in exchanges if exchange.digest == request.digest]
        if request.occurrence >= len(repetitions):
            raise ModelUnavailableError(
                f"the recording {self.file} holds no answer to what the module {request.module!r} asks in "
                f"{request.conversation!r}: the prompt, the schema, the tools or the order have changed since. "
                "Record the run again"
            )
        message = repetitions[request.occurrence].message
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, stop, run_manager, **kwargs)


def read_recording(file: Path) -> dict[str, list[RecordedExchange]]:
    """Read the exchanges of each conversation; those to equal requests are in the order of the requests.

    If a conversation was run several times, only its last attempt counts. An answer that was cut off, or given by a
    method that was then abandoned, is left out if the same request was answered again.

    Raises:
        InputError: The file cannot be read.
    """
    attempts: dict[str, list[RecordedExchange]] = defaultdict(list)
    for record in read_json_lines(file):
        with suppress(ValidationError):
            exchange = RecordedExchange.model_validate(record)
            exchanges = attempts[exchange.conversation]
            if exchanges and exchanges[0].attempt != exchange.attempt:
                exchanges.clear()
            exchanges.append(exchange)
    return {conversation: _drop_superseded(exchanges) for conversation, exchanges in attempts.items()}


def _drop_superseded(exchanges: list[RecordedExchange]) -> list[RecordedExchange]:
    by_digest: dict[str, list[RecordedExchange]] = {}
    for exchange in exchanges:
        by_digest.setdefault(exchange.digest, []).append(exchange)
    remaining = []
    for repetitions in by_digest.values():
        repetitions.sort(key=lambda exchange: exchange.occurrence)
        valid: list[RecordedExchange] = []
        for exchange in repetitions:
            # An answer by another method, or after a cut-off one, replaces those before it.
            while valid and (valid[-1].method != exchange.method or is_cut_off(valid[-1].message)):
                valid.pop()
            valid.append(exchange)
        remaining += valid
    return remaining


def _digest_request(
    messages: Sequence[BaseMessage], arguments: Mapping[str, Any], *, is_reasoner: bool
) -> tuple[str, str]:
    """Return the method by which a `Reasoner` asks for its schema, and the digest of the request."""
    method = ""
    tools = [_normalize_tool(tool) for tool in arguments.get("tools") or ()]
    response_format = arguments.get("response_format")
    schema: Any = [tools, response_format]
    if is_reasoner:
        method, messages, schema = read_request(messages, response_format or {}, tools)
    call_numbers: dict[str | None, int] = {None: 0}  # 0 is for messages that aren't results of a call
    normalized_messages = [_normalize_message(message, call_numbers) for message in messages]
    # The order of a schema's keys matters: it is the order of the answer.
    text = json.dumps([schema, normalized_messages], default=str)
    return method, blake2b(text.encode(), digest_size=8).hexdigest()


def _normalize_tool(tool: Any) -> Any:
    """Return the name, description and parameters of a tool in any form; a tool of the provider's own as it is."""
    with suppress(ValueError):
        if function := convert_to_openai_tool(tool).get("function"):
            return {key: function.get(key) for key in ("name", "description", "parameters")}
    return tool


def _normalize_message(message: BaseMessage, call_numbers: dict[str | None, int]) -> list[Any]:
    """Return the content of a message, with numbers in place of the ids of tool calls, which it adds to the numbers."""
    other_blocks = []
    blocks = message.content if isinstance(message.content, list) else ()
    for block in blocks:
        if isinstance(block, dict) and block.get("type") != "text" and "cachePoint" not in block:
            other_blocks.append({key: value for key, value in block.items() if key != "cache_control"})
    calls = []
    for attribute in ("tool_calls", "invalid_tool_calls"):
        for call in getattr(message, attribute, ()):
            number = call_numbers.setdefault(call["id"], len(call_numbers))
            calls.append([call["name"], call["args"], number])
    call_id = getattr(message, "tool_call_id", None)
    answered_call = call_numbers.setdefault(call_id, len(call_numbers))
    kind = message.type.removesuffix("MessageChunk").lower()
    return [kind, message.name, str(message.text), other_blocks, calls, answered_call]


def _prepare_to_append(file: Path) -> None:
    """Make the file, or end its last line if that was cut off, so that the next one is readable."""
    with convert_file_errors(f"answers cannot be recorded in {file}"):
        require_regular_file(file)
        with file.open("a+b") as stream:
            if stream.seek(0, os.SEEK_END):
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    stream.write(b"\n")
