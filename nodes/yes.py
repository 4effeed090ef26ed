"""Code's judgement of an answer to a confirmation question, by the closed lists of phrases in `yes.yaml` alone.

`is_listed_yes` accepts an answer that consists of listed phrases. `find_reservation` is a veto on an answer in free
words: it returns why the answer may be less than a yes. If it finds nothing, a model has to agree, too
(`nodes/consent.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

import regex  # type: ignore[import-untyped]
from langchain_core.messages import BaseMessage

from arq_graph.reasoning.sections import normalize_text

MAX_WORDS = 20
"""The most words of an answer that counts as a yes by the list alone."""

MAX_FREE_WORDS = 60
"""The most words that an answer in free words may have."""

_SKIN_TONE = re.compile("[\U0001f3fb-\U0001f3ff]")
_FIRST_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")
_SENTENCE_END = re.compile(r"[.!;\n。！；]+")
# A script that puts no spaces between words: each of its characters counts as a word.
_UNSPACED = regex.compile(r"([\p{Han}\p{Hiragana}\p{Katakana}])")
_QUOTED = re.compile(r"[\"“”„«»「」『』]([^\"“”„«»「」『』]+)[\"“”„«»「」『』]")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_AROUND_VALUES = ".,:;!'’\"“”()[]€$£#"
# A number, a date or an id: a word with a digit.
_VALUE = re.compile(r"[\w.,:/@#€$£%+'’-]*\d[\w.,:/@#€$£%+'’-]*")

Phrase = tuple[str, ...]
"""A phrase as its words."""


def is_listed_yes(
    answers: Sequence[BaseMessage], tools: Iterable[str] = (), own_phrases: Iterable[str] = ()
) -> bool:
    """Return True if a customer's messages together are a yes by the list.

    They must have only text, no question mark, and consist entirely of listed phrases, at least one of which is a yes.
    "Ok" counts only together with another phrase. The first word of a tool's name followed by "it" is allowed, too:
    "ok, yes, cancel it please". `own_phrases` are the designer's own phrases for a yes.
    """
    text = read_plain_text(answers)
    if text is None or has_question_mark(text):
        return False
    words = _split_words(text)
    if len(words) > MAX_WORDS:
        return False
    kinds_by_phrase: dict[Phrase, str] = {}
    for tool in tools:
        if first_word := _FIRST_WORD.search(tool):
            kinds_by_phrase[(*_split_words(first_word[0]), "it")] = "action"
    # Where a phrase is of several kinds, the last of them counts: no phrase of the designer's makes a veto less.
    lists = _load_phrases()
    for kind in ("filler", "please", "ok", "yes"):
        kinds_by_phrase.update(dict.fromkeys(lists[kind], kind))
    kinds_by_phrase.update(dict.fromkeys(map(_split_phrase, own_phrases), "yes"))
    kinds_by_phrase.update(dict.fromkeys(lists["never"], "never"))
    for kinds in _parse_phrases(words, kinds_by_phrase):
        is_confirmed_ok = "ok" in kinds and ("please" in kinds or "action" in kinds)
        if ("yes" in kinds or is_confirmed_ok) and "never" not in kinds:
            return True
    return False


def names_listed_yes(text: str, own_phrases: Iterable[str] = ()) -> bool:
    """Return True if a text contains a phrase that counts as a yes, by the list or as one of the designer's own."""
    yes_phrases = _load_phrases()["yes"].union(map(_split_phrase, own_phrases))
    return _find_phrase(_split_words(text), yes_phrases) is not None


def find_reservation(
    text: str, question: str, call_count: int, own_phrases: Iterable[str] = ()
) -> str | None:
    """Return why an answer in free words may be less than a yes to `question`, which is about `call_count` calls.

    None doesn't mean that the customer has agreed, only that code has no objection: the answer or one of its sentences
    begins with a listed yes, and it has no question mark, no value that isn't in the question, and no listed
    reservation. If the question is about several calls, the answer has no words that may pick some of them.
    """
    words = _split_words(text)
    if has_question_mark(text):
        return "it has a question mark"
    if len(words) > MAX_FREE_WORDS:
        return f"it has more than {MAX_FREE_WORDS} words"
    lists = _load_phrases()
    yes_phrases = lists["yes"].union(map(_split_phrase, own_phrases))
    sentences = _SENTENCE_END.split(normalize_text(text))
    if not any(_begins_with(_split_words(sentence), yes_phrases) for sentence in sentences):
        return "no sentence of it begins with a listed yes"
    known_words: set[str] = set()
    for phrase in yes_phrases | lists["filler"]:
        known_words.update(phrase)
    for word in words:
        # Not a currency sign ("Sc"): the amount beside it is compared as a value.
        is_sign = unicodedata.category(word[0]) in ("Sk", "Sm", "So")
        if is_sign and word not in known_words:
            return f"it has the sign {word!r}"
    if value := _find_new_value(text, question, known_words):
        return f"the question doesn't have its value {value!r}"
    words = _remove_phrases(words, lists["filler"])  # "grazie mille" isn't a number
    if amount := _find_phrase(words, lists["amounts"]):
        return f"it has the number {amount!r}"
    if reservation := _find_phrase(words, lists["reservations"] | lists["never"]):
        return f"it has the reservation {reservation!r}"
    if call_count > 1:
        if pick := _find_phrase(words, lists["picks"]):
            return f"of {call_count} calls, it may mean some: {pick!r}"
        if number := _VALUE.search(text):
            return f"of {call_count} calls, it may mean some: {number[0]!r}"
    return None


