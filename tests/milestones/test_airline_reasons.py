"""Why goal completion and a recorded reward differ, on runs made by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import BrokenRecord
from benchmarks.airline import Run, read_runs, why
from benchmarks.airline_tables import tables

LOOK = {"name": "get_reservation", "kwargs": {"id": "R1"}}
CANCEL = {"name": "cancel_reservation", "kwargs": {"id": "R1"}}
BOOK = {"name": "book_flight", "kwargs": {"flights": [{"number": "F1"}], "bags": 1}}


def record(
    *calls: Any, gold: Any = (LOOK, CANCEL), reward: float = 0.0, said: str = "Bye.", **more: Any
) -> dict[str, Any]:
    """A tau-bench result; a call is an action, or an action and its result."""
    traj: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
    for number, call in enumerate(calls):
        action, result = call if isinstance(call, tuple) else (call, "done")
        function = {"name": action["name"], "arguments": json.dumps(action["kwargs"])}
        traj.append(
            {"role": "assistant", "content": None, "tool_calls": [{"id": str(number), "function": function}]}
        )
        traj.append({"role": "tool", "tool_call_id": str(number), "content": result})
    traj.append({"role": "assistant", "content": said})
    task = {"actions": list(gold), "outputs": more.pop("outputs", [])}
    reward_info = more.pop("reward_info", {"reward": reward, "info": {"r_actions": reward}})
    return {"task_id": 1, "reward": reward, "info": {"task": task, "reward_info": reward_info}, "traj": traj}


def run(folder: Any, *calls: Any, **options: Any) -> Run:
    file = folder / "results.json"
    file.write_text(json.dumps([record(*calls, **options)]))
    [found] = read_runs(file)
    assert isinstance(found, Run)
    return found


def test_a_run_on_which_both_agree_has_no_reason(tmp_path):
    assert why(run(tmp_path, LOOK, CANCEL, reward=1.0)) is None
    assert why(run(tmp_path, LOOK, reward=0.0)) is None


def test_a_gold_call_that_changes_nothing_may_be_left_out(tmp_path):
    found = run(tmp_path, CANCEL, reward=1.0)
    assert why(found) == "reads left out"
    assert found.missing == [LOOK]
    assert why(found, "writes") is None


def test_a_write_with_further_keys_is_the_same_write_in_another_form(tmp_path):
    more = {"name": "book_flight", "kwargs": {"flights": [{"number": "F1", "from": "A"}], "bags": 1}}
    assert why(run(tmp_path, more, gold=[BOOK], reward=1.0)) == "other form"
    # Another value, or a key less, is another write.
    other = {"name": "book_flight", "kwargs": {"flights": [{"number": "F2", "from": "A"}], "bags": 1}}
    assert why(run(tmp_path, other, gold=[BOOK], reward=1.0)) == "other"
    less = {"name": "book_flight", "kwargs": {"flights": [{"number": "F1"}]}}
    assert why(run(tmp_path, less, gold=[BOOK], reward=1.0)) == "other"


def test_an_output_that_was_not_said(tmp_path):
    assert why(run(tmp_path, LOOK, CANCEL, outputs=["1200"], said="It costs 900.")) == "output not said"
    said = run(tmp_path, LOOK, CANCEL, outputs=["1200"], said="It costs 1,200.")
    assert said.unsaid_outputs == []
    assert why(said) == "other"


def test_a_run_that_was_cut_off_has_no_reward_to_differ_from(tmp_path):
    assert why(run(tmp_path, LOOK, CANCEL, outputs=["1"], reward_info=None)) == "cut off"


def test_a_file_of_another_kind_is_refused(tmp_path):
    chat = tmp_path / "chat.json"
    chat.write_text(json.dumps([{"messages": [{"role": "user", "content": "hi"}]}]))
    with pytest.raises(InputError, match="record 0 is no tau-bench result"):
        list(read_runs(chat))
    broken = tmp_path / "broken.json"
    broken.write_text('[{"traj": [')
    assert all(isinstance(one, BrokenRecord) for one in read_runs(broken))
    with pytest.raises(InputError, match=r"broken\.json: record 0"):
        list(tables(broken))
