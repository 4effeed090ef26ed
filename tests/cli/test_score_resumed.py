"""`arq-graph score` that was stopped: the same command goes on, and another one is told apart."""

from __future__ import annotations

import json

import pytest

from tests.cli.score_files import chat, write_graph, write_json

CHECK = '''
from pathlib import Path

HERE = Path(__file__).parent


def asked(event, earlier):
    """Notes each conversation when it begins; stops at the one that the file `stop` names."""
    if not earlier:
        with (HERE / "log").open("a") as log:
            log.write(event.text + "\\n")
        stop = HERE / "stop"
        if stop.exists() and stop.read_text() == event.text:
            raise KeyboardInterrupt
    return "thank" in getattr(event, "text", "").lower()
'''
GRAPH = """
milestones:
- {name: Start, type: NFC}
- {name: thanked, type: NFC, check: "noting:asked", dependencies: [Start]}
- {name: buy, type: FC, dependencies: [Start]}
- {name: End, type: NFC, dependencies: [thanked]}
"""


class Shop:
    """A folder with ten conversations, one of them broken, and a check that notes which are scored."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "noting.py").write_text(CHECK)
        write_graph(folder / "shop.yaml", GRAPH)
        self.write_chats()

    def write_chats(self, **more):
        chats = [chat("buy", id=str(number), **more) for number in range(10)]
        for number, one in enumerate(chats):
            one["messages"][0]["content"] = f"customer {number}"
        chats[4] = {"some": "thing"}
        write_json(self.folder / "chats.json", chats)

    def stop_at(self, number):
        (self.folder / "stop").write_text(f"customer {number}")

    def go_on(self):
        (self.folder / "stop").unlink()

    def scored(self):
        """Which conversations were scored since this was last asked."""
        log = self.folder / "log"
        text = log.read_text() if log.exists() else ""
        log.write_text("")
        return [int(line.split()[1]) for line in text.splitlines()]

    def report(self, name="out.json"):
        return json.loads((self.folder / name).read_text())


COMMAND = ["score", "chats.json", "--milestones", "shop.yaml", "--json", "out.json"]


@pytest.fixture
def stopped(cli, folder):
    """A shop whose run was stopped while the eighth conversation was scored."""
    shop = Shop(folder)
    assert cli(*COMMAND[:-1], "undisturbed.json").code == 0
    assert shop.scored() == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    shop.stop_at(7)
    assert cli(*COMMAND).code == 130
    assert shop.scored() == [0, 1, 2, 3, 5, 6, 7]
    assert not (folder / "out.json").exists()
    shop.go_on()
    return shop


def test_the_same_command_goes_on_where_it_was_stopped(cli, stopped):
    done = cli(*COMMAND)
    assert done.code == 0
    assert "out.json.partial.jsonl holds 7 conversations of an earlier run" in done.words
    assert stopped.scored() == [7, 8, 9]
    assert stopped.report() == stopped.report("undisturbed.json")
    assert len(stopped.report()["conversations"]) == 9
    assert [one["record"] for one in stopped.report()["broken"]] == [4]
    assert not (stopped.folder / "out.json.partial.jsonl").exists()


def test_a_last_line_that_was_cut_off_is_scored_again(cli, stopped):
    kept = stopped.folder / "out.json.partial.jsonl"
    kept.write_bytes(kept.read_bytes()[:-20])
    assert cli(*COMMAND).code == 0
    assert stopped.scored() == [6, 7, 8, 9]
    assert stopped.report() == stopped.report("undisturbed.json")


def test_fresh_begins_again(cli, stopped):
    assert cli(*COMMAND, "--fresh").code == 0
    assert len(stopped.scored()) == 9
    assert stopped.report() == stopped.report("undisturbed.json")


def change_a_transcript(shop):
    shop.write_chats(use_case="another")


def change_the_graph(shop):
    write_graph(shop.folder / "shop.yaml", GRAPH.replace("thanked]", "thanked, buy]"))


def change_the_check(shop):
    (shop.folder / "noting.py").write_text(CHECK + "\n")


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (change_a_transcript, [], "the transcripts changed since"),
        (change_the_graph, [], "the milestones changed since"),
        (change_the_check, [], "the milestones changed since"),
        (None, ["--judge", "offline"], "the judge (was 'none', now 'offline model') changed since"),
        (
            None,
            ["--judge", "offline", "--votes", "3"],
            "the judge (was 'none', now 'offline model'), its settings",
        ),
        (
            None,
            ["--judge", "offline", "--date", "2024-05-15"],
            "the judge (was 'none', now 'offline model'), its settings",
        ),
        (None, ["--format", "openai"], "their format (was 'recognised', now 'openai') changed since"),
        (None, ["--tools", "tools.json"], "the tools changed since"),
    ],
)
def test_another_run_is_told_apart_and_says_what_to_do(cli, stopped, change, options, said):
    write_json(stopped.folder / "tools.json", {"buy": {}})
    if change:
        change(stopped)
    before = (stopped.folder / "out.json.partial.jsonl").read_bytes()
    done = cli(*COMMAND, *options)
    assert done.code == 1
    assert said in done.words
    assert "give --fresh to begin again" in done.words
    assert (stopped.folder / "out.json.partial.jsonl").read_bytes() == before
    assert stopped.scored() == []
    assert cli(*COMMAND, *options, "--fresh").code == 0
