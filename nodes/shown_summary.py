"""The summary of a long history, as a prompt shows it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

from arq_graph.agent.state import HistorySummary
from arq_graph.reasoning.conversation import Conversation, ShownSummary
from arq_graph.reasoning.sections import section

_NOTE = (
    "stands for everything up to {last_id}, which is no longer shown; its ids are cited like those of shown messages. "
    "kept_word_for_word: messages and results of it. values_mentioned: numbers, dates and ids in it, by the message "
    "that first has them"
)


def find_current_summary(
    summaries: Sequence[HistorySummary], conversation: Conversation
) -> HistorySummary | None:
    """Return the newest of an agent's summaries; None if there isn't one, or if it is of another history."""
    if not summaries:
        return None
    summary = summaries[-1]
    has_lines = summary.line_count <= len(conversation.lines)
    if has_lines and conversation.history.hash_lines(summary.line_count) == summary.history_hash:
        return summary
    warnings.warn(
        f"the summary of the first {summary.line_count} lines of the history is dropped, since the history doesn't "
        "begin with them any more. Only add messages to a long thread: if something replaces, trims or summarises "
        "them itself, set summary=None",
        stacklevel=1,  # one place, so that Python warns once and not in every step
    )
    return None


def show_summary(summary: HistorySummary, conversation: Conversation) -> ShownSummary:
    """Return the section of a prompt that stands for the covered lines, with the ids that it cites."""
    speakers: dict[str, str] = {}
    kept_ids = set(summary.kept_lines)
    kept_lines: list[Any] = []
    for index, line in enumerate(conversation.lines[: summary.line_count]):
        speakers[line.id] = line.speaker
        if line.id in kept_ids:
            texts = conversation.render_lines([index])
            kept_lines.append(json.loads(texts[index]))
    points: list[dict[str, Any]] = []
    cited_ids = kept_ids.union(summary.values)
    for point in summary.points:
        # A model wrote the text. Whose words it rests on, code says: a claim of the customer's isn't a result.
        said_by = dict.fromkeys(speakers[id] for id in point.sources if id in speakers)
        points.append({"from": list(said_by), "text": point.text, "sources": point.sources})
        cited_ids.update(point.sources)
    last_id = conversation.lines[summary.line_count - 1].id
    content: dict[str, Any] = {"note": _NOTE.format(last_id=last_id), "points": points}
    if kept_lines:
        content["kept_word_for_word"] = kept_lines
    if summary.values:
        content["values_mentioned"] = summary.values
    return ShownSummary(section(content, "summary"), summary.line_count, frozenset(cited_ids))
