"""An argument whose description shows a date or a time takes dates or times, the one shown among them."""

from __future__ import annotations

import pytest

from arq_graph.models.offline.wanted import Wanted
from tests.models.prompts import TEXT, arguments_of, tool


@pytest.mark.parametrize(
    ("description", "said", "value"),
    [
        ("The sailing, like 2026-12-01.", "on 2026-12-05, please", "2026-12-05"),
        ("The sailing, like 2026-12-01.", "on 2026-12-01, please", "2026-12-01"),
        ("The sailing, like 2026-12-01.", "at 21:30, please", None),
        ("The sailing (2026-12-01).", "on 5 December 2026", "2026-12-05"),
        ("The sailing, as YYYY-MM-DD.", "on 2026-12-05", "2026-12-05"),
        ("The date of the sailing.", "with the Petrel on 2026-12-05", "2026-12-05"),
        ("Begin of it, e.g. 22:00.", "at 21:30", "21:30"),
        ("Begin of it, e.g. 22:00.", "at 22:00", "22:00"),
        ("Begin of it, HH:MM.", "at 9pm", "21:00"),
        ("Begin, e.g. 2026-12-01 22:00.", "on 2026-12-05 at 21:30", "2026-12-05T21:30"),
        ("Begin, e.g. 2026-12-01T22:00.", "2026-12-05T21:30", "2026-12-05T21:30"),
        ("The pier, like P-12.", "from P-7", "P-7"),
        ("The run, like 2026-12-01-A.", "run 2026-12-05-B", None),
    ],
)
def test_what_is_shown_says_what_is_wanted(description, said, value):
    described = tool("look_up", "", "the customer needs it: use the tool", sailing=(TEXT, description))
    assert arguments_of(described, said).get("sailing") == value


def test_a_customer_who_says_the_example_is_believed():
    described = tool("check_in", "", "the customer needs it: use the tool", berth=(TEXT, "Like 2026-11-03."))
    entries = (
        "I need it",
        "agent: Could you please tell me the berth (for example 2026-11-03)?",
        "2026-11-03",
    )
    assert arguments_of(described, *entries) == {"berth": "2026-11-03"}


@pytest.mark.parametrize(
    ("name", "description", "kind"),
    [
        ("note", "A note, e.g. 22:00", "text"),
        ("rating", "The rating, like 3.5", "thing"),
        ("zone", "The time zone.", "thing"),
        ("shift", "The day shift.", "thing"),
        ("cabin", "The cabin, like C-12.", "identifier"),
    ],
)
def test_what_only_looks_a_little_like_a_date_stays_what_it_is(name, description, kind):
    assert Wanted(name, "string", description).kind == kind
