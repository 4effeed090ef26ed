"""`arq-graph score` and `milestones` on an agent's journey."""

import json
from pathlib import Path

import pytest

AGENT = """\
name: Bike shop
profile: You repair bikes.
journeys:
- id: repair
  condition: the customer has a broken bike
  steps:
  - {id: find, action: look the bike up, tools: [bikes:find_bike]}
  - {id: agree, action: ask whether to repair it, after: find}
  - {id: spare, condition: a part is missing, action: order it, after: agree, tools: [bikes:order_part]}
  - {id: end, action: say when it is ready, after: spare}
"""
BIKES = '''
def find_bike() -> str:
    """Find a bike."""
    return "found"


def order_part() -> str:
    """Order a part."""
    return "ordered"
'''
CHAT = [
    {"role": "user", "content": "My bike is broken."},
    {"role": "assistant", "tool_calls": [{"id": "1", "name": "find_bike", "arguments": {}}]},
    {"role": "tool", "tool_call_id": "1", "content": "found"},
    {"role": "assistant", "content": "Shall I repair it?"},
]


@pytest.fixture
def agent(folder: Path) -> Path:
    (folder / "bikes.py").write_text(BIKES)
    (folder / "agent.yaml").write_text(AGENT)
    (folder / "chats.json").write_text(json.dumps([{"messages": CHAT}]))
    return folder / "agent.yaml"


def test_recorded_conversations_are_measured_on_a_journey(cli, agent: Path):
    result = cli("score", "chats.json", "--agent", agent, "--journey", "repair", "--json", "report.json")
    assert result.code == 0, result.words
    report = json.loads((agent.parent / "report.json").read_text())
    assert list(report["graphs"]) == ["repair"]
    assert [reached["name"] for reached in report["conversations"][0]["reached"]] == ["Start", "find"]
    assert "Nothing decides whether these were observed: agree; end" in result.words


def test_the_milestones_of_a_journey_are_checked_and_drawn(cli, agent: Path):
    checked = cli("milestones", "check", agent, "--journey", "repair", "--agent", agent)
    assert (
        "6 milestones: 2 FC, 4 NFC (1 optional) · 2 decided by the agent's notes, or else by a judge"
        in checked.words
    )
    assert cli("milestones", "draw", agent, "--journey", "repair").out.count("-->") == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name what is to be reached: --milestones FILE, or --agent AGENT.yaml --journey ID"),
        (["--journey", "repair"], "name its file, too: --agent AGENT.yaml"),
        (
            ["--agent", "agent.yaml", "--journey", "repaid"],
            "no journey of id 'repaid'; did you mean `repair`?",
        ),
        (["--journey", "repair", "--milestones", "goals.yaml"], "takes the place of --milestones"),
    ],
)
def test_what_is_missing_to_measure_on_a_journey_is_told(cli, agent: Path, arguments, message):
    result = cli("score", "chats.json", *arguments)
    assert result.code in (1, 2)
    assert message in result.words
