"""What a turn costs at the endpoint: counts, no times."""

from __future__ import annotations

import pytest

from benchmarks.counting import count

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
