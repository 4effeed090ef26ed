"""The benchmark of scoring measures what it says, however fast the machine is."""

from __future__ import annotations

import pytest

from benchmarks import scoring


@pytest.mark.slow
def test_every_way_of_scoring_has_a_speed_or_says_what_is_missing():
    assert scoring.made(5) == scoring.made(5)
    for speed in scoring.speeds(scoring.made(5)):
        assert speed.per_second or "pip install" in speed.gives
