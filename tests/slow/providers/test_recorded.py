"""Runs that were recorded through a provider's class are replayed by one that knows nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import ReplayChatModel, evaluate
from tests.milestones.test_recordings import assert_same, orders
from tests.slow.providers.rows import ROWS, SLOW, serving
from tests.slow.providers.test_turns import offline

pytestmark = SLOW


@pytest.mark.parametrize("name", ROWS)
def test_a_run_through_any_class_is_replayed_byte_for_byte(name: str, tmp_path: Path):
    tried, names = load_arms(["guided", "react"]), orders("a", "b")
    stub, make = serving(name, offline)
    with stub:
        first = evaluate(names, tried, model=make(), results=tmp_path / "run.jsonl", record=True)
    again = evaluate(names, tried, model=ReplayChatModel(tmp_path), concurrency=1)
    assert [one.error for one in first.conversations] == [None] * 4
    assert_same(first, again, tmp_path)
