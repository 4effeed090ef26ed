"""An OpenAI-compatible endpoint on this machine that answers, and misbehaves, as a test tells it to.

with Endpoint([status(429), ok({"answer": "yes"})]) as endpoint:
    model = endpoint.chat_model()
    ...
assert endpoint.calls == 2

It sends the replies of a list in the order of arrival, and 418 when they are used up, or what a function returns for
each request. The event `has_lost_client` tells that a client went away before the end of an answer that drips.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Self

from tests.chat_completions import make_completion, make_events, make_tool_call
from tests.loopback import Loopback

_model_numbers = itertools.count(1)


@dataclass
class Request:
    """One request as it arrived, with its times on the monotonic clock."""

    body: dict[str, Any]
    arrived: float
    answered: float = float("inf")

    @property
    def method(self) -> str:
        """The method of asking for JSON: "json_schema", "json_mode", "function_calling" or "none"."""
        kind = (self.body.get("response_format") or {}).get("type")
        if kind in ("json_schema", "json_object"):
            return "json_schema" if kind == "json_schema" else "json_mode"
        return "function_calling" if self.body.get("tools") else "none"

    @property
    def schema(self) -> dict[str, Any]:
        """The schema that the request carries; {} if it carries none."""
        tools = self.body.get("tools")
        json_schema = (self.body.get("response_format") or {}).get("json_schema") or {}
        schema = tools[0]["function"]["parameters"] if tools else json_schema.get("schema")
        return dict(schema or {})

    @property
    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.body.get("messages") or []
        return messages

    @property
    def prompt(self) -> str:
        return "\n\n".join(_text(message.get("content")) for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What the endpoint does with a request: it sends a completion with the message, or else the body, or nothing.

    `of_tool`: if a tool is forced, the message's content is sent as its arguments. `breaks`: what is sent in the middle
    of a streamed answer before it ends: an error, or a loss of the connection. `drips`: many blanks come before the
    answer, one at a time. `repeats`: this delta of a streamed answer comes again and again, without an end.
    """

    message: dict[str, Any] | None = None
    finish_reason: str = "stop"
    of_tool: bool = False
    status: int = 200
    body: str = ""
    hangs: bool = False
    breaks: str = ""
    drips: bool = False
    repeats: dict[str, Any] | None = None


Script = Iterable[Reply] | Callable[[Request], Reply]


def ok(answer: Any) -> Reply:
    """Return an answer of the model, a dict (sent as JSON) or a text; a call of the forced tool if one is forced."""
    return text(answer) if isinstance(answer, str) else Reply({"content": json.dumps(answer)}, of_tool=True)


def text(content: str, *, finish_reason: str = "stop") -> Reply:
    """Return an answer of the model in words, whether or not a tool is forced."""
    return Reply({"content": content}, finish_reason)


def refusal(content: str) -> Reply:
    return Reply({"content": None, "refusal": content})


def tool_call(name: str, arguments: str) -> Reply:
    """Return a tool call whose arguments are this text, valid or not."""
    return Reply(make_tool_call(name, arguments), "tool_calls")


def status(code: int, message: str = "", *, error_code: str | None = None) -> Reply:
    """Return an HTTP error in OpenAI's shape."""
    error = {"message": message or f"status {code}", "type": "error", "param": None, "code": error_code}
    return Reply(status=code, body=json.dumps({"error": error}))


LOST = ": the connection is lost"
"""At the end of a stream: the connection is lost there."""


def broken(answer: Any, breaks: str = LOST) -> Reply:
    """Return an answer that breaks off if it is streamed."""
    return replace(ok(answer), breaks=breaks)


def hang() -> Reply:
    """Return a reply that doesn't come until the endpoint closes."""
    return Reply(hangs=True)


def drip(answer: Any) -> Reply:
    """Return an answer before which blanks come, one at a time, for longer than a test waits."""
    return replace(ok(answer), drips=True)


def endless(delta: dict[str, Any]) -> Reply:
    """Return a streamed answer that has this delta again and again, without an end."""
    return replace(text(""), repeats=delta)


class Endpoint:
    """The endpoint, serving inside a `with` block."""

    def __init__(self, script: Script) -> None:
        if callable(script):
            self._answer = script
        else:
            replies, last = iter(script), status(418, "the script of the test endpoint has no more replies")
            self._answer = lambda request: next(replies, last)
        self._closing = threading.Event()
        self.has_lost_client = threading.Event()
        self.requests: list[Request] = []
        self.model_name = f"test-model-{next(_model_numbers)}"
        self._server = Loopback(self._reply)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.stop()

    @property
    def base_url(self) -> str:
        return f"{self._server.url}/v1"

    def chat_model(self, **fields: Any) -> Any:
        """Return a ChatOpenAI for this endpoint, with a model name that no other endpoint has."""
        from langchain_openai import ChatOpenAI

        settings = {"model": self.model_name, "api_key": "test-key", "max_retries": 0, **fields}
        return ChatOpenAI(base_url=self.base_url, **settings)

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def methods(self) -> list[str]:
        """The methods of the requests, in the order of arrival."""
        return [request.method for request in self.requests]

    def _reply(self, path: str, body: dict[str, Any]) -> tuple[int, bytes | Iterable[bytes], dict[str, str]]:
        request = Request(body, monotonic())
        self.requests.append(request)
        reply = self._answer(request)
        if reply.hangs:
            self._closing.wait()
        request.answered = monotonic()
        if not reply.message:
            return reply.status, reply.body.encode(), {}
        completion = _complete(reply, request)
        if reply.repeats is not None:
            return (
                reply.status,
                self._repeat(completion, reply.repeats),
                {"Content-Type": "text/event-stream"},
            )
        text = json.dumps(completion)
        is_streaming = bool(request.body.get("stream"))
        if is_streaming:
            options = request.body.get("stream_options") or {}
            events = make_events(completion, with_usage=bool(options.get("include_usage")))
            if reply.breaks:
                events = [*events[: len(events) // 2], reply.breaks]
            text = "".join(events)
        data = text.encode()
        if reply.drips:
            kind = "text/event-stream" if is_streaming else "application/json"
            blank = b": wait\n\n" if is_streaming else b" "
            pieces = self._drip(blank, data)
            next(pieces)  # from here on it notices that the client goes away
            return reply.status, pieces, {"Content-Type": kind}
        is_lost = text.endswith(LOST)  # more is promised than comes
        headers = {"Content-Length": str(len(data) + 1), "Connection": "close"} if is_lost else {}
        return reply.status, data, headers

    def _drip(self, blank: bytes, data: bytes) -> Iterator[bytes]:
        try:
            for _ in range(10_000):
                yield blank
                if self._closing.wait(0.01):
                    return
            yield data
        finally:
            self.has_lost_client.set()

    def _repeat(self, completion: dict[str, Any], delta: dict[str, Any]) -> Iterator[bytes]:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        chunk = {**completion, "object": "chat.completion.chunk", "choices": [choice], "usage": None}
        event = f"data: {json.dumps(chunk)}\n\n".encode()
        while not self._closing.is_set():
            yield event


def _complete(reply: Reply, request: Request) -> dict[str, Any]:
    assert reply.message
    message = reply.message
    if reply.of_tool and request.method == "function_calling":
        message = make_tool_call(request.body["tools"][0]["function"]["name"], message["content"])
    return make_completion(
        message,
        model=request.body.get("model", "test-model"),
        finish_reason=reply.finish_reason,
        input_tokens=len(request.prompt) // 4,
        output_tokens=len(_text(message["content"])) // 4,
    )


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content if isinstance(block, dict))
    return content or ""
