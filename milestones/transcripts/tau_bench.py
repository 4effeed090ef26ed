"""Result files of tau-bench: chat messages under `traj`, with the task, its gold actions and the reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arq_graph.errors import InputError


def fits(record: Any) -> bool:
    """Whether a record is a result of tau-bench."""
    return isinstance(record, Mapping) and "traj" in record


def read(record: Any) -> dict[str, Any]:
    """The messages of a result; its gold actions are kept as `actions`."""
    if not isinstance(record["traj"], list):
        raise InputError("no tau-bench result: `traj` is no list of messages")
    info = record.get("info")
    task = info.get("task") if isinstance(info, Mapping) else None
    held = dict(record)
    held["messages"] = held.pop("traj")
    if "task_id" in record:
        held["id"] = f"task {record['task_id']}, trial {record.get('trial', 0)}"
    if isinstance(task, Mapping) and "actions" in task:
        held["actions"] = task["actions"]
    return held
