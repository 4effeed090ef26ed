"""The measure as an evaluator of other frameworks."""

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import Verdict, amilestone_evaluator, milestone_evaluator, parse_milestones

GRAPH = parse_milestones("""
milestones:
- {name: Start, type: NFC}
- {name: find, type: FC}
- {name: Thanked, type: NFC, dependencies: [find]}
- {name: End, type: NFC, dependencies: [Thanked]}
""")
CALL = {"id": "1", "function": {"name": "find", "arguments": "{}"}}
MESSAGES = [
    {"role": "user", "content": "A lamp, please."},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "done"},
    {"role": "assistant", "content": "Thank you!"},
]


def test_what_is_undecided_has_no_score_but_a_range():
    goal, progress = milestone_evaluator(GRAPH)(
        inputs={}, outputs={"messages": MESSAGES}, reference_outputs={}
    )
    assert (goal["key"], goal["score"]) == ("goal_completion", None)
    assert (goal["metadata"]["low"], goal["metadata"]["high"]) == (0.0, 1.0)
    assert (progress["key"], progress["score"]) == ("progress_rate", None)
    assert progress["metadata"]["low"] == pytest.approx(1 / 3)
    assert progress["metadata"]["high"] == 1
    assert progress["comment"] == "reached: Start, find; next: Thanked; undecided: Thanked"


async def test_a_judge_decides_sync_and_async():
    def judge(graph, transcript, observations):
        return [Verdict("Thanked", True, event=4, quote="Thank you!")]

    sync = milestone_evaluator(GRAPH, judge)(outputs=MESSAGES)
    assert [result["score"] for result in sync] == [True, 1.0]
    assert await amilestone_evaluator(GRAPH, judge)(outputs=MESSAGES) == sync


def test_outputs_without_a_conversation_are_refused():
    with pytest.raises(InputError):
        milestone_evaluator(GRAPH)(outputs={"answer": 7})
