"""Doing what a guideline says in words: a part of an action becomes a sentence of the reply."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.actions import Segment
from arq_graph.models.offline.asking import QUESTION_WORD, question_for
from arq_graph.models.offline.evidence import judge
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.knowledge import answers_from
from arq_graph.models.offline.languages import LANGUAGES, language_of
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.toolnames import ToolName, name_of
from arq_graph.models.offline.wording import in_sentence, is_plural, sentence, to_customer
from arq_graph.models.offline.words import in_words, overlap

Place = Literal["opening", "body", "question", "closing"]
WHICH_ONE = "Which one would you like?"
Outcome = Literal["done", "not due", "missing"]


@dataclass(frozen=True)
class Said:
    """A sentence of the reply.

    Args:
        text: The sentence.
        place: Where in the reply it stands.
        kind: Whether it states a fact, offers a service, or neither.
        source: Id of what it rests on; empty if it rests on nothing.
        guideline: Id of the guideline that it follows; empty if it follows none.
        verbatim: Whether it must stand word for word.
    """

    text: str
    place: Place = "body"
    kind: Literal["fact", "service", "other"] = "other"
    source: str = ""
    guideline: str = ""
    verbatim: bool = False


@dataclass(frozen=True)
class Deed:
    """One part of an action, to be done in this reply.

    Args:
        part: The part.
        guideline: Id of the guideline it belongs to.
        scene: The conversation.
        told: What the reply tells already, from results.
    """

    part: Segment
    guideline: str
    scene: Scene
    told: tuple[Said, ...] = ()

    @cached_property
    def is_due(self) -> bool:
        """Whether its own condition ("if they are unhappy, …") holds."""
        return not self.part.condition or judge(self.part.condition, self.scene).holds != self.part.unless

    @cached_property
    def result(self) -> tuple[Outcome, tuple[Said, ...]]:
        """Whether it is done, and the sentences that do it."""
        if not self.is_due:
            return "not due", ()
        ways: dict[str, Callable[[], tuple[Outcome, tuple[Said, ...]]]] = {
            "say": self._say,
            "ask": self._ask,
            "offer": self._offer,
            "recommend": self._recommend,
            "tell": self._tell,
            "apologise": lambda: self._simply(self._sorry(), "opening"),
            "sympathise": lambda: self._simply("I understand, and I am sorry for the trouble.", "opening"),
            "thank": lambda: self._simply(self._thanks(), "opening"),
            "greet": lambda: self._simply(self._greeting(), "opening"),
            "wish": lambda: self._simply(self._wish(), "closing"),
            "refer": self._refer,
            "refuse": lambda: self._simply("I am afraid I cannot help you with that.", "body"),
            "other": self._use_tool,
            "hand over": self._hand_over,
            "use tool": self._use_tool,
        }
        way = ways.get(self.part.deed)
        if way is None:  # a prohibition or a style produces no sentence
            return ("done" if self.part.continuous and not self._wants_another_language else "missing"), ()
        return way()

    @property
    def _wants_another_language(self) -> bool:
        """Whether it asks for a language other than the only one that is written here."""
        style = self.part.rest if self.part.deed == "style" else ""
        if "same language" in style or "their language" in style:
            return language_of(self.scene.last.text) not in (None, "English")
        return any(language in style.lower() for language in LANGUAGES if language != "english")

    def _simply(self, text: str, place: Place) -> tuple[Outcome, tuple[Said, ...]]:
        return "done", (Said(text, place, guideline=self.guideline),)

    def _stated(
        self, text: str, kind: Literal["fact", "service"], place: Place = "body"
    ) -> tuple[Outcome, tuple[Said, ...]]:
        return "done", (Said(sentence(text), place, kind, self.guideline, self.guideline),)

    def _say(self) -> tuple[Outcome, tuple[Said, ...]]:
        rest = self.part.rest.lower()
        place: Place = "body"
        if re.match(r"(?:greet|welcome|start|begin|open|introduce)", rest):
            place = "opening"
        elif re.match(r"(?:end|close|finish|conclude|say goodbye|sign off)", rest) or dialogue.takes_leave(
            self.part.quote
        ):
            place = "closing"
        elif self.part.quote.rstrip().endswith("?"):
            place = "question"
        return "done", (Said(self.part.quote, place, "fact", self.guideline, self.guideline, verbatim=True),)

    def _ask(self) -> tuple[Outcome, tuple[Said, ...]]:
        question = question_for(self.part.rest, self.part.tail, self.scene)
        return "done", ((Said(question, "question", guideline=self.guideline),) if question else ())

    def _offer(self) -> tuple[Outcome, tuple[Said, ...]]:
        rest = to_customer(self.part.tail)
        if not rest and re.search(r"\b(?:them|it)$", self.part.rest):  # what an earlier part has looked up
            rest = "them"
            if not self.told:
                return "missing", ()
        if self._is_taken_up:
            return "done", ()
        if self._is_of_what_is_told(rest):
            if self._is_settled:
                return "not due", ()
            return "done", (Said(WHICH_ONE, "question", guideline=self.guideline),)
        if self.part.verb == "promise":
            return self._stated(f"I promise you {rest}", "service")
        if rest.lower().startswith("to "):
            return "done", (
                Said(
                    sentence(f"would you like me to {rest[3:]}", "?"),
                    "question",
                    "service",
                    self.guideline,
                    self.guideline,
                ),
            )
        return self._stated(f"I can offer you {rest or 'my help'}", "service")

    def _is_of_what_is_told(self, rest: str) -> bool:
        """Whether what is to be offered is what the reply lists: "these times", but not "free shipping"."""
        if not self.told or re.match(r"(?:these|those|them|it)\b", rest, re.IGNORECASE):
            return bool(self.told)
        if not re.match(r"(?:the|some|free|available)\b", rest, re.IGNORECASE):
            return False
        sources = {said.source for said in self.told}
        results = [line.result for line in self.scene.known_results if line.id in sources]
        lists = any(isinstance(each, list) for result in results for each in _values(result))
        return lists and (rest.lower().startswith("the ") or any(map(is_plural, rest.split()[:4])))

    @property
    def _is_taken_up(self) -> bool:
        """Whether the customer has agreed to what is to be offered, or it was just done."""
        if self.scene.accepted and overlap(self.part.tail, self.scene.accepted) >= 0.6:
            return True
        if re.match(
            r"(?:another|a (?:second|further)|additional|further|more)\b", self.part.tail, re.IGNORECASE
        ):
            return False
        done = [ToolName(line.tool).as_order for line in (*self._done, *self._done_before)]
        # "expedited shipping at no cost" is what `expedite_shipping` does, whatever else is said of it.
        return any(max(overlap(self.part.tail, each), overlap(each, self.part.tail)) >= 0.6 for each in done)

    @property
    def _is_settled(self) -> bool:
        """Whether something was done in this turn, so that there is no choice left."""
        return bool(self._done)

    @property
    def _done_before(self) -> tuple[Line, ...]:
        """What was done in earlier turns, as long as the customer speaks of no other case than that."""
        said = self.scene.last.text[:5_000].split()
        named = {word.strip(".,;:!?") for word in said if any(map(str.isdigit, word))}
        return tuple(
            line
            for line in self.scene.known_results
            if has_changed(line) and named <= {str(value) for value in line.arguments.values()}
        )

    @property
    def _done(self) -> tuple[Line, ...]:
        """What was done in this turn: the results of what changes something, and did."""
        return tuple(line for line in self.scene.fresh_results if has_changed(line))

    def _recommend(self) -> tuple[Outcome, tuple[Said, ...]]:
        if self._is_taken_up:
            return "done", ()
        rest, verb = to_customer(self.part.tail), self.part.rest.split()[0].lower()
        if verb == "invite":
            return self._stated(f"you are welcome to {rest.removeprefix('to ')}", "service")
        if rest.startswith("to "):
            return self._stated(
                f"I would {'advise' if verb not in ('encourage', 'urge') else verb} you {rest}", "service"
            )
        return self._stated(
            f"I would {'suggest' if verb in ('suggest', 'propose') else 'recommend'} {rest}", "service"
        )

    def _sorry(self) -> str:
        about = re.search(r"\bfor (?P<what>.+)", self.part.rest)
        return sentence(f"I am sorry for {to_customer(about['what'])}") if about else "I am sorry about that."

    def _thanks(self) -> str:
        about = re.search(r"\bfor (?P<what>.+)", self.part.rest)
        return sentence(f"thank you for {to_customer(about['what'])}") if about else "Thank you."

    def _greeting(self) -> str:
        name = str(self.scene.prompt.profile.get("name") or "")
        welcome = "welcome" in self.part.rest.lower()
        if "introduce" in self.part.rest.lower() and name:
            return f"Hello, this is {name}."
        return (
            f"Hello, and welcome to {name}!"
            if welcome and name
            else "Hello and welcome!"
            if welcome
            else "Hello!"
        )

    def _wish(self) -> str:
        if re.search(r"good ?bye|farewell", self.part.rest, re.IGNORECASE):
            return "Goodbye!"
        if self.part.rest.lower().startswith("congratulate"):
            return "Congratulations!"
        return (
            sentence(f"I wish you {re.sub(r'^(?:you )', '', to_customer(self.part.tail))}")
            if self.part.tail
            else "All the best!"
        )

    def _refer(self) -> tuple[Outcome, tuple[Said, ...]]:
        where = re.search(r"\bto (?P<where>.+)", self.part.rest)
        return self._stated(
            f"for this, please turn to {to_customer(where['where'])}" if where else self.part.rest, "service"
        )

    def _hand_over(self) -> tuple[Outcome, tuple[Said, ...]]:
        where = re.search(r"\b(?:to|with) (?P<where>.+)", self.part.rest)
        whom = to_customer(where["where"]) if where else "a colleague"
        return self._stated(f"I will pass you on to {whom}", "service")

    def _use_tool(self) -> tuple[Outcome, tuple[Said, ...]]:
        return ("done" if self.told else "missing"), ()

    def _tell(self) -> tuple[Outcome, tuple[Said, ...]]:
        rest, verb = self.part.tail, self.part.verb
        if rest.lower().startswith("that "):
            return self._stated(to_customer(rest[5:]), "fact")
        if self.part.is_statement:
            request = rest.lower().startswith("to ")
            return self._stated(f"please {to_customer(rest[3:])}" if request else to_customer(rest), "fact")
        if verb in ("answer", "reply", "respond"):
            return ("done" if self.told else "missing"), ()
        return self._look_up(rest, verb)

    def _look_up(self, rest: str, verb: str) -> tuple[Outcome, tuple[Said, ...]]:
        """Tell something that is only named: from results, or from what the prompt knows."""
        thing = re.sub(r"^(?:about|of|on)\s+", "", rest, flags=re.IGNORECASE)
        if self.told and (
            verb in ("confirm", "summarise", "summarize", "report") or not thing or self._covers(thing)
        ):
            return "done", ()
        if re.search(r"\d|@|\bwww\.", thing) and not self._covers(thing):  # "the hotline 555-123" says it all
            return self._stated(f"here is {to_customer(thing)}", "fact")
        if verb == "remind" and thing:
            return self._stated(f"please remember {to_customer(thing)}", "fact")
        if verb in ("mention", "point", "note", "let") and thing:
            return self._stated(f"I would also like to mention {to_customer(thing)}", "fact")
        known = answers_from(self.scene, thing)
        if known:
            return "done", tuple(
                Said(text, "body", "fact", source, self.guideline) for text, source in known[:1]
            )
        if self.told or self._was_told(thing):
            return "done", ()
        topic = in_sentence(to_customer(thing))
        if topic and len(topic.split()) <= 8 and not QUESTION_WORD.match(topic):
            return "missing", (
                Said(sentence(f"I do not have any information on {topic}"), guideline=self.guideline),
            )
        return "missing", ()

    def _was_told(self, thing: str) -> bool:
        """Whether a tool has found it in an earlier turn, and the customer asks for nothing more."""
        if dialogue.requests(self.scene.last.text) or not self.scene.answers(self.scene.last):
            return False
        found = [line.text for line in self.scene.known_results if not Finding(line).failed]
        return any(overlap(thing, in_words(text)) >= 0.5 for text in found)

    def _covers(self, thing: str) -> bool:
        return any(overlap(thing, said.text) >= 0.5 for said in self.told)


def _values(result: object) -> tuple[object, ...]:
    return (result, *result.values()) if isinstance(result, dict) else (result,)


def has_changed(line: Line) -> bool:
    """Whether a result is of something that was done, rather than looked up or tried in vain."""
    return not name_of(line).only_reads and not Finding(line).failed
