"""A recorded conversation as a judge reads it: a list of numbered steps, one a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from arq_graph.milestones.judging.bounds import Budget, as_long_as_fits, cut
from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.reasoning.sections import as_json


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
        max_tokens: The budget of all steps together.
        count_tokens: How tokens are counted.

    Returns:
        None where the budget is too small even for `SHORTEST_TEXT` characters of each.
    """
    longest = Budget(max_tokens, count_tokens).longest
    return as_long_as_fits(
        partial(_steps, transcript), lambda steps: count_tokens(steps.text) <= max_tokens, longest
    )


def _steps(transcript: Transcript, limit: int | None) -> Steps:
    records = [_record(number, event, limit) for number, event in transcript.numbered()]
    lines = ",\n".join(as_json(record) for record in records)
    shortened = tuple(record["step"] for record in records if "shortened_from_characters" in record)
    return Steps(f"[\n{lines}\n]", shortened)


def _record(number: int, event: Event, limit: int | None) -> dict[str, Any]:
    if isinstance(event, Message):
        return {"step": number, "from": event.speaker, **cut("text", event.text, limit)}
    if isinstance(event, Call):
        record: dict[str, Any] = {"step": number, "from": "agent", "calls": event.tool}
        written = event.written
        if event.malformed is not None:
            return {**record, **cut("malformed_arguments", written, limit)}
        if limit is not None and len(written) > limit:
            return {**record, **cut("arguments", written, limit)}
        return {**record, "arguments": _data(written)}
    record = {"step": number, "from": "tool", "tool": event.tool, **cut("result", event.text, limit)}
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
