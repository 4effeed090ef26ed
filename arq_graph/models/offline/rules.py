"""Rules in a profile: "- when the tenant reports a leak: …" is done, and never read out as what the agent knows."""

from __future__ import annotations

import re
from typing import Any

from arq_graph.models.offline.evidence import Verdict, judge
from arq_graph.models.offline.persons import as_customer, roles_in
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Prompt

_RULE = re.compile(
    r"^\s*(?:[-*•]|\d+[.)])?\s*(?:(?:when(?:ever)?|if|once)\s+(?P<condition>[^:\n]+(?=:)|[^,\n]+)|always)\s*[:,]\s*"
    r"(?P<action>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def description_of(prompt: Prompt) -> str:
    """What the profile says besides its rules."""
    return _RULE.sub("", str(prompt.profile.get("text") or ""))


def rules_of(prompt: Prompt) -> list[dict[str, Any]]:
    """The rules of the profile, written like guidelines; none where the prompt lists guidelines of its own."""
    if prompt.sections.keys() & {"guidelines", "active_guidelines"}:
        return []
    found = [
        (match["condition"], match["action"])
        for match in _RULE.finditer(str(prompt.profile.get("text") or ""))
    ]
    roles = roles_in((condition or "", action) for condition, action in found)
    return [
        {
            "id": str(prompt.profile.get("id") or "P"),
            "condition": condition and as_customer(condition, roles),
            "action": as_customer(action, roles),
        }
        for condition, action in found
    ]


def holding(scene: Scene) -> list[tuple[dict[str, Any], Verdict]]:
    """The rules of the profile whose condition holds, each with why."""
    judged = [(rule, judge(rule["condition"], scene)) for rule in rules_of(scene.prompt)]
    return [(rule, verdict) for rule, verdict in judged if verdict.holds]
