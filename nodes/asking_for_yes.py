"""Whether a question asks for a yes to a deed: "Shall I cancel it?" does, "Shall I keep it?" does not.

Read in English alone, from a closed list of forms: what is not in it is no such question. A question in another
language is left to the model, which names the values all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arq_graph.nodes.agreement import asks_something

_SENTENCE = re.compile(r"(?:[^.!?。？؟\n]|[.](?=\w))+[.!?。？؟]*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ENGLISH_WORDS = (
    "the you your shall would should could this that with what which want like and about tell please"
)
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
# Words of a tool's name or description that say nothing of what it does.
_EMPTY_WORDS = "the this that it and for its tool function use used uses using lets let you can call"
_EMPTY = frozenset(_EMPTY_WORDS.split())
# Beside one of these it is the noun that tells the deed: "give a discount", "make a payment".
_LIGHT = frozenset(
    ("give", "make", "set", "crea", "subm", "plac", "issu", "proc", "perf", "put", "take", "file", "run")
)
_STEM = 4

_GAP = (
    r"(?:[\s,:]+(?:please|now|then|also|just|really|still|go ahead and|proceed and|proceed to|proceed with|go on and"
    r"|the|your|this|that|a|an|me|us|i|we|you|to|with))*[\s,:\"'“]+"
)
_ASKS_TO_DO = (
    r"(?:(?:shall|should|may|can|could) (?:i|we)|(?:want|like|wish|prefer)(?: (?:me|us))? to"
    r"|(?:ok(?:ay)?|all right|alright|fine|agree|happy|ready|sure)(?: (?:if|for|with|that|you want))*"
    r"|confirm(?: (?:that|if|whether))?(?: (?:you (?:want|would like)|i (?:should|may|can|shall)))?)"
)
_SAYS_IT_WILL_DO = (
    r"(?:\b(?:i|we)(?:['’](?:ll|d)| will| would| can| could|(?:['’](?:m|re)| am| are) (?:about|going|ready))"
    r"|\byou(?: want|['’]d like| would like| asked)(?: (?:me|us))? to|\bconfirm|:)"
)
# "Shall I proceed?", "Would you like me to go ahead with these changes?"
_GOES_ON = re.compile(
    r"\b(?:proceed(?:ing)?|go(?:ing)? ahead|continue|do (?:it|that|so|this))(?=\W*$|,| now\b| then\b| for you\b"
    r"| with (?:it|(?:this|that|these|those|the|your)(?: \w+)?"
    r"(?: (?:changes?|updates?|actions?|requests?|transactions?|modifications?|adjustments?))?)\W*$)",
    re.IGNORECASE,
)
# "Is that right?", "Please confirm that all of this is correct."
_IS_RIGHT = re.compile(
    r"\b(?:confirm|agree|(?:want|like) (?:that|this|it)"
    r"|(?:(?:is|are) )?(?:it|that|this|these|they|all of (?:it|this|that)|everything|details)(?: (?:is|are|looks?))?"
    r" (?:all )?(?:ok(?:ay)?|right|correct|fine|good|alright))\b|^\W*(?:right|correct|ok(?:ay)?|agreed)\W*$",
    re.IGNORECASE,
)
_ELSE = re.compile(
    r"\b(?:or|not|nor|never|don['’]?t|shouldn['’]?t|wouldn['’]?t|rather|instead|keep(?:ing)?|leav(?:e|ing)|without)\b",
    re.IGNORECASE,
)
_WILL_NOT = re.compile(
    r"\b(?:i|we)(?:['’](?:ll|d)| will| would| shall| am|['’]m)?(?: \w+ing to)? (?:not|never|keep|leave)\b"
    r"|\bi won['’]?t\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Deed:
    """What a call does, by the words that say so.

    Args:
        verbs: The beginnings of these words.
        values: What the call does it to, as it is said.
    """

    verbs: frozenset[str]
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, Any], description: str) -> Deed:
        """The deed of a call.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.
            description: What the tool does.
        """
        name = _stems(tool.replace("_", " "))
        first = next(iter(_stems(description)), None)
        about = set(_stems(" ".join(arguments).replace("_", " ")))
        # In `order_cancel`, "Cancel an order." it is the description that tells which of the words is the deed.
        is_told = first in name and first not in _LIGHT
        verbs = {first} if first and is_told else {*name, *([first] if first else ())}
        values = tuple(
            str(value)
            for value in arguments.values()
            if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip()
        )
        return cls(frozenset(verbs - about or verbs), values)

    def is_spoken_of(self, text: str) -> bool:
        """Whether a text says what is done, or to what."""
        bare = self._without_values(text)
        return bare != text or self._is_named_in([text])

    def is_asked_for(self, text: str) -> bool:
        """Whether a yes to a text can only be one to this: each question of an English text asks for it."""
        bare = self._without_values(text)
        sentences = _SENTENCE.findall(bare)
        questions = [each for each in sentences if asks_something(each)]
        if not any(_is_english(each) for each in questions or sentences):
            return True
        return all(self._is_asked_in(each, sentences) for each in questions) and (
            bool(questions) or any(self._is_asked_in(each, sentences) for each in sentences)
        )

    def _is_asked_in(self, sentence: str, all_of_it: Sequence[str]) -> bool:
        if _ELSE.search(sentence):
            return False
        if self._follows(_ASKS_TO_DO, sentence):
            return True
        if _GOES_ON.search(sentence):
            return self._is_named_in(all_of_it) and not any(_WILL_NOT.search(each) for each in all_of_it)
        if not _IS_RIGHT.search(sentence):
            return False
        said = (each for each in all_of_it if self._follows(_SAYS_IT_WILL_DO, each))
        return any(not _ELSE.search(each) for each in said)

    def _is_named_in(self, sentences: Iterable[str]) -> bool:
        return not self.verbs or any(not self.verbs.isdisjoint(_stems(each)) for each in sentences)

    def _follows(self, form: str, sentence: str) -> bool:
        verbs = "|".join(re.escape(verb) for verb in sorted(self.verbs))
        return re.search(rf"{form}{_GAP}(?:{verbs})\w*", sentence, re.IGNORECASE) is not None

    def _without_values(self, text: str) -> str:
        for value in self.values:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", "it", text, flags=re.IGNORECASE)
        return text


def _is_english(sentence: str) -> bool:
    return not _ENGLISH.isdisjoint(_words(sentence)) or _ELSE.search(sentence) is not None


def _stems(text: str) -> dict[str, None]:
    """The beginnings of the words that tell something, in their order."""
    return dict.fromkeys(word[:_STEM] for word in _words(text) if len(word) > 2 and word not in _EMPTY)


def _words(text: str) -> Iterable[str]:
    return _WORD.findall(text.casefold())
