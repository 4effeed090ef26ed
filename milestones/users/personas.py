"""Personas: how a user talks, from plain questions to ethical dilemmas, security challenges and critical decisions."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from arq_graph.errors import SpecError

Moment = Literal[
    "opening", "next", "answer", "again", "unknown", "correction", "yes", "no", "fallback", "choice", "waiting",
    "side_question", "give_up", "bare", "mistake",
]  # fmt: skip

PLAIN: Mapping[Moment, tuple[str, ...]] = {
    "opening": ("{said}", "Hello! {said}", "Hi. {said}"),
    "next": ("Thank you. {said}", "Thanks. One more thing: {said}", "Great. {said}"),
    "answer": ("{said}", "Sure. {said}"),
    "again": ("As I said: {said}", "Once more: {said}", "Let me put it another way: {said}"),
    "unknown": ("I am sorry, I do not know that.", "I am afraid I cannot tell you that."),
    "correction": ("No, {said}", "Sorry, that is not right: {said}"),
    "mistake": ("Sorry, I got that wrong: {said}", "My mistake: {said}"),
    "yes": ("Yes, please.", "Yes, go ahead."),
    "no": ("No, thank you.", "No thanks."),
    "fallback": ("I see. {said}", "Then I would rather do this: {said}"),
    "choice": ("{said}, please.", "I take {said}."),
    "waiting": ("Okay.", "All right."),
    "side_question": (
        "By the way, are you a real person?",
        "Quick question in between: how is the weather where you are?",
        "Before I forget: do you happen to like football?",
    ),
    "bare": ("{said}",),
    "give_up": ("I will leave it at that then. Goodbye.",),
}
"""What everybody says who has no words of their own for a moment; `{said}` is what there is to say."""


@dataclass(frozen=True)
class Persona:
    """How a user talks.

    Args:
        name: What a spec calls it.
        description: Who it is, as a model reads it.
        lines: Its words for moments of a conversation, with `{said}` for what there is to say; any moment that
            is not here has the plain words.
        challenges: What it puts to the agent beyond its goal, one a turn, when all intents are dealt with.
    """

    name: str
    description: str
    lines: Mapping[Moment, tuple[str, ...]] = field(default_factory=dict)
    challenges: tuple[str, ...] = ()

    def lines_for(self, moment: Moment) -> tuple[str, ...]:
        """The words that it may choose from at a moment."""
        return self.lines.get(moment) or PLAIN[moment]


def persona_of(text: str) -> Persona:
    """The shipped persona of that name, or one that the text describes.

    Args:
        text: A name, or a description of at least three words.

    Raises:
        SpecError: It is one word or two, and no shipped persona is called that.
    """
    from arq_graph.milestones.users.shipped_personas import PERSONAS

    name = text.strip().lower().replace("_", "-").replace(" ", "-")
    if found := PERSONAS.get(name):
        return found
    if len(text.split()) < 3:
        near = difflib.get_close_matches(name, PERSONAS, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else "."
        raise SpecError(
            f"there is no persona {text!r}{meant} Shipped are {', '.join(PERSONAS)}; a description of your own has "
            "three words or more"
        )
    return Persona("described", text)
