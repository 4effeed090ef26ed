"""A user of a conversation, and the specification of a simulated one: its wishes, knowledge and persona."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, Protocol, get_args

from pydantic import BeforeValidator, Field, RootModel, field_validator

from arq_graph.agent.part import Part
from arq_graph.agent.patterns import PatternText
from arq_graph.agent.yaml_file import read_model
from arq_graph.errors import SpecError, suggestion
from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.agent_message import Fact

Role = Literal["customer", "guide"]
Kind = Literal["helpful", "perturbed", "unhelpful"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Deviation = Literal["off_topic", "incorrect", "partial", "asr"]


def wrap_text(value: Any) -> Any:
    """Return one text as a tuple, and anything else as it is."""
    return (value,) if isinstance(value, str) else value


def _make_intent(value: object) -> object:
    return {"request": value} if isinstance(value, str) else value


Text = Annotated[str, Field(min_length=1, max_length=4_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Value = Text | int | float | bool
Texts = Annotated[tuple[Text, ...], BeforeValidator(wrap_text)]
Says = Text | Annotated[tuple[Text, ...], Field(min_length=1, max_length=100)]
"""One message, or several."""
Share = Annotated[float, Field(ge=0, le=1)]


class Persona(Part):
    """The way in which a user talks."""

    description: str
    """The description that a model reads."""
    lines: Mapping[str, tuple[str, ...]] = {}
    """Its words for moments of a conversation, with `{said}` for what there is to say; for any moment that is not
    here, the plain persona's."""
    challenges: tuple[str, ...] = ()
    """Messages that challenge the agent, one a turn, once all wishes are dealt with."""


@cache
def _read_shipped_personas() -> Mapping[str, Persona]:
    path = Path(__file__).with_name("personas.yaml")
    return read_model(path, RootModel[dict[str, Persona]], file_kind="file of personas").root


def find_persona(text: str) -> Persona:
    """Return the shipped persona of that name, or one that the text describes in three words or more.

    Raises:
        SpecError: The text is neither.
    """
    personas = _read_shipped_personas()
    if text in personas:
        return personas[text]
    if len(text.split()) >= 3:
        return Persona(description=text)
    raise SpecError(
        f"is {text!r}, which isn't a persona{suggestion(text, personas)} (the personas are {', '.join(personas)}; a "
        "description of your own has three words or more)"
    )


class Intent(Part):
    """One thing that the user wants.

    Args:
        request: The words in which it is asked: "Where is my order?".
        slots: The facts that the user knows for it, by name: `{order_id: ORD-1002}`.
        answers: The answer to each topic that the agent may ask about: `{expedited shipping: "Yes, please."}`.
        accepts: Offers that are taken, in a few words each.
        refuses: Offers that are declined, in a few words each.
        fallback: The request that follows if the first one fails.
        done_when: A regular expression in the agent's words by which the user sees that the intent is served.
            None: an answer without a question or a failure, after all slots have been told.
    """

    request: Text
    slots: Mapping[Name, Value] = {}
    answers: Mapping[Name, Text] = {}
    accepts: Texts = ()
    refuses: Texts = ()
    fallback: Text | None = None
    done_when: PatternText | None = None


Intents = tuple[Annotated[Intent, BeforeValidator(_make_intent)], ...]


class UserSpec(Part):
    """A simulated user (Pre-Act, 4.3; ReSpAct, 3.4, B.1 and E.4).

    Args:
        intents: The things that the user wants, 1 or more, in the order of asking; one may be its request alone.
        role: A `customer` opens, reveals one intent after the other and corrects the agent. A `guide` gives the
            task and from then on speaks only of what it is asked.
        kind: `helpful`: knows everything below and says it when asked. `perturbed`: doesn't have the ids at hand, and
            so says neither numbers nor dates, addresses and identifiers. `unhelpful`: knows none of it and suggests
            what is wrong.
        knowledge: Further facts, by name; told only when asked for.
        asked_as: Other words by which an agent may ask for a slot: `{order_id: [confirmation code]}`.
        persona: The name of a shipped persona, or a description in words, which a model plays.
        deviations: The share of turns, from 0 to 1, in which the user departs from the happy path, by kind.
        patience: The number of repetitions in one intent after which the user gives up, 0 or more.
        closing: The last words when all is done; may be empty.
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
    def _require_persona(cls, value: str) -> str:
        find_persona(value)
        return value

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All that the user knows, those of slots with the same name included."""
        values = list(self.knowledge.items())
        for intent in self.intents:
            values.extend(intent.slots.items())
        return tuple(Fact(name, value, self.asked_as.get(name, ())) for name, value in dict.fromkeys(values))

    def draw_deviation(self, seed: int, turn: int) -> Deviation | None:
        """Return how a turn departs from the happy path; the first one only through the recogniser of speech."""
        kind: Deviation
        for kind in get_args(Deviation):
            is_possible = turn > 1 or kind == "asr"
            share = self.deviations.get(kind, 0.0)
            if is_possible and Random(f"{seed}/deviation/{kind}/{turn}").random() < share:
                return kind
        return None


class User(Protocol):
    """A user of one conversation. Each conversation needs one of its own."""

    async def aspeak(self, messages: Sequence[Message]) -> str | None:
        """Return what the user says next to the messages so far, oldest first; None once it has nothing left to say."""
        ...


class ScriptedUser:
    """A user whose lines are given: it says them in order, whatever the agent answers, and then leaves."""

    def __init__(self, *lines: str) -> None:
        self._remaining_lines = list(lines)

    async def aspeak(self, messages: Sequence[Message]) -> str | None:
        """Return what the user says next; see `User`."""
        return self._remaining_lines.pop(0) if self._remaining_lines else None


def join_agent_texts(messages: Sequence[Message]) -> str:
    """Return the texts that the agent has sent since the user last spoke, one a line."""
    texts: list[str] = []
    for message in reversed(messages):
        if message.speaker == "user":
            break
        if message.speaker == "agent" and message.text.strip():
            texts.append(message.text)
    return "\n".join(reversed(texts))
