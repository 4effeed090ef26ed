"""`arq-graph experiment`: arms on a suite, the papers' tables, and a page."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

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
  twin: lilies
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
TULIPS = SUITE.partition("- name: lilies")[0].replace("  twin: lilies\n", "")
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

def knows(scenario, agent, model, matcher_only):
    return Says({"tulips": "active: card", "lilies": "active: roses"}.get(scenario.name, "We have red roses."))

def speaks(scenario, agent, model):
    return Says("We have red roses.")

def guesses(scenario, agent, model, matcher_only):
    return Says("active: card")
"""
BOTH = ("--arms", "arms:knows,arms:guesses")


@pytest.fixture
def suite(folder: Path) -> Path:
    for name, text in {"agent.yaml": AGENT, "suite.yaml": SUITE, "arms.py": ARMS}.items():
        (folder / name).write_text(text)
    return folder / "suite.yaml"


@pytest.fixture
def run_experiment(cli, suite):
    """Run an experiment on the florist's suite, offline."""

    def run(*options: str | Path, record: str = "out", code: int = 0):
        result = cli("experiment", suite, "--model", "offline", "--record", record, *options)
        assert result.code == code, result.words
        return result

    return run


@pytest.fixture
def second_suite(folder: Path, suite: Path) -> Path:
    """Another suite beside the florist's."""
    file = folder / "second.yaml"
    file.write_text(f"defaults: {{agent: agent.yaml, use_case: more}}\nscenarios:{ROSES}")
    return file


def read_table(file: Path, title: str) -> dict[str, list[str]]:
    """Return the rows of a table by name, without the column that counts the cases."""
    for table in json.loads(file.read_text())["tables"]:
        if table["title"] == title:
            first = 1 if table["columns"][0] == "n" else 0
            return {row["name"]: row["cells"][first:] for row in table["rows"]}
    raise KeyError(title)


def list_tables(file: Path) -> list[str]:
    return [table["title"] for table in json.loads(file.read_text())["tables"]]


def count_model_calls(file: Path) -> int:
    conversations = json.loads(file.read_text())["report"]["conversations"]
    return sum(conversation["model_calls"] for conversation in conversations)


def read_without_times(file: Path) -> Any:
    figures = json.loads(file.read_text())
    for conversation in figures["report"]["conversations"]:
        del conversation["turn_seconds"]
    return figures


def test_the_arms_figures_stand_in_the_papers_tables(run_experiment, folder):
    result = run_experiment(*BOTH, "--runs", "2")
    assert "published" not in result.out
    figures = folder / "out" / "florist.json"
    success = read_table(figures, "goal completion")
    assert [cell.partition(" [")[0] for cell in success["matcher alone"]] == ["100%", "50%"]
    # Only a judge can decide one of the two turns.
    assert success["whole turn"] == ["50% to 100%", "0% to 50%"]
    assert list(read_table(figures, "goal completion by category")) == ["orders", "questions", "all"]
    assert "arms:knows → arms:guesses" in read_table(figures, "arms in pairs")
    assert list(read_table(figures, "where arms:knows and arms:guesses differ")) == ["questions"]
    assert "4 conversations undecided; give --judge to have them decided." in result.words
    assert "matcher alone 2 100%" in result.words
    assert "questions 3 " in result.words


def test_a_resumed_run_reaches_the_same_figures_and_refuses_fewer_runs(run_experiment, folder):
    run_experiment(*BOTH, "--runs", "2", record="whole")
    run_experiment(*BOTH, record="parts")
    refused = run_experiment(*BOTH, "--runs", "2", record="parts", code=1)
    assert "(for `experiment`, another folder with --record)" in refused.words
    run_experiment(*BOTH, "--runs", "2", "--resume", record="parts")
    whole, parts = (json.loads((folder / name / "florist.json").read_text()) for name in ("whole", "parts"))
    assert whole["tables"] == parts["tables"]
    fewer = run_experiment(*BOTH, "--resume", record="parts", code=1)
    assert "8 of the stored conversations are outside this plan: pass at least --runs 2" in fewer.words


