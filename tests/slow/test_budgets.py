"""What a turn costs at the endpoint: counts, no times."""

from __future__ import annotations

import pytest

from benchmarks.counting import count


@pytest.mark.parametrize(("guidelines", "calls", "characters"), [(20, 13, 45_000), (200, 43, 210_000)])
def test_a_turn_with_one_tool_call_stays_within_its_budget(
    guidelines: int, calls: int, characters: int
) -> None:
    counted = count(guidelines)
    assert counted.tools_run == 1
    assert counted.calls <= calls
    assert counted.waves <= 4
    assert counted.prompt_characters <= characters


def test_no_call_goes_to_a_model_for_what_is_known_beforehand() -> None:
    # One batch is judged; the tool is decided on before and after it ran; one reply.
    assert count(3).calls == 4
