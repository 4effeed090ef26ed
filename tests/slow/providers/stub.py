"""A chat model provider on this machine: one server for every API, as strict as the real ones are.

    with Stub(Anthropic(), lambda request: ModelAnswer('{"score": 8}')) as stub:
        model = ChatAnthropic(model="claude", base_url=stub.url, api_key="key")
        ...
    assert stub.requests[0].temperature == 0.2

What an API does not know, or a model does not take, it refuses in the words and the shape of the provider's error.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from tests.loopback import Loopback

INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 100, 40, 20
"""Tokens of each answer: read in all, of these from the provider's cache, and written."""


@dataclass(frozen=True)
class ModelAnswer:
    """The answer of the model behind the stub: a text, a refusal, or a text that is cut off at the token limit."""

    text: str = ""
    refusal: str = ""
    cut: bool = False


@dataclass
class Request:
    """A parsed request.

    Attributes:
        json_mode: How it asks for JSON.
        marked: The prompt up to each mark for the cache.
    """

    body: dict[str, Any]
    messages: list[tuple[str, str]]
    json_mode: str = "text"
    schema: dict[str, Any] | None = None
    tool: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    marked: list[str] = field(default_factory=list)
    images: int = 0
    streamed: bool = False

    def read(self, role: str, blocks: list[tuple[str, bool]]) -> None:
        """Add a message: the text of each of its blocks, and whether a cache mark follows the block."""
        for number, (_, is_marked) in enumerate(blocks, start=1):
            if is_marked:  # the cache compares the limits of the blocks too
                prefix = [f"{role}: {text}" for role, text in self.messages]
                prefix += [text for text, _ in blocks[:number]]
                self.marked.append("\0".join(prefix))
        self.messages.append((role, "".join(text for text, _ in blocks)))

    @property
    def prompt(self) -> str:
        return "\n".join(text for _, text in self.messages)


@dataclass
class Refused(Exception):
    """An error that the provider answers with."""

    message: str
    status: int = 400
    param: str | None = None


class Api(Protocol):
    """One provider's HTTP API: how a request is read, or refused, and how an answer and an error are response."""

    def read(self, body: dict[str, Any]) -> Request: ...
    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]: ...
    def stream(self, request: Request, response: dict[str, Any]) -> bytes: ...
    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]: ...


def refuse_unknown_keys(
    value: dict[str, Any], known: str, where: str = "", words: str = "Unknown parameter: '{}'."
) -> None:
    """Refuse keys that the API doesn't know; `known` lists those that it knows."""
    for key in value.keys() - set(known.split()):
        raise Refused(words.format(f"{where}.{key}" if where else key))


def require_keys(value: dict[str, Any], keys: str, where: str = "") -> None:
    for key in keys.split():
        if value.get(key) in (None, "", []):
            raise Refused(f"{where}{key}: Field required")


def get_parts(content: Any) -> list[dict[str, Any]]:
    """The blocks of a message, a text being one."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def list_schema_nodes(schema: Any) -> Iterable[dict[str, Any]]:
    """Every schema in a schema; a reference that leads nowhere is refused."""
    definitions = schema.get("$defs", {})
    found = [schema, *definitions.values()]
    for node in found:  # which grows
        if "$ref" in node and node["$ref"].removeprefix("#/$defs/") not in definitions:
            raise Refused(f"Invalid schema: cannot resolve {node['$ref']}")
        found += [*node.get("properties", {}).values(), *node.get("anyOf", ())]
        found += [node["items"]] if "items" in node else []
    return found


@dataclass
class Stub:
    """The server, which serves inside a `with` block; `answer` may raise `Refused`."""

    api: Api
    answer: Callable[[Request], ModelAnswer]
    requests: list[Request] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._closed = False
        self._server = Loopback(self._reply)
        self.url = self._server.url
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._server.stop()

    def _reply(self, path: str, body: dict[str, Any]) -> tuple[int, bytes, dict[str, str]]:
        if self._closed:
            raise ConnectionResetError
        try:
            request = self.api.read(body)
            request.streamed = "stream" in path.lower() or bool(body.get("stream"))
            self.requests.append(request)
            response = self.api.write(request, self.answer(request))
        except Refused as refused:
            self.refused.append(refused)
            error, headers = self.api.error(refused)
            return refused.status, json.dumps(error).encode(), headers
        data = json.dumps(response).encode()
        if request.streamed:
            data = self.api.stream(request, response)
        return 200, data, {}


def split_in_two(text: str) -> tuple[str, str]:
    """Return the two parts in which a text is streamed."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def format_events(payloads: Iterable[dict[str, Any]]) -> bytes:
    """Return server-sent events, each with its type if it has one."""
    text = ""
    for payload in payloads:
        if "type" in payload:
            text += f"event: {payload['type']}\n"
        text += f"data: {json.dumps(payload)}\n\n"
    return text.encode()
