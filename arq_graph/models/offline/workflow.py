"""The milestones of a workflow: its tools in the order in which it mentions them, from Start to End."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.sections import Prompt
from arq_graph.models.offline.words import in_words, overlap

MOST_TOOLS = 100
_MOST_SENTENCES = 100
_MEANT_FROM = 0.7
_LONGEST_NAME = 80


def draft_milestones(prompt: Prompt) -> dict[str, Any]:
    """A chain of the tools that the workflow mentions; of its first sentence, where there is no tool.

    Args:
        prompt: The prompt, with the sections `workflow` (a text) and `tools` (name and description of each).
    """
    workflow = str(prompt.sections.get("workflow") or "")
    tools = {str(tool.get("name")): tool for tool in prompt.entries("tools")[:MOST_TOOLS]}
    places = {name: _place(name, workflow) for name in tools}
    named = sorted((place, name) for name, place in places.items() if place is not None)
    steps = [
        _milestone(name, "FC", str(tools[name].get("description") or ""), workflow) for _, name in named
    ] or [
        _milestone(name, "FC", str(tool.get("description") or ""), workflow) for name, tool in tools.items()
    ]
    first = next(iter(dialogue.sentences(workflow)), "").strip()
    steps = steps or [_milestone(first[:_LONGEST_NAME].strip() or "Workflow done", "NFC", first, workflow)]
    chain = [
        _milestone("Start", "NFC", "The conversation begins.", ""),
        *steps,
        _milestone("End", "NFC", "The workflow is done.", ""),
    ]
    for before, after in pairwise(chain):
        after["dependencies"] = [before["name"]]
    return {"goal": first, "tool_names": list(tools), "milestones": chain}


def _milestone(name: str, type_: str, description: str, workflow: str) -> dict[str, Any]:
    sentences = dialogue.sentences(workflow)[:_MOST_SENTENCES]
    return {
        "workflow_words": next((each for each in sentences if name in each), ""),
        "dependency_rationale": "It is what the workflow mentions before.",
        "name": name,
        "type": type_,
        "tool": None,
        "description": " ".join(description.split())[:400],
        "dependencies": [],
        "requires": None,
    }


def _place(name: str, workflow: str) -> int | None:
    """Where the workflow mentions a tool: by its name, its name in words, or words much like it."""
    for wanted in (name, in_words(name)):
        if wanted and (found := re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", workflow, re.IGNORECASE)):
            return found.start()
    at = 0
    for sentence in dialogue.sentences(workflow)[:_MOST_SENTENCES]:
        at = max(at, workflow.find(sentence, at))
        if overlap(in_words(name), sentence) >= _MEANT_FROM:
            return at
    return None
