"""The figures of the papers, and which of ours they are compared with."""

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
        ("guidelines", "goal completion", None, "whole turn", "arq", "92.19%"),
        ("guidelines", "output tokens of a call", None, "matcher", "arq", "289"),
        # Pre-Act: Table 3, and the columns Almita of Table 2.
        ("use-cases", CATEGORIES, None, "internet trouble", "pre-act", "52%"),
        ("use-cases", CATEGORIES, "llama-3.1 70B f.t.", "internet trouble", "pre-act", "100%"),
        ("use-cases", "progress rate", "llama-3.1 70B f.t.", "delivery", "pre-act", "0.79"),
        ("use-cases", TURNS, None, "tool calls, F1", "react", "0.3995"),
        ("use-cases", TURNS, "llama3.1 70B", "answer similarity", "react", "0.7853"),
        # ReSpAct: Tables 1 to 3, 6 to 8 and 11, and Appendix C.1.
        ("household", CATEGORIES, None, "clean and place", "respact", "90.9%"),
        ("household", USERS, None, "unhelpful", "respact", "32.09%"),
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
    conversations = []
    for arm in arms:
        for number, group in enumerate(groups):
            about = {"arm": arm, "user": group["user"]}
            conversations.append(make_talk(f"{arm}{number}", use_case=group["use_case"], about=about))
    experiment = Experiment(suite=suite, report=report_on(*conversations), has_published=True)
    return {table.title: table for table in experiment.tables}


def test_figures_with_helpful_users_stand_only_beside_such_figures():
    cases = [{"use_case": f"{name} and place", "user": "helpful"} for name in ("pick", "heat")]
    alone = make_tables("household", ("react", "respact"), *cases)
    mixed = make_tables("household", ("react", "respact"), *cases, cases[0] | {"user": "unhelpful"})
    names = {title: [row.name for row in alone[title].rows] for title in ("goal completion", CATEGORIES)}
    assert names["goal completion"] == ["all", "published"]
    assert names[CATEGORIES] == [
        "heat and place",
        "published",
        "pick and place",
        "published",
        "all",
        "published",
    ]
    for title in names:
        assert "published" not in {row.name for row in mixed[title].rows}
    by_kind = {row.name: row.cells[1:] for row in mixed[USERS].rows[:3]}
    assert by_kind["published"] == ("79.4%", "85.3%")
    assert by_kind["published, best of 6"] == ("80.6%", "87.3%")
    assert "helpful users alone" in " ".join(mixed[USERS].notes)


def test_figures_of_a_fine_tuned_model_are_marked_and_the_rest_is_for_orientation():
    groups = [{"use_case": name, "user": "helpful"} for name in ("gift card", "delivery")]
    table = make_tables("use-cases", ("react", "pre-act"), *groups)[CATEGORIES]
    cells = {row.name: row.cells[1:] for row in table.rows}
    assert cells["published, llama-3.1 70B f.t."] == ("", "82%")
    ours, theirs = (note for note in table.notes if note.startswith("published"))
    assert ours.endswith("For orientation.")
    assert theirs.endswith("Not comparable: this model was fine-tuned.")
