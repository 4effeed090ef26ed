"""Conversations in files of any form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arq_graph.cli.run import read_customer_turns
from arq_graph.errors import InputError


def written(folder: Path, name: str, text: str | bytes) -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("talk.txt", "Hello\n\n  Bye \n"),
        ("talk.txt", "\ufeffHello\r\nBye"),
        ("talk", "Hello\rBye"),
        ("talk.json", '["Hello", "Bye"]'),
        ("talk", '[\n  "Hello",\n  {"text": "Bye"}\n]'),
        ("talk.jsonl", '{"text": "Hello"}\n\n{"content": "Bye", "id": 3}\n'),
        ("talk.jsonl", '"Hello"\n"Bye"\n'),
        ("talk", '{"role": "user", "content": "Hello"}\n{"content": "Bye"}'),
        (
            "talk.json",
            '[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}, {"text": "Bye"}]',
        ),
    ],
)
def test_every_form_says_the_same(tmp_path: Path, name: str, text: str) -> None:
    assert read_customer_turns(written(tmp_path, name, text)) == ["Hello", "Bye"]


def test_a_line_that_looks_like_json_and_is_none_is_said(tmp_path: Path) -> None:
    file = written(tmp_path, "talk.txt", "[sighs] where is it?\n{well}\n")
    assert read_customer_turns(file) == ["[sighs] where is it?", "{well}"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("talk.txt", "", "holds nothing"),
        ("talk.txt", " \n\n", "holds nothing"),
        ("talk.json", "[]", "holds nothing"),
        ("talk.json", "[", "not JSON"),
        ("talk.json", '{"text": "Hello"}', "a list of messages"),
        ("talk.json", "[7]", "entry 1"),
        ("talk.json", '["Hello", {"text": 7}]', "entry 2"),
        ("talk.json", '[{"said": "Hello"}]', "`text` or `content`"),
        ("talk.jsonl", '{"text": "Hello"}\nBye\n', "talk.jsonl:2"),
        ("talk.json", "[" * 100_000, "talk.json"),
        ("talk.txt", b"Hello\nB\xffe\n", "talk.txt:2"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, name: str, text: str | bytes, said: str) -> None:
    with pytest.raises(InputError) as error:
        read_customer_turns(written(tmp_path, name, text))
    assert said in str(error.value)
    assert name in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        read_customer_turns(tmp_path / "nowhere.txt")


@given(st.lists(st.text(), min_size=1))
def test_any_messages_survive_as_json(tmp_path_factory: pytest.TempPathFactory, said: list[str]) -> None:
    folder = tmp_path_factory.mktemp("talk")
    as_list = written(folder, "talk.json", json.dumps(said))
    as_lines = written(folder, "talk.jsonl", "\n".join(json.dumps({"text": text}) for text in said))
    assert read_customer_turns(as_list) == read_customer_turns(as_lines) == said


@given(st.binary())
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = written(tmp_path_factory.mktemp("talk"), "talk", data)
    try:
        turns = read_customer_turns(file)
    except InputError:
        return
    assert turns
    "".join(turns).encode()
