"""Checks and takeover on the command line."""

from pathlib import Path
from typing import Any

from tests.cli.shop import AGENT

FURTHER = """
- id: person
  condition: the customer wants a person
  action: hand the customer over
  tools: [hand_over]
checks:
- {on: input, by: guard:is_polite, then: reply, text: Please stay polite.}
handed_over: Ann will answer you here.
"""
JUDGE = {"person": lambda prompt: 9 if "person" in prompt.lines[-1].get("text", "") else 2}
CALL = {"hand_over": {"reason": "They want a person."}}
CHANGES: dict[str, Any] = {"judge": JUDGE, "call": CALL}


def write_desk(shop: Path) -> Path:
    guidelines, confirm, rest = AGENT.partition("confirm:")
    shop.write_text(guidelines.rstrip() + FURTHER + confirm + rest)
    shop.with_name("guard.py").write_text(
        "def is_polite(text: str) -> bool:\n    return 'idiot' not in text\n"
    )
    return shop


def test_a_chat_lets_one_type_as_the_colleague_until_it_gives_the_conversation_back(served, shop):
    agent = write_desk(shop)
    typed = "A person, please\nHello?\n/colleague I am Ann.\n/give-back\nThanks\n/why\n"
    result = served("chat", agent, "--thread", "t1", stdin=typed, **CHANGES)
    assert result.code == 0, result.err
    assert "Ann will answer you here." in result.out
    assert "handed over to a person by the agent · They want a person." in result.words
    assert result.words.count("asked A person, please") == 1  # not again with each turn that waits
    assert "/give-back gives the conversation back" in result.out
    assert "The agent answers again." in result.err
    assert "You said: Thanks" in result.out
    assert result.out.index("Hello?") < result.out.index("You said: Thanks")
    assert "You said: Hello?" not in result.out


def test_a_colleague_can_take_over_unasked_and_a_chat_that_goes_on_says_so(served, shop):
    agent = write_desk(shop)
    served("chat", agent, "--thread", "t1", stdin="Where is B-1?\n/colleague Let me see.\n")
    result = served("chat", agent, "--thread", "t1", stdin="Hello?\n")
    assert "handed over to a person by a colleague" in result.words
    assert "You said: Hello?" not in result.out


def test_a_run_stops_at_a_takeover_and_says_how_to_go_on(served, cli, shop, folder):
    agent = write_desk(shop)
    (folder / "talk.txt").write_text("A person, please\nHello?\n")
    run = ("run", agent, "--conversation", "talk.txt", "--thread", "t1")
    result = served(*run, **CHANGES)
    assert result.code == 4
    (record,) = result.lines
    assert record["reply"] == "Ann will answer you here."
    assert record["takeover"]["reason"] == "They want a person."
    assert "chat agent.yaml" in record["what_to_do"].replace(str(folder) + "/", "")
    again = served(*run, **CHANGES)
    assert (again.code, again.lines) == (4, [])
    assert "was handed over to a person" in again.words
    explained = cli("explain", "--thread", "t1")
    assert "handed over to a person by the agent" in explained.words
    assert "is_polite (input) passed" in explained.words


def test_a_failed_check_is_shown_and_a_check_that_cannot_be_loaded_is_reported(served, cli, shop):
    agent = write_desk(shop)
    result = served("chat", agent, stdin="You idiot\n")
    assert "is_polite (input) failed: reply" in result.words
    assert "Please stay polite." in result.out
    listed = cli("check", agent)
    assert "Checks (1)" in listed.out
    agent.write_text(agent.read_text().replace("guard:is_polite", "guard:is_polit"))
    broken = cli("check", agent)
    assert broken.code == 1
    assert "`checks[0].by` names 'guard:is_polit'" in broken.words
    assert "did you mean `is_polite`?" in broken.words
