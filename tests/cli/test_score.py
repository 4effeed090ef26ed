"""`arq-graph score`: what it prints and writes, and what it says about what it measures on."""

import json
import subprocess
import sys
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from arq_graph import OfflineChatModel
from arq_graph.cli.input_files import read_conversations
from arq_graph.milestones import read_report
from tests.cli.shop import make_endpoint_handler, options
from tests.reasoning.endpoint import Endpoint, refusal, status

GRAPH = """
milestones:
- {name: Start, type: NFC}
- {name: find, type: FC, dependencies: [Start]}
- {name: buy, type: FC, dependencies: [find]}
- {name: End, type: NFC, dependencies: [buy]}
"""
JUDGED = """
milestones:
- {name: Start, type: NFC}
- {name: thanked, type: NFC, description: The agent thanks the customer., dependencies: [Start]}
- {name: End, type: NFC, dependencies: [thanked]}
"""


def chat(
    *tools: str, id: str | None = None, says: str = "Thank you for your order.", **more: Any
) -> dict[str, Any]:
    """A recorded conversation in which these tools are called, one after the other."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "A lamp, please."}]
    for tool in tools:
        call = {"id": tool, "function": {"name": tool, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": tool, "content": "done"})
    messages.append({"role": "assistant", "content": says})
    return {"messages": messages, **({} if id is None else {"id": id}), **more}


def write_json(file: str, value: Any) -> str:
    """Write a file of the working directory."""
    Path(file).write_text(json.dumps(value), encoding="utf-8")
    return file


@pytest.fixture
def chats(folder):
    (folder / "shop.yaml").write_text(GRAPH)
    (folder / "judged.yaml").write_text(JUDGED)
    return write_json("chats.json", [chat("find", "buy", id="a"), chat("find", id="b"), chat(id="c")])


@pytest.fixture
def score(cli, chats):
    """Score files on the shop's milestones, and read the report."""

    def run(*arguments, code=0):
        result = cli("score", *arguments, "--milestones", "shop.yaml", "--json", "out.json")
        assert result.code == code, result.err
        return result, read_report("out.json")

    return run


def test_conversations_are_scored_printed_and_written(score, folder, chats):
    result, report = score(chats, "--html", "out.html")
    assert result.out.startswith("3 conversations")
    assert "The report is in out.json." in result.err
    assert [record.id for record in report.conversations] == ["a", "b", "c"]
    assert [record.goal_completed for record in report.conversations] == [True, False, False]
    # Three steps of the same weight: find, buy, End.
    assert [record.progress_rate for record in report.conversations] == [1, 1 / 3, 0]
    assert [record.source for record in report.conversations] == ["chats.json"] * 3
    assert list(report.graphs) == ["shop"]
    assert "A lamp, please." in (folder / "out.html").read_text(encoding="utf-8")
    names = ["chats.json", "judged.yaml", "out.html", "out.json", "shop.yaml"]
    assert sorted(file.name for file in folder.iterdir()) == names


def test_broken_records_are_named_and_counted_and_do_not_stop_the_rest(score, folder):
    broken = chat("find")
    del broken["messages"][1]["tool_calls"][0]["function"]["arguments"]
    records = [json.dumps(chat("find", "buy")), json.dumps(broken), '{"some": "thing"}', '{"messages": [']
    odd = json.dumps(chat("find", id="\ud800\u2028", use_case="\udfff", says="\ud800</script>\0"))
    (folder / "chats.jsonl").write_text("\n".join([*records, odd]))
    result, report = score("chats.jsonl", code=1)
    assert "chats.jsonl: record 1: message 1: the call of 'find' has no arguments" in result.words
    assert "chats.jsonl: record 2: unknown format" in result.words
    assert "chats.jsonl: record 3: not JSON" in result.words
    assert "2 conversations, 3 records could not be scored" in result.out
    assert [record.record for record in report.conversations] == [0, 4]
    assert [record.record for record in report.broken] == [1, 2, 3]


