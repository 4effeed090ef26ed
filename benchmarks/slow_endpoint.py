"""An endpoint on this machine that answers every request after a while, in a process of its own."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ANSWER = "Your order is on its way. It arrives on Thursday."
_ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def run_endpoint(seconds: float) -> Iterator[int]:
    """Run an endpoint that answers after so many seconds, and yield its port."""
    command = [sys.executable, "-m", "benchmarks.slow_endpoint", str(seconds)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def _serve(seconds: float) -> None:
    message = {"role": "assistant", "content": ANSWER}
    body = json.dumps(
        {
            "id": "one",
            "object": "chat.completion",
            "created": 0,
            "model": "slow",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }
    ).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await read_body(reader)
                await asyncio.sleep(seconds)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def read_body(reader: asyncio.StreamReader) -> bytes:
    """Return the body of an HTTP request or response that states its length."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, _, rest = head.partition(b"content-length:")
    length, _, _ = rest.partition(b"\r\n")
    return await reader.readexactly(int(length))


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1])))
