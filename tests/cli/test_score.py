"""`arq-graph score`: what it prints and writes, and what it says about what it measures on."""

from __future__ import annotations

import json

import pytest

from arq_graph import OfflineChatModel
from arq_graph.milestones.reports.report import read_report
from tests.cli.score_files import JUDGED, chat, write_graph, write_json, write_lines
from tests.cli.shop import options, serving
from tests.reasoning.endpoint import Endpoint, status


@pytest.fixture
def graph(folder):
    return write_graph(folder / "shop.yaml")


@pytest.fixture
def chats(folder):
    return write_json(
        folder / "chats.json", [chat("find", "buy", id="a"), chat("find", id="b"), chat(id="c")]
    )


def judge(endpoint):
    named = dict(zip(options(endpoint)[::2], options(endpoint)[1::2], strict=True))
    return ["--judge", named["--model"], "--base-url", named["--base-url"]]


def test_conversations_are_scored_printed_and_written(cli, folder, chats, graph):
    done = cli("score", chats, "--milestones", graph, "--json", "out.json")
    assert done.code == 0, done.err
    assert done.out.startswith("3 conversations")
    assert "The report is in out.json." in done.err
    report = read_report("out.json")
    assert [one.id for one in report.conversations] == ["a", "b", "c"]
    assert [one.goal_completed for one in report.conversations] == [True, False, False]
    # Three steps of the same weight: find, buy, End.
    assert [one.progress_rate for one in report.conversations] == [1, 1 / 3, 0]
    assert [one.source for one in report.conversations] == [str(chats)] * 3
    assert report.summary.overall.goal_completion.count == 1
    assert list(report.graphs) == ["shop"]
    assert sorted(each.name for each in folder.iterdir()) == ["chats.json", "out.json", "shop.yaml"]


