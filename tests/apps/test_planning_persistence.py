"""Plans outlive the process, strictly typed and without a warning; a turn that was cut off goes on with its plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import BlueprintError, create_planning_agent, resume_or_invoke
from tests.apps.desk import get_order, kinds, says, thread
from tests.brain import asked_by
from tests.planning import act, planner, say

SCRIPT = Path(__file__).with_name("strict_plans.py")


def test_plans_are_kept_under_strict_checkpoints(tmp_path):
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": str(SCRIPT.parents[2])}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "threads.sqlite")],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    plans = json.loads(done.stdout)
    assert (
        plans["guided"] == plans["alone"] == plans["foreign"] == ["Plan", 2, [None], ["Stop."], [1, "Bye."]]
    )


def test_a_turn_that_was_cut_off_goes_on_with_its_plan():
    model = planner([act("get_order", {"order_id": "A-1"}), BlueprintError("gone"), say("It is late.")])
    app = create_planning_agent(model, [get_order], checkpointer=MemorySaver())
    with pytest.raises(BlueprintError):
        app.invoke(says("Where is A-1?"), thread(), durability="sync")
    state = resume_or_invoke(app, None, thread(), durability="sync")
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert state["plan"].version == 2
    assert asked_by(model, "planner")[-1].section("plan")["told_by"] == ["T1"]
