"""`arq-graph experiment`: ablations, blueprints and arms of one's own, and what is wrong with an arm or a world."""

import json
import os
import re

import pytest

from tests.cli.florist import AGENT, ROSES, SUITE, TULIPS, read_table


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
    titles = [table["title"] for table in json.loads(figures.read_text())["tables"]]
    assert not [title for title in titles if "pairs" in title or "differ" in title]


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