def test_a_file_or_a_thread_that_cannot_be_read_does_not_stop_the_others(score, folder, chats):
    (folder / "cut.json").write_bytes(b'[{"messages": "\xff')
    with SqliteSaver.from_conn_string("other.sqlite") as threads:
        other = StateGraph(dict[str, Any]).add_node("talk", lambda _: {}).add_edge(START, "talk")
        other.compile(checkpointer=threads).invoke({"x": 1}, {"configurable": {"thread_id": "odd"}})
    result, report = score("cut.json", "other.sqlite", chats, code=1)
    assert len(report.conversations) == 3
    assert [(record.source, record.record) for record in report.broken] == [
        ("cut.json", None),
        ("other.sqlite", 0),
    ]
    assert "cut.json is not UTF-8 text" in result.words and "thread 'odd'" in result.words


def test_several_files_and_several_use_cases(cli, chats, folder):
    (folder / "buying.yaml").write_text(GRAPH)
    cases = [chat("find", use_case="buying"), chat(use_case="greeting"), chat(use_case="flying")]
    write_json("first.json", cases)
    write_json("second.json", [chat("find", use_case="buying")])
    graphs = ["--milestones", "buying.yaml", "--milestones", "greeting=judged.yaml"]
    result = cli("score", "first.json", "second.json", *graphs, "--json", "out.json")
    assert result.code == 1, result.err
    report = read_report("out.json")
    assert [(record.source, record.record, record.graph) for record in report.conversations] == [
        ("first.json", 0, "buying"),
        ("first.json", 1, "greeting"),
        ("second.json", 0, "buying"),
    ]
    assert "first.json: record 2: its `use_case` is 'flying', and there are" in result.words
    assert list(report.summary.use_cases) == ["buying", "greeting"]


def test_the_tools_may_come_from_the_agent_s_file(cli, shop, chats):
    result = cli("score", chats, "--milestones", "shop.yaml", "--agent", shop)
    assert result.code == 1
    assert "the agent has no tool" in result.words


def test_undecided_milestones_give_a_range_and_a_hint_and_the_offline_judge_is_marked(cli, chats):
    result = cli("score", chats, "--milestones", "judged.yaml")
    assert result.code == 0
    # Thanked and End: nothing is reached for certain, everything perhaps.
    assert "0.00 to 1.00" in result.out
    assert "thanked" in result.err
    assert "--judge MODEL or a `check:` in the milestone file decides" in result.words
    judged = cli("score", chats, "--milestones", "judged.yaml", "--judge", "offline")
    assert judged.code == 0
    assert judged.words.startswith("No evidence: the judge was a fake.")


def judge_options(endpoint):
    _, name, option, url = options(endpoint)
    return ["--judge", name, option, url]


def test_scores_are_saved_and_the_same_command_scores_the_rest(cli, chats, folder):
    write_json("chats.json", [chat(id=str(number)) for number in range(12)])
    answers = make_endpoint_handler(OfflineChatModel())
    command = ["score", chats, "--milestones", "judged.yaml", "--json", "out.json", "--concurrency", "1"]
    replies = chain([answers] * 5, repeat(lambda _: status(401, "revoked")))
    with Endpoint(lambda request: next(replies)(request)) as endpoint:
        broken = cli(*command, *judge_options(endpoint))
        assert (broken.code, endpoint.calls <= 5 + 3) == (3, True)
        assert "revoked" in broken.words
        assert "saved in out.json.partial.jsonl: the same command continues" in broken.words
        assert not (folder / "out.json").exists()

        replies = chain([lambda _: refusal("no")], repeat(answers))
        before = endpoint.calls
        refused = cli(*command, *judge_options(endpoint))
        assert "the judge gave no answer about 1 conversation" in refused.words
        assert (len(read_report("out.json").conversations), endpoint.calls - before) == (11, 7)

        (folder / "judged.yaml").write_text(JUDGED.replace("thanks", "thanked"))
        other = cli(*command, *judge_options(endpoint), "--votes", "3")
        assert (other.code, endpoint.calls - before) == (1, 7)
        assert "the milestones" in other.words and "its votes (was " in other.words
        (folder / "judged.yaml").write_text(JUDGED)
        assert (cli(*command, *judge_options(endpoint)).code, endpoint.calls - before) == (0, 8)
    assert len(read_report("out.json").conversations) == 12
    assert not (folder / "out.json.partial.jsonl").exists()