def read_plain_text(answers: Iterable[BaseMessage]) -> str | None:
    """Return the text of messages, a line for each; None if one has other content, such as an image."""
    for message in answers:
        blocks = [] if isinstance(message.content, str) else message.content
        if not all(isinstance(block, str) or block.get("type") == "text" for block in blocks):
            return None
    return "\n".join(message.text for message in answers)


def has_question_mark(text: str) -> bool:
    """Return True if a text has a question mark of any script."""
    for character in text:
        name = "" if character.isalnum() else unicodedata.name(character, "")
        if "QUESTION" in name or "INTERROBANG" in name:
            return True
    return False


def _find_new_value(text: str, question: str, known_words: Iterable[str]) -> str | None:
    """Return a number, date, id or quoted text of an answer that isn't in the question."""
    plain_text, plain_question = normalize_text(text), normalize_text(question).casefold()
    question_values = set(map(_strip_value, plain_question.split() + _VALUE.findall(plain_question)))
    values = _VALUE.findall(plain_text)
    if not plain_text.isupper():
        for token in plain_text.split():
            word = token.strip(_AROUND_VALUES)
            is_id = len(word) > 1 and word.isalpha() and word.isupper()
            if is_id and word.casefold() not in known_words:
                values.append(word)
    for value in values:
        if _strip_value(value) not in question_values:
            return str(value)
    for quoted in _QUOTED.findall(plain_text):
        if quoted.strip().casefold() not in plain_question:
            return str(quoted)
    return None


def _strip_value(value: str) -> str:
    """Return a value without the punctuation around it, and a decimal number without trailing zeros."""
    bare_value = value.strip(_AROUND_VALUES).casefold()
    if _DECIMAL.fullmatch(bare_value):
        bare_value = bare_value.rstrip("0").rstrip(".")
    return bare_value


def _find_phrase(words: Sequence[str], phrases: Iterable[Phrase]) -> str | None:
    """Return the first of the phrases that occurs in the words."""
    for phrase in phrases:
        for start in range(len(words) - len(phrase) + 1):
            if tuple(words[start : start + len(phrase)]) == phrase:
                return " ".join(phrase)
    return None


def _remove_phrases(words: Sequence[str], phrases: Iterable[Phrase]) -> list[str]:
    text = f" {' '.join(words)} "
    for phrase in sorted(phrases, key=len, reverse=True):
        text = text.replace(f" {' '.join(phrase)} ", " ")
    return text.split()


def _begins_with(words: Sequence[str], phrases: Iterable[Phrase]) -> bool:
    return any(tuple(words[: len(phrase)]) == phrase for phrase in phrases)


def _split_words(text: str) -> list[str]:
    """Return the words of a text without punctuation.

    A symbol is a word of its own, so that it counts: "$5" is two words, and neither of them is listed. So is a Chinese
    or Japanese character.
    """
    spaced = []
    for character in _UNSPACED.sub(r" \1 ", _SKIN_TONE.sub("", normalize_text(text)).casefold()):
        category = unicodedata.category(character)[0]
        if category in "PZC":
            spaced.append(" ")
        elif category == "S":
            spaced.append(f" {character} ")
        else:
            spaced.append(character)
    return "".join(spaced).split()


def _split_phrase(text: str) -> Phrase:
    return tuple(_split_words(text))


@cache
def _load_phrases() -> Mapping[str, frozenset[Phrase]]:
    """Return the listed phrases of all languages by their kind."""
    import yaml  # here, so that importing this module stays quick

    lists = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    phrases_by_kind: dict[str, frozenset[Phrase]] = {}
    for kind, phrases in lists.items():
        if isinstance(phrases, dict):  # a list per language
            phrases = chain.from_iterable(phrases.values())
        phrases_by_kind[kind] = frozenset(map(_split_phrase, phrases))
    return phrases_by_kind


def _parse_phrases(words: Sequence[str], kinds_by_phrase: Mapping[Phrase, str]) -> set[frozenset[str]]:
    """Return, for every way to split the words entirely into phrases, the kinds of these phrases."""
    # kinds_up_to[n] has the kinds of phrases in every split of the first n words.
    kinds_up_to: list[set[frozenset[str]]] = [set() for _ in range(len(words) + 1)]
    kinds_up_to[0].add(frozenset())
    for start, kinds_before in enumerate(kinds_up_to):
        for end in range(start + 1, len(words) + 1):
            if kind := kinds_by_phrase.get(tuple(words[start:end])):
                kinds_up_to[end] |= {kinds | {kind} for kinds in kinds_before}
    return kinds_up_to[-1]
