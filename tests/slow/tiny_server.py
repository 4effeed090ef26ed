"""A real OpenAI-compatible endpoint without a real model: llama.cpp's Python server with a Llama that knows nothing.

python -m tests.slow.tiny_server FOLDER   writes the model there, prints the port, serves until its stdin closes

The Llama's layers are empty: what comes next is drawn by chance, whatever was said. Only how likely each byte is was
set by hand, so that an answer in a JSON schema comes to an end within a few hundred tokens.
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
WIDTH = 32
# The first three tokens are special ones, and every byte is one: text needs no others.
TOKENS = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
TYPES = [2, 3, 3] + [6] * 256  # unknown, control, control, bytes
# How likely a byte is, as a logit (others: 0): strings, lists and numbers come to an end, and what is no printable
# character of ASCII is rare.
HABITS = dict.fromkeys([*range(32), *range(127, 256)], -5.0) | dict.fromkeys(b"123456789", -3.0)
HABITS |= dict.fromkeys(b"0-.eE", -4.0) | {34: 3.7, 44: 1.0, 93: 1.5, 123: 2.0, 125: 1.0}  # of " , ] { and }


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


def write_tiny_model(path: Path) -> None:
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(WIDTH)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(TYPES)
    writer.add_add_bos_token(True)
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}\n{% endfor %}")
    # Every token has the same first dimension, which is √WIDTH after the norm: times its row here, a byte's logit.
    embedding, output = np.zeros((2, len(TOKENS), WIDTH), np.float32)
    embedding[:, 0] = 1.0
    for byte, logit in HABITS.items():
        output[3 + byte, 0] = logit / WIDTH**0.5
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for part in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{part}.weight", np.zeros(WIDTH, np.float32))
    for part in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
        writer.add_tensor(f"blk.0.{part}.weight", np.zeros((WIDTH, WIDTH), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main(folder: Path) -> None:
    import uvicorn
    from llama_cpp.server.app import create_app
    from llama_cpp.server.settings import ModelSettings, ServerSettings

    threading.Thread(target=_end_with_parent, daemon=True).start()
    model = folder / "tiny.gguf"
    write_tiny_model(model)
    # So small a model is slower with more threads.
    settings = ModelSettings(
        model=str(model), n_ctx=CONTEXT, n_threads=1, n_threads_batch=1, logits_all=False
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