def test_saved_threads_are_scored(cli, score, shop):
    cli("run", shop, "-c", "-", "--model", "offline", stdin="Where is my order B-1?\nThanks!\n")
    _, report = score(".arq_graph/threads.sqlite")
    (record,) = report.conversations
    assert (record.turns, record.calls, record.unanswered_calls) == (2, 1, ())
    message = cli("turns", ".arq_graph/threads.sqlite").words
    assert "read as JSON or JSON Lines; a file of threads only by `arq-graph score`" in message


@pytest.mark.slow
def test_scoring_loads_neither_langgraph_nor_a_providers_client(chats):
    code = """
import sys
from arq_graph.cli import main
try:
    main(["score", "chats.json", "--milestones", "shop.yaml"])
except SystemExit as ended:
    print(ended.code, [name for name in ("langgraph", "langchain_openai", "openai") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


@pytest.mark.slow
def test_several_processes_score_what_one_scores(cli, chats, folder):
    lines = [json.dumps({"arq_graph": "evaluation", "of": {"the agent's model": "offline"}})]
    for number in range(250):
        lines.append(json.dumps(chat(*("find", "buy")[: number % 3], id=f"chat {number}")))
    lines.insert(7, "{broken")
    (folder / "a.jsonl").write_text("\n".join(lines))
    (folder / "b.jsonl").write_text("\n".join(lines[1:20]))
    score = ["score", "a.jsonl", "b.jsonl", "--milestones", "shop.yaml", "--processes"]
    alone = cli(*score, "1", "--json", "alone.json")
    together = cli(*score, "3", "--json", "together.json")
    assert (together.code, len(together.out)) == (alone.code, len(alone.out))
    assert (folder / "together.json").read_text() == (folder / "alone.json").read_text()
    assert "the agent's model was a fake" in together.words
    assert not list(folder.glob("*.partial.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("graph", [("--milestones", "shop.yaml"), ("--journey", "lamps")])
def test_several_processes_know_the_tools_of_an_agent(cli, chats, folder, graph):
    code = "def find(name: str):\n    'Find a lamp.'\ndef buy():\n    'Buy it.'\n"
    (folder / "lamps.py").write_text(code)
    (folder / "agent.yaml").write_text("""
name: Lamps
profile: You sell lamps.
tools: [lamps:find, lamps:buy]
journeys:
- {id: lamps, condition: always, steps: [{id: find, action: find the lamp, tools: ["lamps:find"]}]}
""")
    score = ["score", chats, "--agent", "agent.yaml", *graph, "--processes"]
    alone = cli(*score, "1", "--json", "alone.json")
    together = cli(*score, "2", "--json", "together.json")
    assert (together.code, alone.code) == (0, 0), together.words
    assert (folder / "together.json").read_text() == (folder / "alone.json").read_text()


@pytest.mark.slow
def test_an_error_in_one_of_several_processes_is_reported_as_it_is(cli, chats, folder):
    child_error = (
        "import multiprocessing\nif multiprocessing.parent_process():\n    raise OSError('no licence')\n"
    )
    (folder / "licensed.py").write_text(f"{child_error}def find(call): return True\n")
    (folder / "licensed.yaml").write_text(GRAPH.replace("type: FC", "type: NFC, check: 'licensed:find'", 1))
    result = cli("score", chats, "--milestones", "licensed.yaml", "--processes", "2")
    assert result.code == 1
    assert "no licence" in result.words
    assert "want of memory" not in result.words


def test_a_file_that_vanishes_is_a_broken_record(folder):
    [record] = read_conversations([folder / "gone.jsonl"])
    assert "gone.jsonl cannot be read: No such file" in str(record.error)
