"""Who the other side is in a designer's texts: the pupil, the skipper, the tenant; read as "the customer"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from arq_graph.models.offline.lexicon import FAINT_WORDS, KINDS, RELATED, SYNONYMS, listed
from arq_graph.models.offline.words import stem

_OF_PERSONS_ALONE = (
    r"asks|asked|wants|wanted|wishes|inquires|enquires|mentions|mentioned|complains|complained|expresses"
    r"|would like|looks for|is looking for|talks|brings up|seeks|wonders|is interested|insists|claims"
    r"|prefers|intends|hopes|demands|chooses|picks|discusses|describes|thanks|greets|agrees|declines"
    r"|refuses|has an? (?:question|problem|issue|complaint|request|concern)"
)
_OF_THINGS_TOO = (
    r"says|said|needs|tells|reports|reported|requests|requested|states|raises|refers|orders|books|plans"
    r"|tries|confirms|accepts|gives|is (?:angry|upset|unhappy|frustrated)"
)
_UPKEEP = (
    r"(?:to be (?!(?:able|told|informed|sure|certain|there|here)\b)\w+"
    r"|(?:(?:an?|the|some|new|urgent|regular|another) )*"
    r"(?:repair|repairs|fixing|servic(?:e|ing)|maintenance|cleaning|replacement|replacing|refill|refilling|charging"
    r"|recharging|overhaul|inspection|restart|tuning|painting|sharpening|spare parts?))"
)
"""What is done to a thing that needs it: "the kiln needs a repair", "the kiln needs to be cleaned"."""
_DETERMINER = r"(?:the|an?|this|our|any|your|each|every)"
_SUBJECT = re.compile(
    rf"\b{_DETERMINER} (?:[a-z]+ )??(?P<noun>[a-z]+) "
    r"(?:(?:also|now|again|explicitly|first|then|still|just|only|never|repeatedly) )?"
    rf"(?:(?P<person>{_OF_PERSONS_ALONE})|(?P<thing>needs {_UPKEEP})|(?:{_OF_THINGS_TOO}))\b",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(
    r"\b(?:tell|ask|remind|inform|warn|assure|advise|notify|invite|encourage|urge) (?:the|an?|every|each) "
    r"(?P<noun>[a-z]+) (?:that|to|whether|if|about|how|what|which|when|where|why|for|of the)\b",
    re.IGNORECASE,
)
_THE_USUAL = frozenset(("customer", "user", "client"))
_NOBODY = listed(
    "agent assistant bot model system tool lookup search desk colleague manager technician expert and or who that not"
)
_THINGS = (
    frozenset(stem(word) for line in (*SYNONYMS, *RELATED, *KINDS, *KINDS.values()) for word in line.split())
    | frozenset(map(stem, FAINT_WORDS))
    | frozenset(
        map(
            stem,
            listed(
                "order query response output page website app device file label sign document printer router machine"
                " bike application form"
            ),
        )
    )
)
_IN_COMPOUNDS = "(?:owner|holder|member|keeper|taker)"
"""Nouns whose first half says what they are, not which one is meant: the pet owner, but the new pupil."""
_QUOTED = re.compile(r"(\"[^\"]*\"|“[^”]*”|«[^»]*»)")


def _subjects(text: str) -> Iterator[str]:
    for match in _SUBJECT.finditer(text):
        noun = match["noun"].lower()
        if noun not in _NOBODY and (match["person"] or not (match["thing"] or stem(noun) in _THINGS)):
            yield noun


def roles_in(texts: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The nouns that stand for the customer in guidelines: who asks and wants, or else whom the agent is to tell.

    Args:
        texts: The condition and the action of each guideline.
    """
    known = list(texts)
    subjects = {noun for condition, _ in known for noun in _subjects(condition)}
    if subjects & _THE_USUAL:  # Where there is a customer, the doctor who asks is somebody else.
        return frozenset()
    addressed = {match["noun"].lower() for _, action in known for match in _ADDRESSED.finditer(action)}
    return frozenset(subjects or {noun for noun in addressed if stem(noun) not in _THINGS} - _NOBODY)


def as_customer(text: str, roles: frozenset[str]) -> str:
    """A text with "the customer" for each of the roles, save in what it quotes."""
    if not roles:
        return text
    nouns = "|".join(sorted(roles))
    named = re.compile(
        rf"\b((?:the|an?|this|our|any|each|every) )(?:[a-z]+ (?={_IN_COMPOUNDS}\b)|([a-z]+ ))??(?:{nouns})\b",
        re.IGNORECASE,
    )
    parts = _QUOTED.split(text)
    return "".join(
        part if index % 2 else named.sub(r"\1\2customer", part) for index, part in enumerate(parts)
    )


def asked_by(condition: str) -> str:
    """A condition with "the customer" for whoever asks, wants or says something in it."""
    return as_customer(condition, frozenset(_subjects(condition)) - _THE_USUAL)
