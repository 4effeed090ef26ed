"""`arq-graph score` that was stopped: the same command goes on, and another one is told apart."""

from __future__ import annotations

import pytest

from tests.cli.score_files import chat, write_json

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
COMMAND = ["score", "chats.json", "--milestones", "shop.yaml", "--json", "out.json"]


def write_chats(**more):
    chats = [chat("buy", id=str(number), **more) for number in range(10)]
    for number, one in enumerate(chats):
        one["messages"][0]["content"] = f"customer {number}"
    write_json("chats.json", [*chats[:4], {"some": "thing"}, *chats[5:]])


def scored(folder):
    """Which conversations were scored since this was last asked."""
    text = (folder / "log").read_text()
    (folder / "log").write_text("")
    return [int(line.split()[1]) for line in text.splitlines()]


@pytest.fixture
def stopped(cli, folder):
    """A run over ten conversations, one of them broken, that was stopped while the eighth was scored."""
    (folder / "noting.py").write_text(CHECK)
    (folder / "shop.yaml").write_text(GRAPH)
    write_chats()
    assert cli(*COMMAND[:-1], "undisturbed.json").code == 0
    assert scored(folder) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    (folder / "stop").write_text("customer 7")
    assert cli(*COMMAND).code == 130
    (folder / "stop").unlink()
    assert scored(folder) == [0, 1, 2, 3, 5, 6, 7]
    assert not (folder / "out.json").exists()
    return folder


def test_the_same_command_goes_on_where_it_was_stopped(cli, stopped):
    done = cli(*COMMAND)
    assert done.code == 0
    assert "out.json.partial.jsonl holds 6 conversations of an earlier run" in done.words
    assert scored(stopped) == [7, 8, 9]
    assert (stopped / "out.json").read_text() == (stopped / "undisturbed.json").read_text()
    assert not (stopped / "out.json.partial.jsonl").exists()


def test_another_run_is_told_apart_and_says_what_to_do(cli, stopped):
    write_json("tools.json", {"buy": {}})
    before = (stopped / "out.json.partial.jsonl").read_bytes()
    (stopped / "noting.py").write_text(CHECK + "\n")
    write_chats(use_case="another")
    done = cli(*COMMAND, "--judge", "offline", "--tools", "tools.json")
    assert done.code == 1
    for said in ("transcripts", "milestones", "tools", "judge (was 'none', now 'offline model')"):
        assert f"the {said}" in done.words
    assert "move this one away" in done.words
    assert (stopped / "out.json.partial.jsonl").read_bytes() == before
    assert scored(stopped) == []
