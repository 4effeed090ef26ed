"""The benchmark of scoring measures what it says, however fast the machine is."""

import pytest

from benchmarks import scoring


@pytest.mark.slow
def test_every_way_of_scoring_has_a_speed_or_says_what_is_missing():
    assert scoring.make_tasks(5) == scoring.make_tasks(5)
    for speed in scoring.measure_speeds(scoring.make_tasks(5)):
        assert speed.per_second or "pip install" in speed.figures
