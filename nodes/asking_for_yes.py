"""Whether a question asks for a yes to a deed: "Shall I cancel it?" does, "Shall I keep it?" does not.

Read in English from a closed list of forms and words: what is not in it is no such question, whatever it may mean.
A text that is plainly in another language is left to the model, which has to name the values all the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arq_graph.milestones.grounding import NUMBER_WORDS
from arq_graph.nodes.agreement import asks_something, words_in
from arq_graph.nodes.word_forms import are_forms_of_one

_SENTENCE = re.compile(r"(?:[^.!?。？؟\n]|[.](?=\w))+[.!?。？؟]*")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_STEM = 4
_IT = "it"  # stands for each value of the call

# Words of a tool's name or description that say nothing of what it does.
_EMPTY_WORDS = "the this that it and for its tool function endpoint use used uses using lets let you can call"
_EMPTY = frozenset(_EMPTY_WORDS.split())
# Beside one of these it is the noun that tells the deed: "give a discount", "make the booking".
_LIGHT_WORDS = (
    "give make set create submit place issue process perform put take file run start initiate apply do"
)
_LIGHT = frozenset(word[:_STEM] for word in _LIGHT_WORDS.split())
# What may stand in a question beside the deed, its object and its values.
_BESIDE_WORDS = """
the a an your my our this that these it its of for to on in at from by with over you me us i we now then please just
also really right away today ahead go proceed and percent euro euros eur dollar dollars usd pounds gbp id number no
yes true false permanently
"""
_BESIDE = frozenset(_BESIDE_WORDS.split())
_ENGLISH_WORDS = "the you your shall would should could this with what which and about tell please"
_ENGLISH = frozenset(_ENGLISH_WORDS.split())
# German, French, Spanish, Italian, Portuguese, Dutch, Scandinavian, Polish, Turkish, Indonesian.
_FOREIGN_WORDS = """
ich sie soll sollen möchten wollen bitte ist der das einverstanden
je dois voulez souhaitez vous que le les est
quiere quieres desea debo puedo el usted los
vuole vuoi devo desidera il che
posso você quer deseja seu
ik wilt zal het een
jag ska skal vil ska ønsker haluatko
czy mam chcesz
mi ister misiniz edeyim
apakah saya anda
"""
_FOREIGN = frozenset(_FOREIGN_WORDS.split())

_OPENING = (
    r"\W*(?:(?:so|ok(?:ay)?|alright|all right|great|good|thanks|thank you|well|then|now|please|before i go on"
    r"|(?:just )?to (?:confirm|be sure|double-check)(?: before i (?:go on|proceed|do (?:anything|it|that)))?"
    r"|just(?: checking)?)\b[\s,:–—-]*)*"
)
_WANT = r"(?:['’]d like| would like| want| wish)(?: (?:me|us))? to"
_REPLY_YES = r"(?:reply|answer|respond|say|type|write)(?: with)? \W?yes\W?"
_ASKS = (
    r"(?:(?:shall|should|may|can|could) (?:i|we)"
    rf"|(?:would|do) you(?: still| really)? (?:like|want|wish)(?: (?:me|us))? to"
    r"|is it (?:ok(?:ay)?|all right|alright|fine)(?: with you)?(?: for (?:me|us) to| if (?:i|we)| to)"
    rf"|are you(?: absolutely| really| quite)? sure(?: that)? you{_WANT}"
    r"|(?:are you )?(?:ok(?:ay)?|ready|happy|fine)(?: for (?:me|us))? to"
    rf"|{_REPLY_YES} (?:to confirm(?: that)?|to|if)(?: you{_WANT})?"
    rf"|(?:(?:do|can|could|would) you |i need you to )?(?:please )?confirm(?: (?:that|if|whether))?"
    rf"(?: you{_WANT}| (?:i|we) (?:should|may|can|shall))?)"
)
_STATES = (
    r"(?:(?:i|we)(?:['’](?:ll|d)| will| would| can| could|(?:['’](?:m|re)| am| are) "
    r"(?:about to|going to|ready to|all set to)|(?:['’]ll| will) be)"
    rf"|you{_WANT}|confirm (?:this|the following):)"
)
_SAYS = rf"(?:{_STATES}|)"
_GAP = (
    r"(?:[\s,:]+(?:now|then|please|also|just|really|permanently|go ahead and|go ahead with|proceed to|proceed with"
    r"|continue with|the|your|this|that|an?|my))*[\s,:\"'“]+"
)
_GO_ON = r"(?:proceed|continue|go ahead|do (?:it|that|so|this))(?: with (?:it|this|that|these changes|this change))?"
_GENERIC = re.compile(
    rf"{_OPENING}(?:(?:shall|may|should|can) i(?: {_GO_ON})?|(?:would|do) you (?:like|want|wish)(?: me)? to {_GO_ON}"
    r"|(?:would you like|do you want) (?:that|this|it)"
    r"|do you (?:confirm|agree)(?: (?:that|this|it|to (?:that|this|it)))?"
    rf"|are you sure(?: you want to {_GO_ON})?"
    rf"|(?:can|could) you (?:please )?confirm(?: (?:that|this|it))?"
    rf"|confirm (?:this|that|it|(?:that|if|whether) you(?:['’]d like| would like| want)(?: me)? to {_GO_ON}"
    r"|that (?:everything|all of this|this|that) is (?:correct|right|ok(?:ay)?|fine))"
    r"|is (?:that|this|it|everything|all of (?:it|this)) (?:all )?(?:ok(?:ay)?|right|correct|fine|good|alright)"
    r"(?: (?:with|for) you)?"
    r"|does (?:that|this|it) sound (?:good|right|ok(?:ay)?|fine|correct)(?: to you)?|confirm"
    rf"|do i have your (?:permission|ok(?:ay)?|consent|approval|go-ahead)(?: (?:to {_GO_ON}|for (?:that|this|it)))?"
    rf"|{_REPLY_YES}(?: to (?:confirm(?: (?:that|this|it))?|{_GO_ON}))?"
    r"|right|correct|ok(?:ay)?|agreed|all right|alright)\W*",
    re.IGNORECASE,
)
_TAG = re.compile(
    r"[,–—-]\s*(?:(?:is )?(?:that|this) )?(?:right|correct|ok(?:ay)?|all right|alright|agreed)\?\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Deed:
    """What a call does, by the words that say so.

    Args:
        verbs: The words that tell the deed.
        words: The beginnings of all words of the tool's name, arguments and description.
        values: What the call does it to, as it is said.
    """

    verbs: frozenset[str]
    words: frozenset[str] = frozenset()
    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, tool: str, arguments: Mapping[str, Any], description: str) -> Deed:
        """The deed of a call.

        Args:
            tool: The tool's name.
            arguments: The call's arguments.
            description: What the tool does.
        """
        name = _stems(_CAMEL.sub(" ", tool))
        first = next(iter(_stems(description)), None)
        about = _stems(_CAMEL.sub(" ", " ".join(arguments)))
        # In `order_cancel`, "Cancel an order." it is the description that tells which of the words is the deed.
        is_told = first in name and first not in _LIGHT
        verbs = {first} if first and is_told else {*name, *([first] if first else ())}
        values = [
            str(value)
            for value in arguments.values()
            if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip()
        ]
        values += [word for word, digits in NUMBER_WORDS.items() if digits in values]
        found = verbs - about.keys() - _LIGHT or verbs - _LIGHT or verbs
        known = words_in(_CAMEL.sub(" ", " ".join((tool, *arguments, description))))
        telling = frozenset(word for word in known if word[:_STEM] in found)
        return cls(telling, frozenset(word[:_STEM] for word in known), tuple(values))

    def is_spoken_of(self, text: str) -> bool:
        """Whether a text says what is done, or to what."""
        bare = self._without_values(text)
        return bare != text or any(map(self._is_told_by, words_in(bare)))

    def is_asked_for(self, text: str) -> bool:
        """Whether a yes to a text can only be one to this: each question of an English text asks for it."""
        bare = self._without_values(text)
        if is_foreign(bare):
            return True
        sentences = [each.strip() for each in _SENTENCE.findall(bare)]
        asked = [self._is_asked_in(index, sentences) for index in range(len(sentences))]
        questions = [is_it for is_it, each in zip(asked, sentences, strict=True) if asks_something(each)]
        return all(questions) if questions else any(asked)

    def _is_asked_in(self, index: int, sentences: Sequence[str]) -> bool:
        # "I still need this from you: shall I cancel it?"
        if any(self._says(_ASKS, each) for each in (sentences[index], sentences[index].partition(": ")[2])):
            return True
        if tag := _TAG.search(sentences[index]):
            return self._says(_STATES, sentences[index][: tag.start()])
        announced = index > 0 and self._says(_SAYS, sentences[index - 1])
        return announced and _GENERIC.fullmatch(sentences[index]) is not None

    def _says(self, form: str, sentence: str) -> bool:
        """Whether a sentence begins with a form, goes on with the deed, and says nothing beside it."""
        words = words_in(sentence)
        deed = "|".join(re.escape(word) for word in sorted({*words}) if self._is_told_by(word))
        if not deed:
            return False
        light = "|".join(_LIGHT_WORDS.split())
        found = re.match(
            rf"{_OPENING}{form}(?:{_GAP}|\b)(?:(?:{deed})\b|(?:{light})(?:ing)?\b(?=.*\b(?:{deed})\b))",
            sentence.replace("’", "'"),
            re.IGNORECASE,
        )
        if found is None:
            return False
        rest = [word for word in words_in(sentence[found.end() :]) if word not in _BESIDE]
        forms = [{word for word in {*words} if are_forms_of_one(word, verb)} for verb in self.verbs]
        if any(sum(word in each for word in words) > 1 for each in forms):
            return False  # "cancel the cancellation"
        joins = re.search(rf"\band\b(?!\s+{_IT}\b)(?! with\b)", sentence[found.end() :], re.IGNORECASE)
        return joins is None and all(self._is_told_by(word) or word[:_STEM] in self.words for word in rest)

    def _is_told_by(self, word: str) -> bool:
        return any(are_forms_of_one(word, verb) for verb in self.verbs)

    def _without_values(self, text: str) -> str:
        for value in sorted(self.values, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", _IT, text, flags=re.IGNORECASE)
        return text


def is_foreign(text: str) -> bool:
    """Whether a text is plainly in another language than English."""
    words = set(words_in(text))
    letters = "".join(words)
    return not words & _ENGLISH and (bool(words & _FOREIGN) or not letters.isascii() or "¿" in text)


def _stems(text: str) -> dict[str, None]:
    """The beginnings of the words that tell something, in their order."""
    return dict.fromkeys(word[:_STEM] for word in words_in(text) if len(word) > 2 and word not in _EMPTY)
