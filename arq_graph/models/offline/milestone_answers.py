"""Milestones: judging whether one was reached by the words it shares with a step, and drafting a graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import label, share, stems

HOLDS_FROM = 0.6
"""From this share of its words on, a sentence says what a description says."""

_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_SHORTEST_QUOTE = 20
_MOST_TOOLS = 100


def judge_milestones(prompt: Prompt) -> dict[str, Any]:
    """The answers to a milestone judge's queries, by milestone id: calls are genuine, quotes stand in their steps."""
    asked = [entry for entry in prompt.entries("milestones") if entry.get("id") in prompt.listed("judge")]
    texts = (
        str(step["text"])
        for step in prompt.entries("steps")
        if step.get("from") == "user" and step.get("text")
    )
    answers: dict[str, Any] = {"intent_of_the_conversation": next(texts, "Nothing is said.")[:240]}
    for entry in asked:
        is_call = entry.get("type") == "call"
        answers[str(entry["id"])] = _of_call(prompt, entry) if is_call else _of_state(prompt, entry)
    return answers


def _of_call(prompt: Prompt, entry: Mapping[str, Any]) -> dict[str, Any]:
    calls = _seen(prompt, entry.get("id"))
    return {
        "milestone": str(entry.get("name")),
        "reason": "A call of the tool went through; whether it fits is not looked at.",
        "step": calls[0] if calls else None,
        "quote": None,
        "achieved": True if calls else None,
    }


def _of_state(prompt: Prompt, entry: Mapping[str, Any]) -> dict[str, Any]:
    said = next(_sentences(prompt, entry), None)
    return {
        "milestone": str(entry.get("name")),
        "evidence": [f"{said[0]}: {said[1]}"] if said else [],
        "reason": f"Step {said[0]} has its words." if said else "Nobody says anything with its words.",
        "step": said[0] if said else None,
        "quote": said[1] if said else None,
        "achieved": said is not None,
    }


def _sentences(prompt: Prompt, entry: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The sentences after the dependencies that have enough of the description's words, with their steps."""
    description = str(entry.get("description") or label(str(entry.get("name"))))
    # "The agent offers …" is about the agent's words, "The customer accepts …" about the user's.
    named = re.search(r"\b(?:(agent|desk|assistant)|(customer|user))\b", description, re.IGNORECASE)
    speakers = ("agent",) if named and named[1] else ("user",) if named else ("agent", "user", "tool")
    for step in prompt.entries("steps"):
        text, number = step.get("text") or step.get("result"), step.get("step")
        if step.get("from") not in speakers or not isinstance(text, str) or not isinstance(number, int):
            continue
        if number <= _begin(prompt, entry):
            continue
        for match in _SENTENCE.finditer(text):
            if share(stems(description), stems(match[0]), {}) >= HOLDS_FROM:
                sentence = match[0].strip()
                yield number, sentence if len(sentence) >= _SHORTEST_QUOTE else text


def _begin(prompt: Prompt, entry: Mapping[str, Any]) -> int:
    """The step at which the dependencies that code saw were reached; 0 where it saw none."""
    seen = [steps[0] for id in entry.get("dependencies") or () if (steps := _seen(prompt, id))]
    if not seen or entry.get("holds"):
        return 0
    return max(seen) if entry.get("requires") == "all" else min(seen)


def _seen(prompt: Prompt, id: Any) -> list[int]:
    seen = prompt.sections.get("seen")
    steps = seen.get(id) if isinstance(seen, dict) else None
    return steps if isinstance(steps, list) else []


def draft_milestones(prompt: Prompt) -> dict[str, Any]:
    """A chain from Start to End: the tools, in the order in which the workflow names them.

    Where it names none by its words, all tools; where there is none, the workflow's first sentence.
    """
    workflow = str(prompt.sections.get("workflow") or "")
    sentences = [match[0].strip() for match in _SENTENCE.finditer(workflow) if match[0].strip()]
    tools = {
        str(tool.get("name")): str(tool.get("description") or "")
        for tool in prompt.entries("tools")[:_MOST_TOOLS]
    }
    places = {name: _place(name, sentences) for name in tools}
    named = sorted((name for name in tools if places[name] >= 0), key=lambda name: places[name]) or list(
        tools
    )
    first = sentences[0] if sentences else "The workflow is done."
    steps = [_draft(name, "FC", tools[name], sentences, places[name]) for name in named]
    steps = steps or [_draft(first[:80], "NFC", first, sentences, 0)]
    start = _draft("Start", "NFC", "The conversation begins.", sentences, -1)
    chain = [start, *steps, _draft("End", "NFC", "The workflow is done.", sentences, -1)]
    for before, after in pairwise(chain):
        after["dependencies"] = [before["name"]]
    return {
        "goal": first,
        "tool_names": list(tools),
        "milestones": chain,
        "every_tool_has_its_exact_name": True,
        "every_way_leads_to_the_end": True,
        "requires_follows_the_workflow": True,
    }


def _draft(name: str, kind: str, description: str, sentences: list[str], place: int) -> dict[str, Any]:
    return {
        "workflow_words": sentences[place] if 0 <= place < len(sentences) else "",
        "dependency_rationale": "It is what the workflow names before.",
        "name": name,
        "type": kind,
        "tool": None,
        "description": " ".join(description.split())[:400],
        "dependencies": [],
        "requires": None,
    }


def _place(tool: str, sentences: list[str]) -> int:
    """The first sentence that names a tool by its name or by most of its words; -1 where none does."""
    for number, sentence in enumerate(sentences):
        if tool in sentence or share(stems(tool), stems(sentence), {}) >= HOLDS_FROM:
            return number
    return -1
