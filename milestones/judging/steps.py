"""A recorded conversation as a judge reads it: a list of numbered steps, one a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from arq_graph.milestones.quotes import arguments_of
from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.reasoning.sections import as_json

SHORTEST_TEXT = 80
"""Characters of a text that are shown at least; a conversation that is too long even so is not judged."""


@dataclass(frozen=True)
class Steps:
    """The steps as the prompt has them.

    Args:
        text: A JSON list, one step a line.
        shortened: The numbers of the steps of which the middle is left out.
    """

    text: str
    shortened: tuple[int, ...]


def shown_steps(transcript: Transcript, max_tokens: int, count_tokens: Callable[[str], int]) -> Steps | None:
    """Every step of a conversation, long texts shortened as far as the budget makes it necessary.

    No step is left out, so their numbers are those of the transcript. Of a text that is too long the beginning
    and the end are shown, and how long it is; the longest are shortened first.

    Args:
        transcript: The conversation.
        max_tokens: The budget.
        count_tokens: How tokens are counted.

    Returns:
        None where the budget is too small even for `SHORTEST_TEXT` characters of each.
    """
    whole = _steps(transcript, None)
    if count_tokens(whole.text) <= max_tokens:
        return whole
    fitting: Steps | None = None
    # A text longer than this is over the budget by itself, at eight characters a token.
    low, high = SHORTEST_TEXT, max(SHORTEST_TEXT, 8 * max_tokens)
    while low <= high:
        limit = (low + high) // 2
        steps = _steps(transcript, limit)
        if count_tokens(steps.text) <= max_tokens:
            fitting, low = steps, limit + 1
        else:
            high = limit - 1
    return fitting


def _steps(transcript: Transcript, limit: int | None) -> Steps:
    records = [_record(number, event, limit) for number, event in transcript.numbered()]
    lines = ",\n".join(as_json(record) for record in records)
    shortened = tuple(record["step"] for record in records if "shortened_from_characters" in record)
    return Steps(f"[\n{lines}\n]", shortened)


def _record(number: int, event: Event, limit: int | None) -> dict[str, Any]:
    if isinstance(event, Message):
        return {"step": number, "from": event.speaker, **_cut("text", event.text, limit)}
    if isinstance(event, Call):
        record: dict[str, Any] = {"step": number, "from": "agent", "calls": event.tool}
        written = arguments_of(event)
        if event.malformed is not None:
            return {**record, **_cut("malformed_arguments", written, limit)}
        if limit is not None and len(written) > limit:
            return {**record, **_cut("arguments", written, limit)}
        return {**record, "arguments": _data(written)}
    record = {"step": number, "from": "tool", "tool": event.tool, **_cut("result", event.text, limit)}
    if event.call is not None:
        record["of_step"] = event.call
    if event.failed:
        record["failed"] = True
    return record


def _data(written: str) -> Any:
    try:
        return json.loads(written)
    except (ValueError, RecursionError):  # a Python literal that JSON cannot say
        return written


def _cut(key: str, text: str, limit: int | None) -> dict[str, Any]:
    if limit is None or len(text) <= limit:
        return {key: text}
    half = limit // 2
    return {key: f"{text[:half]} … {text[-half:]}", "shortened_from_characters": len(text)}
