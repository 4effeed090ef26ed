"""Threads outlive the process, strictly typed and without a warning."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import BlueprintError, ScriptedChatModel, create_guided_agent
from tests.apps.desk import active, desk, kinds, says, thread
from tests.brain import Asked, Call, asked_by, brain

SCRIPT = Path(__file__).with_name("strict_checkpoints.py")


def in_a_process(step, path):
    env = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": str(SCRIPT.parents[2])}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), step, str(path)], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(params=["memory", "sqlite"])
def checkpointer(request, tmp_path):
    if request.param == "memory":
        yield MemorySaver()
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
            yield saver


def test_a_call_that_is_not_committed_yet_is_the_same_at_every_look(checkpointer, monkeypatch):
    """Matching again fails beside the tool caller, whose next call waits to be committed."""
    saved = threading.Event()
    put_writes = checkpointer.put_writes

    @functools.wraps(put_writes)
    def noticed(config, writes, *args):
        put_writes(config, writes, *args)
        if "'order_id': 'A-2'" in repr(writes):
            saved.set()

    monkeypatch.setattr(checkpointer, "put_writes", noticed)

    def judged(call):
        if Asked(call).module == "matcher" and Asked(call).turn:
            # A failure ends the step, and what its neighbours have not saved by then is lost.
            assert saved.wait(timeout=60)
            return BlueprintError("gone")
        return talk._answer(call)

    def looked_up(asked):
        return [Call({"order_id": "A-2" if asked.results("get_order") else "A-1"})]

    talk = brain(judge={"G1": 9, "G2": 2}, call={"get_order": looked_up})
    app = create_guided_agent(ScriptedChatModel(judged), desk(), checkpointer=checkpointer)
    with pytest.raises(BlueprintError):
        app.invoke(says("Where are A-1 and A-2?"), thread())
    first, second = (app.get_state(thread()).values["messages"] for _ in range(2))
    assert [c["args"] for c in first[-1].tool_calls] == [{"order_id": "A-2"}]
    assert first == second


def test_two_apps_share_a_thread(checkpointer):
    model = brain(judge={"G1": lambda asked: 9 if "Where" in asked.tail else 2})
    create_guided_agent(model, desk(), checkpointer=checkpointer).invoke(says("Hello"), thread())
    app = create_guided_agent(model, desk(), checkpointer=checkpointer)
    state = app.invoke(says("Where is A-1?"), thread())
    assert kinds(state) == ["human", "ai", "human", "ai"]
    assert active(state) == ["G1", "G4"]
    evidence = [asked.lines[0]["text"] for asked in asked_by(model, "message")]
    assert evidence == ["Hello", "Hello"]


def test_threads_do_not_see_each_other(checkpointer):
    model = brain()
    app = create_guided_agent(model, desk(), checkpointer=checkpointer)
    app.invoke(says("Hello"), thread("a"))
    app.invoke(says("Hi"), thread("b"))
    assert [asked.lines[0]["text"] for asked in asked_by(model, "message")] == ["Hello", "Hi"]