def test_a_replay_asks_no_model_and_reaches_the_same_figures(cli, suite, run_experiment, folder):
    options = ("--arms", "arq", "--votes", "2", "--only", "questions")
    first = run_experiment(*options, "--judge", "offline")
    assert "No evidence: the agent's model and the judge were stand-ins." in first.words
    again = cli("experiment", suite, *options, "--replay", "out", "--record", "again")
    assert again.code == 0, again.words
    recorded = read_without_times(folder / "out" / "florist.json")
    assert read_without_times(folder / "again" / "florist.json") == recorded
    page = (folder / "again" / "florist.html").read_text()
    expected = '"expected":{"says":[{"pattern":"red roses"}],"never":["card"]}'
    assert expected in page
    assert "condition_application_rationale" in page
    nothing = cli("experiment", suite, "--replay", "nowhere", "--record", "changed")
    assert "nowhere holds no recording of the suite 'florist'" in nothing.words
    agent = folder / "agent.yaml"
    agent.write_text(AGENT.replace("asks about roses", "asks about any roses"))
    changed = cli("experiment", suite, *options, "--replay", "out", "--record", "changed")
    assert changed.code == 3
    assert "holds no answer to what the module 'matcher' asks" in changed.words


def test_options_that_a_replay_would_ignore_are_refused(cli, suite, run_experiment, folder):
    run_experiment("--arms", "arms:knows", "--only", "orders")
    page = (folder / "out" / "florist.html").read_text()
    for text in ("An order makes one of two guidelines active.", '"twin":"lilies"', '{"active":["card"]}'):
        assert text in page, text
    results = (folder / "out" / "florist.results.jsonl").read_bytes()
    for options, problem in (
        (
            ("--model", "offline", "--judge", "offline"),
            "leave out --model, --judge, which would change nothing",
        ),
        (("--record", "out/."), "--record has to name another folder"),
    ):
        result = cli("experiment", suite, "--replay", "out", *options)
        assert (result.code, problem in result.words) == (2, True), result.words
    assert (folder / "out" / "florist.results.jsonl").read_bytes() == results


def test_several_suites_have_tables_of_their_own_and_one_limit(run_experiment, suite, second_suite, folder):
    suite.write_text(TULIPS)
    options = (second_suite, "--arms", "direct", "--concurrency", "1")
    run_experiment(*options, record="whole")
    limit = count_model_calls(folder / "whole" / "florist.json")
    result = run_experiment(*options, "--max-calls", str(limit))
    assert "1 conversation of florist" in result.words
    assert "0 conversations" not in result.words
    spent = f"max_calls: the limit of {limit} for all suites together is reached (model calls so far: "
    assert (
        f"{spent}{limit}). No conversation was finished. Missing: 1 conversation of second." in result.words
    )
    assert not (folder / "out" / "second.html").exists()
    resumed = run_experiment(*options, "--max-calls", str(9 * limit), "--resume")
    assert "1 conversation of second" in resumed.words
    assert list(read_table(folder / "out" / "second.json", "goal completion")) == ["all"]
    # The calls of the second suite count when the first one is resumed.
    more = run_experiment(*options, "--max-calls", str(limit), "--resume", "--runs", "2")
    assert spent in more.words
    assert "Missing below: 1 conversation of florist." in more.words


def test_only_runs_the_named_categories(cli, run_experiment, second_suite):
    result = run_experiment(second_suite, *BOTH, "--only", "questions")
    assert "6 conversations of florist" in result.words
    assert "conversations of second" not in result.words
    assert "second is left out: it has no scenario of questions." in result.words
    evaluate = ("evaluate", "suite.yaml", *BOTH, "--model", "offline", "--only")
    assert "2 conversations" in cli(*evaluate, "orders").words
    nothing = cli(*evaluate, "unhelpful")
    assert nothing.code == 1
    assert "no scenario is left: --only unhelpful fits none" in nothing.words
    wrong = cli(*evaluate, "question").words
    assert (
        "there is no category (`use_case`) and no kind of user 'question'; did you mean `questions`?" in wrong
    )


