"""Suites measured on a journey: what a file may say, and what the report shows."""

from pathlib import Path
from typing import Any

import pytest

from arq_graph import create_guided_agent
from arq_graph.errors import SpecError
from arq_graph.milestones import Scenario, Suite, UserSpec, evaluate, read_transcripts, score, write_html
from tests.brain import brain
from tests.journeys.returns import make_shop

FILES = {
    "agent.yaml": """\
name: Shop
profile: You sell lamps.
journeys:
- id: return
  condition: the customer wants to return an item
  steps:
  - {id: order, action: look the order up, tools: [desk:get_order]}
  - {id: reason, action: ask what is wrong, after: order}
  - {id: refund, condition: the item is faulty, action: refund it, after: reason, tools: [desk:refund]}
  - {id: close, action: sum up what was agreed, after: refund}
""",
    "desk.py": '''\
def get_order() -> str:
    """Look up the order."""
    return "a lamp"


def refund() -> str:
    """Refund it."""
    return "refunded"


class Desk:
    def refund(self) -> str:
        """Refund it."""
        return "refunded by the desk"
''',
    "suite.yaml": """\
name: returns
defaults: {agent: agent.yaml, journey: return}
scenarios:
- name: faulty
  task: lamps
  world: desk:Desk
  user: {intents: [My lamp is broken. I want to return it.]}
""",
}


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path / "suite.yaml"


def guide(scenario: Any, agent: Any, model: Any) -> Any:
    answers = brain(
        judge={"return": 9},
        call={"get_order": {}, "refund": {}},
        steps={"return-reason": {"asks_for_something": True, "answered_by": "M1"}},
    )
    return create_guided_agent(answers, agent)


def test_a_conversation_is_measured_on_the_journey_that_guided_it(suite_file: Path, tmp_path: Path):
    suite = Suite.from_yaml(suite_file)
    results = tmp_path / "results.jsonl"
    report = evaluate(suite, {"guided": guide}, results=results)
    (conversation,) = report.conversations
    reached = [milestone.name for milestone in conversation.reached]
    assert reached == ["Start", "order", "reason", "refund", "close", "End"]
    assert (conversation.goal_completed, conversation.undecided) == (True, ())
    assert list(report.graphs) == ["return"]
    # The file of results says it all, too.
    (transcript,) = read_transcripts(results)
    assert score(suite.scenarios[0].measured_graph, transcript).goal_completed is True
    write_html(tmp_path / "page.html", report)
    assert "when the item is faulty: refund it" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("journey: return", "journey: retrun", 4, "has no journey of id 'retrun'; did you mean `return`?"),
        ("agent: agent.yaml, ", "", 4, "has `journey`, but names no `agent`"),
        ("task: lamps", "goal: refnd", 5, "the goal 'refnd' isn't a milestone of its graph; did you mean"),
        (
            "task: lamps",
            "journey: return\n  milestones: graph.yaml",
            6,
            "milestones` cannot be combined with `journey`",
        ),
    ],
)
def test_what_is_wrong_with_a_journey_is_told_with_its_line(
    suite_file: Path, old: str, new: str, line: int, message: str
):
    suite_file.write_text(FILES["suite.yaml"].replace(old, new))
    with pytest.raises(SpecError) as error:
        Suite.from_yaml(suite_file)
    assert f"suite.yaml:{line}" in str(error.value)
    assert message in str(error.value)


def test_a_scenario_with_milestones_of_its_own_leaves_out_the_journey_of_the_defaults(suite_file: Path):
    milestones = "- {name: Start, type: NFC}\n- {name: refund, type: FC}\n"
    milestones += "- {name: End, type: NFC, dependencies: [refund]}\n"
    (suite_file.parent / "graph.yaml").write_text(milestones)
    suite_file.write_text(FILES["suite.yaml"].replace("task: lamps", "milestones: graph.yaml"))
    (scenario,) = Suite.from_yaml(suite_file).scenarios
    assert scenario.journey is None
    assert list(scenario.graph) == ["Start", "refund", "End"]


def test_a_scenario_in_python_names_a_journey_too():
    user = UserSpec(intents=["I want to return it."])
    assert "exchange" in Scenario(name="a", user=user, agent=make_shop(), journey="return").graph
    with pytest.raises(SpecError, match=r"`journey`.*no journey of id 'refund'"):
        Scenario(name="a", user=user, agent=make_shop(), journey="refund")
