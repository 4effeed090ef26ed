"""`arq-graph experiment`: arms on a suite, the papers' tables, and a page."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from arq_graph.milestones import suites

AGENT = """
name: Florist
profile: You are a florist.
guidelines:
- {id: card, condition: the customer orders tulips, action: 'say "I recommend a card."'}
- {id: roses, condition: the customer asks about roses, action: 'say "We have red roses."'}
"""
SUITE = """
name: florist
defaults: {agent: agent.yaml}
scenarios:
- name: tulips
  use_case: orders
  probes: An order makes one of two guidelines active.
  says: I would like to order tulips.
  expect: {active: [card]}
- name: lilies
  use_case: questions
  says: Do you have lilies?
  expect: {active: [roses]}
- name: roses
  use_case: questions
  says: Do you have roses?
  expect: {says: [{pattern: "red roses"}], never: [card]}
- name: politely
  use_case: questions
  says: And roses for tomorrow?
  expect: {says: [{criterion: is polite}]}
"""
ROSES = """
- name: roses
  says: Do you have roses?
  expect: {says: [{pattern: "red roses"}]}
"""
ARMS = """
from langchain_core.messages import AIMessage

class Says:
    def __init__(self, text):
        self.text = text
    def invoke(self, given, config=None):
        return {"messages": [*given["messages"], AIMessage(self.text)]}

def knows(scenario, agent, model):
    return Says({"tulips": "active: card", "lilies": "active: roses"}.get(scenario.name, "We have red roses."))

def guesses(scenario, agent, model):
    return Says("active: card")
