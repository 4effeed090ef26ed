"""What a user objects to before it is content: values that the agent has wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from arq_graph.milestones.patterns import Pattern
from arq_graph.milestones.users.asked import Fact
from arq_graph.milestones.users.hearing import Heard
from arq_graph.milestones.users.misstated import stated_instead
from arq_graph.milestones.users.spec import Intent, UserSpec


def serves(intent: Intent, text: str) -> bool:
    """Whether a text says that an intent is served, where the spec tells how that is known."""
    if intent.done_when is None:
        return False
    try:
        return Pattern(intent.done_when).is_in(text)
    except TimeoutError:
        return False


class Objections:
    """Finds what is wrong in a message; remembers what it found, so that a user insists on nothing for ever.

    Args:
        spec: Who the user is.
    """

    def __init__(self, spec: UserSpec) -> None:
        self._spec = spec
        self._made: set[tuple[str, str]] = set()
        self._lies: dict[str, set[str]] = {}
        self._to_mend: tuple[Fact, ...] = ()

    def misled(self, wrong: Mapping[str, object]) -> None:
        """Keep what the user itself said wrongly: the agent may believe it."""
        for name, value in wrong.items():
            self._lies.setdefault(name, set()).add(str(value))

    def against(
        self,
        heard: Heard,
        intent: Intent,
        slots: Sequence[Fact],
        facts: Sequence[Fact],
        told: Collection[str],
        *,
        served: bool,
    ) -> tuple[Fact, ...]:
        """What a message has wrong of what the user wants.

        Where the message serves the intent, or asks nothing about the value, the same value is objected to once.

        Args:
            heard: The message.
            intent: The intent at hand.
            slots: What belongs to it.
            facts: All that the user knows.
            told: The names of what the agent was told.
            served: Whether it serves the intent.
        """
        asks = any(each.checks or (each.is_yes_no and not served) for each in heard.questions)
        confirming = asks and not heard.fails
        wrong = []
        for fact in slots:
            if fact.name not in told and not confirming:
                continue
            others = fact.others_in(heard.without_examples, confirming=confirming)
            if others and not served:
                wrong.append(fact)
            elif (instead := self._instead(fact, heard, intent, facts, others)) is not None:
                if (fact.name, instead) not in self._made:
                    wrong.append(fact)
                self._made.add((fact.name, instead))
        if wrong and served:
            self._to_mend = tuple(wrong)
        return tuple(wrong)

    def are_mended(self, heard: Heard) -> bool:
        """Whether all was done but for what the user objected to, and now that is done, too."""
        if not self._to_mend or heard.fails or heard.asks:
            return False
        return heard.reports_done or all(fact.is_in(heard.text) for fact in self._to_mend)

    def forget(self) -> None:
        """Begin another intent."""
        self._made, self._lies, self._to_mend = set(), {}, ()

    def _instead(
        self, fact: Fact, heard: Heard, intent: Intent, facts: Sequence[Fact], others: Collection[str]
    ) -> str | None:
        known = {other.text for other in facts if other.name != fact.name}
        if len(others) == 1:
            instead = next(iter(others))
            # A new order may well have a number like that of the old one: then it is what the user waits for.
            return None if instead in known or serves(intent, instead) else instead
        if others:
            return None
        of_same_name = {str(each.slots[fact.name]) for each in self._spec.intents if fact.name in each.slots}
        of_same_name |= self._lies.get(fact.name, set())
        return stated_instead(fact, heard, facts, sorted(of_same_name - {fact.text}))
