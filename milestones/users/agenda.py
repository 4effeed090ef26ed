"""A user that needs no model: it follows an agenda of intents and understands the agent by words and shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.answering import Answering
from arq_graph.milestones.users.asked import Fact
from arq_graph.milestones.users.hearing import heard
from arq_graph.milestones.users.inventing import wrong_value
from arq_graph.milestones.users.mishearing import misheard
from arq_graph.milestones.users.replying import Reply
from arq_graph.milestones.users.spec import Deviation, UserSpec
from arq_graph.milestones.users.user import EXIT, UserTurn, last_words
from arq_graph.milestones.users.voice import Voice

_ORDER: tuple[Deviation, ...] = ("off_topic", "incorrect", "partial", "asr")


class AgendaUser:
    """A simulated user that is deterministic and asks no model: the default (Pre-Act, 4.3; ReSpAct, B.1).

    What it says depends on the spec, the seed and what the agent said, and on nothing else. It knows nothing of
    the agent or its domain beyond the spec. It understands plain English by stems, everyday synonyms and the
    shapes of values. It answers what is asked, corrects what the agent got wrong, takes or declines offers, falls
    back where a request cannot be had, repeats itself in other words, and gives up when its patience is out. It
    says `Exit.` after at most `max_turns` turns whatever the agent says.

    An object is one conversation: make another for the next.

    Args:
        spec: Who it is.
        seed: What chance depends on.
    """

    def __init__(self, spec: UserSpec, *, seed: int) -> None:
        self.spec = spec
        self._voice = Voice(spec, seed)
        self._answering = Answering(spec, self._voice)
        self._turn = 0
        self._over = False
        self._took_leave = False
        self._held: UserTurn | None = None
        self._answered: set[object] = set()
        self._departed: set[object] = set()
        self._strain = 0
        self._about: int | None = None
        self._last_heard = ""

    async def aspeak(self, said: Sequence[Message]) -> UserTurn:
        """What the user says next; all is as in `speak`."""
        return self.speak(said)

    def speak(self, said: Sequence[Message]) -> UserTurn:
        """What the user says next.

        Args:
            said: The messages of user and agent so far, oldest first; none of them asks for the opening.
        """
        self._turn += 1
        if self._over or self._took_leave or self._turn > self.spec.max_turns:
            return self._exit()
        if self._turn == 1:
            return self._said(self._answering.opening())
        words = heard(last_words(said))
        if words.hands_over or (words.says_goodbye and not self._held):
            return self._exit()
        if self._held is not None:
            held, self._held = self._held, None
            return held
        reply = self._answering.reply(words)
        repeated_itself = bool(words.text) and words.text == self._last_heard
        self._last_heard = words.text
        return self._weighed(reply, repeated_itself)

    def _weighed(self, reply: Reply, repeated_itself: bool) -> UserTurn:
        """The reply, or the end where it is one more fruitless turn than the user bears."""
        if reply.leaves:
            return self._leave(reply)
        if reply.intent != self._about:
            self._about, self._strain, self._answered = reply.intent, 0, set()
        again = reply.key in self._answered
        if again or reply.fruitless or repeated_itself:
            self._strain += 1
        if self._strain > self.spec.patience:
            return self._leave(Reply("give_up", key="give up", leaves=True))
        if again and reply.moment == "answer":
            reply = replace(reply, moment="again")
        return self._said(reply)

    def _said(self, reply: Reply) -> UserTurn:
        deviation, wrong, facts, instead = self._departure(reply)
        if deviation in ("partial", "incorrect"):
            self._departed.add((deviation, reply.key))
        else:
            self._answered.add(reply.key)
        self._about = reply.intent
        self._answering.remember(reply.facts if instead is None else (), facts, wrong)
        told = instead or ""
        if facts:
            told = self._voice.facts(facts, self._turn, wrong, correcting=reply.moment == "correction")
        said = " ".join(filter(None, (reply.said, told)))
        text = self._voice.line(reply.moment, said, self._turn)
        if deviation == "asr":
            text = misheard(text, self._voice.chance("asr", self._turn))
            self._answering.garbled(facts)
        turn = UserTurn(self._voice.allowed(text), intent=reply.intent, deviation=deviation)
        self._answering.said(turn.text)
        if deviation == "off_topic":
            self._held = replace(turn, deviation=None)
            side_question = self._voice.line("side_question", "", self._turn)
            return replace(turn, text=self._voice.allowed(side_question))
        return turn

    def _departure(
        self, reply: Reply
    ) -> tuple[Deviation | None, dict[str, object], tuple[Fact, ...], str | None]:
        """How this turn departs from the happy path, if it does: which facts are told then, and how."""
        for kind in _ORDER:
            if not (rate := self.spec.deviations.get(kind, 0.0)):
                continue
            chance = self._voice.chance("deviation", kind, self._turn)
            if chance.random() >= rate:
                continue
            if kind == "off_topic" and reply.moment not in ("opening", "waiting"):
                return kind, {}, reply.facts, None
            if kind == "asr":
                return kind, {}, reply.facts, None
            if self.spec.kind == "unhelpful" or (kind, reply.key) in self._departed:
                continue  # what was told wrongly or in part is told well when it is asked for again
            if kind == "incorrect" and (wrong := self._mistaken(reply)):
                return kind, wrong, reply.facts, None
            if kind == "partial" and len(reply.facts) > 1:
                kept = chance.randrange(1, len(reply.facts))
                return kind, {}, tuple(chance.sample(reply.facts, kept)), None
            if kind == "partial" and len(reply.facts) == 1 and (part := self._voice.part_of(reply.facts[0])):
                return kind, {}, (), part
        return None, {}, reply.facts, None

    def _mistaken(self, reply: Reply) -> dict[str, object]:
        """One of the facts with a wrong value; not in a correction, which would never come to an end."""
        if reply.moment in ("correction", "mistake"):
            return {}
        for fact in reply.facts:
            chance = self._voice.chance("mistake", fact.name, self._turn)
            wrong = wrong_value(fact.name, fact.value, chance, self.spec.values)
            if wrong is not None:
                return {fact.name: wrong}
        return {}

    def _leave(self, reply: Reply) -> UserTurn:
        text = self.spec.closing if reply.moment != "give_up" else self._voice.line("give_up", "", self._turn)
        self._took_leave = True
        if not text.strip():
            return self._exit()
        return UserTurn(self._voice.allowed(self._voice.own(text)), intent=reply.intent)

    def _exit(self) -> UserTurn:
        self._over = True
        return UserTurn(EXIT, ends=True)
