"""Files are there whole or as they were."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from arq_graph.agent.prepared_file import PreparedAnswer, write_prepared
from arq_graph.agent.whole_file import replace_whole

ANSWER = PreparedAnswer(wording="w", continuous=True, sensitive_to_tools=False)


def test_a_file_that_cannot_be_replaced_stays_as_it_was_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("old")
    for place in (tmp_path / "folder", tmp_path / "none" / "file", tmp_path / "folder" / "inside" / "file"):
        with pytest.raises(OSError):
            replace_whole(place, b"new")
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "folder",
        "folder/inside",
    ]
    assert (tmp_path / "folder" / "inside").read_text() == "old"


def test_prepared_answers_are_written_where_a_link_points_to_and_nobody_else_gets_to_read_them(
    tmp_path: Path,
) -> None:
    write_prepared(tmp_path / "kept.json", {})
    (tmp_path / "kept.json").chmod(0o600)
    link = tmp_path / "orders.prepared.json"
    link.symlink_to(tmp_path / "kept.json")
    write_prepared(link, {"G1": ANSWER})
    assert link.is_symlink()
    assert "G1" in (tmp_path / "kept.json").read_text()
    assert stat.S_IMODE((tmp_path / "kept.json").stat().st_mode) == 0o600


def test_a_very_long_name_can_be_written(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 250)
    replace_whole(file, b"new")
    assert file.read_bytes() == b"new"
