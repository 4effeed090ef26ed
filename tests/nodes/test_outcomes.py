"""What code sees of a tool's result: that it failed, that it holds nothing, or that it tells something."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from arq_graph.nodes.outcomes import outcome_of
from arq_graph.reasoning.conversation import Conversation
from tests.nodes.order_tools import ran


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ("The order is late.", "told"),
        ('{"total": 2}', "told"),
        ('{"results": [], "note": "closed today"}', "told"),
        ('{"results": [1], "total": 0}', "told"),
        ('{"a": [[[', "told"),
        ("[]", "empty"),
        ("None", "empty"),
        ('{"results": [], "total": 0}', "empty"),
        ('{"ok": true, "results": []}', "empty"),
        ("Error: no such order", "failed"),
        ('{"error": "no such order", "results": []}', "failed"),
        ('[{"error": "no such order"}]', "failed"),
        ('{"error": "cut o', "failed"),
        ('{"error": null, "ph": 7.1}', "told"),
        ('{"error": "", "ph": 7.1}', "told"),
        ("{'error': None, 'ph': 7.1}", "told"),
        ('[{"error": false}]', "told"),
        ('{"error": null, "results": []}', "empty"),
        ("Error-free firing.", "told"),
        ("Error rate: 0%", "told"),
    ],
)
def test_an_outcome(result, outcome):
    (line,) = Conversation([HumanMessage("Where is it?"), *ran(result)]).results
    assert outcome_of(line) == outcome
