"""What a turn costs at the endpoint: counts, no times."""

from __future__ import annotations

import json

import pytest

from arq_graph import errors
from benchmarks.counting import count
from benchmarks.many_guidelines import LIMITS, recalls

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("guidelines", "calls", "characters", "with_schemas"),
    [(3, 4, 45_000, 75_000), (20, 13, 45_000, 75_000), (200, 43, 210_000, float("inf"))],
)
def test_a_turn_with_one_tool_call_stays_within_its_budget(guidelines, calls, characters, with_schemas):
    counted = count(guidelines)
    assert counted.tools_run == 1
    assert counted.calls <= calls
    assert counted.waves <= 4
    assert counted.prompt_characters <= characters
    assert counted.prompt_characters + counted.schema_characters <= with_schemas


def test_a_labelled_set_of_ones_own_tells_what_max_judged_finds(tmp_path):
    rules = [{"id": f"r{n}", "condition": f"asks about topic{n}", "action": "help"} for n in range(200)]
    agent = {"name": "Desk", "profile": "You help.", "guidelines": rules}
    (tmp_path / "desk.yaml").write_text(json.dumps(agent))
    messages = [
        {"says": "topic7?", "needs": ["r7"]},
        {"says": "Hmm.", "agent": "topic9?", "needs": ["r9", "r190"]},
    ]
    (tmp_path / "own.yaml").write_text(json.dumps({"agent": "desk.yaml", "messages": messages}))
    by, shares = next(recalls(tmp_path / "own.yaml"))
    assert by == "spelling"
    assert shares == pytest.approx([2 / 3] * len(LIMITS))
    messages[0]["needs"] = ["r700"]
    (tmp_path / "own.yaml").write_text(json.dumps({"agent": "desk.yaml", "messages": messages}))
    with pytest.raises(errors.SpecError, match="no guideline of id 'r700'"):
        next(recalls(tmp_path / "own.yaml"))
