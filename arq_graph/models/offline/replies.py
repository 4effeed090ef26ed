"""Writing a reply from what the prompt holds: results, guidelines' actions, what is missing, a draft."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue, house
from arq_graph.models.offline.actions import Segment, segments
from arq_graph.models.offline.asking import in_other_words
from arq_graph.models.offline.deeds import WHICH_ONE, Deed, Outcome, Place, Said, has_changed
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.insights import PLEASE_CONFIRM, is_confirmation, questions_of
from arq_graph.models.offline.knowledge import answers_from
from arq_graph.models.offline.remarks import remarks
from arq_graph.models.offline.rules import holding
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.telling import Telling, without_tool_names
from arq_graph.models.offline.toolnames import ToolName, name_of
from arq_graph.models.offline.wording import sentence
from arq_graph.models.offline.words import Word, content, overlap, words

_ORDER = ("opening", "body", "question", "closing")
_BRIEF = re.compile(r"\b(?:brief|short|concise|one sentence|two sentences|few words)\b", re.IGNORECASE)
_GREETING = re.compile(
    r"\b(?:hello|hi|welcome|good (?:morning|afternoon|evening|day)|greetings)\b", re.IGNORECASE
)
_INTERNAL = re.compile(r"(?<![A-Za-z0-9])[GTKVM]\d+(?![A-Za-z0-9])")


@dataclass(frozen=True)
class Followed:
    """One guideline, and what became of it.

    Args:
        id: The guideline.
        action: What it says.
        parts: Its parts with their outcome.
    """

    id: str
    action: str
    parts: tuple[tuple[Segment, Outcome], ...]

    @property
    def is_followed(self) -> bool:
        """Whether all of it is done that is due."""
        return all(outcome != "missing" for _, outcome in self.parts)


@dataclass(frozen=True)
class Reply:
    """The agent's next message.

    Args:
        scene: The conversation.
    """

    scene: Scene

    @cached_property
    def guidelines(self) -> tuple[Mapping[str, Any], ...]:
        """The active guidelines, the strongest first; where there are none, the rules of the profile that come true."""
        active = self.scene.prompt.guidelines("active_guidelines")
        active += [rule for rule, why in holding(self.scene) if why.anew or not why.recurs]
        return tuple(sorted(active, key=lambda g: (-_number(g.get("priority")), -_number(g.get("score")))))

    @cached_property
    def hidden(self) -> tuple[Word, ...]:
        """The words of what active guidelines forbid to tell."""
        found: tuple[Word, ...] = ()
        for guideline in self.guidelines:
            for part in segments(str(guideline.get("action") or "")):
                match = re.search(
                    r"\b(?:mention|tell|reveal|disclose|discuss|share|state|give|show|say|quote|talk about"
                    r"|speak about|promise)\w*\b(.*)",
                    part.rest,
                    re.IGNORECASE,
                )
                if part.deed == "forbid" and match:
                    found += tuple(word._replace(negated=False) for word in content(match[1]))
        return found

    @cached_property
    def told(self) -> tuple[Said, ...]:
        """What tools found, in sentences; of earlier turns only where the question is about it again."""
        focus = content(self.scene.need) + tuple(
            word for g in self.guidelines for word in words(str(g.get("action") or ""))
        )
        lines = self.scene.fresh_results or (() if self.asked else self._earlier_results())
        said: list[Said] = []
        for line in lines[-4:]:
            for text in Telling(line, self.scene, focus, self.hidden).sentences:
                if text and all(text != other.text for other in said):
                    said.append(Said(text, "body", "fact", line.id))
        return tuple(said)

    def _earlier_results(self) -> tuple[Line, ...]:
        scene = self.scene
        asked = scene.last.text
        if not dialogue.asks(asked) or not content(asked) or answers_from(scene, asked):
            return ()
        if house.is_asked_for(asked):
            return ()
        about = [
            (overlap(scene.last.text, _text_of(line)), line)
            for line in scene.known_results
            if not Finding(line).failed
        ]
        best = max(about, key=lambda entry: entry[0], default=(0.0, None))
        return (best[1],) if best[1] is not None and best[0] >= 0.6 else ()

    @cached_property
    def asked(self) -> tuple[Said, ...]:
        """What is still needed from the customer."""
        return tuple(Said(text, "question") for text in questions_of(self.scene))

    @cached_property
    def _drafted(self) -> tuple[Said, ...]:
        draft = self.scene.prompt.sections.get("draft")
        if not isinstance(draft, str):
            return ()
        sources = [*self.scene.fresh_results, *self.scene.known_results]
        said = []
        for text in dialogue.sentences(_without_ids(draft, self.scene)):
            source = max(sources, key=lambda line: overlap(text, _text_of(line)), default=None)
            close = source is not None and overlap(text, _text_of(source)) >= 0.4
            place: Place = "question" if text.endswith("?") or text == PLEASE_CONFIRM else "body"
            said.append(
                Said(text, place, "fact" if close else "other", source.id if close and source else "")
            )
        return tuple(said)

    @cached_property
    def followed(self) -> tuple[Followed, ...]:
        """What became of each active guideline."""
        return tuple(entry for entry, _ in self._deeds)

    @cached_property
    def _deeds(self) -> tuple[tuple[Followed, tuple[Said, ...]], ...]:
        done = []
        for guideline in self.guidelines:
            id, action = str(guideline.get("id")), str(guideline.get("action") or "")
            parts: list[tuple[Segment, Outcome]] = []
            said: list[Said] = []
            for part in segments(action):
                outcome, texts = Deed(part, id, self.scene, self._told_or_drafted).result
                if self._is_held_up(part, parts):
                    outcome, texts = "missing", ()
                elif self._is_in_vain(part, parts):
                    outcome, texts = "not due", ()
                parts.append((part, outcome))
                said += [text for text in texts if not self._waits_for_data(outcome, text)]
            done.append((Followed(id, action, tuple(parts)), tuple(said)))
        return tuple(done)

    @property
    def _told_or_drafted(self) -> tuple[Said, ...]:
        return self.told or tuple(said for said in self._drafted if said.place != "question")

    def _is_held_up(self, part: Segment, before: Sequence[tuple[Segment, Outcome]]) -> bool:
        """A look-up waits for what the customer is asked for; so does what is to be said once it is done."""
        asks_for_data = part.deed == "ask" and not part.tail.lower().startswith("to ")
        is_asked = self.asked or any(said.place == "question" for said in self._drafted)
        if not is_asked or part.continuous or asks_for_data:
            return False
        if self.told:  # what was only looked up does not do what is to be done before
            return (
                part.deed == "offer"
                and _changes(before)
                and not any(map(has_changed, self.scene.fresh_results))
            )
        return part.deed == "use tool" or any(
            earlier.deed in ("use tool", "other") and outcome == "missing" for earlier, outcome in before
        )

    def _is_in_vain(self, part: Segment, before: Sequence[tuple[Segment, Outcome]]) -> bool:
        """Whether it is to be said once something is done, and that was tried in vain."""
        tried = [line for line in self.scene.fresh_results if not name_of(line).only_reads]
        is_said_after = part.deed in ("offer", "recommend", "say", "tell", "wish") and not part.continuous
        return is_said_after and _changes(before) and bool(tried) and not any(map(has_changed, tried))

    def _waits_for_data(self, outcome: Outcome, said: Said) -> bool:
        """Nothing is said to be unknown while what would tell it is being asked for."""
        return bool(self.asked) and outcome == "missing" and said.kind == "other"

    @cached_property
    def sentences(self) -> tuple[Said, ...]:
        """The sentences of the reply, in order."""
        from_guidelines = [said for _, texts in self._deeds for said in texts]
        said = [*self._drafted] if self._drafted else [*self.told]
        for new in (*from_guidelines, *self.asked):
            if self.asked and new.text == WHICH_ONE:
                continue
            if new.place == "question" and self._puts_a_call and (self._is_put or new not in self.asked):
                continue
            if not any(_same(new, old) for old in said) and not self._is_forbidden(new):
                said.append(new)
        if not any(entry.place in ("body", "question") for entry in said):
            said += remarks(self.scene, has_said=bool(said))
        if (
            self.scene.is_first_message
            and dialogue.greets(self.scene.last.text)
            and not any(_GREETING.search(s.text) for s in said)
        ):
            said.insert(0, Said("Hello!", "opening"))
        sent = [line.text for line in self.scene.agent]
        said = [
            each
            if each.place != "question" or each.verbatim
            else replace(each, text=in_other_words(each.text, sent))
            for each in said
        ]
        ordered = sorted(said, key=lambda entry: _ORDER.index(entry.place))
        return tuple(_shortened(ordered) if self._must_be_brief else ordered)

    @cached_property
    def _puts_a_call(self) -> bool:
        """Whether a call is put to the customer: a yes has to be one to that, so nothing else is asked."""
        return any(each.get("kind") == "confirm" for each in self.scene.prompt.entries("insights"))

    @cached_property
    def _is_put(self) -> bool:
        """Whether the draft does that already."""
        return any(is_confirmation(said.text) for said in self._drafted)

    def _is_forbidden(self, said: Said) -> bool:
        if said.verbatim or not self.hidden or said.kind == "other":
            return False
        return overlap(" ".join(word.surface for word in self.hidden), said.text) >= 0.6

    @property
    def _must_be_brief(self) -> bool:
        return any(
            part.deed == "style" and _BRIEF.search(part.text)
            for g in self.guidelines
            for part in segments(str(g.get("action") or ""))
        )

    @cached_property
    def text(self) -> str:
        """The whole message; never one that was sent before."""
        text = _joined(self.sentences)
        earlier = {_in_any_order(line.text) for line in self.scene.agent}
        if text and _in_any_order(text) not in earlier:
            return text
        for attempt in _pointing_back(self.sentences, text):
            if _in_any_order(attempt) not in earlier:
                return attempt
        count = sum(1 for _ in self.scene.agent)
        return (
            f"I am afraid we are going round in circles: this is my message number {count + 1}, and I have"
            " nothing new to add."
        )


def _changes(parts: Sequence[tuple[Segment, Outcome]]) -> bool:
    """Whether one of several parts is to change something rather than to look it up."""
    return any(part.deed == "use tool" and not ToolName(part.verb).reads for part, _ in parts)


def _pointing_back(said: Sequence[Said], text: str) -> list[str]:
    questions = " ".join(entry.text for entry in said if entry.place == "question")
    if questions:
        again = questions[0].lower() + questions[1:] if not questions.startswith("I ") else questions
        return [
            f"To go on, I still need this from you: {again}",
            "We seem to be going round in circles. As asked above, I need that answer from you before I "
            "can go on.",
        ]
    return [
        sentence(f"as I said in my last message: {text}")
        if len(text) < 300
        else "Please see my last message: nothing has changed since.",
        "We seem to be going round in circles: please see what I said above. Is there something else I can "
        "help you with?",
    ]


def _key(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))


def _in_any_order(text: str) -> tuple[str, ...]:
    """Its words: the same sentences in another order are the same message."""
    return tuple(sorted(_key(text)))


def _joined(said: Sequence[Said]) -> str:
    return " ".join(
        entry.text if entry.text[-1:] in ".!?…" else f"{entry.text}." for entry in said if entry.text
    ).strip()


def _same(new: Said, old: Said) -> bool:
    if _key(new.text) == _key(old.text) or (new.verbatim and new.text in old.text):
        return True
    if new.verbatim or old.verbatim or new.place != old.place:
        return False
    both = content(new.text), content(old.text)
    return (
        all(len(side) >= 1 for side in both)
        and overlap(new.text, old.text) >= 0.85
        and (new.place == "question" or overlap(old.text, new.text) >= 0.85)
    )


def _shortened(said: Sequence[Said]) -> list[Said]:
    kept = [entry for entry in said if entry.guideline or entry.place == "question"]
    facts = [entry for entry in said if entry not in kept][: max(0, 2 - len(kept)) or 1]
    return [entry for entry in said if entry in kept or entry in facts]


def _text_of(line: Line) -> str:
    given = " ".join(str(value) for value in line.arguments.values())
    return f"{line.tool.replace('_', ' ')} {given} {line.text[:2_000]}".replace("_", " ")


def _without_ids(text: str, scene: Scene) -> str:
    return " ".join(
        _INTERNAL.sub("", without_tool_names(text, scene)).replace("()", "").replace("[]", "").split()
    )


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