def test_published_figures_stand_beside_a_whole_shipped_suite_with_the_same_users(cli, folder, suite):
    def has_published(name: str, *options: str) -> bool:
        result = cli("experiment", name, "--model", "offline", "--record", "out", *options)
        assert result.code == 0, result.words
        [figures] = (folder / "out").glob("*.json")
        tables = json.loads(figures.read_text())["tables"]
        shutil.rmtree(folder / "out")
        return any(row["name"] == "published" for table in tables for row in table["rows"])

    assert has_published("shop", "--arms", "respact", "--only", "helpful")
    assert not has_published("shop", "--arms", "respact", "--only", "near misses")
    # A user's own suite may have the name of a shipped one.
    own = suite.rename(folder / "guidelines.yaml")
    assert not has_published(own.name, "--arms", "arms:knows")


def test_each_query_of_a_step_has_a_row_with_what_it_gains_and_costs(run_experiment, suite, folder):
    suite.write_text(TULIPS + ROSES)
    os.environ["COLUMNS"] = "80"
    result = run_experiment("--ablate", "matcher:rationale,action", "--ablate", "message:insights")
    assert re.search(r"^-insights +\+0 +1\.00 +\d+ +\d+ \(-\d+\)$", result.out, re.MULTILINE), "a cell breaks"
    assert "of whole turns. Gain:" in result.words
    figures = folder / "out" / "florist.json"
    matcher_rows = read_table(figures, "arq without a query of matcher")
    assert list(matcher_rows) == [
        "arq",
        "-condition_application_rationale",
        "-guideline_previously_applied_rationale",
        "-action",
    ]
    all_tokens = int(matcher_rows.pop("arq")[-1])
    for query, (gain, p, _, tokens) in matcher_rows.items():
        remaining, _, saved = tokens.partition(" ")
        assert (gain.split()[0], p) == ("+0", "1.00"), query
        assert int(remaining) < all_tokens, query
        # Both figures are rounded.
        assert abs(int(saved.strip("()")) - (int(remaining) - all_tokens)) <= 1, query
    # A case that only the matcher answers measures nothing of another step.
    message_rows = read_table(figures, "arq without a query of message")
    assert matcher_rows["-action"][2] == "2"
    assert message_rows["-insights"][2] == "1"
    # Ablated arms are compared with `arq` alone, and have no columns of their own.
    assert not [title for title in list_tables(figures) if "pairs" in title or "differ" in title]


BLUEPRINTS = """
from arq_graph import query
from arq_graph.nodes import Judgement, MessageBlueprint

class Cautious(Judgement):
    evidence: str = query("Which words of the customer's show it?")

class Polite(MessageBlueprint):
    mood: str = query("How does the customer feel?")

class Plain:
    pass
"""


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (
            ("--ablate", "matcher:foo"),
            1,
            "the step matcher cannot be asked without 'foo', which is not one of its queries: condition,",
        ),
        (("--arms", ""), 2, "it is empty: name at least one"),
        (("--arms", "foo"), 1, "there is no arm 'foo'; there are guided,"),
        (("--blueprint", "Polite"), 1, "Polite"),
        (("--blueprint", "own:Plain"), 1, "make it a subclass of MessageBlueprint or of Judgement"),
        (("--max-cost", "1"), 2, "--max-cost needs --prices, such as --prices gpt-4o=2.5/10"),
        (("--max-cost", "0", "--prices", "m=1/1"), 2, "and more than 0"),
        (
            ("--ablate", "matcher:condition", "household"),
            1,
            "this arm calls tools; react and respact act in it, and so do the arms of `--ablate speaker`",
        ),
        (("./suite.yaml",), 1, "two suites have the same name"),
        (("guideline",), 1, "did you mean `guidelines`?"),
    ],
)
def test_an_option_that_cannot_be_used_is_an_error_with_a_way_out(cli, suite, folder, options, code, problem):
    (folder / "own.py").write_text(BLUEPRINTS)
    result = cli("experiment", suite, "--model", "offline", *options)
    assert result.code == code, result.words
    assert problem in result.words
    assert not (folder / "experiment").exists()


def test_the_users_blueprints_are_arms(run_experiment, suite, folder):
    suite.write_text(TULIPS + ROSES)
    (folder / "own.py").write_text(BLUEPRINTS)
    options = ("--blueprint", "own:Cautious", "--blueprint", "own:Polite")
    run_experiment(*options)
    figures = folder / "out" / "florist.json"
    tokens = read_table(figures, "output tokens of a call")
    usual, cautious, polite = map(int, tokens["matcher"])
    assert cautious > usual == polite
    usual, cautious, polite = map(int, tokens["message"])
    assert polite > usual == cautious
    assert "arq → own:Cautious" in read_table(figures, "arms in pairs")
    (folder / "own.py").write_text(BLUEPRINTS.replace("How", "What"))
    changed = run_experiment(*options, "--resume", code=1)
    assert "the code of arms 'own:Cautious', 'own:Polite' changed since" in changed.words


