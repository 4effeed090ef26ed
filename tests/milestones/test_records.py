"""Files of recorded conversations: JSON, JSON Lines, and what is broken in them."""

from __future__ import annotations

import json

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import BrokenRecord, read_transcripts

TALK = [{"role": "user", "content": 'hello, {world} [1, "2"] \\'}, {"role": "assistant", "content": "hi"}]


def talk(id):
    return {"id": id, "messages": TALK}


A, B = json.dumps(talk("a")), json.dumps(talk("b"))
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def read(tmp_path):
    """The ids of what a file of this text holds, and what is broken in it."""

    def ids(text, name="talks.json"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        found = list(read_transcripts(file))
        return [str(one.error) if isinstance(one, BrokenRecord) else one.id for one in found]

    return ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f"[{A}, {B}]", ["a", "b"]),
        (json.dumps([talk("a"), talk("b")], indent=2), ["a", "b"]),
        (f"{A}\n\n{B}\n", ["a", "b"]),
        (A, ["a"]),
        (f"\ufeff\n  [{A}]", ["a"]),
        (json.dumps(TALK, indent=2), ["0"]),
        (json.dumps([TALK, TALK]), ["0", "1"]),
        (f"{json.dumps(TALK)}\n{json.dumps(TALK)}", ["0", "1"]),
        ("[]", []),
    ],
)
def test_a_file_is_a_list_lines_or_one_conversation(read, text, ids):
    assert read(text) == ids


@pytest.mark.parametrize("broken", ['{"messages": [', DEEP], ids=["cut off", "too deep"])
@pytest.mark.parametrize("name", ["talks.jsonl", "talks.json"])
def test_a_broken_line_does_not_stop_the_rest(read, tmp_path, name, broken):
    first, told, last = read(f"{A}\n{broken}\n{B}", name)
    assert (first, last) == ("a", "b")
    assert told.startswith(f"{tmp_path / name}: record 1: ")


def test_half_a_file_or_half_a_conversation_is_never_scored_as_a_whole(read):
    for cut in (f"[{A}, {B}"[:-9], json.dumps(TALK)[:-1]):
        [told] = read(cut)
        assert "record 0: no JSON" in told
    [told] = read(json.dumps([*TALK, "bye"]))
    assert "message 2 is no chat message" in told


def test_a_file_of_another_kind_is_refused(read, tmp_path):
    for text in ("id,text\n1,hello\n", '{"a": 1}', "[1]"):
        [told] = read(text)
        assert "record 0: no" in told
    with pytest.raises(InputError, match="empty: it holds no conversation"):
        read(" \n ")
    with pytest.raises(InputError, match="No such file"):
        list(read_transcripts(tmp_path / "none.json"))
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"[\xff\xfe]")
    with pytest.raises(InputError, match="not UTF-8"):
        list(read_transcripts(binary))
