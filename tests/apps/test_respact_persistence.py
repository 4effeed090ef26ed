"""A task that speaks and confirms goes on in another process, strictly typed and without a warning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from langgraph.checkpoint.memory import MemorySaver

from arq_graph import BlueprintError, resume_or_invoke
from tests.apps.desk import get_order, kinds, says, thread
from tests.speaking import act, respact, say, speaker, think

SCRIPT = Path(__file__).with_name("strict_moves.py")


def in_a_process(database, *parts):
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": str(SCRIPT.parents[2])}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(database), *map(str, parts)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_a_turn_that_was_cut_off_goes_on():
    script = [think("An order."), act("get_order", {"order_id": "A-1"}), BlueprintError("gone"), say("Late.")]
    app = respact(speaker(script), [get_order], checkpointer=MemorySaver())
    try:
        app.invoke(says("Where is A-1?"), thread(), durability="sync")
    except BlueprintError:
        state = resume_or_invoke(app, None, thread(), durability="sync")
    assert kinds(state) == ["human", "ai", "tool", "ai"]
    assert [move.kind for move in state["moves"]] == ["think", "act", "speak"]
