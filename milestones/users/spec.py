"""A user in a conversation, and who a simulated one is: what it wants and knows, and how it talks (its persona)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Annotated, Literal, Protocol, get_args

from pydantic import BeforeValidator, Field, RootModel, field_validator

from arq_graph.agent.part import Part
from arq_graph.agent.yaml_file import read_model
from arq_graph.errors import SpecError, suggestion
from arq_graph.milestones.patterns import PatternText
from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.hearing import Fact

_PERSONAS = Path(__file__).with_name("personas.yaml")

Role = Literal["customer", "guide"]
Kind = Literal["helpful", "perturbed", "unhelpful"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Deviation = Literal["off_topic", "incorrect", "partial", "asr"]

Text = Annotated[str, Field(min_length=1, max_length=4_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Value = Text | int | float | bool
Texts = Annotated[tuple[Text, ...], BeforeValidator(lambda text: (text,) if isinstance(text, str) else text)]
Share = Annotated[float, Field(ge=0, le=1)]


class Persona(Part):
    """How a user talks."""

    description: str
    """Who it is, as a model reads it."""
    lines: Mapping[str, tuple[str, ...]] = {}
    """Its words for moments of a conversation, with `{said}` for what there is to say; for any moment that is not
    here, the plain persona's."""
    challenges: tuple[str, ...] = ()
    """What it puts to the agent beyond its wishes, one a turn, once all of them are dealt with."""


@cache
def shipped_personas() -> Mapping[str, Persona]:
    """The personas that come with the library, by name."""
    return read_model(_PERSONAS, RootModel[dict[str, Persona]], what="file of personas").root


def persona_of(text: str) -> Persona:
    """The shipped persona of that name, or one that the text describes in three words or more."""
    shipped = shipped_personas()
    if found := shipped.get(text):
        return found
    if len(text.split()) >= 3:
        return Persona(description=text)
    raise SpecError(
        f"is {text!r}, which is no persona{suggestion(text, shipped)} (the personas are {', '.join(shipped)}; a "
        "description of your own has three words or more)"
    )


class Intent(Part):
    """One thing that the user wants.

    Args:
        request: How it is asked: "Where is my order?".
        slots: What the user knows for it, by name: `{order_id: ORD-1002}`.
        answers: What is said when the agent asks about a topic: `{expedited shipping: "Yes, please."}`.
        accepts: Offers that are taken, in a few words each.
        refuses: Offers that are declined, in a few words each.
        fallback: What is wanted where the request cannot be had.
        done_when: A regular expression in the agent's words by which the user sees that the intent is served.
            None: an answer that asks nothing, reports no failure, and comes after all slots have been said.
    """

    request: Text
    slots: Mapping[Name, Value] = {}
    answers: Mapping[Name, Text] = {}
    accepts: Texts = ()
    refuses: Texts = ()
    fallback: Text | None = None
    done_when: PatternText | None = None


Intents = tuple[
    Annotated[Intent, BeforeValidator(lambda text: {"request": text} if isinstance(text, str) else text)], ...
]


class UserSpec(Part):
    """A simulated user (Pre-Act, 4.3; ReSpAct, 3.4, B.1 and E.4).

    Args:
        intents: What the user wants, 1 or more, in the order in which it is revealed; one may be its request alone.
        role: A `customer` opens, reveals one intent after the other and corrects the agent. A `guide` gives the
            task and from then on speaks only of what it is asked.
        kind: `helpful`: knows everything below and says it when asked. `perturbed`: the same without numbers,
            dates, addresses and identifiers. `unhelpful`: knows nothing of it and suggests what is wrong.
        knowledge: Further facts, by name; said only when asked.
        asked_as: Other words by which an agent may ask for a slot: `{order_id: [confirmation code]}`.
        persona: The name of a shipped persona, or a description in words, which a model plays.
        deviations: How often the user departs from the happy path, by kind, as a share of its turns from 0 to 1.
        patience: How often the user says the same again in one intent before giving up, 0 or more.
        closing: What is said when all is done; empty: nothing.
    """

    intents: Annotated[Intents, Field(min_length=1)]
    role: Role = "customer"
    kind: Kind = "helpful"
    knowledge: Mapping[Name, Value] = {}
    asked_as: Mapping[Name, Texts] = {}
    persona: Text = "plain"
    deviations: Mapping[Deviation, Share] = {}
    patience: int = Field(default=3, ge=0, le=100)
    closing: str = Field(default="Thanks, goodbye!", max_length=4_000)

    @field_validator("persona")
    @classmethod
    def _is_a_persona(cls, value: str) -> str:
        persona_of(value)
        return value

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All that the user knows, those of slots with the same name included."""
        groups = (self.knowledge, *(intent.slots for intent in self.intents))
        known = dict.fromkeys(fact for group in groups for fact in group.items())
        return tuple(Fact(name, value, self.asked_as.get(name, ())) for name, value in known)

    def deviation(self, seed: int, turn: int) -> Deviation | None:
        """How a turn departs from the happy path, by chance; the first one only through the recogniser of speech."""
        kinds: tuple[Deviation, ...] = get_args(Deviation) if turn > 1 else ("asr",)
        for kind in kinds:
            if Random(f"{seed}/deviation/{kind}/{turn}").random() < self.deviations.get(kind, 0.0):
                return kind
        return None


class User(Protocol):
    """A user of one conversation. Each conversation needs one of its own."""

    async def aspeak(self, said: Sequence[Message]) -> str | None:
        """What the user says next; None where it has nothing left to say.

        Args:
            said: The messages of user and agent so far, oldest first; none of them asks for the opening.
        """
        ...


class ScriptedUser:
    """A user whose lines are given: they are said as they stand, in order, whatever is answered; then it leaves."""

    def __init__(self, *lines: str) -> None:
        self._left = list(lines)

    async def aspeak(self, said: Sequence[Message]) -> str | None:
        """What the user says next; see `User`."""
        return self._left.pop(0) if self._left else None


def last_words(said: Sequence[Message]) -> str:
    """What the agent said since the user last spoke."""
    latest = takewhile(lambda message: message.speaker != "user", reversed(said))
    words = [each.text for each in latest if each.speaker == "agent" and each.text.strip()]
    return "\n".join(reversed(words))
