"""A user that needs no model: it follows an agenda of intents and slots, and says so when it does not understand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.agent_message import (
    AgentMessage,
    Fact,
    find_other_values,
    find_requested_facts,
    measure_overlap,
)
from arq_graph.milestones.users.disclosure import (
    is_withheld_if_perturbed,
    make_wrong_value,
    redact,
    simulate_speech_recognition,
    strip_numbers,
)
from arq_graph.milestones.users.user_spec import (
    Deviation,
    Intent,
    UserSpec,
    Value,
    find_persona,
    join_agent_texts,
)

MAX_MISUNDERSTANDINGS = 2
"""The number of times in a row that a user says it doesn't understand; then it leaves."""

VAGUE = "I am not sure. Maybe it is in your system."


@dataclass(frozen=True)
class _Reply:
    """A reply before it is phrased: words of the spec, and facts; `moment` selects the persona's words around them."""

    moment: str
    text: str = ""
    facts: tuple[Fact, ...] = ()
    is_last: bool = False


@dataclass
class _IntentProgress:
    """The state of the conversation about one intent."""

    number: int
    intent: Intent
    wish: str
    facts: tuple[Fact, ...]
    told_names: set[str] = field(default_factory=set)
    handled_topics: set[tuple[str, str]] = field(default_factory=set)
    corrections: set[tuple[str, str]] = field(default_factory=set)
    replies: set[_Reply] = field(default_factory=set)
    has_volunteered: bool = False
    repetitions: int = 0

    @property
    def slots(self) -> tuple[Fact, ...]:
        """The facts of this intent; `facts` are all that the user knows."""
        return tuple(fact for fact in self.facts if fact.name in self.intent.slots)

    @property
    def untold_slots(self) -> tuple[Fact, ...]:
        """The facts of this intent that the agent hasn't heard."""
        return tuple(fact for fact in self.slots if fact.name not in self.told_names)


