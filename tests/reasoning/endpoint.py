"""An OpenAI-compatible endpoint on this machine that answers, and misbehaves, as a test tells it to.

with Endpoint([status(429), ok({"answer": "yes"})]) as endpoint:
    model = endpoint.chat_model()
    ...
assert endpoint.calls == 2

What it answers with is a list of replies, taken in the order of arrival (one more request than replies is
answered with 418, and fails the test at the end of the `with` block), or a function of the request.
"""

from __future__ import annotations

import itertools
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import Any, Self

_model_numbers = itertools.count(1)


@dataclass
class Request:
    """One request as it arrived, with its times on the monotonic clock."""

    path: str
    body: dict[str, Any]
    arrived: float
    answered: float = float("inf")

    @property
    def method(self) -> str:
        """How it asks for JSON: "json_schema", "json_mode", "function_calling" or "none"."""
        kind = (self.body.get("response_format") or {}).get("type")
        if kind in ("json_schema", "json_object"):
            return "json_schema" if kind == "json_schema" else "json_mode"
        return "function_calling" if self.body.get("tools") else "none"

    @property
    def schema(self) -> dict[str, Any] | None:
        format_ = self.body.get("response_format") or {}
        tools = [tool["function"]["parameters"] for tool in self.body.get("tools") or ()]
        found: dict[str, Any] | None = format_["json_schema"]["schema"] if "json_schema" in format_ else None
        return found or next(iter(tools), None)

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("messages") or []
        return found

    @property
    def prompt(self) -> str:
        return "\n\n".join(_text(message.get("content")) for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What the endpoint does with a request; the functions below make them.

    It sends a body, or else the completion with the message that `message` makes of the request.
    """

    status: int = 200
    body: str = ""
    content_type: str = "application/json"
    message: Callable[[Request], dict[str, Any]] | None = None
    finish_reason: str = "stop"
    drops: bool = False
    hangs: bool = False


Script = Iterable[Reply] | Callable[[Request], Reply | None]


def ok(answer: Any) -> Reply:
    """An answer of the model: a dict (sent as JSON) or a text; the forced tool's call, where one is forced."""
    if isinstance(answer, str):
        return text(answer)

    def message(request: Request) -> dict[str, Any]:
        if request.method != "function_calling":
            return {"content": json.dumps(answer)}
        return _call(request.body["tools"][0]["function"]["name"], json.dumps(answer))

    return Reply(message=message)


def text(words: str | None, *, finish_reason: str = "stop") -> Reply:
    """An answer of the model in words, whether or not a tool was forced."""
    return Reply(message=lambda _: {"content": words}, finish_reason=finish_reason)


def truncated(words: str) -> Reply:
    return text(words, finish_reason="length")


def refusal(words: str) -> Reply:
    return Reply(message=lambda _: {"content": None, "refusal": words})


def tool_call(name: str, arguments: str) -> Reply:
    """A tool call whose arguments are this text, valid or not."""
    return Reply(message=lambda _: _call(name, arguments), finish_reason="tool_calls")


def status(code: int, message: str = "", *, error_code: str | None = None) -> Reply:
    """An HTTP error in OpenAI's shape."""
    error = {"message": message or f"status {code}", "type": "error", "param": None, "code": error_code}
    return Reply(status=code, body=json.dumps({"error": error}))


def raw(body: str, *, content_type: str = "application/json") -> Reply:
    """A 200 response with this very body."""
    return Reply(body=body, content_type=content_type)


def drop() -> Reply:
    return Reply(drops=True)


def hang() -> Reply:
    """No answer, until the endpoint closes."""
    return Reply(hangs=True)


def taking(*methods: str, then: Script, code: int = 400) -> Callable[[Request], Reply | None]:
    """A server that knows only these methods and answers all others with an HTTP error."""
    answer = _scripted(then)

    def script(request: Request) -> Reply | None:
        if request.method not in methods:
            return status(code, f"{request.method} is not supported")
        return answer(request)

    return script


class Endpoint:
    """The endpoint, serving inside a `with` block.

    Args:
        script: What it answers with.
        latency: Seconds that every answer takes.
        gather: Requests to wait for before any is answered, so that they surely overlap (60 s at most).
    """

    def __init__(self, script: Script, *, latency: float = 0.0, gather: int = 1) -> None:
        self._answer = _scripted(script)
        self._latency = latency
        self._gather = gather
        self._gathered = threading.Event()
        self._closing = threading.Event()
        self._too_many = 0
        self.requests: list[Request] = []
        self.model_name = f"test-model-{next(_model_numbers)}"
        self._server = _Server(self)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._closing.set()
        self._gathered.set()
        self._server.shutdown()
        self._server.server_close()
        if kind is None:
            assert not self._too_many, f"{self._too_many} more requests came than the script has replies"

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def chat_model(self, **fields: Any) -> Any:
        """A ChatOpenAI for this endpoint, of a model name that no other endpoint has."""
        from langchain_openai import ChatOpenAI

        settings = {"model": self.model_name, "api_key": "test-key", "max_retries": 0, **fields}
        return ChatOpenAI(base_url=self.base_url, **settings)

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def methods(self) -> list[str]:
        """How each request asked for JSON, in the order of arrival."""
        return [request.method for request in self.requests]

    @property
    def prompt_characters(self) -> int:
        """Characters of all prompts, schemas included."""
        return sum(
            len(request.prompt) + (len(json.dumps(request.schema)) if request.schema else 0)
            for request in self.requests
        )

    @property
    def waves(self) -> list[list[Request]]:
        """The requests in maximal groups that overlap in time."""
        groups: list[list[Request]] = []
        end = float("-inf")
        for request in sorted(self.requests, key=lambda request: request.arrived):
            if request.arrived >= end:
                groups.append([])
            groups[-1].append(request)
            end = max(end, request.answered)
        return groups

    def handle(self, path: str, body: dict[str, Any]) -> Reply:
        request = Request(path, body, monotonic())
        self.requests.append(request)
        if len(self.requests) >= self._gather:
            self._gathered.set()
        self._gathered.wait(60)
        reply = self._answer(request)
        if reply is None:
            self._too_many += 1
            reply = status(418, "the script of the test endpoint has no more replies")
        self._closing.wait(None if reply.hangs else self._latency)
        request.answered = monotonic()
        return Reply(body=_completion(reply, request)) if reply.message else reply


def _scripted(script: Script) -> Callable[[Request], Reply | None]:
    replies = iter(()) if callable(script) else iter(list(script))
    return script if callable(script) else lambda _: next(replies, None)


def _call(name: str, arguments: str) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"content": None, "tool_calls": [call]}


def _completion(reply: Reply, request: Request) -> str:
    assert reply.message
    message = {"role": "assistant", **reply.message(request)}
    read, written = len(request.prompt) // 4, len(_text(message["content"])) // 4
    completion = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": request.body.get("model", "test-model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }
    return json.dumps(completion)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(block.get("text", "") for block in content if isinstance(block, dict))
    return content or ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # the default of 5 loses connections of a big wave

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that went away, and connections that were reset on purpose, are no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        reply = self.server.endpoint.handle(self.path, body)
        if reply.drops or reply.hangs:
            self.close_connection = True
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            return
        data = reply.body.encode()
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `requests` instead."""
