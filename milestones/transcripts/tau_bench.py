"""Records of tau-bench result files: chat messages under `traj`, with the task, its gold actions and the reward."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arq_graph.errors import InputError


def can_read(record: Any) -> bool:
    """Return whether a record is a result of tau-bench."""
    return isinstance(record, Mapping) and "traj" in record


def read(record: Any) -> dict[str, Any]:
    """Return the messages of a result, its gold actions as `actions`, and the record's other keys."""
    if not isinstance(record["traj"], list):
        raise InputError("not a tau-bench result: `traj` is not a list of messages")
    info = record.get("info")
    task = info.get("task") if isinstance(info, Mapping) else None
    fields = dict(record)
    fields["messages"] = fields.pop("traj")
    if "task_id" in record:
        fields["id"] = f"task {record['task_id']}, trial {record.get('trial', 0)}"
    if isinstance(task, Mapping) and "actions" in task:
        fields["actions"] = task["actions"]
    return fields
