"""Files of recorded conversations: JSON, JSON Lines, and what is broken in them."""

from __future__ import annotations

import json

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import BrokenRecord, read_transcripts

TALK = [{"role": "user", "content": 'hello, {world} [1, "2"] \\'}, {"role": "assistant", "content": "hi"}]
A, B = (json.dumps({"id": id, "messages": TALK}) for id in "ab")
DEEP = "[" * 100_000 + "]" * 100_000


def read(file, text, encoding="utf-8"):
    """The ids of what a file of this text holds, and what is broken in it."""
    file.write_text(text, encoding=encoding)
    found = list(read_transcripts(file))
    return [str(one.error) if isinstance(one, BrokenRecord) else one.id for one in found]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f"[{A}, {B}]", ["a", "b"]),
        (json.dumps([json.loads(A), json.loads(B)], indent=2), ["a", "b"]),
        (f"{A}\n\n{B}\n", ["a", "b"]),
        (A, ["a"]),
        (f"\ufeff\n  [{A}]", ["a"]),
        (json.dumps(TALK, indent=2), ["0"]),
        (json.dumps([TALK, TALK]), ["0", "1"]),
        (f"{json.dumps(TALK)}\n{json.dumps(TALK)}", ["0", "1"]),
        ("[]", []),
    ],
)
def test_a_file_is_a_list_lines_or_one_conversation(tmp_path, text, ids):
    assert read(tmp_path / "talks.json", text) == ids


@pytest.mark.parametrize("broken", ['{"messages": [', DEEP], ids=["cut off", "too deep"])
@pytest.mark.parametrize("name", ["talks.jsonl", "talks.json"])
def test_a_broken_line_does_not_stop_the_rest(tmp_path, name, broken):
    first, told, last = read(tmp_path / name, f"{A}\n{broken}\n{B}")
    assert (first, last) == ("a", "b")
    assert told.startswith(f"{tmp_path / name}: record 1: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[{A}, {B}"[:-9], "record 0: no JSON"),
        (json.dumps(TALK)[:-1], "record 0: no JSON"),
        (json.dumps([*TALK, "bye"]), "message 2 is no chat message"),
        ("id,text\n1,hello\n", "record 0: no"),
        ('{"a": 1}', "record 0: no known format"),
        ("[1]", "record 0: no known format"),
    ],
)
def test_half_a_file_or_another_kind_is_never_scored_as_a_whole(tmp_path, text, said):
    [told] = read(tmp_path / "talks.json", text)
    assert said in told


def test_a_file_that_cannot_be_read_at_all_is_refused(tmp_path):
    for text, encoding, said in ((" \n ", "utf-8", "empty: it holds no"), ("[ÿ]", "utf-16", "no UTF-8 text")):
        with pytest.raises(InputError, match=said):
            read(tmp_path / "talks.json", text, encoding)
    with pytest.raises(InputError, match="No such file"):
        list(read_transcripts(tmp_path / "none.json"))
