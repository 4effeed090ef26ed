"""Limit how long and how much an HTTP client reads of a response.

httpx limits each read alone. A response that never ends would be read, and kept, in a thread that nobody waits for any
more. So requests go through a client around the model's own one, whose settings and connections stay in use.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from arq_graph.reasoning.replies import AnswerTooLongError

_MAX_BYTES = 100_000_000  # a streamed answer of full length, in small pieces with all that belongs to each
_MODULES = ("httpx", "httpx2")  # the second is what newer clients of OpenAI use


def limit_http_client(client: Any, seconds: float) -> Any:
    """Return a client that sends through another one and limits its responses; None if that isn't one of httpx."""
    for cls in type(client).__mro__:
        module_name = cls.__module__.partition(".")[0]
        if module_name in _MODULES and cls.__name__ in ("Client", "AsyncClient"):
            break
    else:
        return None
    transport = _LimitedTransport(client, sys.modules[module_name], seconds)
    return cls(
        transport=transport,
        base_url=client.base_url,
        headers=client.headers,
        params=client.params,
        cookies=client.cookies.jar,
        trust_env=False,
    )


class _LimitedTransport:
    """Sends requests through a client, sync or async."""

    def __init__(self, client: Any, module: Any, seconds: float) -> None:
        self._client = client
        self._module = module
        self._seconds = seconds
        bases = (_LimitedStream, module.SyncByteStream, module.AsyncByteStream)
        self._stream_class = type("LimitedStream", bases, {})

    def handle_request(self, request: Any) -> Any:
        return self._limit(self._client.send(request, stream=True))

    async def handle_async_request(self, request: Any) -> Any:
        return self._limit(await self._client.send(request, stream=True))

    def _limit(self, response: Any) -> Any:
        return self._module.Response(
            response.status_code,
            headers=response.headers,
            stream=self._stream_class(response.stream, self._seconds),
            extensions=response.extensions,
        )

    # The client belongs to the model.
    def close(self) -> None: ...
    async def aclose(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...
    async def __aenter__(self) -> None: ...
    async def __aexit__(self, *_: object) -> None: ...


class _LimitedStream:
    """The bytes of a response, until there are too many or its time is up."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self._stream = stream
        self._end = time.monotonic() + seconds
        self._bytes_left = _MAX_BYTES

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._count(piece)
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._count(piece)
            yield piece

    def _count(self, piece: bytes) -> None:
        self._bytes_left -= len(piece)
        if self._bytes_left < 0:
            raise AnswerTooLongError("")
        if time.monotonic() > self._end:
            raise TimeoutError("the response was still being sent")

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()