"""


@pytest.fixture
def suite(folder: Path) -> Path:
    for name, text in {"agent.yaml": AGENT, "suite.yaml": SUITE, "arms.py": ARMS}.items():
        (folder / name).write_text(text)
    return folder / "suite.yaml"


def rows(file: Path, title: str) -> dict[str, list[str]]:
    tables = {table["title"]: table for table in json.loads(file.read_text())["tables"]}
    return {row["name"]: row["cells"] for row in tables[title]["rows"]}


def test_the_arms_figures_stand_in_the_papers_tables(cli, suite, folder):
    done = cli(
        "experiment",
        suite,
        "--arms",
        "arms:knows,arms:guesses",
        "--runs",
        "2",
        "--model",
        "offline",
        "--record",
        "kept",
    )
    assert done.code == 0
    figures = folder / "kept" / "florist.json"
    success = rows(figures, "success")
    assert [cell.partition(" [")[0] for cell in success["matcher alone"]] == ["100%", "50%"]
    # One of two turns is only a judge's to decide.
    assert success["whole turn"] == ["50% to 100%", "0% to 50%"]
    assert list(rows(figures, "success by category")) == ["orders", "questions", "all"]
    assert "arms:knows → arms:guesses" in rows(figures, "arms in pairs")
    assert list(rows(figures, "where arms:knows and arms:guesses differ")) == ["questions"]
    assert "4 conversations undecided; give --judge to have them decided." in done.words
    assert "matcher alone 100%" in done.words
    page = (folder / "kept" / "florist.html").read_text()
    assert "where arms:knows and arms:guesses differ" in page
    assert "An order makes one of two guidelines active." in page


def test_the_page_shows_what_the_model_answered(cli, suite, folder):
    assert cli("experiment", suite, "--arms", "arq", "--model", "offline", "--record", "kept").code == 0
    assert "condition_application_rationale" in (folder / "kept" / "florist.html").read_text()


def test_published_figures_stand_beneath_those_of_the_same_arms(cli, suite, folder):
    # A folder of the library's own suites is told by its name alone; a suite of one's own has nothing published.
    done = cli("experiment", suite, "--model", "offline", "--arms", "arq,cot,direct", "--record", "kept")
    assert done.code == 0
    assert "published" not in done.out
    assert "No evidence: the agent's model was a stand-in." in done.words
    tokens = rows(folder / "kept" / "florist.json", "output tokens of a call")
    assert int(tokens["matcher"][0]) > int(tokens["matcher"][2])


def test_a_run_goes_on_and_comes_to_the_same(cli, suite, folder):
    options = ("--model", "offline", "--arms", "arms:knows,arms:guesses")
    assert cli("experiment", suite, *options, "--runs", "2", "--record", "whole").code == 0
    assert cli("experiment", suite, *options, "--record", "parts").code == 0
    assert cli("experiment", suite, *options, "--runs", "2", "--record", "parts").code == 1
    assert cli("experiment", suite, *options, "--runs", "2", "--record", "parts", "--resume").code == 0
    whole, parts = (
        json.loads((folder / name / "florist.json").read_text())["tables"] for name in ("whole", "parts")
    )
    assert whole == parts


def test_a_recorded_run_is_replayed_without_a_model_and_comes_to_the_same(cli, suite, folder):
    arms = ("--arms", "arq,direct")
    assert (
        cli("experiment", suite, *arms, "--model", "offline", "--judge", "offline", "--record", "kept").code
        == 0
    )
    again = cli("experiment", suite, *arms, "--replay", "kept", "--record", "again")
    assert again.code == 0
    assert (folder / "again" / "florist.json").read_bytes() == (folder / "kept" / "florist.json").read_bytes()
    agent = folder / "agent.yaml"
    agent.write_text(
        agent.read_text().replace("the customer orders tulips", "the customer orders any tulips")
    )
    changed = cli("experiment", suite, *arms, "--replay", "kept", "--record", "changed")
    assert changed.code != 0
    assert "differs from what it was" in changed.words


QUERIES = {
    "condition",
    "condition_application_rationale",
    "condition_applies",
    "could_a_tool_change_that",
    "application",
    "action",
    "guideline_is_continuous",
    "guideline_previously_applied_rationale",
    "new_or_subtly_different_context",
    "guideline_previously_applied",
    "is_missing_part_cosmetic_or_functional",
}


def test_each_query_of_a_step_has_a_row_with_what_it_wins_and_costs(cli, suite, folder):
    suite.write_text(SUITE.partition("- name: lilies")[0])
    done = cli("experiment", suite, "--ablate", "matcher", "--model", "offline", "--record", "kept")
    assert done.code == 0
    figures = folder / "kept" / "florist.json"
    worth = rows(figures, "arq without a query of matcher")
    assert set(worth) == {"arq", *(f"-{query}" for query in QUERIES)}
    whole = int(worth.pop("arq")[-1])
    for query, (_, wins, p, _, tokens) in worth.items():
        left, _, saved = tokens.partition(" ")
        assert (wins, p, int(left) < whole) == ("+0", "1.00", True), query
        assert abs(int(saved.strip("()")) - (int(left) - whole)) <= 1, query  # each is rounded by itself
    # The arms that leave something out are compared with nothing else, and have no column of their own.
    titles = [table["title"] for table in json.loads(figures.read_text())["tables"]]
    assert not [title for title in titles if "pairs" in title or "differ" in title]
    best = rows(figures, "success against tokens, best first")
    assert set(best) == {"arq", *(f"arq -{query}" for query in QUERIES)}


def test_chosen_queries_of_several_steps_are_left_out_and_the_run_goes_on(cli, suite, folder):
    suite.write_text(SUITE.partition("- name: lilies")[0] + ROSES)
    steps = ("matcher:rationale,condition", "message:insights")
    options = (*(part for step in steps for part in ("--ablate", step)), "--model", "offline")
    assert cli("experiment", suite, *options, "--record", "kept").code == 0
    assert cli("experiment", suite, *options, "--record", "kept", "--resume").code == 0
    figures = folder / "kept" / "florist.json"
    assert list(rows(figures, "arq without a query of matcher")) == [
        "arq",
        "-condition_application_rationale",
        "-guideline_previously_applied_rationale",
        "-condition",
    ]
    # What only the matcher answers says nothing of another step.
    assert rows(figures, "arq without a query of matcher")["-condition"][3] == "2"
    assert rows(figures, "arq without a query of message")["-insights"][3] == "1"
    done = cli(
        "experiment", suite, "--ablate", "planner:request", "--model", "offline", "--record", "planned"
    )
    assert done.code == 0
    plans = rows(folder / "planned" / "florist.json", "arq-pre-act without a query of planner")
    assert list(plans) == ["arq-pre-act", "-request"]


@pytest.mark.parametrize(
    ("ablated", "told"),
    [
        ("machter", "did you mean `matcher`?"),
        ("matcher:score", "'score', which is part of the response"),
        ("message:insigt", "did you mean `insights`?"),
    ],
)
def test_what_cannot_be_left_out_is_told_with_what_can(cli, suite, ablated, told):
    done = cli("experiment", suite, "--ablate", ablated, "--model", "offline")
    assert done.code == 1
    assert told in done.words


BLUEPRINTS = """
from arq_graph import ARQ, query, respond
from arq_graph.nodes import Judgement, MessageBlueprint

