"""Files that are broken, hostile or of another kind: said clearly, and nothing that can be scored is lost."""

from __future__ import annotations

import json

import pytest

from arq_graph.milestones.reports.report import read_report
from tests.cli.score_files import chat, write_graph, write_json, write_lines


@pytest.fixture
def graph(folder):
    return write_graph(folder / "shop.yaml")


def scored(done):
    assert done.code == 0, done.err
    return [(one.source, one.record) for one in read_report("out.json").conversations]


def test_a_file_cut_off_in_its_middle_keeps_what_is_whole(cli, folder, graph):
    whole = json.dumps([chat("find", "buy"), chat("find"), chat("buy")])
    file = folder / "chats.json"
    file.write_text(whole[:-60])
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 1)]
    assert f"{file}: record 2: cut off, the file ends in the middle of it" in done.words


def test_a_line_that_is_no_json_does_not_stop_the_others(cli, folder, graph):
    file = write_lines(folder / "chats.jsonl", [chat("find"), chat("buy")])
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], '{"messages": [', lines[1]]))
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 2)]
    assert f"{file}: record 1: no JSON" in done.words


def test_a_transcript_of_another_format_than_said_is_named(cli, folder, graph):
    file = write_json(folder / "chats.json", [chat("find")])
    done = cli("score", file, "--milestones", graph, "--format", "tau-bench")
    assert done.code == 1
    assert f"{file}: record 0: no tau-bench result" in done.words


def test_one_record_of_another_format_is_recognised_by_itself(cli, folder, graph):
    steps = {
        "Conversation": {
            "Step 1_H": "Human: A lamp, please.",
            "Int_Step 1.1": "Tool: find, Tool_Inputs: {}, Observation: done",
            "Step 1_A": "AI: Here.",
        }
    }
    file = write_json(folder / "chats.json", [chat("find"), steps])
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 1)]
    assert [one.progress_rate for one in read_report("out.json").conversations] == [1 / 3, 1 / 3]


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
        (b'{"messages": "' + b"a" * 100, "cut off"),
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


def test_a_yaml_bomb_is_refused_at_once(cli, folder):
    chats = write_json(folder / "chats.json", [chat("find")])
    lines = ["a0: &a0 [lol]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    file = write_graph(folder / "bomb.yaml", "\n".join([*lines, "milestones: *a11", ""]))
    done = cli("score", chats, "--milestones", file)
    assert done.code == 1
    assert f"{file}:1: anchors (&) and aliases (*) are not supported" in done.words


def test_a_milestone_file_that_is_nested_without_end_is_refused(cli, folder):
    chats = write_json(folder / "chats.json", [chat("find")])
    file = write_graph(folder / "deep.yaml", "milestones: " + "[" * 100_000)
    done = cli("score", chats, "--milestones", file)
    assert done.code == 1
    assert f"{file}:1: nested more than 40 deep" in done.words


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


def test_a_check_of_the_user_s_own_that_fails_breaks_its_record(cli, folder):
    (folder / "fragile.py").write_text("def check(event, earlier):\n    return 1 / (len(event.text) - 3)\n")
    file = write_graph(
        folder / "fragile.yaml",
        "milestones:\n- {name: Start, type: NFC}\n- {name: odd, type: NFC, check: 'fragile:check'}\n"
        "- {name: End, type: NFC, dependencies: [odd]}\n",
    )
    chats = write_json(folder / "chats.json", [chat(says="abc"), chat(says="abcd")])
    done = cli("score", chats, "--milestones", file, "--json", "out.json")
    assert scored(done) == [(str(chats), 1)]
    assert "record 0" in done.words
    assert "ZeroDivisionError" in done.words


def test_text_that_no_encoding_has_is_scored_and_written(cli, folder, graph):
    odd = chat("find", "buy", id="\ud800\u2028", use_case="\udfff", says="\ud800</script>\0")
    file = write_json(folder / "chats.json", [odd, chat("find", id="b")])
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 1)]


@pytest.mark.parametrize(
    "actions", [None, "none", 7, {"name": "buy"}, ["buy"], [{"kwargs": {}}], [{"name": "buy", "kwargs": [1]}]]
)
def test_gold_actions_that_are_none_break_their_record(cli, folder, actions):
    messages = chat("buy")["messages"]
    good = {"traj": messages, "task_id": 1, "info": {"task": {"actions": [{"name": "buy", "kwargs": {}}]}}}
    odd = {"traj": messages, "task_id": 2, "info": {"task": {"actions": actions}}}
    file = write_json(folder / "runs.json", [odd, good, {"traj": messages}])
    done = cli("score", file, "--gold", "unordered", "--json", "out.json")
    assert scored(done) == [(str(file), 1)]
    assert f"{file}: record 0: " in done.words
    assert f"{file}: record 2: the record holds no list of gold actions" in done.words


@pytest.mark.parametrize("content", ["", "[1]", '"a"', "[{}]", "{", "null"])
def test_tools_that_are_none_are_said(cli, folder, graph, content):
    chats = write_json(folder / "chats.json", [chat("find")])
    (folder / "tools.json").write_text(content)
    done = cli("score", chats, "--milestones", graph, "--tools", "tools.json")
    assert done.code == 1
    assert "tools.json" in done.words
    assert "unexpected" not in done.words
