"""A user that needs no model: it follows an agenda of intents and slots, and says so when it does not understand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.hearing import Fact, Heard, asked_for, others_said, share_named
from arq_graph.milestones.users.kinds import is_kept_back, let_out, misheard, without_numbers, wrong_value
from arq_graph.milestones.users.spec import Deviation, UserSpec, Value, last_words, persona_of

MOST_NOT_UNDERSTOOD = 2
"""So often in a row a user says that it does not understand; then it leaves."""

VAGUE = "I am not sure. Maybe it is in your system."


@dataclass(frozen=True)
class _Reply:
    """What is replied: words of the spec, and facts to be told; in the persona's words for a moment, if it has one."""

    moment: str
    said: str = ""
    facts: tuple[Fact, ...] = ()
    leaves: bool = False


class AgendaUser:
    """A simulated user that is deterministic and asks no model: the default (Pre-Act, 4.3; ReSpAct, B.1).

    What it says depends on the spec, the seed and what the agent said, and on nothing else. It is a stand-in for a
    customer: it tells the slots that the agent asks for by name, says yes or no to what its spec accepts or refuses,
    corrects a value that the agent repeats wrongly, falls back where a wish fails, and gives up when its patience is
    out. What it does not understand it says, twice in a row; then it leaves. Lifelike talk is `SimulatedUser`'s.

    An object is one conversation: make another for the next.

    Args:
        spec: Who it is.
        seed: What chance depends on.
    """

    def __init__(self, spec: UserSpec, *, seed: int) -> None:
        self.spec = spec
        self._seed = seed
        self._persona = persona_of(spec.persona)
        self._challenges = list(self._persona.challenges)
        self._is_ignorant = spec.kind == "unhelpful"
        self._turn = 0
        self._is_leaving = False
        self._departed: set[tuple[Deviation | None, tuple[Fact, ...]]] = set()
        self._not_understood = 0
        self._begin(0)

    def _begin(self, at: int) -> None:
        self._at, self._intent = at, self.spec.intents[at]
        self._wish = self._intent.request
        known = {fact.name: fact for fact in self.spec.facts}
        known |= {name: replace(known[name], value=value) for name, value in self._intent.slots.items()}
        self._facts = [*known.values()]
        self._slots = [fact for fact in self._facts if fact.name in self._intent.slots]
        self._told: set[str] = set()
        self._settled: set[tuple[str, str]] = set()
        self._given: set[_Reply] = set()
        self._volunteered = False
        self._strain = 0

    async def aspeak(self, said: Sequence[Message]) -> str | None:
        """What the user says next; see `User`."""
        self._turn += 1
        if self._is_leaving:
            return None
        if self._turn == 1:
            return self._said(_Reply("" if self.spec.role == "guide" else "opening", self._wish))
        reply = self._bounded(self._at, self._reply(Heard(last_words(said))))
        self._is_leaving = reply.leaves
        return self._said(reply)

    def _bounded(self, before: int, reply: _Reply) -> _Reply:
        """The reply, or the end if the user would have to repeat it more often than it bears."""
        self._not_understood = self._not_understood + 1 if reply.moment == "unknown" else 0
        if reply.leaves or before != self._at:
            return reply
        again = reply in self._given
        self._given.add(reply)
        self._strain += again
        if self._strain > self.spec.patience or self._not_understood > MOST_NOT_UNDERSTOOD:
            return _Reply("give_up", leaves=True)
        return replace(reply, moment="again") if again and reply.moment == "answer" else reply

    def _reply(self, heard: Heard) -> _Reply:
        if wrong := self._wrong_in(heard):
            return _Reply("correction", facts=wrong)
        if heard.confirms:
            return _Reply("", "Yes" if self._agrees(heard.text) else "No")
        if self._intent.done_when is not None and self._intent.done_when.search(heard.text):
            return self._next()
        parts = [self._answer(each) for each in heard.questions]
        if not parts:
            # Each offer is answered once, with the facts it names that the agent does not have yet.
            named = tuple(asked_for(heard.text, self._untold))
            parts = [self._of_spec(heard.text, once=True), _Reply("answer", facts=named) if named else None]
        if answers := [part for part in parts if part is not None]:
            facts = dict.fromkeys(fact for each in answers for fact in each.facts)
            said = " ".join(dict.fromkeys(filter(None, (each.said for each in answers))))
            return replace(answers[0], said=said, facts=tuple(facts))
        if heard.offers_help or not heard.text:
            return _Reply("answer", self._wish)
        if heard.questions and not heard.fails:
            return _Reply("unknown")
        if self._untold and not self._volunteered and self.spec.role != "guide":
            self._volunteered = True
            return _Reply("answer", facts=self._untold)
        if heard.fails and self._intent.fallback and self._wish != self._intent.fallback:
            self._wish = self._intent.fallback
            return _Reply("fallback", self._wish)
        if self.spec.role == "guide" and self._intent is self.spec.intents[-1] and not heard.fails:
            return _Reply("", "All right.")  # who guides waits for the end of the task
        if heard.fails or self._intent.done_when is None:
            return self._next()
        return _Reply("again", self._wish)

    def _wrong_in(self, heard: Heard) -> tuple[Fact, ...]:
        """Slots that the agent repeats with a wrong value; the user objects to each value once."""
        known = {str(each.value).casefold() for each in self.spec.facts if not isinstance(each.value, bool)}
        wrong: dict[Fact, None] = {}
        for fact in () if self._is_ignorant else self._slots:
            for other in {each.casefold() for each in others_said(heard.text, fact)} - known:
                is_objected_to = fact.name in self._told and (fact.name, other) not in self._settled
                if heard.confirms or is_objected_to:
                    wrong[fact] = None
                    self._settled.add((fact.name, other))
        return tuple(wrong)

    def _agrees(self, question: str) -> bool:
        if self._is_ignorant:
            return self._chance("agrees").random() < 0.5
        if any(share_named(offer, question) == 1 for offer in self._intent.refuses):
            return False
        wanted = _long_words(" ".join((self._intent.request, self._wish, *self._intent.accepts)))
        named = any(share_named(each, question) == 1 for each in wanted)
        return named or any(fact.is_in(question) for fact in self._facts)

    def _answer(self, question: str) -> _Reply | None:
        """The answer to a question; None if the user does not understand it."""
        if (said := self._of_spec(question)) is not None:
            return said
        asked = tuple(asked_for(question, self._facts))
        if self._is_ignorant:
            return _Reply("answer", "" if asked else VAGUE, asked)
        repeated = tuple(fact for fact in self._facts if fact.is_in(question))
        if repeated and all(fact.name in self._told for fact in asked):
            return _Reply("yes", facts=repeated)
        if asked:
            return _Reply("answer", facts=asked)
        for wish in filter(None, (self._intent.request, self._wish, self._intent.fallback)):
            if share_named(" ".join(_long_words(wish)), question) >= 0.5:
                self._wish = wish
                return _Reply("yes")
        return None

    def _of_spec(self, text: str, *, once: bool = False) -> _Reply | None:
        replies = [
            *((topic, 0.6, _Reply("answer", said)) for each in (self._intent, *self.spec.intents)
              for topic, said in each.answers.items()),
            *((offer, 1.0, _Reply("yes", f"I accept the {offer}.")) for offer in self._intent.accepts),
            *((offer, 1.0, _Reply("no")) for offer in self._intent.refuses),
        ]  # fmt: skip
        for topic, share, reply in replies:
            key = (topic, reply.moment)
            if share_named(topic, text) >= share and not (once and key in self._settled):
                self._settled.add(key)
                return _Reply("answer", VAGUE) if self._is_ignorant else reply
        return None

    @property
    def _untold(self) -> tuple[Fact, ...]:
        return tuple(each for each in self._slots if each.name not in self._told)

    def _next(self) -> _Reply:
        """The next wish, what the persona is after beyond them, or the end."""
        if self._at + 1 < len(self.spec.intents):
            self._begin(self._at + 1)
            return _Reply("" if self.spec.role == "guide" else "next", self._wish)
        if self._challenges:
            return _Reply("answer", self._challenges.pop(0))
        return _Reply("", self.spec.closing, leaves=True)

    def _said(self, reply: _Reply) -> str | None:
        """A reply in words, with what departs from the happy path in this turn."""
        is_plain = reply.leaves or reply.moment == "correction"
        kind = None if is_plain else self.spec.deviation(self._seed, self._turn)
        facts = self._told_by(kind, reply.facts)
        said = " ".join(filter(None, (reply.said, *map(self._stated, facts))))
        said = let_out(said, self.spec.kind, self.spec.facts, self._seed)
        text = self._line(reply.moment, said) if reply.moment else said
        if kind == "asr":
            text, facts = misheard(text, self._chance("asr")), ()
        # Facts that were wrong or misheard are said again.
        self._told |= {fact.name for fact in self._facts if fact in facts or fact.is_in(text)}
        if kind == "off_topic":
            text = f"{self._line('side_question', '')} {text}"
        return text.strip() or None

    def _told_by(self, kind: Deviation | None, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """The words for facts: some deviations make them wrong or leave some out, until they are asked for again."""
        if not facts or (kind, facts) in self._departed:
            return facts
        self._departed.add((kind, facts))
        if kind == "partial" and len(facts) > 1:
            return facts[: self._chance("part").randrange(1, len(facts))]
        lie = wrong_value(facts[0].value, self._seed, self.spec.facts) if kind == "incorrect" else None
        return facts if lie is None else (replace(facts[0], value=lie), *facts[1:])

    def _stated(self, fact: Fact) -> str:
        value: Value | None = fact.value
        if self._is_ignorant:
            value = wrong_value(fact.value, f"{self._seed}/{self._turn // 2}", self.spec.facts)
        elif self.spec.kind == "perturbed" and is_kept_back(fact):
            value = without_numbers(fact.value) if self.spec.role == "guide" else ""
            return f"The {fact.label} is {value}." if value else f"I do not have the {fact.label} at hand."
        if value is None:
            return VAGUE
        if isinstance(value, bool):
            return f"{fact.label.capitalize()}: {'yes' if value else 'no'}."
        return f"The {fact.label} is {value}."

    def _line(self, moment: str, said: str) -> str:
        lines = self._persona.lines.get(moment) or persona_of("plain").lines[moment]
        line = self._chance("line", moment).choice(lines)
        return line.replace("{said}", said) if "{said}" in line else f"{line} {said}".strip()

    def _chance(self, *about: object) -> Random:
        """The chance for one purpose in this turn; other draws do not change it."""
        return Random("/".join(map(str, (self._seed, *about, self._turn))))


def _long_words(text: str) -> list[str]:
    return [word for word in text.split() if len(word) > 3]
