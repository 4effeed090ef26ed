"""Samples of inspect_ai's logs in JSON: chat messages with the sample's scores; a log holds many of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.transcripts.parts import as_fields

_ATTACHMENT = "attachment://"


def can_read(record: Any) -> bool:
    """Return whether a record is a sample."""
    return isinstance(record, Mapping) and "epoch" in record and isinstance(record.get("messages"), list)


def split(record: Mapping[str, Any]) -> Iterator[Any] | None:
    """Return the samples of a log; None if it isn't one."""
    samples = record.get("samples")
    return iter(samples) if "eval" in record and isinstance(samples, list) else None


def read(record: Any) -> dict[str, Any]:
    """Return the messages of a sample, with the long texts that the log holds apart, and its other keys."""
    fields = dict(record)
    attachments = as_fields(fields.pop("attachments", None))
    try:
        fields["messages"] = _resolve_attachments(fields["messages"], attachments)
    except RecursionError:
        raise InputError("nested too deeply to be a conversation") from None
    fields["task_id"] = record.get("id")
    fields["id"] = f"sample {record.get('id')}, epoch {record['epoch']}"
    return fields


def _resolve_attachments(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_resolve_attachments(item, attachments) for item in value]
    if isinstance(value, Mapping):
        return {key: _resolve_attachments(item, attachments) for key, item in value.items()}
    if not isinstance(value, str) or not value.startswith(_ATTACHMENT):
        return value
    key = value.removeprefix(_ATTACHMENT)
    if key not in attachments:
        raise InputError(f"the text {value!r} isn't among the sample's `attachments`")
    return attachments[key]
