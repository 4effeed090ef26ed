"""What `arq-graph run` prints: a JSON object for each turn of a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.messages import Recorded
from arq_graph.milestones.transcripts.records import Raw


def is_turn(value: Any) -> bool:
    """Whether this looks like a turn that `arq-graph run` printed."""
    return isinstance(value, Mapping) and {"thread", "turn", "customer", "reply"} <= value.keys()


def fits(record: Any) -> bool:
    """Whether a record is a turn, or a list of turns."""
    return is_turn(record) or (isinstance(record, list) and bool(record) and all(map(is_turn, record)))


def joined(raws: Iterable[Raw]) -> Iterator[Raw]:
    """The records of a file, where turns of one thread that follow each other are one record."""
    held: Raw | None = None
    for raw in raws:
        if held is not None and is_turn(raw.value) and raw.value["thread"] == held.value[0]["thread"]:
            held.value.append(raw.value)
            continue
        if held is not None:
            yield held
        held = replace(raw, value=[raw.value], group=None) if is_turn(raw.value) else None
        if held is None:
            yield raw
    if held is not None:
        yield held


def read(record: Any) -> Recorded:
    """The turns' messages; of a turn that waited for an operator and went on, as it stood in the end."""
    turns = record if isinstance(record, list) else [record]
    if not turns or not all(map(is_turn, turns)):
        raise InputError("no output of `arq-graph run`: a turn has `thread`, `turn`, `customer` and `reply`")
    latest = {turn["turn"]: turn for turn in turns}
    messages = [message for turn in latest.values() for message in _messages(turn)]
    return Recorded(messages, {"id": turns[0]["thread"]})


def _messages(turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    calls = turn.get("tool_calls") or []
    if not isinstance(calls, list) or not all(isinstance(call, Mapping) for call in calls):
        raise InputError(f"turn {turn['turn']}: `tool_calls` is no list of objects")
    yield {"type": "human", "content": turn["customer"]}
    for number, call in enumerate(calls):
        id = f"{turn['turn']}.{number}"
        asked = {"name": call.get("tool"), "args": call.get("arguments"), "id": id}
        yield {"type": "ai", "content": "", "tool_calls": [asked]}
        if call.get("status") != "pending":
            result = {"content": call.get("result"), "status": call.get("status")}
            yield {"type": "tool", "tool_call_id": id, "name": call.get("tool"), **result}
    if turn["reply"] is not None:
        yield {"type": "ai", "content": turn["reply"]}
