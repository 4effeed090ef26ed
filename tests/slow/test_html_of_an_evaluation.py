"""What the page of an evaluation shows in a real browser beside that of a report: arms, and users' own goals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arq_graph.milestones import write_html
from arq_graph.milestones.evaluation.results import evaluation_report
from tests.milestones.sample_report import made, refund_talks
from tests.slow.browser import chromium, opened

pytestmark = pytest.mark.slow

DESK = {"width": 1400, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def evaluated(folder: Path, *held: tuple[str, str | None]) -> Path:
    """The page of the refund talks, each held by an arm and with a goal milestone or none."""
    talks = refund_talks()
    whole = made(talks)
    records = [
        record.model_copy(update={"arm": arm, "goal": goal, "scenario": record.id, "run": at})
        for at, (record, (arm, goal)) in enumerate(zip(whole.conversations, held, strict=True))
    ]
    file = folder / "report.html"
    write_html(file, evaluation_report(records, graphs=whole.graphs), talks)
    return file


def cells(page: Any, column: str) -> dict[str, str]:
    """What a column of the table of arms says of each arm."""
    heads = page.locator("#arms thead th").all_inner_texts()
    rows = [each.locator("th, td").all_inner_texts() for each in page.locator("#arms tbody tr").all()]
    return {row[0].strip(): " ".join(row[heads.index(column)].split()) for row in rows}


def test_how_many_reached_the_goal_milestone_is_shown_over_all_and_for_each_arm(
    browser: Any, tmp_path: Path
) -> None:
    # Refunded are the first and the third; whether somebody is pleased, nothing decides after a refund.
    file = evaluated(
        tmp_path, ("react", "refund"), ("react", "refund"), ("guided", "Pleased"), ("guided", "Pleased")
    )
    with opened(browser, file, viewport=DESK) as found:
        card = found.page.locator(".card", has_text="Customer's goal reached").inner_text()
        assert card.split("\n\n")[1:] == ["33%", "1 of 3 · 95% interval 6–79%", "and 1 undecided"]
        assert cells(found.page, "Customer's goal reached") == {
            "react": "50% 1 of 2",
            "guided": "0% 0 of 1, and 1 undecided",
        }
        assert cells(found.page, "Forbidden") == {"react": "0", "guided": "1"}
        assert found.said == []


def test_an_arm_whose_scenarios_name_no_goal_has_none_to_reach(browser: Any, tmp_path: Path) -> None:
    file = evaluated(tmp_path, ("react", "refund"), ("guided", None), ("guided", None), ("guided", None))
    with opened(browser, file, viewport=DESK) as found:
        assert cells(found.page, "Customer's goal reached") == {"react": "100% 1 of 1", "guided": "–"}


def test_where_no_scenario_names_a_goal_nothing_is_said_of_one(browser: Any, tmp_path: Path) -> None:
    file = evaluated(tmp_path, *[("react", None)] * 4)
    with opened(browser, file, viewport=DESK) as found:
        assert "By arm" in found.page.locator("#arms").inner_text()
        assert "goal reached" not in found.page.locator("body").inner_text()