class AgendaUser:
    """A simulated user that is deterministic and asks no model: the default (Pre-Act, 4.3; ReSpAct, B.1).

    What it says depends on the spec, the seed and what the agent said, and on nothing else. It is a fake: it tells the
    slots that the agent asks for by name, says yes or no to what its spec accepts or refuses, corrects a value that the
    agent repeats wrongly, falls back where a wish fails, and gives up when its patience is out. When it does not
    understand, it says so, twice in a row; then it leaves. For lifelike talk there is `SimulatedUser`.

    An object is one conversation: make another for the next.
    """

    def __init__(self, spec: UserSpec, *, seed: int) -> None:
        self.spec = spec
        self._seed = seed
        self._persona = find_persona(spec.persona)
        self._remaining_challenges = list(self._persona.challenges)
        self._knows_nothing = spec.kind == "unhelpful"
        self._is_guide = spec.role == "guide"
        self._turn = 0
        self._is_leaving = False
        self._misunderstandings = 0
        self._deviations: set[tuple[Deviation | None, tuple[Fact, ...]]] = set()
        self._progress = self._start_intent(0)

    def _start_intent(self, number: int) -> _IntentProgress:
        intent = self.spec.intents[number]
        facts = {fact.name: fact for fact in self.spec.facts}
        for name, value in intent.slots.items():
            facts[name] = replace(facts[name], value=value)
        return _IntentProgress(number, intent, intent.request, tuple(facts.values()))

    async def aspeak(self, messages: Sequence[Message]) -> str | None:
        """Return what the user says next; see `User`."""
        self._turn += 1
        if self._is_leaving:
            return None
        if self._turn == 1:
            reply = self._reveal_wish("opening")
        else:
            reply = self._choose_reply(AgentMessage(join_agent_texts(messages)))
        self._is_leaving = reply.is_last
        return self._phrase(reply)

    def _reveal_wish(self, moment: str) -> _Reply:
        if self._is_guide:
            moment = ""  # a guide gives the task in its own words
        return _Reply(moment, self._progress.wish)

    def _choose_reply(self, message: AgentMessage) -> _Reply:
        """Return the reply to a message, or the end if the user would repeat itself beyond its patience."""
        progress = self._progress
        reply = self._answer(message) or self._react_to_statement(message)
        if reply.moment == "unknown":
            self._misunderstandings += 1
        else:
            self._misunderstandings = 0
        if reply.is_last or progress is not self._progress:
            return reply
        is_repetition = reply in progress.replies
        progress.replies.add(reply)
        progress.repetitions += is_repetition
        if progress.repetitions > self.spec.patience or self._misunderstandings > MAX_MISUNDERSTANDINGS:
            return _Reply("give_up", is_last=True)
        if is_repetition and reply.moment == "answer":
            return replace(reply, moment="again")
        return reply

    def _answer(self, message: AgentMessage) -> _Reply | None:
        """Return the reply to an error, a confirmation, a question or an offer; None if there is nothing like it."""
        if wrong_facts := self._find_wrong_facts(message):
            return _Reply("correction", facts=wrong_facts)
        if message.is_confirmation:
            answer = "Yes" if self._agrees_to(message.text) else "No"
            return _Reply("", answer)
        done_when = self._progress.intent.done_when
        if done_when is not None and done_when.search(message.text):
            return self._advance()
        if message.questions:
            return _join_replies(map(self._answer_question, message.questions))
        # An offer is answered once, and the facts that it names are told if the agent lacks them.
        answers = [self._find_scripted_answer(message.text, only_once=True)]
        if named_facts := find_requested_facts(message.text, self._progress.untold_slots):
            answers.append(_Reply("answer", facts=named_facts))
        return _join_replies(answers)

    def _react_to_statement(self, message: AgentMessage) -> _Reply:
        progress, intent = self._progress, self._progress.intent
        if message.offers_help or not message.text:
            return _Reply("answer", progress.wish)
        if message.questions and not message.reports_failure:
            return _Reply("unknown")
        if progress.untold_slots and not progress.has_volunteered and not self._is_guide:
            progress.has_volunteered = True
            return _Reply("answer", facts=progress.untold_slots)
        if message.reports_failure and intent.fallback and progress.wish != intent.fallback:
            progress.wish = intent.fallback
            return _Reply("fallback", progress.wish)
        is_last_intent = progress.number + 1 == len(self.spec.intents)
        if self._is_guide and is_last_intent and not message.reports_failure:
            return _Reply("", "All right.")  # who guides waits for the end of the task
        if message.reports_failure or intent.done_when is None:
            return self._advance()
        return _Reply("again", progress.wish)

    def _find_wrong_facts(self, message: AgentMessage) -> tuple[Fact, ...]:
        """Return the slots that the agent repeats with a wrong value; the user objects to each value once."""
        if self._knows_nothing:
            return ()
        progress = self._progress
        true_values = {str(fact.value).casefold() for fact in self.spec.facts if not fact.is_yes_or_no}
        wrong_facts = []
        for fact in progress.slots:
            other_values = find_other_values(message.text, fact) - true_values
            corrections = {(fact.name, value) for value in other_values}
            is_new = fact.name in progress.told_names and not corrections <= progress.corrections
            if corrections and (message.is_confirmation or is_new):
                wrong_facts.append(fact)
                progress.corrections |= corrections
        return tuple(wrong_facts)

    def _agrees_to(self, question: str) -> bool:
        if self._knows_nothing:
            return self._draw("agrees").random() < 0.5
        intent = self._progress.intent
        if any(measure_overlap(offer, question) == 1 for offer in intent.refuses):
            return False
        wishes = f"{intent.request} {self._progress.wish} {' '.join(intent.accepts)}"
        if any(measure_overlap(word, question) == 1 for word in _select_long_words(wishes)):
            return True
        return any(fact.is_in(question) for fact in self._progress.facts)

    def _answer_question(self, question: str) -> _Reply | None:
        """Return the answer to a question; None if the user does not understand it."""
        if (answer := self._find_scripted_answer(question)) is not None:
            return answer
        progress = self._progress
        requested_facts = find_requested_facts(question, progress.facts)
        if self._knows_nothing:
            text = "" if requested_facts else VAGUE
            return _Reply("answer", text, requested_facts)
        repeated_facts = tuple(fact for fact in progress.facts if fact.is_in(question))
        if repeated_facts and all(fact.name in progress.told_names for fact in requested_facts):
            return _Reply("yes", facts=repeated_facts)
        if requested_facts:
            return _Reply("answer", facts=requested_facts)
        for wish in (progress.intent.request, progress.wish, progress.intent.fallback):
            if wish and measure_overlap(" ".join(_select_long_words(wish)), question) >= 0.5:
                progress.wish = wish
                return _Reply("yes")
        return None

    def _find_scripted_answer(self, text: str, *, only_once: bool = False) -> _Reply | None:
        """Return what the spec says about a topic or an offer that a text names."""
        progress = self._progress
        for topic, threshold, reply in self._list_scripted_answers():
            key = (topic, reply.moment)
            is_skipped = only_once and key in progress.handled_topics
            if not is_skipped and measure_overlap(topic, text) >= threshold:
                progress.handled_topics.add(key)
                return _Reply("answer", VAGUE) if self._knows_nothing else reply
        return None

    def _list_scripted_answers(self) -> list[tuple[str, float, _Reply]]:
        """Return topics, the share of their words that a text must have, and the reply to each."""
        answers = []
        for intent in (self._progress.intent, *self.spec.intents):
            for topic, text in intent.answers.items():
                answers.append((topic, 0.6, _Reply("answer", text)))
        for offer in self._progress.intent.accepts:
            answers.append((offer, 1.0, _Reply("yes", f"I accept the {offer}.")))
        for offer in self._progress.intent.refuses:
            answers.append((offer, 1.0, _Reply("no")))
        return answers

    def _advance(self) -> _Reply:
        """Return the next wish; after the last one, the next challenge of the persona, and then the closing."""
        next_number = self._progress.number + 1
        if next_number < len(self.spec.intents):
            self._progress = self._start_intent(next_number)
            return self._reveal_wish("next")
        if self._remaining_challenges:
            return _Reply("answer", self._remaining_challenges.pop(0))
        return _Reply("", self.spec.closing, is_last=True)

    def _phrase(self, reply: _Reply) -> str | None:
        """Return a reply in words, with this turn's deviation from the happy path."""
        deviation = None
        if not reply.is_last and reply.moment != "correction":
            deviation = self.spec.draw_deviation(self._seed, self._turn)
        facts = self._select_facts(deviation, reply.facts)
        sentences = [reply.text]
        sentences.extend(map(self._state_fact, facts))
        text = redact(" ".join(sentences).strip(), self.spec, self._seed)
        if reply.moment:
            text = self._wrap_in_persona_line(reply.moment, text)
        if deviation == "asr":
            text = simulate_speech_recognition(text, self._draw("asr"))
            facts = ()  # misheard facts count as untold
        for fact in self._progress.facts:
            if fact in facts or fact.is_in(text):
                self._progress.told_names.add(fact.name)
        if deviation == "off_topic":
            text = f"{self._wrap_in_persona_line('side_question', '')} {text}"
        return text.strip() or None

    def _select_facts(self, deviation: Deviation | None, facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
        """Return the facts to state: a deviation may omit some or make one wrong, until they are asked for again."""
        if not facts or (deviation, facts) in self._deviations:
            return facts
        self._deviations.add((deviation, facts))
        if deviation == "partial" and len(facts) > 1:
            return facts[: self._draw("part").randrange(1, len(facts))]
        if deviation == "incorrect":
            wrong_value = make_wrong_value(facts[0].value, self._seed, self.spec.facts)
            if wrong_value is not None:
                return (replace(facts[0], value=wrong_value), *facts[1:])
        return facts

    def _state_fact(self, fact: Fact) -> str:
        value: Value | None = fact.value
        if self._knows_nothing:
            value = make_wrong_value(fact.value, f"{self._seed}/{self._turn // 2}", self.spec.facts)
            if value is None:
                return VAGUE
        elif self.spec.kind == "perturbed" and is_withheld_if_perturbed(fact):
            value = strip_numbers(fact.value)
            if not (self._is_guide and value):
                return f"I do not have the {fact.label} at hand."
        if isinstance(value, bool):
            answer = "yes" if value else "no"
            return f"{fact.label.capitalize()}: {answer}."
        return f"The {fact.label} is {value}."

    def _wrap_in_persona_line(self, moment: str, text: str) -> str:
        lines = self._persona.lines.get(moment) or find_persona("plain").lines[moment]
        line = self._draw(f"line/{moment}").choice(lines)
        if "{said}" in line:
            return line.replace("{said}", text)
        return f"{line} {text}".strip()

    def _draw(self, purpose: str) -> Random:
        """Return the source of chance for one purpose in this turn, independent of all others."""
        return Random(f"{self._seed}/{purpose}/{self._turn}")


def _join_replies(replies: Iterable[_Reply | None]) -> _Reply | None:
    """Return one reply with the words and facts of all, each once, in the manner of the first."""
    first_reply = None
    texts: dict[str, None] = {}
    facts: dict[Fact, None] = {}
    for reply in replies:
        if reply is not None:
            first_reply = first_reply or reply
            texts[reply.text] = None
            facts |= dict.fromkeys(reply.facts)
    if first_reply is None:
        return None
    return replace(first_reply, text=" ".join(filter(None, texts)), facts=tuple(facts))


def _select_long_words(text: str) -> list[str]:
    return [word for word in text.split() if len(word) > 3]
