"""Close a connection when the time of its call is up.

httpx limits each read alone. A sync call that nobody waits for any more would read on for as long as bytes come. So
requests go through a client around the model's own one, whose settings and connections stay in use.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

_MODULES = ("httpx", "httpx2")  # the second is what newer clients of OpenAI use


def limit_http_client(client: Any, seconds: float) -> Any:
    """Return a client that sends through another one and limits its responses; None if that isn't one of httpx."""
    for cls in type(client).__mro__:
        module_name = cls.__module__.partition(".")[0]
        if module_name in _MODULES and cls.__name__ in ("Client", "AsyncClient"):
            break
    else:
        return None
    return cls(
        transport=_make_transport(client, sys.modules[module_name], seconds),
        base_url=client.base_url,
        headers=client.headers,
        params=client.params,
        cookies=client.cookies.jar,
        trust_env=False,
    )


def _make_transport(client: Any, httpx: Any, seconds: float) -> Any:
    """Return a transport that sends requests through a client, sync or async, and never closes it."""

    class LimitedStream(_LimitedStream, httpx.SyncByteStream, httpx.AsyncByteStream):  # type: ignore[misc]
        pass

    def limit(response: Any) -> Any:
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=LimitedStream(response.stream, seconds),
            extensions=response.extensions,
        )

    class Transport(httpx.BaseTransport, httpx.AsyncBaseTransport):  # type: ignore[misc]
        def handle_request(self, request: Any) -> Any:
            return limit(client.send(request, stream=True))

        async def handle_async_request(self, request: Any) -> Any:
            return limit(await client.send(request, stream=True))

    return Transport()


class _LimitedStream:
    """The bytes of a response, until its time is up."""

    def __init__(self, stream: Any, seconds: float) -> None:
        self._stream = stream
        self._end = time.monotonic() + seconds

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._require_time()
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._require_time()
            yield piece

    def _require_time(self) -> None:
        if time.monotonic() > self._end:
            raise TimeoutError("the response was still being sent")

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()
