"""`arq-graph experiment`: arms on a suite, the papers' tables, and a page."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from arq_graph.milestones import suites
from tests.cli.florist import AGENT, BOTH, ROSES, SUITE, TULIPS, read_table


@pytest.fixture
def second_suite(folder: Path, suite: Path) -> Path:
    """Another suite beside the florist's."""
    file = folder / "second.yaml"
    file.write_text(f"defaults: {{agent: agent.yaml, use_case: more}}\nscenarios:{ROSES}")
    return file


def count_model_calls(file: Path) -> int:
    conversations = json.loads(file.read_text())["report"]["conversations"]
    return sum(conversation["model_calls"] for conversation in conversations)


def read_without_times(file: Path) -> Any:
    figures = json.loads(file.read_text())
    for conversation in figures["report"]["conversations"]:
        del conversation["turn_seconds"]
    return figures


def test_the_arms_figures_stand_in_the_papers_tables(run_experiment, folder):
    result = run_experiment(*BOTH, "--runs", "2", "--verbose", "--csv", "rows.csv")
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
    assert (folder / "rows.csv").read_text().count("\nflorist,") == 16


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
    assert "No evidence: the agent's model and the judge were fakes." in first.words
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


def test_a_changed_agent_or_expectation_is_reported_once_with_a_way_out(run_experiment, suite, folder):
    run_experiment(*BOTH)
    suite.write_text(SUITE.replace("red roses", "white roses"))
    assert "--replay DIR --record DIR2" in run_experiment(*BOTH, "--resume", code=1).words
    suite.write_text(SUITE)
    (folder / "agent.yaml").write_text(AGENT.replace("a florist.", "a kind florist."))
    changed = run_experiment(*BOTH, "--resume", code=1)
    assert "another run: the agent's profile of 4 scenarios changed since." in changed.words
    assert "--replay" not in changed.words


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
