from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones import BrokenRecord, read_transcripts

TALK = [{"role": "user", "content": 'hello, {world} [1, "2"] \\'}, {"role": "assistant", "content": "hi"}]


def write(tmp_path, text, name="talks.json"):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


def kinds(file):
    return ["broken" if isinstance(one, BrokenRecord) else one.id for one in read_transcripts(file)]


def talk(id):
    return {"id": id, "messages": TALK}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (json.dumps([talk("a"), talk("b")]), ["a", "b"]),
        (json.dumps([talk("a"), talk("b")], indent=2), ["a", "b"]),
        (json.dumps(talk("a")) + "\n" + json.dumps(talk("b")) + "\n", ["a", "b"]),
        (json.dumps(talk("a")) + "\n\n" + json.dumps(talk("b")), ["a", "b"]),
        (json.dumps(talk("a"), indent=2) + "\n" + json.dumps(talk("b"), indent=2), ["a", "b"]),
        (json.dumps(talk("a"), indent=2), ["a"]),
        ("\ufeff\n  " + json.dumps([talk("a")]), ["a"]),
        (json.dumps(TALK), ["0"]),
        (json.dumps([TALK, TALK]), ["0", "1"]),
        (json.dumps(TALK) + "\n" + json.dumps(TALK), ["0", "1"]),
        ("[]", []),
    ],
    ids=[
        "list",
        "indented",
        "lines",
        "blank lines",
        "values",
        "one",
        "marked",
        "messages",
        "lists",
        "list lines",
        "none",
    ],
)
def test_a_file_is_a_list_lines_values_or_one_conversation(tmp_path, text, ids):
    assert kinds(write(tmp_path, text)) == ids


def test_json_lines_may_be_lists_of_messages(tmp_path):
    assert kinds(write(tmp_path, f"{json.dumps(TALK)}\n{json.dumps(TALK)}\n", "talks.jsonl")) == ["0", "1"]


@pytest.mark.parametrize("name", ["talks.jsonl", "talks.json"])
def test_a_broken_line_does_not_stop_the_rest(tmp_path, name):
    text = "\n".join([json.dumps(talk("a")), '{"messages": [', json.dumps(talk("b"))])
    file = write(tmp_path, text, name)
    assert kinds(file) == ["a", "broken", "b"]
    broken = list(read_transcripts(file))[1]
    assert str(broken.error).startswith(f"{file}: record 1: no JSON")


def test_what_comes_before_a_broken_element_is_read(tmp_path):
    text = f'[{json.dumps(talk("a"))}, {{"messages": nonsense}}, {json.dumps(talk("b"))}]'
    assert kinds(write(tmp_path, text)) == ["a", "broken"]


def test_a_truncated_file_keeps_what_came_before(tmp_path):
    whole = json.dumps([talk("a"), talk("b"), talk("c")])
    file = write(tmp_path, whole[:-60])
    assert kinds(file) == ["a", "b", "broken"]
    broken = list(read_transcripts(file))[2]
    assert "record 2: no JSON" in str(broken.error)
    assert kinds(write(tmp_path, whole[:-1])) == ["a", "b", "c", "broken"]
    assert kinds(write(tmp_path, json.dumps(TALK)[:-1])) == ["broken"]


def test_a_file_of_another_kind_is_refused(tmp_path):
    assert kinds(write(tmp_path, "id,text\n1,hello\n")) == ["broken"]
    assert kinds(write(tmp_path, '{"messages": []}} {"messages": []}')) == ["broken", "broken"]
    assert kinds(write(tmp_path, '{"a": 1}')) == ["broken"]
    assert kinds(write(tmp_path, "[1, 2]")) == ["broken", "broken"]
    with pytest.raises(InputError, match="empty: it holds no conversation"):
        list(read_transcripts(write(tmp_path, " \n ")))
    with pytest.raises(InputError, match="No such file"):
        list(read_transcripts(tmp_path / "none.json"))
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"[\xff\xfe]")
    with pytest.raises(InputError, match="not UTF-8"):
        list(read_transcripts(binary))


def test_a_record_nested_without_end_is_broken(tmp_path):
    deep = "[" * 100_000 + "]" * 100_000
    assert kinds(write(tmp_path, f"[{json.dumps(talk('a'))}, {deep}]")) == ["a", "broken"]
    lines = f"{json.dumps(talk('a'))}\n{deep}\n{json.dumps(talk('b'))}"
    assert kinds(write(tmp_path, lines, "talks.jsonl")) == ["a", "broken", "b"]


@settings(max_examples=30)
@given(st.text(st.sampled_from('[]{},:"\\ \n1at'), min_size=1, max_size=30))
def test_any_text_is_read_to_its_end(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("any") / "any.json"
    file.write_text(text, encoding="utf-8")
    try:
        read = list(read_transcripts(file))
    except InputError:
        assert not text.strip()
    else:
        assert len(read) <= len(text)
