"""Runs that were recorded through a provider's class are replayed by one that knows nothing of it."""

from pathlib import Path

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import RecordingChatModel, ReplayChatModel, evaluate
from tests.milestones.test_recordings import COSTS, dump, orders
from tests.slow.providers.rows import ROWS, SLOW, make_stub
from tests.slow.providers.test_turns import answer_offline

pytestmark = SLOW


# One row for each shape of a response.
@pytest.mark.parametrize(
    "name", [name for name in ROWS if "(" not in name or "Responses" in name or "Claude" in name]
)
def test_a_run_through_any_class_is_replayed(name: str, tmp_path: Path):
    tried, names = load_arms(["guided", "react"]), orders("a", "b")
    stub, make = make_stub(name, answer_offline)
    with stub:
        first = evaluate(names, tried, model=RecordingChatModel(tmp_path / "answers.jsonl", make()))
    again = evaluate(names, tried, model=ReplayChatModel(tmp_path / "answers.jsonl"), concurrency=1)
    assert [one.error for one in first.conversations] == [None] * 4
    assert dump(again, without=COSTS) == dump(first, without=COSTS)
