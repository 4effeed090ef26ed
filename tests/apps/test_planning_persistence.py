"""Plans outlive the process, strictly typed and without a warning; a turn that was cut off goes on with its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import BlueprintError, create_preact_agent, resume_or_invoke
from tests.apps.desk import get_order, kinds, says, thread
from tests.brain import asked_by
from tests.planning import act, planner, say

SCRIPT = Path(__file__).with_name("strict_plans.py")


def test_a_turn_that_was_cut_off_goes_on_with_its_plan():
    model = planner([act("get_order", {"order_id": "A-1"}), BlueprintError("gone"), say("It is late.")])
    app = create_preact_agent(model, [get_order], checkpointer=MemorySaver())
    with pytest.raises(BlueprintError):
        app.invoke(says("Where is A-1?"), thread(), durability="sync")
    state = resume_or_invoke(app, None, thread(), durability="sync")
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert state["plan"].version == 2
    assert asked_by(model, "planner")[-1].section("plan")["told_by"] == ["T1"]
