"""How a user without a model puts things: in its persona's words, with as much truth as its kind allows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

from arq_graph.milestones.users.asked import Fact
from arq_graph.milestones.users.inventing import without_truth, wrong_value
from arq_graph.milestones.users.personas import Moment, persona_of
from arq_graph.milestones.users.spec import UserSpec
from arq_graph.milestones.users.withholding import is_kept_back, without_identifiers
from arq_graph.models.offline.wording import joined

_VAGUE = (
    "I am not sure. Maybe it is in your system already.",
    "I could not say. Perhaps try whatever comes first.",
    "Hard to tell. Whatever you think is best.",
)
_NOT_AT_HAND = "I do not have the {} at hand."
_NOT_THE_RIGHT = "I mean another {}."


class Voice:
    """Puts into words what a user says; the same seed and the same turn give the same words.

    Args:
        spec: Who speaks.
        seed: What chance depends on.
    """

    def __init__(self, spec: UserSpec, seed: int) -> None:
        self.persona = persona_of(spec.persona)
        self._kind = spec.kind
        self._seed = seed
        self._truths = spec.values
        self._facts = [
            (name, value)
            for group in (spec.knowledge, *(intent.slots for intent in spec.intents))
            for name, value in group.items()
        ]

    def chance(self, *about: object) -> Random:
        """Chance for one purpose, which no other draw changes."""
        return Random("/".join(map(str, (self._seed, *about))))

    def line(self, moment: Moment, said: str, turn: int) -> str:
        """What is said at a moment, in the persona's words.

        Args:
            moment: The moment.
            said: What there is to say.
            turn: The number of the turn.
        """
        lines = self.persona.lines_for(moment)
        template = self.chance("line", turn, moment).choice(lines)
        before, placed, after = template.partition("{said}")
        if placed and before.endswith((", ", ": ")) and said.startswith(("The ", "My ", "That ")):
            said = said[0].lower() + said[1:]
        return (
            f"{before}{said.rstrip('.') if after.startswith((',', '.')) else said}{after}"
            if placed
            else before
        )

    def facts(
        self, facts: Sequence[Fact], turn: int, wrong: Mapping[str, object], *, correcting: bool
    ) -> str:
        """Facts as sentences, as far as the kind of user says them.

        Args:
            facts: What was asked for.
            turn: The number of the turn.
            wrong: Values that are said instead of the true ones, by name.
            correcting: The agent had them wrong.
        """
        if self._kind == "unhelpful":
            return self._lies(facts, turn)
        said = [fact for fact in facts if not self._keeps_back(fact)]
        kept = [fact.label for fact in facts if self._keeps_back(fact)]
        parts = [_stated(fact, wrong.get(fact.name, fact.value)) for fact in said]
        sentences = [f"{_capital(joined(parts))}."] if parts else []
        if kept:
            template = _NOT_THE_RIGHT if correcting else _NOT_AT_HAND
            sentences.append(template.format(joined(kept, "or")))
        return " ".join(sentences)

    def part_of(self, fact: Fact) -> str | None:
        """A part of an identifier, where it can be told in parts and the kind of user tells it."""
        digits = re.search(r"\d{3,}$", fact.text)
        if self._kind != "helpful" or digits is None or len(fact.text) < 5:
            return None
        return f"I only remember that the {fact.label} ends with {digits[0][-2:]}."

    def vague(self, turn: int) -> str:
        """What somebody says who does not know."""
        return self.chance("vague", turn).choice(_VAGUE)

    def own(self, text: str) -> str:
        """A text of the spec, as far as the kind of user may say it."""
        if self._kind == "unhelpful":
            for name, value in self._facts:
                if isinstance(value, bool) or (lie := self._lie(name, value, 0)) is None:
                    continue
                whole = rf"(?<!\w){re.escape(str(value))}(?!\w)"
                text = re.sub(whole, lambda _, lie=lie: str(lie), text, flags=re.IGNORECASE)  # type: ignore[misc]
        return self.allowed(text)

    def allowed(self, text: str) -> str:
        """A text without what the kind of user never says; the last thing done to each text."""
        if self._kind == "perturbed":
            return without_identifiers(text, self._facts)
        return without_truth(text, self._truths) if self._kind == "unhelpful" else text

    def _keeps_back(self, fact: Fact) -> bool:
        return self._kind == "perturbed" and is_kept_back(fact.name, fact.value)

    def _lies(self, facts: Sequence[Fact], turn: int) -> str:
        parts = [
            _stated(fact, lie)
            for fact in facts
            if (lie := self._lie(fact.name, fact.value, turn // 4)) is not None
        ]
        return f"I think {joined(parts)}." if parts else self.vague(turn)

    def _lie(self, name: str, value: str | int | float | bool, attempt: int) -> object:
        return wrong_value(name, value, self.chance("lie", name, attempt), self._truths)


def _stated(fact: Fact, value: object) -> str:
    said = ("yes" if value else "no") if isinstance(value, bool) else str(value)
    if isinstance(value, bool):
        return f"{fact.label}: {said}"
    if fact.label == "name":
        return f"my name is {said}"
    return f"the {fact.label} is {said}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
