"""The model calls of a conversation as they are recorded, and how a request is known again when they are replayed.

A request is known by digests: one of what it may be answered with (a schema, or tools), and one of each message. Left
out is what differs from run to run or from one provider's class to another and changes nothing of what is asked: ids,
of which only the order counts, marks for caches, settings such as a temperature, and the method by which a reasoner
asks for a schema. So is `tool_choice`, which some classes drop and others rewrite.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from langchain_core.messages import BaseMessage, BaseMessageChunk, message_chunk_to_message
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from arq_graph.reasoning.failures import classify_failure
from arq_graph.reasoning.methods import read_request
from arq_graph.reasoning.replies import ANSWER_METADATA, extract_message, is_cut_off
from arq_graph.reasoning.usage import UsageTracker

if TYPE_CHECKING:
    from arq_graph.milestones.evaluation.replay import Replaying

_ANSWER = {"content", "tool_calls", "invalid_tool_calls", "usage_metadata", "additional_kwargs"}


class Failed(NamedTuple):
    """What a model call raised: the error's class, what it says, and what `classify_failure` reads off it."""

    kind: str
    words: str
    status: int | None
    is_transient: bool


class ModelCall(BaseModel):
    """One model call; one that was cut off by a limit has neither an answer nor an error.

    The module that asked is named as in its metadata; `asked` are the digests of the request, and `method` is how a
    reasoner asked for its schema. Of the answer's message there is what anything here reads.
    """

    module: str
    asked: tuple[str, ...]
    method: str = ""
    answer: dict[str, Any] | None = None
    error: Failed | None = None


def request_of(
    messages: Sequence[BaseMessage], arguments: Mapping[str, Any], labels: Mapping[str, Any] | None
) -> ModelCall:
    """A request, not answered yet: its messages, what is bound to its model, and the metadata of the call."""
    known, method = labels or {}, ""
    tools = [_tool(each) for each in arguments.get("tools") or ()]
    wanted: Any = [tools, arguments.get("response_format")]
    if "arq_blueprint" in known:  # a reasoner asks
        method, messages, wanted = read_request(messages, arguments.get("response_format") or {}, tools)
    ids: dict[str | None, int] = {None: 0}
    asked = _digest(wanted), *(_digest(_told(message, ids)) for message in messages)
    return ModelCall(module=known.get("arq_module") or "other", asked=asked, method=method)


def _tool(tool: Any) -> Any:
    """A tool as OpenAI describes it, whichever provider's form it has; a provider's own tool stays as it is."""
    with suppress(ValueError):
        if described := convert_to_openai_tool(tool).get("function"):
            return {key: described.get(key) for key in ("name", "description", "parameters")}
    return tool


def _told(message: BaseMessage, ids: dict[str | None, int]) -> list[Any]:
    content = message.content if isinstance(message.content, list) else ()
    blocks = [block for block in content if isinstance(block, dict)]
    others = [
        {key: value for key, value in block.items() if key != "cache_control"}
        for block in blocks
        if block.get("type") != "text" and "cachePoint" not in block
    ]
    calls = [
        [call["name"], call["args"], ids.setdefault(call["id"], len(ids))]
        for kind in ("tool_calls", "invalid_tool_calls")
        for call in getattr(message, kind, ())
    ]
    result_of = ids.setdefault(getattr(message, "tool_call_id", None), len(ids))
    kind = message.type.removesuffix("MessageChunk").lower()
    return [kind, message.name, str(message.text), others, calls, result_of]


def _digest(thing: Any) -> str:
    told = json.dumps(thing, default=str)  # the order of a schema is the order of the answer
    return blake2b(told.encode(), digest_size=8).hexdigest()


class CallListener(UsageTracker):
    """Hears the model calls of one conversation: it keeps them, or a model that replays finds by it where it is.

    Args:
        suite: The name of the suite, and `conversation` the id of the conversation under way.
        keeps: Whether to keep the calls.
    """

    def __init__(self, suite: str, conversation: str, *, keeps: bool) -> None:
        super().__init__()
        self.suite = suite
        self.conversation = conversation
        self.replaying: Replaying | None = None
        self._keeps = keeps
        self._kept: dict[UUID, ModelCall] = {}

    @property
    def recorded(self) -> tuple[ModelCall, ...]:
        """The calls so far, in the order in which they were begun; what an app left behind changes none of them."""
        return tuple(call.model_copy() for call in list(self._kept.values()))

    def begun(self, run: UUID, messages: Any, arguments: Any, labels: Any) -> None:
        """Keep what is asked, of a model that takes messages."""
        if self._keeps and not isinstance(messages[0], str):
            self._kept[run] = request_of(messages[0], arguments, labels)

    def answered(self, run: UUID, message: BaseMessage) -> None:
        """Keep the answer."""
        if run not in self._kept:
            return
        # A piece of a stream would hold its calls twice.
        whole = message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message
        told = whole.response_metadata
        answer = whole.model_dump(include=_ANSWER, exclude_defaults=True)
        if is_cut_off(message) and (pieces := getattr(message, "tool_call_chunks", None)):
            # LangChain closes the object that was cut off, which would make it look whole.
            raw = [
                {"name": each["name"], "args": each["args"], "id": each["id"], "error": None}
                for each in pieces
            ]
            answer |= {"tool_calls": [], "invalid_tool_calls": raw}
        answer["response_metadata"] = {key: told[key] for key in ANSWER_METADATA if told.get(key)}
        self._kept[run].answer = to_jsonable_python(
            answer, fallback=lambda value: getattr(value, "name", str(value))
        )

    def failed(self, run: UUID, error: BaseException) -> None:
        """Keep an error, or the answer that is hidden in it; a call that was cancelled has none."""
        if hidden := extract_message(error):
            self.answered(run, hidden)
        elif run in self._kept and isinstance(error, Exception):
            failure = classify_failure(error)
            told = type(error).__name__, str(error), failure.status, failure.transient
            self._kept[run].error = Failed(*told)
