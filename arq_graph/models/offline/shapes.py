"""Values that are known by their shape: identifiers, addresses of mail and web, phone numbers, money, numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from arq_graph.models.offline.dates import dates_in, times_in
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import content, likeness, stem

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\"']+")
_PHONE = re.compile(r"(?<![\w-])(?:\+|00)?\(?\d[\d ()/.-]{5,18}\d(?![\w-])")
_MONEY = re.compile(
    r"(?:[$€£¥]|\b(?:usd|eur|gbp|chf)\s?)\s?(?P<before>\d[\d,]*(?:\.\d+)?)(?P<k1>k\b)?"
    r"|\b(?P<after>\d[\d,]*(?:\.\d+)?)(?P<k2>k)?\s?(?:[$€£¥]|(?:dollars?|bucks|euros?|pounds?|usd|eur"
    r"|gbp|chf|cents)\b)",
    re.IGNORECASE,
)
_SPELLED = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "couple": 2, "dozen": 12, "both": 2,
}  # fmt: skip
_NUMBER = re.compile(
    r"(?<![\w.,#-])-?\d[\d,]*(?:\.\d+)?(?![\w-]|\.\d)|\b(?:" + "|".join(_SPELLED) + r")\b", re.IGNORECASE
)
_CODE = re.compile(
    r"(?<![\w@.-])#?(?=[\w/-]*\d)[A-Za-z0-9]{1,40}(?:[-_/][A-Za-z0-9]{1,40}){0,6}(?![\w@]|-\w)"
)
_DENIED = re.compile(
    r"(?:\bnot|n't|\binstead of|\brather than|\bno longer)\s+(?:\w+\s+){0,2}$", re.IGNORECASE
)
_LISTED = re.compile(r"\s*(?:,|and|or|&|,\s*and)\s*#?", re.IGNORECASE)
_FROM = frozenset(("from", "source", "sender", "origin"))
_TO = frozenset(("to", "target", "recipient", "receiver", "destination", "beneficiary"))
_COUNTING_PEOPLE = frozenset(
    ("party", "person", "guest", "adult", "seat", "passeng", "travel", "attend", "diner", "cover")
)
_PEOPLE = ("people", "persons", "guests", "adults", "person", "pax", "of us")
_NEAR = re.compile(r"[\w'#]+|[,.;!?]")
_GENERIC = listed(
    "number no nr id code ref reference is it it's its are my the # with as a an of called this and or"
)


@dataclass(frozen=True)
class Candidate:
    """A value in a text.

    Args:
        value: The value.
        start: Where it begins.
        end: Where it ends.
        weight: How sure it is; candidates below 1 do not count.
    """

    value: str | int | float | bool
    start: int
    end: int
    weight: float = 1.0


def denied(text: str, start: int) -> bool:
    """Whether what begins there is named only to be ruled out ("not …", "instead of …")."""
    return _DENIED.search(text[max(0, start - 40) : start]) is not None


def emails_in(text: str) -> list[Candidate]:
    """Addresses of mail."""
    return [Candidate(match[0].rstrip("."), *match.span()) for match in _EMAIL.finditer(text)]


def urls_in(text: str) -> list[Candidate]:
    """Addresses of web pages."""
    return [Candidate(match[0].rstrip(".,;!?)"), *match.span()) for match in _URL.finditer(text)]


def phones_in(text: str) -> list[Candidate]:
    """Phone numbers: seven digits and more that are no date."""
    dates = [(span.start, span.end) for span in dates_in(text)]
    found = []
    for match in _PHONE.finditer(text):
        digits = sum(character.isdigit() for character in match[0])
        if 7 <= digits <= 15 and not any(start < match.end() and match.start() < end for start, end in dates):
            found.append(Candidate(match[0].strip(), *match.span()))
    return found


def money_in(text: str) -> list[Candidate]:
    """Amounts of money, as numbers."""
    found = []
    for match in _MONEY.finditer(text):
        number = float((match["before"] or match["after"]).replace(",", ""))
        number *= 1_000 if match["k1"] or match["k2"] else 1
        found.append(Candidate(int(number) if number.is_integer() else number, *match.span()))
    return found


def identifiers_in(text: str, wanted: Wanted, rivals: frozenset[str], answering: bool) -> list[Candidate]:
    """Identifiers that may be the one wanted.

    Args:
        text: What was said.
        wanted: The argument.
        rivals: Stems of what other arguments belong to: a number of theirs is not taken.
        answering: Whether the text answers a question for it.
    """
    example = wanted.examples[0] if wanted.examples and re.search(r"\d", wanted.examples[0]) else ""
    pattern = _pattern_like(example) if example else _CODE
    taken = _spans_of_others(text)
    found: list[Candidate] = []
    for match in pattern.finditer(text):
        value = match[0].lstrip("#")
        # What looks like the example is not taken for a date or an amount that it holds.
        if denied(text, match.start()) or any(
            start < match.end() and match.start() < end
            for start, end in taken
            if not (example and match.start() <= start and end <= match.end())
        ):
            continue
        digits = sum(character.isdigit() for character in value)
        if wanted.digits and digits != wanted.digits:
            continue
        weight = 1.0 if example else _fit(value, match[0], wanted)
        weight += _nearness(text, match.start(), wanted.objects, rivals) + (1.0 if answering else 0.0)
        weight += _in_role(text, match.start(), wanted)
        if found and _LISTED.fullmatch(text[found[-1].end : match.start()]):
            weight = max(weight, found[-1].weight)  # "orders 1 and 2" are both orders
        if weight >= 1:
            found.append(Candidate(value.upper() if example.isupper() else value, *match.span(), weight))
    if not found and not example and "code" in wanted.tokens:
        coded = re.search(r"\bcode\b(?: is|:)?\s+([A-Z][A-Z0-9]{2,})\b", text)
        return [Candidate(coded[1], *coded.span(1))] if coded else []
    best = max((candidate.weight for candidate in found), default=0.0)
    return [candidate for candidate in found if candidate.weight >= best - 0.6]


def _pattern_like(example: str) -> re.Pattern[str]:
    # Letters before a separator are taken to be a fixed prefix; without one they may be any letters.
    parts = re.findall(r"[A-Za-z]+|\d+|[^A-Za-z\d]+", example)
    has_separator = any(not part.isalnum() for part in parts)
    pattern = ""
    for part in parts:
        if part.isdigit():
            pattern += (
                rf"\d{{1,{max(len(part) + 6, 12)}}}"
                if len(parts) > 1
                else rf"\d{{{max(1, len(part) - 2)},{len(part) + 3}}}"
            )
        elif part.isalpha():
            pattern += re.escape(part) if has_separator else rf"[A-Za-z]{{{len(part)}}}"
        else:
            pattern += rf"{re.escape(part)}"
    return re.compile(rf"(?<![\w-]){pattern}(?![\w-])", re.IGNORECASE)


def _fit(value: str, said: str, wanted: Wanted) -> float:
    """How much a token looks like an identifier at all, and like one of this name."""
    prefix = re.match(r"[A-Za-z]+", value)
    if prefix is None:
        return 0.5 if said.startswith("#") else (0.4 if len(value) >= 4 else 0.0)
    if len(value) < 3 and "room" not in wanted.objects:
        return 0.2
    starts = any(name.startswith(prefix[0].lower()[:3]) for name in wanted.objects)
    return 1.6 if starts else 1.0


def _nearness(text: str, start: int, objects: frozenset[str], rivals: frozenset[str]) -> float:
    """Plus where a word of the argument stands shortly before, minus where one of another's does."""
    before = [token.lower() for token in _NEAR.findall(text[max(0, start - 60) : start])][-5:]
    for token in reversed(before):
        if token in ",.;!?":
            break
        name = stem(token)
        if any(likeness(name, wanted) >= 0.9 for wanted in objects):
            return 1.2
        if any(likeness(name, rival) >= 0.9 for rival in rivals):
            return -1.5
        if token in ("id", "number", "#", "no", "nr", "reference"):
            continue
        if token not in _GENERIC:
            break
    return 0.0


