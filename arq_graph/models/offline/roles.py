"""Which of several names an argument means: by the preposition and by the word that stand beside the name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import likeness, stem

_ROLES = (
    (listed("from off"), listed(
        "from source sender origin departure payer giver seller lender donor debtor pays gives sends lends sells")),
    (listed("to into onto towards"), listed(
        "to target recipient receiver destination arrival beneficiary payee buyer borrower gets receives borrows")),
    (listed("for"), listed(
        "for recipient receiver addressee guest patient customer client passenger visitor owner holder attendee "
        "participant beneficiary pupil student member user employee colleague friend child pet dog cat")),
    (listed("with"), listed("with partner companion doctor stylist teacher trainer instructor adviser advisor")),
    (listed("by"), listed("by author artist writer composer")),
)  # fmt: skip
"""Prepositions, and the words of an argument whose value they introduce."""
_PREPOSITIONS = listed("from off to into onto towards for with by at in under near on of about")
_CLAIMED = listed("from for by in under")
"""What these introduce is a person, a place or a date, unless the argument is known to stand behind them."""
_OF_PEOPLE = listed("for to with by")
_OF_PLACES = listed("to into towards in at near around on under from")
_AGENT = re.compile(r"[a-z]{2,}(?:er|or|ist|ee|ian|ant)")
_DEVICES = listed(
    "order number letter folder paper computer printer router server tower river center counter monitor sensor "
    "motor tractor door floor color flavor water dinner butter plant restaurant coffee"
)
_SAYS_WHO = re.compile(r"\bnames?\b|\bwho\b|\bwhom\b|\bpersons?\b", re.IGNORECASE)
_BETWEEN = listed(
    "the a an my our your his her their this mr mrs ms dr prof called named is mr. mrs. ms. dr. prof."
)
_BEFORE = re.compile(r"[\w'’]+\.?|[,;:!?]")
NAMED = ("person", "place", "thing")
"""The kinds of value that are known by a name."""


def _told(words: frozenset[str]) -> frozenset[str]:
    """The prepositions that words of an argument tell of."""
    return frozenset[str]().union(*(cues for cues, names in _ROLES if names & words))


def _named(wanted: Wanted) -> frozenset[str]:
    return _told(frozenset(wanted.tokens))


def _described(wanted: Wanted) -> frozenset[str]:
    return _told(frozenset(re.findall(r"[a-z]+", wanted.description.lower())) - _PREPOSITIONS)


def _shared_with_a_place(wanted: Wanted, others: Sequence[Wanted]) -> frozenset[str]:
    """What introduces a place as well as somebody: "to Ben", but "to Oslo for Ben"."""
    is_place_wanted = any(other.kind == "place" and not _named(other) for other in others)
    return _OF_PLACES if is_place_wanted and _is_somebody(wanted) and not _named(wanted) else frozenset()


def prepositions(wanted: Wanted, others: Sequence[Wanted] = ()) -> frozenset[str]:
    """The prepositions that introduce the value of an argument; none where that is not known.

    Args:
        wanted: The argument.
        others: The other arguments of the tool: what their names tell of is theirs.
    """
    if own := _named(wanted):
        return own
    named = frozenset[str]().union(*(_named(other) for other in others if other.kind in NAMED))
    if _is_somebody(wanted):
        shared = _shared_with_a_place(wanted, others)
        described = _described(wanted)
        return (described if described and not described & shared else _OF_PEOPLE - shared) - named
    if own := _described(wanted):
        return own
    if wanted.kind == "place":
        beside = {"for", "of"} if wanted.required and not any(map(_is_somebody, others)) else set[str]()
        return (_OF_PLACES | beside) - named
    return frozenset()


def _is_somebody(wanted: Wanted) -> bool:
    """Whether it means a person by its form: an observer, a receptionist, who gets it."""
    if wanted.kind == "person":
        return True
    return bool(_SAYS_WHO.search(wanted.description)) and any(
        _AGENT.fullmatch(token) and token not in _DEVICES for token in wanted.tokens
    )


def fit(text: str, start: int, end: int, wanted: Wanted, others: Sequence[Wanted]) -> float | None:
    """How well a name fits an argument by where it stands; None where it is somebody else's.

    Args:
        text: What was said.
        start: Where the name begins.
        end: Where it ends.
        wanted: The argument.
        others: The other arguments of the tool.
    """
    own, every = prepositions(wanted, others), (wanted, *others)
    theirs = frozenset[str]().union(
        *(prepositions(o, [e for e in every if e is not o]) for o in others if o.kind in NAMED)
    )
    theirs -= own
    rivals = frozenset(name for other in others for name in other.objects) - wanted.objects
    following = re.match(r"\s([a-z]+)", text[end:])
    beside = [stem(following[1])] if following and following[1] not in _PREPOSITIONS else []
    cue = ""
    for token in _before(text, start):
        if token in _PREPOSITIONS:
            cue = token
            break
        if token not in _BETWEEN:
            beside.append(stem(token))
            if not any(likeness(beside[-1], name) >= 0.9 for name in wanted.objects | rivals):
                break
    if any(likeness(word, name) >= 0.9 for word in beside for name in rivals):
        return None
    labelled = 1.5 if any(likeness(word, name) >= 0.9 for word in beside for name in wanted.objects) else 0.0
    if cue in own:
        return 2.0 + labelled
    if cue == "to" and cue in _shared_with_a_place(wanted, others):
        return 1.2 + labelled
    if cue and (cue in theirs or (cue in _CLAIMED and not labelled)):
        return None
    return 1.0 + labelled


def _before(text: str, start: int) -> Iterator[str]:
    """The words before a place, the nearest first, up to where the clause begins."""
    for token in reversed(_BEFORE.findall(text[max(0, start - 60) : start].lower())[-5:]):
        if token in ",;:!?":
            return
        yield token
