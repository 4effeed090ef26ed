"""Files that are broken, hostile or of another kind: said clearly, and nothing that can be scored is lost."""

from __future__ import annotations

import pytest

from arq_graph.milestones.reports.report import read_report
from tests.cli.score_files import chat, write_graph, write_json, write_lines


@pytest.fixture
def graph(folder):
    return write_graph(folder / "shop.yaml")


def scored(done):
    assert done.code == 0, done.err
    return [(one.source, one.record) for one in read_report("out.json").conversations]


def test_a_line_that_is_no_json_does_not_stop_the_others(cli, folder, graph):
    file = write_lines(folder / "chats.jsonl", [chat("find"), chat("buy")])
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], '{"messages": [', lines[1]]))
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 2)]
    assert f"{file}: record 1: no JSON" in done.words


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\t ", "is empty"),
        (b"hello there", "no JSON"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"[" * 5000, "nested too deeply"),
        (b"[]", "there is no conversation"),
        (b"[{}]", "no known format"),
        (b'[{"messages": []}]', "the conversation is empty"),
        (b'{"messages": "' + b"a" * 100, "Unterminated"),
        (b"\0" * 100, "no JSON"),
    ],
)
def test_a_file_out_of_which_nothing_can_be_read_is_wrong_input(cli, folder, graph, content, said):
    file = folder / "chats.json"
    file.write_bytes(content)
    done = cli("score", file, "--milestones", graph, "--json", "out.json", "--html", "out.html")
    assert done.code == 1
    assert said in done.words
    assert "unexpected" not in done.words
    assert sorted(each.name for each in folder.iterdir()) == ["chats.json", "shop.yaml"]


def test_one_file_that_cannot_be_read_does_not_stop_the_next(cli, folder, graph):
    (folder / "empty.json").write_text("")
    file = write_json(folder / "chats.json", [chat("find")])
    done = cli("score", "empty.json", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0)]
    assert "empty.json is empty" in done.words


def test_a_check_that_backtracks_for_ever_breaks_its_record_and_the_rest_goes_on(cli, folder):
    file = write_graph(
        folder / "slow.yaml",
        "milestones:\n- {name: Start, type: NFC}\n"
        "- {name: sighed, type: NFC, check: {said_by: agent, pattern: '^(a|aa)+$'}}\n"
        "- {name: End, type: NFC, dependencies: [sighed]}\n",
    )
    chats = write_json(folder / "chats.json", [chat(says="a" * 80 + "b"), chat(says="aaa")])
    done = cli("score", chats, "--milestones", file, "--json", "out.json")
    assert scored(done) == [(str(chats), 1)]
    assert f"{chats}: record 0: {file}:3: milestone 'sighed'" in done.words
    assert "still searching after 1 s" in done.words


def test_text_that_no_encoding_has_is_scored_and_written(cli, folder, graph):
    odd = chat("find", "buy", id="\ud800\u2028", use_case="\udfff", says="\ud800</script>\0")
    file = write_json(folder / "chats.json", [odd, chat("find", id="b")])
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 1)]


@pytest.mark.parametrize("content", ["", "[1]", '"a"', "[{}]", "{", "null"])
def test_tools_that_are_none_are_said(cli, folder, graph, content):
    chats = write_json(folder / "chats.json", [chat("find")])
    (folder / "tools.json").write_text(content)
    done = cli("score", chats, "--milestones", graph, "--tools", "tools.json")
    assert done.code == 1
    assert "tools.json" in done.words
    assert "unexpected" not in done.words