def test_a_changed_agent_or_expectation_is_reported_once_with_a_way_out(run_experiment, suite, folder):
    run_experiment(*BOTH)
    suite.write_text(SUITE.replace("red roses", "white roses"))
    assert "--replay DIR --record DIR2" in run_experiment(*BOTH, "--resume", code=1).words
    suite.write_text(SUITE)
    (folder / "agent.yaml").write_text(AGENT.replace("a florist.", "a kind florist."))
    changed = run_experiment(*BOTH, "--resume", code=1)
    assert "another run: the agent's profile of 4 scenarios changed since." in changed.words
    assert "--replay" not in changed.words


WORLD = """
def order(flower: str):
    "Order it."

class Shop:
    order = staticmethod(order)
"""


@pytest.mark.parametrize(
    ("method", "problem", "way_out"),
    [
        (
            "def order(self, flower: str): ...",
            "the method of the world of scenario 'roses' is 'order', which cannot be a tool",
            "A tool has a docstring",
        ),
        (
            "def outcome(self): return 'well'",
            "Shop.outcome() gave 'well' (line 7 of",
            "return a dict of numbers and booleans",
        ),
        (
            "def outcome(self): return {}['x']",
            "error: Shop.outcome() fails with KeyError: 'x' (line 7 of",
            "shop.py)",
        ),
        (
            "def __init__(self): {}['x']",
            "error: the world of scenario 'tulips' cannot be made: KeyError: 'x' (line 7 of",
            "shop.py)",
        ),
    ],
)
def test_a_fault_of_a_world_is_reported_before_the_run(
    run_experiment, suite, folder, method, problem, way_out
):
    (folder / "agent.yaml").write_text(AGENT + "tools: ['shop:order']\n")
    (folder / "shop.py").write_text(f"{WORLD}    {method}\n")
    suite.write_text(SUITE.replace("agent.yaml}", "agent.yaml, world: 'shop:Shop'}"))
    result = run_experiment("--arms", "direct", code=1)
    assert problem in result.words
    assert way_out in result.words


def test_cases_of_the_matcher_alone_are_left_out_where_an_arm_has_no_matcher(run_experiment):
    result = run_experiment("--arms", "arms:knows,react", "--arms", "arms:speaks", "--runs", "2")
    reason = "skipped 2 matcher-only scenarios of florist for all arms, which are compared on the same"
    assert reason in result.words
    assert "which guidelines are active, and react, arms:speaks cannot say that" in result.words
    assert "12 conversations of florist" in result.words
    assert "conversing: 11 of 12" in result.words, "a log reports each tenth"


HOUSEHOLD = """
name: household
defaults: {agent: agent.yaml, kinds: [helpful, unhelpful], limits: {turns: 2, calls: 10}}
scenarios:
- name: place pen
  use_case: pick and place
  milestones: place.yaml
  world: {of: world:Household, task: place, thing: pen, target: drawer}
  user: {role: guide, intents: [Put a pen into a drawer.], knowledge: {pen: on shelf 2}}
"""


def test_the_moves_of_speakers_in_a_world_are_counted(cli, folder):
    shutil.copytree(Path(suites.__file__).parent / "household", folder / "house")
    (folder / "house" / "suite.yaml").write_text(HOUSEHOLD)
    arms = "react,respact+reflexion:2"
    result = cli("experiment", "house/suite.yaml", "--arms", arms, "--model", "offline", "--record", "out")
    assert result.code == 0, result.words
    figures = folder / "out" / "household.json"
    moves = read_table(figures, "moves")
    assert list(moves) == ["think", "speak", "act", "trials"]
    assert all(cell.endswith("%") for name in ("think", "speak", "act") for cell in moves[name])
    assert moves["trials"] == ["1.0", "2.0"]
    users = read_table(figures, "goal completion by kind of user")
    assert list(users) == ["helpful", "unhelpful", "all"]
