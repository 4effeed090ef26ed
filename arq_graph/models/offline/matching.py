"""Judging guidelines: the answers to the matcher's queries (ARQ paper, 5.1.1 and Appendix A)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.actions import Segment, is_continuous, segments
from arq_graph.models.offline.conditions import parse
from arq_graph.models.offline.evidence import Verdict, judge
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.insights import is_confirmation
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.toolnames import ToolName
from arq_graph.models.offline.words import content, overlap

_MERE_FORM = frozenset(("thank", "greet", "wish", "sympathise", "apologise"))
_SORRY = re.compile(r"\b(?:sorry|apologi[sz]e|apolog(?:y|ies))\b", re.IGNORECASE)


@dataclass(frozen=True)
class Judgement:
    """The judgement of one guideline.

    Args:
        guideline: Its id, condition and action.
        scene: The conversation.
        asked: The names of the queries; what is known beforehand is not asked.
        written: The guideline in its designer's own words.
    """

    guideline: Mapping[str, Any]
    scene: Scene
    asked: Collection[str]
    written: Mapping[str, Any]

    @property
    def action(self) -> str:
        """What the guideline tells the agent to do."""
        return str(self.guideline.get("action") or "")

    @property
    def id(self) -> str:
        """The guideline's id."""
        return str(self.guideline.get("id"))

    @cached_property
    def is_judged(self) -> bool:
        """Whether this guideline is to be judged now."""
        return "judge" not in self.scene.prompt.now or self.id in self.scene.prompt.ids("judge")

    @cached_property
    def verdict(self) -> Verdict:
        """Whether the condition holds."""
        if not self.is_judged:
            return Verdict(0.1, "Not judged now.")
        if self.id in self.scene.prompt.ids("holds"):
            return Verdict(1.0, "Code has checked the condition: it holds.", recurs=False)
        return judge(self.guideline.get("condition"), self.scene)

    @cached_property
    def continuous(self) -> bool:
        """Whether the action shapes every reply: as asked, or as the queries show that it is known to be."""
        if {"guideline_is_continuous", "application"} & set(
            self.asked
        ) or "condition_applies" not in self.asked:
            return is_continuous(self.action)
        return "guideline_previously_applied" not in self.asked

    @cached_property
    def replies(self) -> tuple[Line, ...]:
        """The replies that followed this guideline, by the evidence of the prompt."""
        entries = self.scene.prompt.now.get("applied")
        ids = {
            entry.get("reply")
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, dict) and entry.get("guideline") == self.id
        }
        known = tuple(line for line in self.scene.agent if line.id in ids)
        return known or ((Line("an earlier reply", "agent", ""),) if ids else ())

    @cached_property
    def done(self) -> tuple[tuple[Segment, Line | None], ...]:
        """Each part of the action, with the message that did it."""
        parts = segments(self.action)
        if self.replies:
            return tuple((part, self.replies[-1]) for part in parts)
        return tuple((part, self._message_doing(part)) for part in parts)

    def _message_doing(self, part: Segment) -> Line | None:
        return next((line for line in reversed(self.scene.agent) if _does(part, line.text)), None)

    @cached_property
    def waits_for_answer(self) -> bool:
        """Whether the need it serves is still open: it was taken up, the agent asked for something, and got it."""
        scene = self.scene
        if not self.replies or not scene.answers(scene.last):
            return False
        began, replied = scene.index_of(scene.inquiry[-1].id), scene.index_of(self.replies[-1].id)
        found = any(
            line.speaker == "tool" and not Finding(line).failed and not Finding(line).is_empty
            for line in scene.lines[began + 1 : max(replied, 0)]
        )
        has_just_agreed = bool(scene.accepted) and is_confirmation(scene.open_question)
        return (replied > began or has_just_agreed) and any(_takes_data(part, found) for part, _ in self.done)

    @cached_property
    def previously(self) -> str:
        """To what degree the action was taken before: no, partially, fully."""
        if self.waits_for_answer:
            return "partially"
        done = [line is not None for _, line in self.done]
        if not done or not any(done):
            return "no"
        return "fully" if all(done) else "partially"

    @cached_property
    def missing_part(self) -> str | None:
        """If it was taken in part: whether what is missing is mere form."""
        if self.previously != "partially":
            return None
        missing = [part for part, line in self.done if line is None]
        return "cosmetic" if missing and all(part.deed in _MERE_FORM for part in missing) else "functional"

    @cached_property
    def is_due_again(self) -> bool:
        """Whether an action that was taken is to be taken again: the condition came true anew, or a part is owed."""
        if self.missing_part == "functional":
            return True
        verdict = self.verdict
        if not (verdict.holds and verdict.anew and verdict.recurs):
            return False
        after = max((self.scene.index_of(line.id) for _, line in self.done if line is not None), default=-1)
        return self.scene.index_of(verdict.source) > after

    @property
    def should_apply(self) -> bool:
        """Whether the action is to be taken now, were the condition to hold."""
        return self.continuous or self.previously == "no" or self.is_due_again

    @property
    def score(self) -> int:
        """How strongly the action is called for, 1 to 10."""
        return max(1, min(10, int(self.verdict.degree * 10 + 1e-6)))

    def answers(self) -> dict[str, Any]:
        """The answers, by query."""
        holds = self.verdict.holds
        about_action = self._about_action()
        return {
            "condition": self.written.get("condition"),
            "condition_application_rationale": self.verdict.why,
            "condition_applies": ("yes" if holds else "no") if "application" in self.asked else holds,
            "application": about_action if holds or "condition_applies" not in self.asked else None,
            "score": self.score,
            "should_apply": self.should_apply,
            **about_action,
            **self._static(),
        }

    def _about_action(self) -> dict[str, Any]:
        anew = self.is_due_again and self.previously != "no" and not self.waits_for_answer
        return {
            "action": str(self.written.get("action") or ""),
            "guideline_is_continuous": self.continuous,
            "guideline_previously_applied_rationale": [
                _explained(part, line)["explanation"]
                if "application" in self.asked
                else _explained(part, line)
                for part, line in self.done[:12]
            ],
            "new_or_subtly_different_context": f"{self.verdict.source} raises it anew." if anew else None,
            "guideline_previously_applied": self.previously,
            "is_missing_part_cosmetic_or_functional": self.missing_part,
            "guideline_should_reapply": None if self.previously == "no" else self.is_due_again,
        }

    def _static(self) -> dict[str, Any]:
        """What never changes about the guideline, for the preparation that asks it once."""
        condition = self.guideline.get("condition")
        clauses = (
            [clause for clauses in parse(condition) for clause in clauses]
            if isinstance(condition, str)
            else []
        )
        by_tools = [clause for clause in clauses if clause.kind in ("result", "state", "comparison")]
        lasting = [part.text for part in segments(self.action) if part.continuous]
        return {
            "continuous": bool(lasting),
            "continuous_rationale": f'"{lasting[0]}" shapes every reply.'
            if lasting
            else "Once it is done, it is done.",
            "sensitive_to_tools": bool(by_tools),
            "sensitive_to_tools_rationale": (
                f'What a tool finds may show that "{by_tools[0].text}".'
                if by_tools
                else "Only the conversation tells."
            ),
        }


