"""Simulations of tau2-bench, each with its task, reward and gold actions; a results file holds many of them.

The result of a tool names its call by `id`, and results may come in another order than their calls. The simulated user
has tools, too: its calls are marked as the user's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.parts import as_fields


def can_read(record: Any) -> bool:
    """Return whether a record is a simulation."""
    if not isinstance(record, Mapping) or not isinstance(record.get("messages"), list):
        return False
    return "reward_info" in record or "termination_reason" in record


def split(record: Mapping[str, Any]) -> Iterator[Any] | None:
    """Return the simulations of a results file with the gold actions of their tasks; None if it isn't one."""
    simulations, tasks = record.get("simulations"), record.get("tasks")
    if not isinstance(simulations, list) or not isinstance(tasks, list):
        return None
    return (_add_gold_actions(simulation, tasks) for simulation in simulations)


def read(record: Any) -> dict[str, Any]:
    """Return the messages of a simulation, its reward, and the record's other keys."""
    fields = dict(record)
    if not fields["messages"]:
        raise InputError("the conversation is empty: `messages` holds none; `ticks` of audio are not read")
    fields["messages"] = [_convert_message(message) for message in fields["messages"]]
    fields["id"] = f"task {record.get('task_id')}, trial {record.get('trial', 0)}"
    reward = record.get("reward_info")
    if isinstance(reward, Mapping):
        fields["reward"] = reward.get("reward")
    return fields


def _convert_message(message: Any) -> Any:
    if not isinstance(message, Mapping) or message.get("role") != "tool" or "tool_messages" in message:
        return message
    return dict(message) | {"tool_call_id": message.get("id")}


def _add_gold_actions(simulation: Any, tasks: Sequence[Any]) -> Any:
    """Return a simulation with the actions of a perfect agent, in the form that tau-bench has."""
    for task in map(as_fields, tasks):
        gold_actions = as_fields(task.get("evaluation_criteria")).get("actions")
        if not isinstance(simulation, Mapping) or task.get("id") != simulation.get("task_id"):
            continue
        actions = []
        for action in map(as_fields, gold_actions if isinstance(gold_actions, list) else ()):
            if action.get("requestor", "assistant") == "assistant":
                actions.append({"name": action.get("name"), "kwargs": action.get("arguments") or {}})
        return dict(simulation) | {"actions": actions}
    return simulation
