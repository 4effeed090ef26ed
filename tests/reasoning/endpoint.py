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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from types import TracebackType
from typing import Any, Self

_model_numbers = itertools.count(1)


@dataclass
class Request:
    """One request as it arrived: headers in lower case, times on the monotonic clock.

    `concurrency` counts the requests under way when it arrived, itself included.
    """

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]
    concurrency: int
    arrived: float
    answered: float | None = None

    @property
    def method(self) -> str:
        """How it asks for JSON: "json_schema", "json_mode", "function_calling" or "none"."""
        format_ = self.body.get("response_format") or (self.body.get("text") or {}).get("format") or {}
        kind = format_.get("type")
        if kind in ("json_schema", "json_object"):
            return "json_schema" if kind == "json_schema" else "json_mode"
        return "function_calling" if self.body.get("tools") else "none"

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that it asks for."""
        format_ = self.body.get("response_format") or {}
        tools = [tool["function"]["parameters"] for tool in self.body.get("tools") or ()]
        found: dict[str, Any] | None = format_["json_schema"]["schema"] if "json_schema" in format_ else None
        return found or next(iter(tools), None)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of its prompt."""
        found: list[dict[str, Any]] = self.body.get("messages") or self.body.get("input") or []
        return found

    @property
    def prompt(self) -> str:
        """The text of all messages, joined."""
        return "\n\n".join(_text(message.get("content")) for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What the endpoint does with a request; the functions below make them. A dict as the body is sent as JSON."""

    status: int = 200
    body: dict[str, Any] | str | bytes = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    drops: bool = False
    hangs: bool = False


Script = Iterable[Reply] | Callable[[Request], Reply]


def ok(answer: Any) -> Reply:
    """An answer of the model: a dict (sent as JSON) or a text; the forced tool's call, where one is forced."""
    return Reply(body={"answer": answer})


def text(words: str) -> Reply:
    """An answer of the model in words, whether or not a tool was forced."""
    return _completion({"content": words})


def truncated(words: str) -> Reply:
    """An answer that was cut off at the token limit."""
    return _completion({"content": words}, finish_reason="length")


def refusal(words: str) -> Reply:
    """A refusal in OpenAI's shape."""
    return _completion({"content": None, "refusal": words})


def filtered(words: str = "") -> Reply:
    """An answer that the provider's content filter ended."""
    return _completion({"content": words}, finish_reason="content_filter")


def tool_call(name: str, arguments: str) -> Reply:
    """A tool call whose arguments are this text, valid or not."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return _completion({"content": None, "tool_calls": [call]}, finish_reason="tool_calls")


def status(
    code: int, message: str = "", *, headers: Mapping[str, str] | None = None, error_code: str | None = None
) -> Reply:
    """An HTTP error in OpenAI's shape."""
    error = {"message": message or f"status {code}", "type": "error", "param": None, "code": error_code}
    return Reply(status=code, body={"error": error}, headers=headers or {})


def raw(body: str | bytes, *, content_type: str = "application/json") -> Reply:
    """A 200 response with this very body."""
    return Reply(body=body, headers={"Content-Type": content_type})


def drop() -> Reply:
    """The connection is reset."""
    return Reply(drops=True)


def hang() -> Reply:
    """No answer, until the endpoint closes."""
    return Reply(hangs=True)


def taking(*methods: str, then: Script, code: int = 400) -> Callable[[Request], Reply]:
    """A server that knows only these methods and answers all others with an HTTP error."""
    answer = _scripted(then)

    def script(request: Request) -> Reply:
        if request.method not in methods:
            return status(code, f"{request.method} is not supported")
        return answer(request)

    return script


def _completion(message: dict[str, Any], *, finish_reason: str = "stop") -> Reply:
    """A chat completion with this message."""
    return Reply(body={"message": {"role": "assistant", **message}, "finish_reason": finish_reason})


class _ScriptEnded(Exception):
    """More requests came than the script has replies."""


class Endpoint:
    """The endpoint, serving inside a `with` block.

    Args:
        script: What it answers with.
        latency: Seconds that every answer takes.
        gather: Requests to wait for before any is answered, so that they surely overlap (10 s at most).
    """

    def __init__(self, script: Script, *, latency: float = 0.0, gather: int = 1) -> None:
        self._answer = _scripted(script)
        self._latency = latency
        self._gather = gather
        self._gathered = threading.Event()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._under_way = 0
        self._too_many = 0
        self.requests: list[Request] = []
        self.model_name = f"test-model-{next(_model_numbers)}"
        self._server = _Server(self)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._gathered.set()
        self._server.shutdown()
        self._server.server_close()
        if kind is None:
            assert not self._too_many, f"{self._too_many} more requests came than the script has replies"

    @property
    def base_url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def chat_model(self, **fields: Any) -> Any:
        """A ChatOpenAI for this endpoint, of a model name that no other endpoint has."""
        from langchain_openai import ChatOpenAI

        settings = {"model": self.model_name, "api_key": "test-key", "max_retries": 0, **fields}
        return ChatOpenAI(base_url=self.base_url, **settings)

    @property
    def calls(self) -> int:
        """Requests so far."""
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
            end = max(end, float("inf") if request.answered is None else request.answered)
        return groups

    def handle(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        """Record a request and tell what to do with it."""
        with self._lock:
            self._under_way += 1
            request = Request(path, body, headers, self._under_way, monotonic())
            self.requests.append(request)
            if len(self.requests) >= self._gather:
                self._gathered.set()
        try:
            self._gathered.wait(60)
            reply = self._reply(request)
            self._closing.wait(None if reply.hangs else self._latency)
        finally:
            with self._lock:
                self._under_way -= 1
                request.answered = monotonic()
        return reply

    def _reply(self, request: Request) -> Reply:
        try:
            reply = self._answer(request)
        except _ScriptEnded:
            self._too_many += 1
            return status(418, "the script of the test endpoint has no more replies")
        if reply.status != 200 or not isinstance(reply.body, dict):
            return reply
        return Reply(body=_completion_body(reply.body, request), headers=reply.headers)


def _scripted(script: Script) -> Callable[[Request], Reply]:
    if callable(script):
        return script
    replies = iter(list(script))

    def answer(request: Request) -> Reply:
        reply = next(replies, None)
        if reply is None:
            raise _ScriptEnded
        return reply

    return answer


def _completion_body(reply: Any, request: Request) -> dict[str, Any]:
    if "answer" in reply:
        answer = reply["answer"]
        words = answer if isinstance(answer, str) else json.dumps(answer)
        if request.method == "function_calling" and not isinstance(answer, str):
            reply = tool_call(request.body["tools"][0]["function"]["name"], words).body
        else:
            reply = {"message": {"role": "assistant", "content": words}, "finish_reason": "stop"}
    tokens = {"in": len(request.prompt) // 4, "out": len(_text(reply["message"].get("content"))) // 4}
    if request.path.endswith("/responses"):
        return _response_body(reply, request, tokens)
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": request.body.get("model", "test-model"),
        "choices": [
            {
                "index": 0,
                "message": reply["message"],
                "finish_reason": reply["finish_reason"],
                "logprobs": None,
            }
        ],
        "usage": {
            "prompt_tokens": tokens["in"],
            "completion_tokens": tokens["out"],
            "total_tokens": tokens["in"] + tokens["out"],
        },
    }


def _response_body(reply: dict[str, Any], request: Request, tokens: dict[str, int]) -> dict[str, Any]:
    """The same answer in the shape of OpenAI's Responses API."""
    message = reply["message"]
    block = {"type": "output_text", "text": _text(message.get("content")), "annotations": []}
    if message.get("refusal"):
        block = {"type": "refusal", "refusal": message["refusal"]}
    cut_off = reply["finish_reason"] == "length"
    done = "incomplete" if cut_off else "completed"
    return {
        "id": "resp_test",
        "object": "response",
        "created_at": 1,
        "model": request.body.get("model", "test-model"),
        "status": done,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut_off else None,
        "output": [
            {"type": "message", "id": "msg_test", "status": done, "role": "assistant", "content": [block]}
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "text": {"format": (request.body.get("text") or {}).get("format") or {"type": "text"}},
        "usage": {
            "input_tokens": tokens["in"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": tokens["out"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens["in"] + tokens["out"],
        },
    }


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
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.endpoint.handle(self.path, headers, body)
        if reply.drops or reply.hangs:
            self._reset()
            return
        data = reply.body
        if isinstance(data, dict):
            data = json.dumps(data)
        if isinstance(data, str):
            data = data.encode("utf-8", "surrogatepass")
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Tests read `requests` instead."""