def _takes_data(part: Segment, found: bool) -> bool:
    """Whether a part may need something from the customer before it can be done.

    Args:
        part: The part.
        found: Whether a tool has found something for the need: then what only looks up and tells is done.
    """
    if part.deed == "tell":
        return not found and not part.is_statement and part.verb not in ("mention", "note")
    if found and part.deed == "use tool" and ToolName(part.verb).reads:
        return False
    return part.deed in ("use tool", "offer", "other")


def _explained(part: Segment, line: Line | None) -> dict[str, str]:
    words = part.text.rstrip(".").upper()
    done = f"Done in {line.id}: {words}." if line else f"Not done yet: {words}."
    return {"action_segment": part.text, "explanation": done}


def _does(part: Segment, text: str) -> bool:
    """Whether a message of the agent plainly does a part of an action."""
    if part.quote:
        return part.quote.lower().rstrip(".!?") in text.lower()
    if part.deed == "apologise":
        return _SORRY.search(text) is not None
    if part.deed == "greet":
        return dialogue.greets(text) or "welcome" in text.lower()
    if part.deed == "thank":
        return dialogue.thanks(text)
    if part.deed in ("use tool", "other", "forbid", "style") or not content(part.rest):
        return False
    said = [
        sentence for sentence in dialogue.sentences(text) if sentence.endswith("?") == (part.deed == "ask")
    ]
    if part.deed in ("offer", "recommend"):
        said = list(dialogue.sentences(text))
    return any(overlap(part.rest, sentence) >= 0.75 for sentence in said)


def judge_guidelines(scene: Scene, asked: Mapping[str, Collection[str]]) -> dict[str, Any]:
    """The answers for every guideline of the prompt that is asked for.

    Args:
        scene: The conversation.
        asked: For each property of the answer, the names of its queries.
    """
    answers: dict[str, Any] = {}
    reasons: list[str] = []
    for written, guideline in zip(scene.prompt.entries("guidelines"), scene.prompt.guidelines(), strict=True):
        id = str(guideline.get("id"))
        if id in asked:
            judgement = Judgement(guideline, scene, asked[id], written)
            answers[id] = judgement.answers()
            if judgement.is_judged:
                reasons.append(f"{id}: {judgement.verdict.why}")
    answers["reasoning"] = " ".join(reasons)
    return answers
