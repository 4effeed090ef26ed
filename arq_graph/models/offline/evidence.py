"""Does a condition hold? Its clauses are held against what was said, what tools found, and what is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.conditions import Clause, parse
from arq_graph.models.offline.findings import Finding, Leaf
from arq_graph.models.offline.languages import language_of, language_wanted
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.shapes import all_numbers
from arq_graph.models.offline.values import any_given
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import Word, best_match, content, likeness, stem, weight, words

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
            "agreement": lambda: self._decision(dialogue.says_yes, "agrees"),
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
        return Verdict(1 - verdict.degree, f"Not so: {verdict.why}", recurs=verdict.recurs, source=verdict.source)

    def _act(self, does: Callable[[str], bool], what: str, once: bool = False) -> Verdict:
        last = self.scene.last
        if does(last.text):
            return self._turned(Verdict(1.0, f"The customer {what} in {last.id}.", not once, not once, last.id))
        return self._turned(Verdict(0.1, f"{last.id or 'The last message'} shows no sign that the customer {what}."))

    def _start(self) -> Verdict:
        if self.scene.is_first_message:
            return self._turned(Verdict(1.0, "The agent has not said anything yet.", recurs=False))
        return self._turned(Verdict(0.1, "The conversation is already under way.", recurs=False))

    def _anger(self) -> Verdict:
        last = self.scene.last
        if dialogue.is_angry(last.text) and not self.clause.variants:
            return self._turned(Verdict(0.9, f"{last.id} sounds upset.", True, True, last.id))
        if not self.clause.variants:
            return self._turned(Verdict(0.1, f"{last.id} does not sound upset."))
        return self._wish()

    def _decision(self, does: Callable[[str], bool], what: str) -> Verdict:
        last, sought = self.scene.last, self.clause.variants
        if not does(last.text):
            if sought and not self.clause.negated and self.clause.kind == "agreement":
                return self._scaled(self._wish(), 0.7)
            return self._turned(Verdict(0.1, f"{last.id} does not show that the customer {what}."))
        before = words(self.scene.open_question) + words(last.text) + self.scene.context_words
        met = max((_share(variant, before) for variant in sought), default=1.0)
        return self._turned(Verdict(0.5 + met / 2 if met >= 0.5 else 0.4, f"The customer {what} in {last.id}.", True, True, last.id))

    def _scaled(self, verdict: Verdict, factor: float) -> Verdict:
        return Verdict(verdict.degree * factor, verdict.why, verdict.anew, verdict.recurs, verdict.source)

    def _off_topic(self) -> Verdict:
        last = self.scene.last
        if not dialogue.requests(last.text) or self.scene.answers(last):
            return self._turned(Verdict(0.1, f"{last.id} raises no topic of its own."))
        prompt = self.scene.prompt
        known = [self.clause.thing, str(prompt.profile.get("text") or ""), str(prompt.profile.get("name") or "")]
        known += [f"{entry.get('condition') or ''} {entry.get('action') or ''}" for entry in prompt.entries("guidelines")]
        known += [f"{entry.get('name')} {entry.get('description') or ''}" for entry in prompt.entries("glossary")]
        topic, among = content(last.text), content(" . ".join(known)[:20_000])
        share = _share(topic, among)
        shared = ", ".join(word.surface for word in topic if best_match(word, among)[0] >= 0.7)
        if share < 0.25:
            return self._turned(Verdict(0.8, f"Nothing in {last.id} has to do with what the agent is for.", True, True, last.id))
        return self._turned(Verdict(0.2, f'{last.id} is about what the agent is for: "{shared}".'))

    def _language(self) -> Verdict:
        spoken = language_of(self.scene.last.text)
        fits = language_wanted(self.clause.text, spoken)
        return self._turned(Verdict(0.9 if fits else 0.1, f"{self.scene.last.id} is in {spoken or 'an unknown language'}.", fits))

    def _given(self) -> Verdict:
        thing = re.sub(r"^(?:the|their|an?|his|her|its|any) ", "", self.clause.thing.strip(" ."), flags=re.IGNORECASE)
        wanted = _wanted_thing(thing)
        if self.clause.negated:
            found = any_given(wanted, reversed(self.scene.customer), self.scene)
            why = f'"{found.quote}" in {found.source}' if found else "nothing of the kind"
            return Verdict(0.1 if found else 0.9, f"Given by the customer for the {thing}: {why}.")
        found = any_given(wanted, [self.scene.last], self.scene)
        if found:
            return Verdict(0.9, f'The customer gave the {thing} in {found.source}: "{found.quote}".', True, True, found.source)
        return self._scaled(self._wish(), 0.8)

    def _comparison(self) -> Verdict:
        holds = self.clause.holds
        assert holds is not None
        about = self.clause.variants[0] if self.clause.variants else ()
        for value, source, anew in self._numbers(about):
            says = f"{value:g} in {source}"
            degree = 0.9 if holds(value) else 0.1
            verdict = Verdict(degree, f'{says} decides on "{self.clause.text}".', anew and degree > 0.5, True, source)
            return self._turned(verdict)
        return self._turned(Verdict(0.3 if self.clause.negated else 0.1, f'No number tells whether "{self.clause.text}".'))

    def _numbers(self, about: tuple[Word, ...]) -> list[tuple[float, str, bool]]:
        """The numbers that may be the one compared, the nearest in meaning first."""
        found: list[tuple[float, float, str, bool]] = []
        for line in self.scene.known_results:
            subject = Finding(line).subject
            for leaf in Finding(line).leaves:
                if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool):
                    close = _share(about, leaf.names + subject) + _share(leaf.names, about)
                    found.append((close, float(leaf.value), line.id, self.scene.is_fresh(line)))
        for variable in self.scene.variables:
            value = variable.get("value")
            if isinstance(value, int | float) and not isinstance(value, bool):
                found.append((_share(about, words(str(variable.get("name")).replace("_", " "))) * 2, float(value), str(variable.get("id")), False))
        for line in self.scene.inquiry:
            for number, start, end in all_numbers(line.text):
                near = words(line.text[max(0, start - 40) : end + 25])
                close = sum(best_match(word, near)[0] for word in about)
                found.append((close, number, line.id, line == self.scene.last))
        best = sorted((entry for entry in found if entry[0] >= 0.5), key=lambda entry: -entry[0])
        return [(value, source, anew) for _, value, source, anew in best]

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
        for_last = _degree(sought, [scene.last.text], scene.context_words)
        degree, source = for_last, scene.last.id
        if len(scene.inquiry) > 1 or scene.accepted:
            whole = _degree(sought, [*(line.text for line in scene.inquiry), scene.accepted], scene.context_words)
            if whole > degree:
                degree = whole
                source = max(scene.inquiry, key=lambda line: _share(sought, content(line.text))).id
        shared = [(word, best_match(word, scene.need_words)[1]) for word in sought]
        named = ", ".join(f'"{other.surface}"' for _, other in shared if other)
        lacking = ", ".join(f'"{word.surface}"' for word, other in shared if not other)
        if degree >= HOLDS_FROM:
            why = f"{source} speaks of {named}{f', though not of {lacking}' if lacking else ''}."
        elif named:
            why = f"The customer speaks of {named}, but not of {lacking or 'enough of it'}."
        else:
            why = f"The customer says nothing of {lacking}."
        return Verdict(degree, why, for_last >= HOLDS_FROM, True, source)

    def _state(self) -> Verdict:
        """What the customer is or has: what they said at any time, what is known of them, what tools found."""
        verdict = Verdict(0.0, "")
        for variant in self.clause.variants or ((),):
            here = self._overlap(variant)
            known = self._known(variant)
            earlier = max((_degree(variant, [line.text], ()) for line in self.scene.customer), default=0.0) * 0.95
            if earlier > here.degree:
                here = Verdict(earlier, f"The customer said so before: {_list_words(variant)}.")
            for found in (here, known):
                if found.degree > verdict.degree or not verdict.why:
                    verdict = found
        return self._turned(verdict)

    def _known(self, sought: tuple[Word, ...]) -> Verdict:
        """Whether a variable or a result says a thing of the customer."""
        best = Verdict(0.0, "")
        lines = [Line(str(v.get("id")), "tool", _as_text(v.get("value")), tool=str(v.get("name"))) for v in self.scene.variables]
        for line in (*self.scene.known_results, *lines):
            finding = Finding(line)
            told = [finding.tells(word) for word in sought]
            related = [told_one is None and best_match(word, finding.subject)[0] > 0 for told_one, word in zip(told, sought, strict=True)]
            if any(told_one is False for told_one in told) or not any(told):
                if not _names_what_is_true(finding, sought):
                    continue
                told = [True] * len(sought)
            total = sum(weight(word.stem) for word in sought) or 1.0
            met = sum(weight(w.stem) for w, t, r in zip(sought, told, related, strict=True) if t or r) / total
            if met > best.degree:
                best = Verdict(met, f"{line.id} says so: {_list_words(sought)}.", self.scene.is_fresh(line), True, line.id)
        return best

    def _result(self) -> Verdict:
        """What a tool's result shows; failing that, what the customer states."""
        best: Verdict | None = None
        contrary = False
        for line in self.scene.known_results:
            for variant in self.clause.variants:
                degree = self._shown_by(Finding(line), variant)
                if degree is None:
                    continue
                contrary = contrary or degree < HOLDS_FROM
                fresh = self.scene.is_fresh(line)
                degree = degree if fresh else degree * 0.8
                if best is None or degree > best.degree:
                    verb = "shows" if degree >= HOLDS_FROM else "does not show"
                    said = f'The result {line.id} {verb} "{self.clause.text}".'
                    best = Verdict(degree, said, fresh and degree >= HOLDS_FROM, True, line.id)
        if best is None or (not best.holds and not contrary):
            stated = self._stated()
            best = stated if best is None or stated.degree > best.degree else best
        return self._turned(best)

    def _shown_by(self, finding: Finding, sought: tuple[Word, ...]) -> float | None:
        """How far a result shows what is sought: None where it is about something else."""
        subject = self.clause.subject
        about = finding.subject + self.scene.need_words
        near = _share(subject, about) if subject else 1.0
        if near < 0.45:
            return None
        existing = [word for word in sought if word.stem in _EXISTENCE]
        rest = tuple(word for word in sought if word not in existing)
        if existing:
            if not subject and rest and _share(rest, about) < 0.45:
                return None
            denied = any(word.stem in _ABSENCE for word in existing) != any(word.negated for word in existing)
            told = next((told for word in existing if (told := finding.tells(word)) is not None), None)
            if told is None or denied:
                absent = finding.is_empty or (told is not None and told == denied)
                return 0.95 if absent == denied and not finding.failed else 0.1
            return 0.95 if told and not finding.is_empty else 0.1
        failing = [word for word in sought if likeness(word.stem, "fail") >= 0.7 or word.stem in ("error", "declin", "reject")]
        if failing:
            return 0.95 if finding.failed != failing[0].negated else 0.1
        told = [finding.tells(word) for word in rest]
        if not any(verdict is not None for verdict in told):
            wanted_absent = bool(rest) and all(word.negated for word in rest)
            return 0.8 if wanted_absent and subject else 0.1
        total = sum(weight(word.stem) for word in rest) or 1.0
        met = sum(
            weight(word.stem) * (1.0 if t else best_match(word, finding.subject)[0] if t is None else 0.0)
            for word, t in zip(rest, told, strict=True)
        )
        return min(1.0, met / total) if any(told) else 0.1

    def _stated(self) -> Verdict:
        """What the customer states, rather than asks, of a thing."""
        stated = [
            sentence
            for line in self.scene.inquiry
            for sentence in dialogue.sentences(line.text)
            if not dialogue.asks(sentence)
        ]
        best = 0.0
        for variant in self.clause.variants:
            sought = (*content(" ".join(word.surface for word in self.clause.subject)), *variant)
            shares = [_share(sought, content(sentence)) for sentence in stated]
            predicate = [_share(variant, content(sentence)) for sentence in stated]
            best = max([best, *(share for share, told in zip(shares, predicate, strict=True) if told >= HOLDS_FROM)])
        last = self.scene.last
        if best >= HOLDS_FROM:
            return Verdict(best * 0.9, f'The customer states "{self.clause.text}".', True, True, last.id)
        return Verdict(best * 0.5, f'Neither a result nor the customer says "{self.clause.text}".')


