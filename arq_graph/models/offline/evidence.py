"""Does a condition hold? Its clauses are held against what was said, what tools found, and what is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.conditions import Clause, parse
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.languages import language_of, language_wanted
from arq_graph.models.offline.rivals import is_anothers
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.shown import ABOUT_FROM, Statement, known_of_customer, numbers_about
from arq_graph.models.offline.speaking import ON_OFFER, SPECIFIC, share, speaks_of
from arq_graph.models.offline.values import any_given
from arq_graph.models.offline.wanted import wanted_thing
from arq_graph.models.offline.words import Word, best_match, content, weight, words

HOLDS_FROM = 0.6
"""From this on a condition is taken to hold."""


@dataclass(frozen=True)
class Verdict:
    """How far a condition holds.

    Args:
        degree: 0 (not at all) to 1.
        why: What speaks for it, or what is missing, in words that name the evidence.
        anew: Whether the customer's latest message, or a result of this turn, raises it by itself.
        recurs: Whether it is of a kind that can come true again (a wish, not the beginning of a conversation).
        source: Id of the message or result that decided it.
    """

    degree: float
    why: str
    anew: bool = False
    recurs: bool = True
    source: str = ""

    @property
    def holds(self) -> bool:
        """Whether the condition is taken to hold."""
        return self.degree >= HOLDS_FROM


def judge(condition: str | None, scene: Scene) -> Verdict:
    """Judge a condition; None is one that always holds."""
    if condition is None:
        return Verdict(1.0, "There is no condition: it always holds.", recurs=False)
    best: Verdict | None = None
    for clauses in parse(condition):
        verdict = _all_of([Judge(scene, clause).verdict for clause in clauses])
        if best is None or verdict.degree > best.degree:
            best = verdict
    return best or Verdict(0.0, "The condition is empty.")


def _all_of(verdicts: Sequence[Verdict]) -> Verdict:
    weakest = min(verdicts, key=lambda verdict: verdict.degree)
    shown = verdicts if weakest.holds else [weakest]
    return Verdict(
        weakest.degree,
        " ".join(verdict.why for verdict in shown),
        anew=any(verdict.anew for verdict in verdicts),
        recurs=any(verdict.recurs for verdict in verdicts),
        source=next((verdict.source for verdict in verdicts if verdict.anew), weakest.source),
    )


@dataclass(frozen=True)
class Judge:
    """Judges one clause.

    Args:
        scene: The conversation.
        clause: The clause.
    """

    scene: Scene
    clause: Clause

    @cached_property
    def verdict(self) -> Verdict:
        """How far the clause holds."""
        acts: dict[str, Callable[[], Verdict]] = {
            "start": self._start,
            "greeting": lambda: self._act(dialogue.greets, "greets", once=True),
            "farewell": lambda: self._act(dialogue.takes_leave, "takes leave", once=True),
            "thanks": lambda: self._act(dialogue.thanks, "thanks"),
            "question": lambda: self._act(dialogue.asks, "asks a question"),
            "anger": self._anger,
            "agreement": lambda: self._decision(self._agrees, "agrees"),
            "refusal": lambda: self._decision(dialogue.says_no, "refuses"),
            "off topic": self._off_topic,
            "language": self._language,
            "given": self._given,
            "comparison": self._comparison,
            "wish": self._wish,
            "state": self._state,
            "result": self._result,
        }
        return acts[self.clause.kind]()

    def _turned(self, verdict: Verdict) -> Verdict:
        if not self.clause.negated:
            return verdict
        return Verdict(
            1 - verdict.degree, f"Not so: {verdict.why}", recurs=verdict.recurs, source=verdict.source
        )

    def _act(self, does: Callable[[str], bool], what: str, once: bool = False) -> Verdict:
        last = self.scene.last
        if does(last.text):
            return self._turned(
                Verdict(1.0, f"The customer {what} in {last.id}.", not once, not once, last.id)
            )
        return self._turned(
            Verdict(0.1, f"{last.id or 'The last message'} shows no sign that the customer {what}.")
        )

    def _start(self) -> Verdict:
        if self.scene.is_first_message:
            return self._turned(Verdict(1.0, "The agent has not said anything yet.", recurs=False))
        return self._turned(Verdict(0.1, "The conversation is already under way.", recurs=False))

    def _anger(self) -> Verdict:
        last = self.scene.last
        # "unhappy with the service" is about nothing in particular; "complains about noise" is.
        in_particular = any(weight(word.stem) == 1 for variant in self.clause.variants for word in variant)
        if dialogue.is_angry(last.text) and not in_particular:
            return self._turned(Verdict(0.9, f"{last.id} sounds upset.", True, True, last.id))
        if not in_particular:
            return self._turned(Verdict(0.1, f"{last.id} does not sound upset."))
        # "It does not fit" complains about the fit.
        said = tuple(word._replace(negated=False) for word in content(last.text))
        if dialogue.is_angry(last.text) and any(share(each, said) >= 0.9 for each in self.clause.variants):
            return self._turned(Verdict(0.9, f"{last.id} complains about it.", True, True, last.id))
        return self._wish()

    def _decision(self, does: Callable[[str], bool], what: str) -> Verdict:
        last, sought = self.scene.last, self.clause.variants
        if not does(last.text):
            if (
                sought
                and self.clause.kind == "agreement"
                and not self.clause.negated
                and not dialogue.asks(last.text)
                and not dialogue.hesitates(last.text)
            ):
                return self._scaled(self._wish(), 0.7)
            return self._turned(Verdict(0.1, f"{last.id} does not show that the customer {what}."))
        before = words(self.scene.open_question) + words(last.text) + self.scene.context_words
        met = max((share(variant, before) for variant in sought), default=1.0)
        return self._turned(
            Verdict(
                0.5 + met / 2 if met >= 0.5 else 0.4,
                f"The customer {what} in {last.id}.",
                True,
                True,
                last.id,
            )
        )

    def _agrees(self, text: str) -> bool:
        return self.scene.agrees(self.scene.last)

    def _scaled(self, verdict: Verdict, factor: float) -> Verdict:
        return Verdict(verdict.degree * factor, verdict.why, verdict.anew, verdict.recurs, verdict.source)

    def _off_topic(self) -> Verdict:
        last = self.scene.last
        if not dialogue.requests(last.text) or self.scene.answers(last) or self._is_of_another():
            return self._turned(Verdict(0.1, f"{last.id} raises no topic of its own."))
        prompt = self.scene.prompt
        known = [
            self.clause.thing,
            str(prompt.profile.get("text") or ""),
            str(prompt.profile.get("name") or ""),
        ]
        known += [
            f"{entry.get('condition') or ''} {entry.get('action') or ''}" for entry in prompt.guidelines()
        ]
        known += [
            f"{entry.get('name')} {entry.get('description') or ''}" for entry in prompt.entries("glossary")
        ]
        topic = tuple(word for word in content(SPECIFIC.sub(" ", last.text)) if word.stem != ON_OFFER)
        among = content(" . ".join(known)[:20_000])
        if not topic:
            return self._turned(Verdict(0.2, f"{last.id} names no topic."))
        met = share(topic, among)
        shared = ", ".join(word.surface for word in topic if best_match(word, among)[0] >= 0.7)
        if met < 0.25:
            return self._turned(
                Verdict(
                    0.8, f"Nothing in {last.id} has to do with what the agent is for.", True, True, last.id
                )
            )
        return self._turned(Verdict(0.2, f'{last.id} is about what the agent is for: "{shared}".'))

    def _is_of_another(self) -> bool:
        """Whether another guideline of this prompt is about the last message."""
        conditions = [entry.get("condition") for entry in self.scene.prompt.guidelines()]
        clauses = [
            clause
            for text in conditions
            if isinstance(text, str)
            for clauses in parse(text)
            for clause in clauses
        ]
        wishes = [clause for clause in clauses if clause.kind == "wish" and not clause.negated]
        return any(Judge(self.scene, clause).verdict.anew for clause in wishes)

    def _language(self) -> Verdict:
        spoken = language_of(self.scene.last.text)
        fits = language_wanted(self.clause.text, spoken)
        return self._turned(
            Verdict(
                0.9 if fits else 0.1, f"{self.scene.last.id} is in {spoken or 'an unknown language'}.", fits
            )
        )

    def _given(self) -> Verdict:
        thing = re.sub(
            r"^(?:the|their|an?|his|her|its|any) ", "", self.clause.thing.strip(" ."), flags=re.IGNORECASE
        )
        wanted = wanted_thing(thing)
        if self.clause.negated:
            found = any_given(wanted, reversed(self.scene.customer), self.scene)
            why = f'"{found.quote}" in {found.source}' if found else "nothing of the kind"
            return Verdict(0.1 if found else 0.9, f"Given by the customer for the {thing}: {why}.")
        found = any_given(wanted, [self.scene.last], self.scene)
        if found:
            return Verdict(
                0.9,
                f'The customer gave the {thing} in {found.source}: "{found.quote}".',
                True,
                True,
                found.source,
            )
        return self._scaled(self._wish(), 0.8)

    def _comparison(self) -> Verdict:
        bound = self.clause.bound
        assert bound is not None
        numbers = numbers_about(self.scene, self.clause.variants[0] if self.clause.variants else ())
        if not numbers:
            return self._turned(
                Verdict(0.3 if self.clause.negated else 0.1, f'No number tells whether "{self.clause.text}".')
            )
        number, line = numbers[0]
        anew = line == self.scene.last or self.scene.is_fresh(line)
        why = f'{number:g} in {line.id} decides on "{self.clause.text}".'
        return self._turned(
            Verdict(0.9 if bound.admits(number) else 0.1, why, anew and bound.admits(number), True, line.id)
        )

    def _wish(self) -> Verdict:
        """What the customer asks, wants or mentions: its words against the open need."""
        best = Verdict(0.0, "")
        for variant in self.clause.variants:
            verdict = self._overlap(variant)
            if verdict.degree > best.degree or not best.why:
                best = verdict
        return self._turned(best)

    def _overlap(self, sought: tuple[Word, ...]) -> Verdict:
        scene = self.scene
        context, profile = scene.context_words, scene.profile_words
        decisive = self.clause.decisive
        for_last = speaks_of(sought, [line.text for line in scene.latest], context, profile, decisive)
        degree, source = for_last, scene.last.id
        if len(scene.inquiry) > 1 or scene.accepted:
            texts = [*(line.text for line in scene.inquiry), scene.accepted]
            whole = speaks_of(sought, texts, context, profile, decisive)
            if whole > degree:
                degree = whole
                source = max(scene.inquiry, key=lambda line: share(sought, content(line.text))).id
        if degree >= HOLDS_FROM and is_anothers(self.clause, sought, scene):
            degree = for_last = 0.4
        found = [(word, best_match(word, scene.need_words)[1]) for word in sought]
        named = ", ".join(f'"{other.surface}"' for _, other in found if other)
        lacking = ", ".join(f'"{word.surface}"' for word, other in found if not other)
        if degree >= HOLDS_FROM:
            why = f"{source} speaks of {named}{f', though not of {lacking}' if lacking else ''}."
        elif named:
            why = f"The customer speaks of {named}, but not of {lacking or 'enough of it'}."
        else:
            why = f"The customer says nothing of {lacking}."
        return Verdict(degree, why, for_last >= HOLDS_FROM, True, source)

    def _state(self) -> Verdict:
        """What the customer is or has: what they said at any time, what is known of them, what tools found."""
        best = Verdict(0.0, "")
        for variant in self.clause.variants or ((),):
            here = self._overlap(variant)
            earlier = (
                max((speaks_of(variant, [line.text], ()) for line in self.scene.customer), default=0.0) * 0.95
            )
            if earlier > here.degree:
                here = Verdict(earlier, f"The customer said so before: {_list_words(variant)}.")
            known = [
                Verdict(
                    met,
                    f"{line.id} says so: {_list_words(variant)}.",
                    self.scene.is_fresh(line),
                    True,
                    line.id,
                )
                for met, line in known_of_customer(self.scene, variant)
            ]
            for found in (here, *known):
                if found.degree > best.degree or not best.why:
                    best = found
        return self._turned(best)

    def _result(self) -> Verdict:
        """What a tool's result shows; failing that, what the customer states."""
        best: Verdict | None = None
        contrary = False
        for line in self.scene.known_results:
            finding = Finding(line)
            for variant in self.clause.variants:
                shown = Statement(self.clause.subject, variant).shown_by(finding, self.scene.need_words)
                if shown is None:
                    continue
                is_its_own = (
                    not self.clause.subject or share(self.clause.subject, finding.subject) >= ABOUT_FROM
                )
                contrary = contrary or (shown < HOLDS_FROM and is_its_own)
                verdict = self._read_from(line, shown)
                if best is None or verdict.degree > best.degree:
                    best = verdict
        if best is None or (not best.holds and not contrary):
            stated = self._stated()
            best = stated if best is None or stated.degree > best.degree else best
        return self._turned(best)

    def _read_from(self, line: Line, shown: float) -> Verdict:
        # An older result may be out of date by now.
        fresh = self.scene.is_fresh(line)
        current = shown if fresh else shown * 0.8
        verb = "shows" if current >= HOLDS_FROM else "does not show"
        why = f'The result {line.id} {verb} "{self.clause.text}".'
        return Verdict(current, why, fresh and current >= HOLDS_FROM, True, line.id)

    def _stated(self) -> Verdict:
        """What the customer states, rather than asks, of a thing."""
        # What is wished for has not come about, but it is needed.
        is_needed = re.search(r"\bneeds?\b", self.clause.text) is not None
        stated = [
            sentence if is_needed else dialogue.without_wishes(sentence)
            for line in self.scene.inquiry
            for sentence in dialogue.sentences(line.text)
            if not dialogue.asks(sentence)
        ]
        best = 0.0
        for variant in self.clause.variants:
            sought = (*content(" ".join(word.surface for word in self.clause.subject)), *variant)
            shares = [share(sought, content(sentence)) for sentence in stated]
            predicate = [share(variant, content(sentence)) for sentence in stated]
            best = max(
                [best, *(share for share, told in zip(shares, predicate, strict=True) if told >= HOLDS_FROM)]
            )
        last = self.scene.last
        if best >= HOLDS_FROM:
            return Verdict(best * 0.9, f'The customer states "{self.clause.text}".', True, True, last.id)
        return Verdict(best * 0.5, f'Neither a result nor the customer says "{self.clause.text}".')


def _list_words(sought: tuple[Word, ...]) -> str:
    return ", ".join(f'"{word.surface}"' for word in sought)
