"""The measure against its definition on many more graphs than the quick suite draws."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tests.milestones.random_conversations import graphs, transcripts
from tests.milestones.test_measure_properties import compare_with_the_definition

pytestmark = pytest.mark.slow


@settings(max_examples=2_000, deadline=None)
@given(graph=graphs(judged=True), transcript=transcripts)
def test_what_is_reached_and_the_progress_equal_the_definition(graph, transcript):
    compare_with_the_definition(graph, transcript)