_DEALS = frozenset(stem(word) for word in "order book buy reserve schedule purchase".split())
_WISHES = re.compile(
    r"\bi(?:'d| would) like|\bi(?:'ll| will) (?:have|take)|\b(?:i|we) (?:want|need) (?!to\b)|\b(?:can|could|may) (?:i|we) (?:have|get)"
    r"|\bgive me|,? please\W*$",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(r"(?<=[\w,;] )[A-Z][\w'’]+|[\"“][^\"”]*[\"”]")
"""Names within a sentence say which one is meant, not what the sentence is about."""
_ABSENCE = frozenset(stem(word) for word in "unfound unavailable".split())
_EXISTENCE = _ABSENCE | frozenset(stem(word) for word in "available found exist exists free left remaining find open".split())


def _wanted_thing(thing: str) -> Wanted:
    """A thing named in a condition ("the number of guests") as an argument to look for."""
    named = re.split(r"\b(?:they|he|she|of their|for the|for their|to be)\b", thing)[0]
    counted = re.search(r"\b(?:number of|how many|quantity|age|party size)\b", thing, re.IGNORECASE) is not None
    tokens = re.findall(r"[^\W_]+", named.lower())[:5]
    return Wanted("_".join(tokens) or thing, "integer" if counted else "string")


def _names_what_is_true(finding: Finding, sought: tuple[Word, ...]) -> bool:
    """Whether its name is what is sought, and its value is true: the variable `is_member` with the value true."""
    if not isinstance(finding.line.result, bool) or not sought:
        return False
    names = words(finding.line.tool.replace("_", " "))
    met = all(any(likeness(word.stem, name.stem) >= 0.9 for name in names) for word in sought)
    return met and finding.line.result != any(word.negated for word in sought)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _list_words(sought: tuple[Word, ...]) -> str:
    return ", ".join(f'"{word.surface}"' for word in sought)


def _share(sought: tuple[Word, ...], among: tuple[Word, ...]) -> float:
    total = sum(weight(word.stem) for word in sought)
    if not total:
        return 0.0
    return sum(weight(word.stem) * best_match(word, among)[0] for word in sought) / total


def _degree(sought: tuple[Word, ...], texts: Sequence[str], context: tuple[Word, ...]) -> float:
    """How far texts speak of what is sought.

    The share of its words that they have, where a word that only the talk before had counts half. Where that
    leaves doubt, it helps if a sentence is about little else: "I want to cancel" is about an order in a talk
    about orders, "cancel my subscription" is not.
    """
    among = tuple(word for text in texts for word in content(text))
    total = sum(weight(word.stem) for word in sought)
    if not total or not among:
        return 0.0
    direct = met = 0.0
    for word in sought:
        alike = best_match(word, among)[0]
        if alike < 0.8 and word.stem in _DEALS and any(map(_WISHES.search, texts)):
            alike = 0.8
        direct += weight(word.stem) * alike
        met += weight(word.stem) * max(alike, 0.5 * best_match(word, context)[0])
    recall = direct / total
    if recall >= 0.75 or recall < 0.3:
        return recall
    precision = max((_share_of_sentence(sentence, sought) for text in texts for sentence in dialogue.sentences(text)), default=0.0)
    return max(recall, min(1.0, met / total), 0.5 * recall + 0.5 * precision if recall >= 0.45 else 0.0)


def _share_of_sentence(sentence: str, sought: tuple[Word, ...]) -> float:
    plain = _SPECIFIC.sub(" ", sentence)
    said = [word for word in content(plain) if not any(character.isdigit() for character in word.stem)]
    if not said:
        return 0.0
    return sum(best_match(word, sought)[0] for word in said) / len(said)
