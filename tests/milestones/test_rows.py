"""A report as rows: what data frames and spreadsheets get of it."""

import csv

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import write_csv
from tests.milestones.sample_report import make_sample_report, refund_talks


@pytest.fixture
def report():
    return make_sample_report(refund_talks())


def test_every_conversation_is_a_flat_row_and_what_is_undecided_is_never_zero(report):
    mug, lamp, kettle, question, broken = report.to_rows()
    for row in report.to_rows():
        assert {type(value) for value in row.values()} <= {str, int, float, bool, type(None)}
    assert (mug["id"], mug["use_case"], mug["task"]) == ("mug", "refunds", "1")
    assert (mug["goal_completed"], mug["progress_at_least"], mug["progress_at_most"]) == (True, 1.0, 1.0)
    assert (lamp["goal_completed"], lamp["stopped_at"], lamp["repeated_calls"]) == (
        False,
        "find_by_number",
        1,
    )
    assert kettle["forbidden"] == 1
    assert question["model_calls"] is None
    assert (broken["is_measured"], broken["goal_completed"], broken["progress_at_least"]) == (
        False,
        None,
        None,
    )
    assert "conversation is empty" in broken["error"]


def test_a_spreadsheet_gets_the_rows_as_csv_without_formulas(report, tmp_path):
    formula = report.conversations[0].model_copy(update={"id": "=HYPERLINK(A1)", "task": None})
    changed = report.model_copy(update={"conversations": (formula, *report.conversations[1:])})
    write_csv(tmp_path / "rows.csv", changed.to_rows())
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(changed.to_rows()) == 5
    assert list(rows[0]) == list(changed.to_rows()[0])
    assert (rows[0]["id"], rows[0]["task"], rows[0]["goal_completed"]) == ("'=HYPERLINK(A1)", "", "True")
    with pytest.raises(InputError, match="cannot be written"):
        write_csv(tmp_path / "missing" / "rows.csv", changed.to_rows())
