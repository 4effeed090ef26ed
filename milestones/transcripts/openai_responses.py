"""Items of OpenAI's responses API: a list of items, or an object with `input` or `output`, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.parts import as_fields, read_block


def can_read(record: Any) -> bool:
    """Return whether a record is a list with items that are no messages, or an object that has items."""
    if isinstance(record, Mapping):
        parts = [record.get("input"), record.get("output")]
        are_items = all(part is None or isinstance(part, str | list) for part in parts)
        return "messages" not in record and are_items and any(isinstance(part, list) for part in parts)
    return isinstance(record, list | tuple) and any(map(is_item, record))


def read(record: Any) -> dict[str, Any]:
    """Return the items as messages: all that the agent does until a result comes are parts of one message."""
    if not isinstance(record, Mapping):
        return {"messages": _group_items(record)}
    fields = dict(record)
    items = _get_items(fields.pop("input", None), "user")
    if fields.get("previous_response_id") and not any(map(is_item, items)):
        raise InputError(
            f"it continues the response {fields['previous_response_id']!r}, which isn't in the record: put the items "
            "of the whole conversation into `input`"
        )
    items += _get_items(fields.pop("output", None), "assistant")
    if not items:
        raise InputError("the conversation is empty: `input` and `output` hold no items")
    fields["messages"] = _group_items(items)
    return fields


def _get_items(items: Any, role: str) -> list[Any]:
    if isinstance(items, str):
        return [{"role": role, "content": items}]
    return list(items or ())


def is_item(value: Any) -> bool:
    """Return whether this is an item that is no message: a call, a result, reasoning."""
    fields = as_fields(value)
    return (
        "type" in fields and fields.keys().isdisjoint(("role", "content")) and read_block(fields) is not None
    )


def _group_items(items: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for role, group in groupby(enumerate(map(as_fields, items)), key=_get_role):
        numbered_items = list(group)
        if role not in ("assistant", "tool"):
            for index, fields in numbered_items:
                yield dict(fields) | {"step": index}
            continue
        blocks: list[Any] = []
        for _, fields in numbered_items:
            content = fields.get("content")
            if "role" not in fields:
                content = [fields]
            blocks.extend(content if isinstance(content, list) else [content or ""])
        yield {"role": role, "content": blocks, "step": numbered_items[0][0]}


def _get_role(numbered_item: tuple[int, Mapping[str, Any]]) -> Any:
    fields = numbered_item[1]
    if "role" in fields:
        return fields["role"]
    return "tool" if str(fields.get("type")).endswith("_output") else "assistant"
