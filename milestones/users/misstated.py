"""Which value an agent plainly states in the place of one that the user told it: a date, a time, a number, a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from arq_graph.milestones.users.asked import Fact
from arq_graph.milestones.users.hearing import Heard
from arq_graph.milestones.users.inventing import alternatives
from arq_graph.models.offline.dates import dates_in, times_in
from arq_graph.models.offline.shapes import all_numbers, emails_in
from arq_graph.models.offline.words import in_words, likeness, stem

Found = tuple[str, int, int]
"""A value as it is compared, and where it begins and ends."""

_ELSEWHERE = re.compile(
    r"\b(?:today|current|previous(?:ly)?|old|original(?:ly)?|last|earlier|earliest|latest|former(?:ly)?|was|were|had"
    r"|already|fully|next|other|others|another|else|instead|usually?|not|never|no longer|n't|maintenance"
    r"|reminders?|refund(?:ed|s)?|invoices?|payments?|deliver(?:y|ed)|ship(?:ped|ping|ment)|e-?mails?|calls?|receipt"
    r"|messages?|callback|reviews?|deadline|expires?|opens?|closes?|until|since|cancel\w*)\b|n't\b",
    re.IGNORECASE,
)
"""A sentence with such a word may speak of something else than what the user asked for."""

_GAP = (
    r"(?:(?!\b(?:and|but|because|which|that|while|by|before|after|from|so)\b)"
    r"(?:[^.,;:!?()]|(?<=\d)[.:](?=\d))){0,60}?"
)
_BOOKED = re.compile(
    r"\b(?:booked|reserved|scheduled|arranged|confirmed|set(?: up)?|put(?: you)? down|signed(?: you)? up|registered"
    r"|renewed|extended|ordered|rented|noted|entered|made)\b(?P<gap>" + _GAP + r")",
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(?:moved|changed|rescheduled|updated|postponed)\b(?P<gap>" + _GAP + r"\bto )", re.IGNORECASE
)
_PLACED = re.compile(
    r"(?:\bfor|(?<=\w\s)\b(?:on|at))\s+(?:the\s+)?(?:(?:night|day|date|time)\s+)?(?:of\s+)?$", re.IGNORECASE
)
_DETERMINED = r"(?:^|[.,;:(!]\s*|[-*•–]\s*|\b(?:the|your|my|so|and|with|for|new)\s+)"
_STATES = (
    r"(?:\s*[:=]|\s+(?:is|are|will be))(?:\s+(?:now|set to|set for|changed to|noted as|on|at|for|the))*\s+"
)
_NAME = re.compile(
    r"[\"“'‘*]*(?P<name>[A-Z][\w'’-]*\.?(?:\s+(?:[A-Z\d][\w'’-]*\.?|of|the|de|da|van|von))*)[\"”'’*]*"
    r"(?=\s*(?:[,;!)]|$)|\s+(?:and|for|on|at|from|to|with|in|by|as|now)\b)"
)
_NO_NAME = re.compile(
    r"(?:un\w+|in\w+able|not|no|none|yes|n/a|missing|required|optional|here|there|confirmed|booked|pending|closed|open"
    r"|free|full|busy|available|ready|done|correct|right|fine|please|i|we|you|it|on|off|out|new)\b",
    re.IGNORECASE,
)
_TITLES = frozenset(("mr", "mrs", "ms", "dr", "doctor", "prof", "professor", "the", "of"))


def stated_instead(fact: Fact, heard: Heard, others: Sequence[Fact], known: Sequence[str] = ()) -> str | None:
    """The value that a message plainly states where the user's should be; None where it does not, or may not.

    It does where the value's label is said to be another (`The night is …`), or where something was booked for another
    day, at another time, under another name that the user knows. Of several values none is plainly wrong.

    Args:
        fact: What the user told the agent.
        heard: The message.
        others: All that the user knows.
        known: Other values of the same name: those of other intents, and what the user said by mistake.
    """
    if isinstance(fact.value, bool) or fact.is_in(heard.text):
        return None
    others = [other for other in others if other.name != fact.name]
    if isinstance(fact.value, str) and not _sort(fact):
        found = {name for claim in heard.claims for name in _names(fact, claim, others, known)}
    else:
        if _sort(fact) == "date" and any(not _is_day(each.value) for each in dates_in(heard.text)):
            return None  # a day written in another way may be the right one
        alone = not any(_sort(other) == _sort(fact) for other in others)
        found = {value for claim in heard.claims for value in _values(fact, claim, alone)}
    return found.pop() if len(found) == 1 else None


def _sort(fact: Fact) -> str:
    """Which values it can be compared with; empty for those that are words."""
    if isinstance(fact.value, int | float):
        return "number"
    value = str(fact.value)
    if _is_day(value):
        return "date"
    if re.fullmatch(r"[012]\d:[0-5]\d", value):
        return "time"
    return "email" if "@" in value else ""


def _is_day(value: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", value) is not None


def _found(fact: Fact, text: str) -> list[Found]:
    match _sort(fact):
        case "date":
            return [(each.value, each.start, each.end) for each in dates_in(text)]
        case "time":
            return [(each.value, each.start, each.end) for each in times_in(text)]
        case "email":
            return [(str(each.value).lower(), each.start, each.end) for each in emails_in(text)]
    return [(f"{number:g}", start, end) for number, start, end in all_numbers(text)]


def _values(fact: Fact, claim: str, alone: bool) -> Iterator[str]:
    """The other values of its sort that a sentence gives it."""
    found = _found(fact, claim)
    if len({value for value, *_ in found}) != 1 and _sort(fact) != "number":
        return
    labelled = {match.end() for match in _labels(fact, claim)}
    speaks_of_it = not _speaks_of_else(fact, claim)
    for value, start, end in found:
        if start in labelled:
            is_meant = speaks_of_it or _begins_with_label(fact, claim)
        else:
            is_meant = speaks_of_it and _is_booked(fact, claim[:start], claim[end:], alone)
        if is_meant:
            yield value


def _speaks_of_else(fact: Fact, claim: str) -> bool:
    without = re.sub(re.escape(in_words(fact.name)), "", claim, flags=re.IGNORECASE)
    return _ELSEWHERE.search(without) is not None


def _labels(fact: Fact, claim: str) -> Iterator[re.Match[str]]:
    for phrase in (in_words(fact.name), *fact.synonyms):
        label = _DETERMINED + re.escape(phrase).replace(r"\ ", r"\s+") + _STATES
        yield from re.finditer(label, claim, re.IGNORECASE)


def _begins_with_label(fact: Fact, claim: str) -> bool:
    """Whether it is an entry of a list: `- Time: 11:30`."""
    begins = re.escape(in_words(fact.name)).replace(r"\ ", r"\s+")
    return re.match(rf"\s*[-*•–]?\s*\**{begins}\**\s*[:=]", claim, re.IGNORECASE) is not None


def _is_booked(fact: Fact, before: str, after: str, alone: bool) -> bool:
    """Whether what was done was done for this value."""
    if _sort(fact) == "number":
        counted = re.match(r"\s+(?:more\s+)?([a-z]+)", after, re.IGNORECASE)
        named = counted is not None and any(
            likeness(sought, stem(counted[1].lower())) >= _ALIKE for sought in fact.wanted.objects
        )
        return named and any(not before[match.end() :] for match in _gaps(_BOOKED, before))
    if not alone or _sort(fact) == "email":
        return False
    if any(not before[match.end() :].strip() for match in _gaps(_MOVED, before)):
        return True
    return any(
        not before[match.end() :] and _PLACED.search(match["gap"]) is not None
        for match in _gaps(_BOOKED, before)
    )


_ALIKE = 0.7


def _gaps(verb: re.Pattern[str], before: str) -> Iterator[re.Match[str]]:
    """The verbs between which and the end of a text nothing else begins."""
    whole = re.compile(verb.pattern + r"\Z", re.IGNORECASE)
    for match in verb.finditer(before):
        if found := whole.match(before, match.start()):
            yield found


def _names(fact: Fact, claim: str, others: Sequence[Fact], known: Sequence[str]) -> Iterator[str]:
    """The other names that a sentence gives it."""
    if any(map(str.isnumeric, fact.text)):
        return  # what has a number in it may be written in many ways
    alike = {name.casefold(): name for name in (*known, *alternatives(fact.text)) if name != fact.text}
    taken = {other.text.casefold() for other in others}
    for match in _labels(fact, claim):
        rest = claim[match.end() :]
        for name in alike.values():
            if re.match(rf"\W*{re.escape(name)}\b", rest, re.IGNORECASE):
                yield name.casefold()
        named = _NAME.match(rest.rstrip(". "))
        if named and fact.text[:1].isupper() and not _NO_NAME.match(named["name"]):
            name = named["name"].casefold()
            if name not in taken and not dates_in(named["name"]) and _is_another(name, fact):
                yield name
    if _speaks_of_else(fact, claim):
        return
    for name in (each.casefold() for each in known if each.casefold() not in taken):
        place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", claim, re.IGNORECASE)
        if place and any(
            not claim[match.end() : place.start()] for match in _gaps(_BOOKED, claim[: place.start()])
        ):
            yield name


def _is_another(name: str, fact: Fact) -> bool:
    """Whether it is not the same name in other words: shorter, with a title, with initials, or misspelt."""
    ours, theirs = _parts(fact.text), _parts(name)
    theirs -= {stem(word) for word in in_words(fact.name).split()} | set(in_words(fact.name).split())
    if not theirs or theirs <= ours or ours <= theirs:
        return False
    return not all(any(_may_be(word, other) for other in ours - theirs) for word in theirs - ours)


def _may_be(word: str, other: str) -> bool:
    """Whether one is the initial of the other, or the other misspelt."""
    if 1 in (len(word), len(other)):
        return word[0] == other[0]
    return likeness(word, other) >= _ALIKE


def _parts(name: str) -> set[str]:
    return set(re.findall(r"\w+", name.casefold())) - _TITLES
