"""Judging milestones of a recorded conversation: by the words that a description shares with what was said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.sections import Prompt
from arq_graph.models.offline.words import in_words, overlap

HOLDS_FROM = 0.6
"""From this share of its words on, a sentence says what a description says."""
_UNTOLD_FROM = 0.25
_SHORT = 20
_OF_USER = re.compile(r"\b(?:user|customer|client|caller|guest|patient)s?\b", re.IGNORECASE)
_OF_SPEECH = re.compile(
    r"\b(?:offer|suggest|recommend|mention|explain|inform|tell|say|ask|state)(?:s|ed|ing)?\b|\bis told\b",
    re.IGNORECASE,
)
_OF_AGENT = re.compile(r"\b(?:agent|assistant|bot|system)s?\b", re.IGNORECASE)


def judge_milestones(prompt: Prompt) -> dict[str, Any]:
    """The answers to a milestone judge's queries, by milestone id."""
    milestones = {str(entry.get("id")): entry for entry in prompt.entries("milestones")}
    said = [step for step in prompt.entries("steps") if isinstance(step.get("text"), str)]
    wants = next((str(step["text"]) for step in said if step.get("from") == "user"), "")
    answers: dict[str, Any] = {"intent_of_the_conversation": wants[:240] or "Nothing is said."}
    for id in prompt.ids("judge"):
        if entry := milestones.get(id):
            answers[id] = _Case(prompt, entry).answer()
    return answers


@dataclass(frozen=True)
class _Case:
    prompt: Prompt
    entry: Mapping[str, Any]

    def answer(self) -> dict[str, Any]:
        known = {"milestone": f"{self.entry.get('name')}: {self.described}"}
        return {**known, **(self._of_calls() if self.entry.get("type") == "call" else self._of_state())}

    @cached_property
    def described(self) -> str:
        return str(self.entry.get("description") or in_words(str(self.entry.get("name") or "")))

    def _of_calls(self) -> dict[str, Any]:
        """What went through is taken to be genuine: word overlap does not show a wrong argument."""
        calls = self._seen(str(self.entry.get("id")))
        return {
            "intent_of_the_calls": "What the user asks for.",
            "where_the_arguments_come_from": [],
            "wrong_irrelevant_or_invented_arguments": [],
            "earlier_context_ignored": None,
            "observation_misread": None,
            "reason": "A call of the tool went through, and nothing speaks against it.",
            "step": calls[0] if calls else None,
            "quote": None,
            "achieved": True if calls else None,
        }

    def _of_state(self) -> dict[str, Any]:
        told = [*self._sentences()]
        nearest = max(told, key=lambda each: each[0], default=(0.0, 0, ""))
        share, step, quote = next((each for each in told if each[0] >= HOLDS_FROM), nearest)
        achieved = True if share >= HOLDS_FROM else None if share >= _UNTOLD_FROM else False
        reason = {
            True: f"Step {step} says it.",
            None: f"Step {step} comes near to it, no more.",
            False: "Nobody says anything like it.",
        }[achieved]
        return {
            "dependencies_reached_at": f"Step {self._after}." if self._after else "At the start.",
            "evidence": [f"{step}: {quote}"] if achieved is not False else [],
            "only_claimed_mixed_up_or_oversimplified": None,
            "reason": reason,
            "step": step if achieved else None,
            "quote": quote if achieved else None,
            "achieved": achieved,
        }

    def _sentences(self) -> Iterator[tuple[float, int, str]]:
        """What was said after the dependencies, sentence by sentence: how much of the description it shares."""
        for step in self.prompt.entries("steps"):
            text, number = step.get("text"), step.get("step")
            if not isinstance(text, str) or not isinstance(number, int) or number <= self._after:
                continue
            if step.get("from") not in self._speakers:
                continue
            for sentence in dialogue.sentences(text):
                quote = sentence if len(sentence) >= _SHORT else text
                yield overlap(self._sought, sentence), number, quote

    @cached_property
    def _sought(self) -> str:
        """The description without whom it is about and without that it is said: what the words themselves are."""
        about = _OF_AGENT.sub(" ", _OF_USER.sub(" ", self.described))
        return _OF_SPEECH.sub(" ", about).strip() or self.described

    @cached_property
    def _speakers(self) -> tuple[str, ...]:
        """Whose words count: of the one whom the description names first, or of both."""
        user, agent = _OF_USER.search(self.described), _OF_AGENT.search(self.described)
        if user and (not agent or user.start() < agent.start()):
            return ("user",)
        return ("agent",) if agent else ("user", "agent")

    @cached_property
    def _after(self) -> int:
        """The step at which the dependencies that code saw were reached; 0 where it saw none."""
        dependencies = self.entry.get("dependencies")
        seen = [self._seen(id) for id in (dependencies if isinstance(dependencies, list) else ())]
        first = [steps[0] for steps in seen if steps]
        if not first or self.entry.get("holds"):
            return 0
        return max(first) if self.entry.get("requires") == "all" else min(first)

    def _seen(self, id: object) -> list[int]:
        seen = self.prompt.sections.get("seen")
        steps = seen.get(id) if isinstance(seen, dict) else None
        return [step for step in steps if isinstance(step, int)] if isinstance(steps, list) else []
