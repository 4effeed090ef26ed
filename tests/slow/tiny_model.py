"""A random-weight Llama of half a megabyte, written as a GGUF file that llama.cpp loads and serves.

It means nothing by what it says. One habit is built in by hand: it likes to end what it has begun, so that an answer
in a JSON schema comes to an end within a few hundred tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

CONTEXT = 65_536
WIDTH = 64
LAYERS = 2
HEADS = 4
HIDDEN = 128
# The first three tokens are special ones, and every byte is one: text needs no others.
TOKENS = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
# How likely a byte is, as a logit (others: 0 on the average): strings, lists and numbers come to an end, and what is
# no printable character of ASCII is rare.
HABITS = dict.fromkeys([*range(32), *range(127, 256)], -5.0) | dict.fromkeys(b"123456789", -3.0)
HABITS |= dict.fromkeys(b"0-.eE", -4.0) | {
    ord('"'): 3.7,
    ord("{"): 2.0,
    ord("]"): 1.5,
    ord("}"): 1.0,
    ord(","): 1.0,
}
_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6


def write_tiny_model(path: Path, seed: int = 0) -> None:
    """Write the model.

    Args:
        path: The file, ending in .gguf.
        seed: Another seed, other weights.
    """
    import gguf
    import numpy as np

    chance = np.random.default_rng(seed)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types([_UNKNOWN, _CONTROL, _CONTROL] + [_BYTE] * 256)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_chat_template(
        "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}[assistant]"
    )

    def random_weights(name: str, rows: int, columns: int) -> Any:
        weights = (0.3 * chance.standard_normal((rows, columns))).astype(np.float32)
        writer.add_tensor(name, weights)
        return weights

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    # The first dimension is the same large value at every position, and after the norm about √WIDTH: what a
    # token's output row holds there is added to its logit wherever the text stands.
    embedding = (0.3 * chance.standard_normal((len(TOKENS), WIDTH))).astype(np.float32)
    embedding[:, 0] = 300.0
    writer.add_tensor("token_embd.weight", embedding)
    output = (0.3 * chance.standard_normal((len(TOKENS), WIDTH))).astype(np.float32)
    output[:, 0] = 0.0
    for byte, logit in HABITS.items():
        row = TOKENS.index(f"<0x{byte:02X}>".encode())
        output[row] = 0.0
        output[row, 0] = logit / WIDTH**0.5
    writer.add_tensor("output.weight", output)
    ones("output_norm.weight")
    for layer in range(LAYERS):
        ones(f"blk.{layer}.attn_norm.weight")
        ones(f"blk.{layer}.ffn_norm.weight")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            random_weights(f"blk.{layer}.{part}.weight", WIDTH, WIDTH)
        random_weights(f"blk.{layer}.ffn_gate.weight", HIDDEN, WIDTH)
        random_weights(f"blk.{layer}.ffn_up.weight", HIDDEN, WIDTH)
        random_weights(f"blk.{layer}.ffn_down.weight", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