class Cautious(Judgement):
    evidence: str = query("Which words of the customer's show it?")

class Polite(MessageBlueprint):
    mood: str = query("How does the customer feel?")

class Other(ARQ):
    answer: str = respond("-")
"""


def test_blueprints_of_one_s_own_are_arms(cli, suite, folder):
    (folder / "own.py").write_text(BLUEPRINTS)
    own = ("--blueprint", "own:Cautious", "--blueprint", "own:Polite")
    done = cli("experiment", suite, *own, "--model", "offline", "--record", "kept")
    assert done.code == 0
    figures = folder / "kept" / "florist.json"
    tokens = rows(figures, "output tokens of a call")
    usual, cautious, polite = map(int, tokens["matcher"])
    assert cautious > usual == polite
    usual, cautious, polite = map(int, tokens["message"])
    assert polite > usual == cautious
    assert "arq → own:Cautious" in rows(figures, "arms in pairs")
    (folder / "own.py").write_text(BLUEPRINTS.replace("How", "What"))
    changed = cli("experiment", suite, *own, "--model", "offline", "--record", "kept", "--resume")
    assert changed.code == 1
    assert "the code of the arm 'own:Cautious'" in changed.words
    other = cli("experiment", suite, "--blueprint", "own:Other", "--model", "offline")
    assert "is not a blueprint for any step" in other.words


def test_cases_of_the_matcher_alone_are_left_out_where_an_arm_has_no_matcher(cli, suite, folder):
    done = cli("experiment", suite, "--arms", "arq,react", "--model", "offline", "--record", "kept")
    assert done.code == 0
    assert "2 scenarios left out: react cannot say which guidelines are active." in done.words
    assert "4 conversations of florist" in done.words


def test_what_is_no_suite_is_told_with_those_that_there_are(cli):
    done = cli("experiment", "guideline", "--model", "offline")
    assert done.code == 1
    assert "did you mean `guidelines`?" in done.words
    assert "household" in done.words


TASK = """
name: household
defaults: {agent: agent.yaml, kinds: [helpful, unhelpful], limits: {turns: 3, calls: 20}}
scenarios:
- name: place pen
  use_case: pick and place
  milestones: place.yaml
  world: {of: world:Household, task: place, thing: pen, target: drawer}
  user: {role: guide, intents: [Put a pen into a drawer.], knowledge: {pen: on shelf 2}}
"""


def test_what_speakers_do_in_a_world_stands_beside_what_the_paper_tells_of_it(cli, folder):
    shutil.copytree(Path(suites.__file__).parent / "household", folder / "house")
    (folder / "house" / "suite.yaml").write_text(TASK)
    arms = "react,respact,respact-schema,respact+reflexion:2"
    done = cli("experiment", "house/suite.yaml", "--arms", arms, "--model", "offline", "--record", "out")
    assert done.code == 0, done.words
    file = folder / "out" / "household.json"
    moves = rows(file, "moves")
    assert list(moves) == ["think", "speak", "act", "invalid", "published", "trials"]
    assert all(cell.endswith("%") for name in ("think", "speak", "act") for cell in moves[name])
    assert (moves["published"], moves["trials"]) == (["13%", "3%", "", ""], ["1.0", "1.0", "1.0", "2.0"])
    users = rows(file, "success by kind of user")
    assert list(users) == ["helpful", "published", "unhelpful", "all"]
    assert rows(file, "success")["published"] == ["80.6%", "87.3%", "85.8%", ""]
    speech = rows(file, "what was said for what")
    assert speech["ReqForInstruction"][2] == "100%" and speech["status_update"][1].endswith("%")
    shown = cli("evaluate", "house/suite.yaml", "--arms", "react", "--model", "offline")
    assert "Moves of react: think" in shown.words and "were refused or failed" in shown.words
