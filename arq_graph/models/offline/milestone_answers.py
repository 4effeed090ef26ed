"""Judging milestones: one was reached where a sentence has enough of the words of its description."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import label, share, stems

HOLDS_FROM = 0.6  # the share of its words from which on a sentence says what a description says

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_SHORTEST_QUOTE = 20


def judge_milestones(prompt: Prompt) -> dict[str, Any]:
    """The answers to a milestone judge's queries, by milestone id: calls are genuine, quotes stand in their steps."""
    texts = (str(step.get("text")) for step in prompt.entries("steps") if step.get("from") == "user")
    answers: dict[str, Any] = {"intent_of_the_conversation": next(texts, "Nothing is said.")[:240]}
    for entry in prompt.entries("milestones"):
        if entry.get("id") in prompt.listed("judge"):
            is_call = entry.get("type") == "call"
            found = (
                [(step, None) for step in _seen(prompt, entry["id"])] if is_call else _quotes(prompt, entry)
            )
            step, quote = next(iter(found), (None, None))
            answers[str(entry["id"])] = {
                "milestone": str(entry.get("name")),
                "reason": "By the words of the step alone." if step else "Nothing has its words.",
                "step": step,
                "quote": quote,
                # Whether a call that code did not see was made is not the judge's to say.
                "achieved": True if step else None if is_call else False,
            }
    return answers


def _quotes(prompt: Prompt, entry: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The sentences after the dependencies that have enough of the description's words, with their steps."""
    description = str(entry.get("description") or label(str(entry.get("name"))))
    # "The agent offers …" is about the agent's words, "The customer accepts …" about the user's.
    named = re.search(r"\b(?:(agent|desk|assistant)|(?:customer|user))\b", description, re.IGNORECASE)
    speakers = ("agent", "user", "tool") if named is None else ("agent",) if named[1] else ("user",)
    seen = [steps[0] for id in entry.get("dependencies") or () if (steps := _seen(prompt, id))]
    begin = (max if entry.get("requires") == "all" else min)(seen) if seen and not entry.get("holds") else 0
    for step in prompt.entries("steps"):
        text, number = str(step.get("text") or step.get("result") or ""), int(step.get("step", 0))
        for sentence in _sentences(text) if step.get("from") in speakers and number > begin else ():
            if share(stems(description), stems(sentence)) >= HOLDS_FROM:
                yield number, sentence if len(sentence) >= _SHORTEST_QUOTE else text


def _sentences(text: str) -> list[str]:
    return [match[0].strip() for match in _SENTENCE.finditer(text) if match[0].strip()]


def _seen(prompt: Prompt, id: str) -> list[int]:
    seen = prompt.sections.get("seen")
    return seen.get(id, []) if isinstance(seen, dict) else []
