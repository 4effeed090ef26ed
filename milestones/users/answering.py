"""What a user with an agenda replies to what it heard: the intent at hand, what is told of it, and what comes next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from arq_graph.milestones.users.asked import Fact, asked_for, facts_of
from arq_graph.milestones.users.choosing import accepted, chosen, named_in, wants_it
from arq_graph.milestones.users.hearing import Asked, Heard
from arq_graph.milestones.users.objecting import Objections, serves
from arq_graph.milestones.users.personas import Moment
from arq_graph.milestones.users.replying import Reply
from arq_graph.milestones.users.spec import Intent, UserSpec
from arq_graph.milestones.users.voice import Voice
from arq_graph.models.offline.words import overlap

_TOPIC_FROM = 0.6
_PARTS = re.compile(r"[,;]|\band\b", re.IGNORECASE)


class Answering:
    """Decides what is replied; remembers what was told of the intent at hand.

    Args:
        spec: Who the user is.
        voice: How it talks.
    """

    def __init__(self, spec: UserSpec, voice: Voice) -> None:
        self._spec = spec
        self._voice = voice
        self._at = 0
        self._told: set[str] = set()
        self._wrong: set[str] = set()
        self._corrected: set[str] = set()
        self._settled: set[str] = set()
        self._objections = Objections(spec)
        self._volunteered = False
        self._fell_back = False
        self._challenges = list(voice.persona.challenges)
        self._is_challenging = False

    @property
    def intent(self) -> Intent:
        """The intent at hand."""
        return self._spec.intents[self._at]

    @property
    def _slots(self) -> tuple[Fact, ...]:
        return facts_of(self.intent.slots, self._spec.synonyms)

    @property
    def _facts(self) -> tuple[Fact, ...]:
        """All that the user knows, what belongs to the intent at hand first."""
        return facts_of({**self.intent.slots, **self._others}, self._spec.synonyms)

    @property
    def _others(self) -> Mapping[str, str | int | float | bool]:
        return {name: value for name, value in self._spec.facts.items() if name not in self.intent.slots}

    @property
    def _knows(self) -> bool:
        return self._spec.kind != "unhelpful"

    @property
    def _unsaid(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self._slots if fact.name not in self._told)

    def remember(self, asked: Iterable[Fact], told: Iterable[Fact], wrong: Mapping[str, object]) -> None:
        """Keep what was told, and which of it was wrong."""
        names = {fact.name for fact in told}
        self._told |= names
        self._wrong = (self._wrong - {fact.name for fact in asked}) | wrong.keys()
        self._objections.misled(wrong)

    def said(self, text: str) -> None:
        """Keep which facts were told in the words of a turn, as in those of a request."""
        self._told |= {fact.name for fact in self._slots if fact.is_told_in(text)}

    def garbled(self, facts: Iterable[Fact]) -> None:
        """Keep that the agent may not have understood these facts."""
        self._wrong |= {fact.name for fact in facts}

    def opening(self) -> Reply:
        """The first words of the user."""
        return self._request("opening" if self._spec.role == "customer" else "bare")

    def reply(self, heard: Heard) -> Reply:
        """What is replied to a message."""
        if self._is_challenging:
            return self._next()
        served = serves(self.intent, heard.text)
        if wrong := self._wrong_in(heard, served):
            return self._telling("correction", wrong)
        if served or self._objections.are_mended(heard):
            return self._next()
        answers = [self._answer(question, heard) for question in heard.questions]
        given = [answer for answer in answers if answer is not None]
        if not any(question.is_yes_no for question in heard.questions):
            given += self._offers_settled(heard)
        if given:
            return self._together(given)
        if not heard.text.strip():
            return self._request("again", fruitless=True)
        if heard.asks_how_to_help and not heard.reports_done and not heard.fails:
            return self._request("answer")
        if heard.fails and not self._is_told_beside(heard):
            return self._failed()
        if heard.only_waits and not heard.asks_for_more and not heard.wishes_well:
            return Reply("waiting", key="waiting", intent=self._at, fruitless=True)
        return self._told_something(heard)

    def _offers_settled(self, heard: Heard) -> list[Reply]:
        """What is said to offers that nobody was asked about; to the same offer once, to one of no interest nothing."""
        replies: list[Reply] = []
        for offer in heard.offers:
            if not self._knows or offer.text in self._settled:
                continue
            said = self._prepared(offer)
            taken = accepted(offer, Heard(offer.text), self.intent.accepts, self.intent.refuses)
            if said is not None:
                replies.append(self._stating(said, ("topic", said)))
            elif taken is not None:
                replies.append(self._agree(taken, offer))
            self._settled.add(offer.text)
        return replies

    def _is_told_beside(self, heard: Heard) -> bool:
        """Whether the message tells something of what the user asked for beside what failed, which then is enough."""
        can_do_better = self._wrong - self._corrected or self.intent.fallback or self._may_volunteer
        return not can_do_better and bool(named_in(heard.unfailing, self._slots))

    def _wrong_in(self, heard: Heard, served: bool) -> tuple[Fact, ...]:
        """What the message has wrong of what the user wants."""
        if not self._knows:
            return ()
        return self._objections.against(
            heard, self.intent, self._slots, self._facts, self._told, served=served
        )

    def _answer(self, question: Asked, heard: Heard) -> Reply | None:
        """The answer to one question; None for one that asks nothing in particular."""
        if question.is_anything_else or question.is_how_to_help:
            return None
        if (said := self._prepared(question)) is not None:
            stated = self._stating(said if self._knows else self._voice.vague(self._at), ("topic", said))
            return replace(stated, facts=self._asked_beside(said, question))
        asked = asked_for(question.text, self._facts)
        if question.is_open and not asked:
            return self._restated()
        if not question.leaves_a_choice and (question.is_yes_no or (question.checks and not asked)):
            return self._yes_or_no(question, heard)
        if (picked := self._choice(question, heard, bool(asked))) is not None:
            return self._picking(picked, question)
        if asked:
            return self._telling("answer", asked)
        if wants_it(question.text, self.intent.request) and self._unsaid:
            return self._restated()
        return self._unknown(question)

    def _choice(self, question: Asked, heard: Heard, asks_for_a_fact: bool) -> str | None:
        """What is chosen of several things that the agent names, where it leaves a choice."""
        if not self._knows:
            return None
        goal = None if asks_for_a_fact else (self.intent.accepts, self.intent.refuses)
        return chosen(question, heard, self._facts, goal)

    def _picking(self, picked: str, question: Asked) -> Reply:
        said = self._voice.own(picked)
        if said != picked:  # something of it is kept back
            if named := named_in(picked, self._facts):
                return self._telling("answer", named[:1])
            if all(any(map(str.isnumeric, word)) for word in picked.split()):
                return self._unknown(question)
        return Reply("choice", said, key=("choice", picked), intent=self._at)

    def _asked_beside(self, said: str, question: Asked) -> tuple[Fact, ...]:
        """The facts that other parts of a question ask for than the one that the spec has an answer to."""
        parts = _PARTS.split(question.text)
        rest = [part for part in parts if self._prepared(Asked(part, part)) is None]
        is_of_before = self._prepared(Asked(question.text, question.text)) is None
        if not self._knows or not rest or (len(rest) == len(parts) and not is_of_before):
            return ()
        asked = asked_for(" ".join(rest), self._facts)
        return tuple(fact for fact in asked if not fact.is_in(said) and not isinstance(fact.value, bool))

    def _prepared(self, question: Asked) -> str | None:
        """What the spec says to a question about this topic."""
        others = (each for each in self._spec.intents if each is not self.intent)
        for intent in chain((self.intent,), others):
            for text in (question.text, question.context):
                found = [(overlap(topic, text), said) for topic, said in intent.answers.items()]
                score, said = max(found, key=lambda each: each[0], default=(0.0, ""))
                if score >= _TOPIC_FROM:
                    return said
        return None

    def _yes_or_no(self, question: Asked, heard: Heard) -> Reply:
        if not self._knows:
            draw = self._voice.chance("agrees", question.text).random()
            moment: Moment = "yes" if draw < 0.3 else "no" if draw < 0.6 else "unknown"
            return Reply(moment, key=(moment, question.text), intent=self._at, fruitless=True)
        taken = accepted(question, heard, self.intent.accepts, self.intent.refuses)
        if taken is not None:
            return self._agree(taken, question)
        options = " or " in question.text.lower()
        named = named_in(question.text, self._facts)
        if options and named:
            return self._telling("answer", named[:1])
        asked = asked_for(question.text, self._facts)
        flags = [fact for fact in asked if isinstance(fact.value, bool)]
        if flags:
            return self._agree(bool(flags[0].value), question)
        if named or (question.checks and not asked):
            return self._agree(True, question)
        goal = self.intent.fallback if self._fell_back and self.intent.fallback else self.intent.request
        if wants_it(question.text, goal) and not heard.fails:
            return self._agree(True, question)
        if self.intent.fallback and wants_it(question.text, self.intent.fallback):
            self._fell_back = True
            return self._agree(True, question)
        if asked:
            return self._telling("answer", asked)
        if heard.fails and self.intent.fallback and not self._fell_back:
            return self._fall_back()
        return self._agree(False, question)

    def _agree(self, yes: bool, question: Asked) -> Reply:
        if yes:
            self.said(question.context if question.checks else question.text)
        return Reply("yes" if yes else "no", key=(yes, question.text), intent=self._at)

    def _telling(self, moment: Moment, facts: Sequence[Fact]) -> Reply:
        names = tuple(fact.name for fact in facts)
        return Reply(moment, facts=tuple(facts), key=("facts", names), intent=self._at)

    def _stating(self, said: str, key: object) -> Reply:
        return Reply("answer", self._voice.own(said), key=key, intent=self._at)

    def _unknown(self, question: Asked) -> Reply:
        if not self._knows:
            return Reply(
                "answer", self._voice.vague(self._at), key=question.text, intent=self._at, fruitless=True
            )
        return Reply("unknown", key=("unknown", question.text), intent=self._at, fruitless=True)

    def _restated(self) -> Reply:
        """The request, with all that was not said yet: the agent asks to say more."""
        if self._spec.role == "guide" or not self._knows:
            return self._request("again")
        unsaid, self._volunteered = self._unsaid, True
        said = self._voice.own(self._goal)
        return Reply("answer", said, facts=unsaid, key=("restated", len(unsaid)), intent=self._at)

    def _request(self, moment: Moment, *, fruitless: bool = False) -> Reply:
        said = self._voice.own(self._goal)
        return Reply(moment, said, key="request", intent=self._at, fruitless=fruitless)

    @property
    def _goal(self) -> str:
        return self.intent.fallback if self._fell_back and self.intent.fallback else self.intent.request

    def _together(self, answers: Sequence[Reply]) -> Reply:
        """Several answers as one message; what is known drives out that something else is not."""
        useful = [each for each in answers if each.moment != "unknown"] or [answers[0]]
        if len(useful) == 1:
            return useful[0]
        facts = dict.fromkeys(chain.from_iterable(each.facts for each in useful))
        words = (
            self._voice.line(each.moment, each.said, self._at)
            if each.moment in ("yes", "no", "choice")
            else each.said
            for each in useful
        )
        return Reply(
            "answer",
            " ".join(dict.fromkeys(filter(None, words))),
            facts=tuple(facts),
            key=tuple(each.key for each in useful),
            intent=self._at,
            fruitless=all(each.fruitless for each in useful),
        )

    def _failed(self) -> Reply:
        """The agent reports that something cannot be had, and asks nothing."""
        if not self._knows:
            if self._slots:
                return Reply(
                    "answer", facts=self._slots[:1], key="suggestion", intent=self._at, fruitless=True
                )
            return self._next()
        mistaken = tuple(fact for fact in self._facts if fact.name in self._wrong - self._corrected)
        if mistaken:
            self._corrected |= {fact.name for fact in mistaken}
            return self._telling("mistake", mistaken)
        if self._may_volunteer:
            return self._volunteer()
        if self.intent.fallback and not self._fell_back:
            return self._fall_back()
        return self._next(given_up=True)

    def _fall_back(self) -> Reply:
        self._fell_back = True
        return Reply("fallback", self._voice.own(self.intent.fallback or ""), key="fallback", intent=self._at)

    @property
    def _may_volunteer(self) -> bool:
        return bool(self._unsaid) and not self._volunteered and self._knows and self._spec.role == "customer"

    def _volunteer(self) -> Reply:
        self._volunteered = True
        return self._telling("answer", self._unsaid)

    def _told_something(self, heard: Heard) -> Reply:
        """The agent states something, and asks nothing that is to be answered."""
        if self.intent.done_when is not None:
            return self._restated() if self._may_volunteer else self._request("again", fruitless=True)
        is_about_it = heard.reports_done or bool(named_in(heard.text, self._slots))
        if self._may_volunteer and not is_about_it:
            return self._volunteer()
        if self._spec.role == "guide" and not (heard.reports_done or heard.asks_for_more):
            return Reply("waiting", key="waiting", intent=self._at, fruitless=True)
        return self._next()

    def _next(self, *, given_up: bool = False) -> Reply:
        """The next intent, then what the persona puts to the agent beyond it, then the closing."""
        if self._at + 1 < len(self._spec.intents) and not self._is_challenging:
            self._at += 1
            self._told, self._wrong, self._corrected = self._kept(), set(), set()
            self._volunteered = self._fell_back = False
            self._objections.forget()
            return self._request("next")
        self._is_challenging = True
        if self._challenges:
            said = self._challenges.pop(0)
            return Reply("bare", said, key=said, intent=None)
        return Reply("give_up" if given_up else "next", key="closing", intent=None, leaves=True)

    def _kept(self) -> set[str]:
        """What was told before and is still true of the new intent."""
        before = self._spec.intents[self._at - 1].slots
        return {name for name in self._told if before.get(name) == self.intent.slots.get(name)}