def _in_role(text: str, start: int, wanted: Wanted) -> float:
    """Plus where "from" or "to" stands before it and is in its name; minus where the other one does."""
    tokens = frozenset(wanted.tokens)
    source, target = bool(tokens & _FROM), bool(tokens & _TO)
    role = re.search(
        r"\b(from|to|into)\s+(?:(?:my|the|his|her|their|our|account|card|number|no|id|#)\s*)*$",
        text[max(0, start - 50) : start],
        re.IGNORECASE,
    )
    if source == target or role is None:
        return 0.0
    return 1.5 if (role[1].lower() == "from") == source else -3.0


def _spans_of_others(text: str) -> list[tuple[int, int]]:
    spans = [(span.start, span.end) for span in dates_in(text) if not re.fullmatch(r"\d+[./]\d+", span.said)]
    spans += [(span.start, span.end) for span in times_in(text)]
    return spans + [(found.start, found.end) for found in (*money_in(text), *emails_in(text), *urls_in(text))]


def numbers_in(
    text: str, wanted: Wanted, alone: bool, answering: bool, counted: frozenset[str] = frozenset()
) -> list[Candidate]:
    """Numbers that may be the one wanted.

    Args:
        text: What was said.
        wanted: The argument.
        alone: Whether no other argument of the tool wants a number.
        answering: Whether the text answers a question for it.
        counted: Stems of what else it may count: the values of the arguments beside it.
    """
    taken = _spans_of_others(text)
    counted |= wanted.objects | {
        stem(word) for word in re.findall(r"[a-z]+", wanted.description.lower()) if len(word) > 3
    }
    found = []
    for match in _NUMBER.finditer(text):
        if any(start <= match.start() < end for start, end in taken) or denied(text, match.start()):
            continue
        value = _number(match[0])
        if wanted.type == "integer" and not value.is_integer():
            continue
        weight = _number_fits(text, match, wanted, counted, alone) + (1.0 if answering else 0.0)
        if weight >= 1:
            found.append(Candidate(int(value) if value.is_integer() else value, *match.span(), weight))
    best = max((candidate.weight for candidate in found), default=0.0)
    return [candidate for candidate in found if candidate.weight == best]


