"""Whether a question asks for a yes to a deed: "Shall I cancel it?" does, "Shall I keep it?" does not.

Read in English alone, from a closed list of forms: what is not in it is no such question. A question in another
language is left to the model, which names the values all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arq_graph.nodes.agreement import asks_something

_SENTENCE = re.compile(r"(?:[^.!?。？؟\n]|[.](?=\w))+[.!?。？؟]*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_ENGLISH_WORDS = "the you your shall would should could this that with what which want like"
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
    r"|confirm(?: that)?(?: (?:you (?:want|would like)|i (?:should|may|can|shall)))?)"
)
_SAYS_IT_WILL_DO = (
    r"(?:\b(?:i|we)(?:['’](?:ll|d)| will| would| can| could|(?:['’](?:m|re)| am| are) (?:about|going|ready))"
    r"|\byou(?: want|['’]d like| would like| asked)(?: (?:me|us))? to|\bconfirm|:)"
)
_GENERIC = re.compile(
    r"\b(?:go(?:ing)? ahead|proceed|continue|go on|confirm|agree|do (?:it|that|so|this)|(?:want|like) (?:that|this|it)"
    r"|(?:is|are) (?:it|that|this|these|they|all of (?:it|this|that)|everything) (?:all )?"
    r"(?:ok(?:ay)?|right|correct|fine|good|alright))\b|^\W*(?:right|correct|ok(?:ay)?|agreed)\W*$",
    re.IGNORECASE,
)
_ELSE = re.compile(
    r"\b(?:or|not|nor|never|don['’]?t|shouldn['’]?t|wouldn['’]?t|rather|instead|keep|leave|without)\b",
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
        return bare != text or not self.verbs or not self.verbs.isdisjoint(_stems(text))

    def is_asked_for(self, text: str) -> bool:
        """Whether a yes to a text can only be one to this: each question of an English text asks for it."""
        bare = self._without_values(text)
        sentences = _SENTENCE.findall(bare)
        questions = [each for each in sentences if asks_something(each)]
        if not any(_is_english(each) for each in questions or sentences):
            return True
        if not questions:  # "Please confirm that you want to cancel it."
            return any(self._follows(_ASKS_TO_DO, each) and not _ELSE.search(each) for each in sentences)
        return all(self._is_asked_in(each, bare) for each in questions)

    def _is_asked_in(self, question: str, text: str) -> bool:
        if _ELSE.search(question):
            return False
        if self._follows(_ASKS_TO_DO, question):
            return True
        if not _GENERIC.search(question):
            return False
        said = (each for each in _SENTENCE.findall(text) if self._follows(_SAYS_IT_WILL_DO, each))
        return any(not _ELSE.search(each) for each in said)

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