def test_a_page_is_written(cli, folder, chats, graph):
    done = cli("score", chats, "--milestones", graph, "--html", "out.html")
    assert done.code == 0, done.err
    page = (folder / "out.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "A lamp, please." in page
    assert "The page is in out.html." in done.err


def test_broken_records_are_named_and_counted_and_do_not_stop_the_rest(cli, folder, graph):
    broken = chat("find")
    del broken["messages"][1]["tool_calls"][0]["function"]["arguments"]
    file = write_json(folder / "chats.json", [chat("find", "buy"), broken, {"some": "thing"}])
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert done.code == 0
    assert f"{file}: record 1: message 1: the call of 'find' has no arguments" in done.words
    assert f"{file}: record 2: no known format" in done.words
    assert "1 conversation, 2 records could not be scored" in done.out
    assert [one.record for one in read_report("out.json").broken] == [1, 2]


def test_several_files_and_several_use_cases(cli, folder):
    write_graph(folder / "buying.yaml")
    write_graph(folder / "other.yaml", JUDGED.replace("thanked", "greeted"))
    first = write_lines(
        folder / "first.jsonl",
        [chat("find", "buy", use_case="buying"), chat(use_case="greeting"), chat(use_case="flying")],
    )
    second = write_json(folder / "second.json", [chat("find", use_case="buying")])
    graphs = ["--milestones", "buying.yaml", "--milestones", "greeting=other.yaml"]
    done = cli("score", first, second, *graphs, "--json", "out.json")
    assert done.code == 0, done.err
    report = read_report("out.json")
    assert [(one.source, one.record, one.graph) for one in report.conversations] == [
        (str(first), 0, "buying"),
        (str(first), 1, "greeting"),
        (str(second), 0, "buying"),
    ]
    assert "first.jsonl: record 2: there is no milestone graph for its use case 'flying'" in done.words
    assert list(report.summary.use_cases) == ["buying", "greeting"]


@pytest.mark.parametrize(("order", "completed"), [("unordered", True), ("ordered", False)])
def test_gold_actions_of_the_records_are_measured_on(cli, folder, order, completed):
    actions = [{"name": "buy", "kwargs": {}}, {"name": "find", "kwargs": {}}]
    run = {
        "traj": chat("find", "buy")["messages"],
        "task_id": 7,
        "reward": 1,
        "info": {"task": {"actions": actions}},
    }
    file = write_json(folder / "runs.json", [{**run, "trial": trial} for trial in range(2)])
    done = cli("score", file, "--gold", order, "--json", "out.json")
    assert done.code == 0, done.err
    report = read_report("out.json")
    assert [one.goal_completed for one in report.conversations] == [completed] * 2
    assert [one.graph for one in report.conversations] == ["task 7"] * 2
    assert list(report.graphs) == ["task 7"]
    assert "pass^k" in done.out


def test_the_tools_may_come_from_the_agent_s_file(cli, shop, folder, chats):
    file = write_graph(folder / "graph.yaml")
    done = cli("score", chats, "--milestones", file, "--agent", shop)
    assert done.code == 1
    assert "is no tool of the agent" in done.words


def test_what_nobody_decides_is_a_range_with_a_hint(cli, folder, chats):
    file = write_graph(folder / "judged.yaml", JUDGED)
    done = cli("score", chats, "--milestones", file, "--json", "out.json")
    assert done.code == 0
    # Thanked and End: nothing is reached for certain, everything perhaps.
    assert [one.progress_range for one in read_report("out.json").conversations] == [(0, 1)] * 3
    assert "0.00 to 1.00" in done.out
    assert "thanked" in done.err
    assert "--judge MODEL decides" in done.words


def test_a_judge_whose_key_is_wrong_ends_the_run_and_what_was_scored_is_kept(cli, folder):
    file = write_graph(folder / "judged.yaml", JUDGED)
    chats = write_json(folder / "chats.json", [chat(id=str(number)) for number in range(12)])
    answers = serving(OfflineChatModel())
    command = ["score", chats, "--milestones", file, "--json", "out.json", "--concurrency", "1"]
    with Endpoint(
        lambda request: answers(request) if endpoint.calls <= 5 else status(401, "revoked")
    ) as endpoint:
        named = judge(endpoint)
        broken = cli(*command, *named)
        assert broken.code == 3
        assert "revoked" in broken.words
        assert (
            "5 conversations scored so far, kept in out.json.partial.jsonl: the same command goes on"
            in broken.words
        )
        assert not (folder / "out.json").exists()
        asked = endpoint.calls
        assert asked <= 5 + 3
    with Endpoint(answers) as again:
        again_named = [*named[:-1], again.base_url]
        other = cli(*command, *again_named)
        assert other.code == 1
        assert "the judge (was " in other.words
        assert again.calls == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--milestones FILE, or --gold"),
        (["--milestones", "shop.yaml", "--gold", "ordered"], "--milestones FILE, or --gold"),
        (["--milestones", "shop.yaml", "--votes", "3"], "name one with --judge"),
        (["--milestones", "shop.yaml", "--agent", "a.yaml", "--tools", "t.json"], "twice: give one"),
        (["--gold", "sorted"], "'sorted' is not one of"),
    ],
)
def test_a_wrong_command_line_is_wrong_usage(cli, chats, graph, options, said):
    done = cli("score", chats, *options)
    assert done.code == 2
    assert said in " ".join(done.err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.json", "--gold", "ordered"], "gone.json cannot be read"),
        ([".", "--gold", "ordered"], ". cannot be read"),
        (["chats.json", "--gold", "ordered", "--json", "no/such/out.json"], "cannot be written"),
        (["chats.json", "--gold", "ordered", "--json", "chats.json"], "must be different files"),
        (["chats.json", "--gold", "ordered", "--json", "a", "--html", "./a"], "must be different files"),
        (["chats.json", "--milestones", "shop.yaml", "--milestones", "shop=shop.yaml"], "'shop'"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_before_anything_runs(cli, chats, graph, arguments, said):
    done = cli("score", *arguments)
    assert done.code == 1
    assert said in done.words
    assert done.out == ""


def test_what_run_prints_and_the_threads_it_keeps_are_scored(cli, shop, folder, graph):
    (folder / "talk.txt").write_text("Where is my order B-1?\nThanks!\n")
    held = cli("run", shop, "-c", "talk.txt", "--model", "offline")
    (folder / "run.jsonl").write_text(held.out)
    for recorded in ("run.jsonl", ".arq_graph/threads.sqlite"):
        done = cli("score", recorded, "--milestones", graph, "--json", "out.json")
        assert done.code == 0, done.err
        assert "1 conversation\n" in done.out
        (one,) = json.loads((folder / "out.json").read_text())["conversations"]
        assert one["calls"] == 1


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
        (b"hello there", "no JSON"),
        (b"[]", "there is no conversation"),
        (b"[{}]", "no known format"),
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


def test_text_that_no_encoding_has_is_scored_and_written(cli, folder, graph):
    odd = chat("find", "buy", id="\ud800\u2028", use_case="\udfff", says="\ud800</script>\0")
    file = write_json(folder / "chats.json", [odd, chat("find", id="b")])
    done = cli("score", file, "--milestones", graph, "--json", "out.json")
    assert scored(done) == [(str(file), 0), (str(file), 1)]