def _number(text: str) -> float:
    spelled = _SPELLED.get(text.lower())
    return float(spelled) if spelled is not None else float(text.replace(",", "")[:300])


def _number_fits(
    text: str, match: re.Match[str], wanted: Wanted, counted: frozenset[str], alone: bool
) -> float:
    after = re.match(
        r"[\s-]*(?:of |more |extra )?([a-z']+)?(?: ([a-z']+))?(?: ([a-z']+))?",
        text[match.end() : match.end() + 40].lower(),
    )
    following = [word for word in (after.groups() if after else ()) if word]
    if any(likeness(stem(word), name) >= 0.9 for word in following for name in counted):
        return 2.0
    if wanted.objects & _COUNTING_PEOPLE:
        if following and (following[0] in _PEOPLE or following[:2] == ["of", "us"]):
            return 2.0
        if re.search(
            r"\b(?:for|party of|group of|we are|we're|table of)\s+$", text[: match.start()], re.IGNORECASE
        ):
            named = following and following[0] not in (
                "on",
                "at",
                "tomorrow",
                "today",
                "tonight",
                "please",
                "and",
                "in",
                "this",
                "next",
            )
            return 0.5 if named else 1.8
    before = [token.lower() for token in _NEAR.findall(text[max(0, match.start() - 30) : match.start()])][-3:]
    if any(likeness(stem(word), name) >= 0.9 for word in before for name in counted):
        return 1.7
    is_word = match[0].lower() in ("one", "both")
    is_deed = bool(before) and any(likeness(stem(before[-1]), deed) >= 0.9 for deed in wanted.deeds)
    names_another = bool(before) and bool(content(before[-1])) and not is_deed  # "room 204"
    counts_another = bool(following) and following[0] not in ("from", "to", "on", "at", "please")
    return 1.0 if alone and not counts_another and not is_word and not names_another else 0.0


def plain_number(text: str) -> float | None:
    """The number that a text is, or None."""
    match = _NUMBER.fullmatch(text.strip())
    return _number(match[0]) if match else None


def all_numbers(text: str) -> list[tuple[float, int, int]]:
    """Every number of a text that stands by itself, with where it stands."""
    return [(_number(match[0]), *match.span()) for match in _NUMBER.finditer(text[:5_000])]
