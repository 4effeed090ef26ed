"""A real server without a real model: whatever a Llama of random weights answers, nothing breaks."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import create_guided_agent, track_usage
from tests.slow.random_turns import MOST_CALLS, STRATEGIES, Desk
from tests.slow.servers import find_free_port, run_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:guideline"),
    pytest.mark.skipif(
        not (find_spec("llama_cpp") and find_spec("uvicorn") and find_spec("gguf")),
        reason="needs a server that is compiled on installation: pip install 'llama-cpp-python[server]' gguf",
    ),
]

TURNS, MOST_TURNS = 4, 20
WIDTH, HIDDEN = 64, 128
SPECIAL = [b"<unk>", b"<s>", b"</s>"]
# How likely a byte is (others: 0): strings, lists and numbers come to an end, so that an answer in a JSON schema does
# within a few hundred tokens, and what is no printable character of ASCII is rare.
HABITS = {
    **dict.fromkeys([*range(32), *range(127, 256)], -5.0),
    **dict.fromkeys(b"123456789", -3.0),
    **dict.fromkeys(b"0-.eE", -4.0),
    **dict(zip(b'"{]},', (3.7, 2.0, 1.5, 1.0, 1.0), strict=True)),
}


def write_random_llama(file: Path) -> None:
    """Write a GGUF file of one layer, with a token for every byte."""
    import gguf
    import numpy as np

    tokens = [*SPECIAL, *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(16_384)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    unknown, control, byte = 2, 3, 6
    writer.add_token_types([unknown, control, control, *[byte] * 256])
    writer.add_chat_template("{% for message in messages %}{{ message['content'] }}\n{% endfor %}")
    matrices = dict.fromkeys(("attn_q", "attn_k", "attn_v", "attn_output"), (WIDTH, WIDTH))
    matrices |= {"ffn_gate": (HIDDEN, WIDTH), "ffn_up": (HIDDEN, WIDTH), "ffn_down": (WIDTH, HIDDEN)}
    shapes = {f"blk.0.{name}": shape for name, shape in matrices.items()}
    shapes |= dict.fromkeys(("token_embd", "output"), (len(tokens), WIDTH))
    chance = np.random.default_rng(0)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", (0.1 * chance.standard_normal(shape)).astype(np.float32))
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("tiny")
    write_random_llama(folder / "tiny.gguf")
    port = find_free_port()
    options = f"--model {folder / 'tiny.gguf'} --port {port} --n_ctx 16384 --n_threads 1 --n_threads_batch 1"
    options += " --flash_attn True --verbose False"
    command = [sys.executable, "-m", "llama_cpp.server", *options.split()]
    with run_server(command, port, folder / "log") as url:
        yield f"{url}/v1"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_turns_with_a_random_llama_break_nothing(strategy: str, base_url: str) -> None:
    desk = Desk(strategy)
    habits = {str(len(SPECIAL) + byte): likely for byte, likely in HABITS.items()}
    model = ChatOpenAI(
        model=f"tiny-{strategy}",
        base_url=base_url,
        api_key="none",
        max_retries=0,
        temperature=1.0,
        extra_body={"max_tokens": 700, "logit_bias": habits},  # it knows no max_completion_tokens
    )
    settings = {"strategy": STRATEGIES[strategy], "mode": "direct", "checkpointer": MemorySaver()}
    app = create_guided_agent(model, desk.agent, **settings)
    for turn in range(MOST_TURNS):
        if turn >= TURNS and desk.outcomes["reply"]:
            break
        with track_usage() as used:
            desk.run_turn(app)
        assert used.calls <= MOST_CALLS[strategy]
    print(f"\n{strategy}: {dict(desk.outcomes)}")
    assert desk.outcomes["reply"], "no turn came to an end"
