"""The figures of the papers, and which of ours they stand beside."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph.experiments.experiment import Experiment
from arq_graph.experiments.published import read_published_figures
from tests.milestones.reported import make_talk, report_on

TURNS, CATEGORIES, WORLD = "single turns", "goal completion by category", "outcome in the world, mean"
USERS = "goal completion by kind of user"


@pytest.mark.parametrize(
    ("suite", "title", "variant", "row", "arm", "figure"),
    [
        # ARQ: Figures 4 and 5.
        ("guidelines", "goal completion", None, "all", "direct", "81.54%"),
        ("guidelines", "goal completion", None, "matcher alone", "cot", "80.87%"),
        ("guidelines", "goal completion", None, "whole turn", "arq", "92.19%"),
        ("guidelines", "output tokens of a call", None, "matcher", "arq", "289"),
        ("guidelines", "output tokens of a call", None, "tools", "cot", "180"),
        ("guidelines", "output tokens of a call", None, "message", "direct", "54"),
        # Pre-Act: Table 3, and the columns Almita of Table 2.
        ("use-cases", CATEGORIES, None, "internet trouble", "pre-act", "52%"),
        ("use-cases", CATEGORIES, None, "all", "react", "32%"),
        ("use-cases", CATEGORIES, "llama-3.1 70B f.t.", "internet trouble", "pre-act", "100%"),
        ("use-cases", "progress rate", None, "delivery", "react", "0.74"),
        ("use-cases", "progress rate", "llama-3.1 70B f.t.", "delivery", "pre-act", "0.79"),
        ("use-cases", TURNS, None, "tool calls, F1", "react", "0.3995"),
        ("use-cases", TURNS, "llama3.1 8B", "parameter match", "pre-act", "0.7216"),
        ("use-cases", TURNS, "llama3.1 70B", "answer similarity", "react", "0.7853"),
        ("use-cases", TURNS, "llama3.1 8B f.t.", "final answers, F1", "pre-act", "0.9306"),
        ("use-cases", TURNS, "llama3.1 70B f.t.", "action recall", "pre-act", "0.9238"),
        # ReSpAct: Tables 1 to 3, 6 to 8 and 11, and Appendix C.1.
        ("household", CATEGORIES, None, "clean and place", "respact", "90.9%"),
        ("household", CATEGORIES, None, "examine in light", "react", "98.2%"),
        ("household", "goal completion", None, "all", "react", "80.6%"),
        ("household", USERS, None, "unhelpful", "respact", "32.09%"),
        ("household", USERS, "best of 6", "helpful", "inner-monologue", "48.5%"),
        ("household", USERS, "best of 6", "helpful", "respact-schema", "85.8%"),
        ("household", "goal completion", None, "all", "react+reflexion:10", f"{100 * 130 / 134:.1f}%"),
        ("household", "moves", None, "invalid", "react", "13%"),
        ("booking", WORLD, None, "inform", "respact", "0.722"),
        ("booking", "a conversation, mean", None, "turns", "respact", "6.5"),
        ("shop", WORLD, None, "score", "react", "0.201"),
    ],
)
def test_a_published_figure_is_that_of_its_paper(suite, title, variant, row, arm, figure):
    publications = read_published_figures()[suite][title]
    (published,) = [figures for figures in publications if figures.variant == variant]
    assert published.rows[row][arm] == figure


def make_tables(suite: str, arms: tuple[str, str], *groups: dict[str, Any]) -> dict[str, Any]:
    """Return an experiment's tables by title, of one conversation of each group with each arm."""
    talks = [
        make_talk(f"{arm}{n}", use_case=group["use_case"], about={"arm": arm, "user": group["user"]})
        for arm in arms
        for n, group in enumerate(groups)
    ]
    return {
        table.title: table
        for table in Experiment(suite=suite, report=report_on(*talks), has_published=True).tables
    }


def test_figures_with_helpful_users_stand_only_beside_such_figures():
    cases = [{"use_case": f"{name} and place", "user": "helpful"} for name in ("pick", "heat")]
    alone = make_tables("household", ("react", "respact"), *cases)
    mixed = make_tables("household", ("react", "respact"), *cases, cases[0] | {"user": "unhelpful"})
    found = {title: [row.name for row in alone[title].rows] for title in ("goal completion", CATEGORIES)}
    assert found["goal completion"] == ["all", "published"]
    assert found[CATEGORIES] == [
        "heat and place",
        "published",
        "pick and place",
        "published",
        "all",
        "published",
    ]
    for title in found:
        assert "published" not in {row.name for row in mixed[title].rows}
    by_kind = {row.name: row.cells[1:] for row in mixed[USERS].rows[:3]}
    assert by_kind["published"] == ("79.4%", "85.3%")
    assert by_kind["published, best of 6"] == ("80.6%", "87.3%")
    assert "helpful users alone" in " ".join(mixed[USERS].notes)


def test_what_a_fine_tuned_model_did_is_marked_with_the_reason_and_the_rest_is_for_orientation():
    groups = [{"use_case": name, "user": "helpful"} for name in ("gift card", "delivery")]
    table = make_tables("use-cases", ("react", "pre-act"), *groups)[CATEGORIES]
    cells = {row.name: row.cells[1:] for row in table.rows}
    assert cells["published, llama-3.1 70B f.t."] == ("", "82%")
    ours, theirs = (note for note in table.notes if note.startswith("published"))
    assert ours.endswith("For orientation.")
    assert theirs.endswith("Not comparable: this model was fine-tuned.")
