"""Serve a tiny random model with llama.cpp's Python server: a real OpenAI-compatible endpoint without a real model.

python -m tests.slow.tiny_server FOLDER   writes the model there, prints the port, serves until its stdin closes
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTEXT = 16_384


@contextmanager
def tiny_server(folder: Path) -> Iterator[str]:
    """A server in a process of its own, which ends with its stdin, so that it does not outlive a killed test run."""
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.slow.tiny_server", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port.isdigit(), f"the server did not start: {(folder / 'server.log').read_text()[-2000:]}"
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.communicate()
        log.close()


def main(folder: Path) -> None:
    import uvicorn
    from llama_cpp.server.app import create_app
    from llama_cpp.server.settings import ModelSettings, ServerSettings

    from tests.slow.tiny_model import write_tiny_model

    threading.Thread(target=_end_with_parent, daemon=True).start()
    model = folder / "tiny.gguf"
    write_tiny_model(model)
    settings = ModelSettings(
        model=str(model),
        n_ctx=CONTEXT,
        n_threads=1,  # so small a model is slower with more
        n_threads_batch=1,
        logits_all=False,
        flash_attn=True,
        verbose=False,
    )
    app = create_app(server_settings=ServerSettings(), model_settings=[settings])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
