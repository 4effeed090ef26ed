"""A chat model provider on this machine: one server for every API, as strict as the real ones are.

    with Stub(Anthropic(), lambda asked: Said('{"score": 8}')) as stub:
        model = ChatAnthropic(model="claude", base_url=stub.url, api_key="key")
        ...
    assert stub.asked[0].temperature == 0.2

What an API does not know, or a model does not take, it refuses in the words and the shape of the provider's error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from tests.loopback import Loopback


@dataclass(frozen=True)
class Said:
    """What the model behind the stub answers: a text (JSON or words), or a refusal; cut off at the token limit."""

    text: str = ""
    refusal: str = ""
    cut: bool = False


@dataclass
class Asked:
    """One request, read by its API: `way` is how it asks for JSON, `marked` has the prompt up to each mark to cache."""

    body: dict[str, Any]
    messages: list[tuple[str, str]]
    way: str = "text"
    schema: dict[str, Any] | None = None
    tool: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    marked: list[str] = field(default_factory=list)
    images: int = 0
    streamed: bool = False

    def read(self, role: str, blocks: list[tuple[str, bool]]) -> None:
        """Take a message up: the text of each of its blocks, and whether a mark stands behind it."""
        for number, (_, is_marked) in enumerate(blocks, start=1):
            if is_marked:  # where blocks begin and end is a part of what has to be the same
                so_far = [
                    *(f"{role}: {text}" for role, text in self.messages),
                    *(b[0] for b in blocks[:number]),
                ]
                self.marked.append("\0".join(so_far))
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
    """One provider's HTTP API: how a request is read, or refused, and how an answer and an error are written."""

    def read(self, body: dict[str, Any]) -> Asked: ...
    def write(self, asked: Asked, said: Said) -> dict[str, Any]: ...
    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes: ...
    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]: ...


def only(value: dict[str, Any], known: str, where: str = "", words: str = "Unknown parameter: '{}'.") -> None:
    """Refuse what an API does not know; `known` names what it does."""
    for key in value.keys() - set(known.split()):
        raise Refused(words.format(f"{where}.{key}" if where else key))


def needed(value: dict[str, Any], keys: str, where: str = "") -> None:
    for key in keys.split():
        if value.get(key) in (None, "", []):
            raise Refused(f"{where}{key}: Field required")


def parts_of(content: Any) -> list[dict[str, Any]]:
    """The blocks of a message, a text being one."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def nodes_of(schema: Any) -> Iterable[dict[str, Any]]:
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
    """The server, serving inside a `with` block; `answer` may raise `Refused`."""

    api: Api
    answer: Callable[[Asked], Said]
    asked: list[Asked] = field(default_factory=list)
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
            asked = self.api.read(body)
            asked.streamed = "stream" in path.lower() or bool(body.get("stream"))
            self.asked.append(asked)
            written = self.api.write(asked, self.answer(asked))
        except Refused as refused:
            self.refused.append(refused)
            error, headers = self.api.error(refused)
            return refused.status, json.dumps(error).encode(), headers
        return 200, self.api.stream(asked, written) if asked.streamed else json.dumps(written).encode(), {}


def halves(text: str) -> tuple[str, str]:
    """What a streamed text comes in."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def events(told: Iterable[dict[str, Any]], *, ended: str = "") -> bytes:
    """Server-sent events, each with its type where it has one."""
    named = ((f"event: {each['type']}\n" if "type" in each else "", each) for each in told)
    lines = [f"{name}data: {json.dumps(each)}\n\n" for name, each in named]
    return "".join([*lines, ended]).encode()
