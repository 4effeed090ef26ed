"""Servers that tests start in processes of their own."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

START_TIMEOUT = 60


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def run_server(command: list[str], port: int, log: Path, **options: Any) -> Iterator[str]:
    """Run a server, with its output in a file, and yield its address once it listens."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, **options)
    end = time.monotonic() + START_TIMEOUT
    try:
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
