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
EVERY_BYTE = [bytes([code]) for code in range(256)]
CHARACTERS = [chr(code) for code in range(0x20, 0x7F)] + ["\n", "\t", "ä", "ß", "é", "€", "中", "🧭"]
PIECES = ["the", "is", "a", "not", "customer", "order", "true", "false", "null", '":', '",', "M1", "T1", "G1"]
# How likely a token is, as a logit (others: 0 on the average): strings, lists and numbers come to an end.
HABITS = {'"': 3.0, '",': 3.0, "{": 2.0, "]": 1.5, "true": 1.5, "}": 1.0, ",": 1.0}
HABITS |= dict.fromkeys("123456789", -3.0) | dict.fromkeys("0-.eE", -4.0)
# Characters of ASCII have tokens of their own; raw control characters, which no JSON string may hold, are rare.
HABITS |= {f"<0x{code:02X}>": -5.0 for code in range(0x80)}
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_SPACE = "\u2581"  # how SentencePiece writes a space


def write_tiny_model(path: Path, seed: int = 0) -> None:
    """Write the model.

    Args:
        path: The file, ending in .gguf.
        seed: Another seed, other weights.
    """
    import gguf
    import numpy as np

    chance = np.random.default_rng(seed)
    tokens, kinds = _vocabulary()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0 if kind == _BYTE else -1.0 for kind in kinds])
    writer.add_token_types(kinds)
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
    embedding = (0.3 * chance.standard_normal((len(tokens), WIDTH))).astype(np.float32)
    embedding[:, 0] = 300.0
    writer.add_tensor("token_embd.weight", embedding)
    output = (0.3 * chance.standard_normal((len(tokens), WIDTH))).astype(np.float32)
    output[:, 0] = 0.0
    for token, logit in HABITS.items():
        row = tokens.index(token.encode())
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


def _vocabulary() -> tuple[list[bytes], list[int]]:
    """The tokens and their kinds, by id: three special ones, every byte, characters, pieces of words."""
    tokens = [b"<unk>", b"<s>", b"</s>"]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL]
    tokens += [f"<0x{byte[0]:02X}>".encode() for byte in EVERY_BYTE]
    kinds += [_BYTE] * len(EVERY_BYTE)
    written = (*CHARACTERS, *PIECES, *(f" {piece}" for piece in PIECES))
    words = dict.fromkeys(text.replace(" ", _SPACE) for text in written)  # no token twice
    tokens += [word.encode() for word in words]
    kinds += [_NORMAL] * len(words)
    return tokens, kinds
