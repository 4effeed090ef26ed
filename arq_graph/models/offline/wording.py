"""Turning designers' words into sentences for the customer: pronouns, participles, lists, full stops."""

from __future__ import annotations

import re
from collections.abc import Sequence

PERSON = (
    r"(?:the|a|an|this|each|every|any) (?:customer|user|guest|patient|client|caller|visitor|member"
    r"|patron|shopper|buyer|reader|student|passenger"
    r"|travell?er|employee|borrower|person|diner)"
)
_OWNED = re.compile(rf"\b(?:{PERSON}'s|their|his or her|his|her(?= \w))\b", re.IGNORECASE)
_VERB_OF = re.compile(
    rf"\b(?:{PERSON}|they|he or she|he|she) (?P<verb>is|isn't|was|has|does|doesn't|wants|needs|likes"
    r"|prefers|wishes|asks|says|knows|feels|lives|pays|gets|goes|uses|takes|makes)\b",
    re.IGNORECASE,
)
_WHOM = re.compile(rf"\b(?:{PERSON}|they|them|him|he|she)\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:themselves|themself|himself|herself)\b", re.IGNORECASE)
_YOURS = {
    "is": "are",
    "isn't": "aren't",
    "was": "were",
    "has": "have",
    "does": "do",
    "doesn't": "don't",
    "goes": "go",
    "wishes": "wish",
}
_PARTICIPLES = dict(
    pair.split()
    for pair in [
        "send sent",
        "leave left",
        "lend lent",
        "sell sold",
        "bring brought",
        "keep kept",
        "tell told",
        "choose chosen",
        "make made",
        "pay paid",
        "reset reset",
        "set set",
        "put put",
        "find found",
        "get got",
        "buy bought",
        "hold held",
        "freeze frozen",
        "begin begun",
        "withdraw withdrawn",
        "write written",
        "let let",
        "give given",
        "take taken",
        "cancel cancelled",
        "transfer transferred",
        "submit submitted",
        "refer referred",
        "ship shipped",
        "stop stopped",
        "drop dropped",
        "swap swapped",
        "log logged",
        "do done",
        "run run",
        "tell told",
        "sell sold",
        "lend lent",
        "top topped",
        "plan planned",
        "add added",
        "split split",
        "undo undone",
        "redo redone",
        "speak spoken",
        "speed sped",
    ]
)


def to_customer(text: str) -> str:
    """A designer's words, said to the customer: "you can find their order" becomes "I can find your order"."""
    text = re.sub(r"\byou are\b", "I am", text, flags=re.IGNORECASE)
    text = re.sub(
        r"(?<=\b)(to|for|with|at|by|from|of|contact|call|ask|tell|let|give|show|send|bring|help|email|pay"
        r"|owe|allow|reach|write) you\b",
        r"\1 me",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"\byou\b", "I", text, flags=re.IGNORECASE)
    text = re.sub(r"\byour\b", "our", text, flags=re.IGNORECASE)
    text = _SELF.sub("yourself", text)
    text = _VERB_OF.sub(lambda match: f"you {_for_you(match['verb'].lower())}", text)
    text = _OWNED.sub("your", text)
    text = re.sub(r"\btheirs\b", "yours", text)
    return _WHOM.sub("you", text)


def _for_you(verb: str) -> str:
    return _YOURS.get(verb) or verb.removesuffix("s")


def participle(verb: str) -> str:
    """The past participle of a verb."""
    if verb in _PARTICIPLES:
        return _PARTICIPLES[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ied"
    if re.fullmatch(r"[^aeiou]+[aeiou][^aeiouwxy]", verb):
        return f"{verb}{verb[-1]}ed"
    return f"{verb}ed"


def plural(noun: str) -> str:
    """The plural of a noun phrase, by its last word."""
    if not noun or noun.endswith("s"):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("x", "ch", "sh")) else f"{noun}s"


def is_plural(noun: str) -> bool:
    """Whether a noun phrase is plural, by the ending of its last word."""
    return noun.endswith("s") and not noun.endswith(("ss", "us", "is"))


def joined(parts: Sequence[str], word: str = "and") -> str:
    """Parts as a list in words: "a, b and c"."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def sentence(text: str, end: str = ".") -> str:
    """A text with a capital letter and an end."""
    text = " ".join(text.split()).strip(" ,;")
    if not text:
        return ""
    if text[-1] not in ".!?…":
        text += end
    return text[0].upper() + text[1:]


def in_sentence(text: str) -> str:
    """A text to stand within a sentence: no capital letter, unless it is a name, and no full stop."""
    text = " ".join(text.split()).strip().rstrip(".!?")
    first = text.split(" ")[0] if text else ""
    return (
        text
        if first in ("I", "I'm", "I'll") or first[1:] != first[1:].lower()
        else text[:1].lower() + text[1:]
    )
