"""Taking a guideline's condition apart: alternatives of clauses that must hold together, each of a kind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from arq_graph.models.offline.lexicon import NEGATORS
from arq_graph.models.offline.persons import asked_by
from arq_graph.models.offline.words import Word, content, stem, words

Kind = Literal[
    "start", "greeting", "farewell", "thanks", "anger", "agreement", "refusal", "question", "off topic",
    "language", "given", "comparison", "wish", "state", "result",
]  # fmt: skip

_PERSON = (
    r"(?:(?:the|a|an|this|our|any|your) )?(?:\w+ )?(?:customer|user|guest|patient|client|caller|visitor"
    r"|member|person|patron|shopper"
    r"|buyer|reader|student|passenger|travell?er|employee|colleague|subscriber|borrower|tenant"
    r"|cardholder|they|someone|somebody"
    r"|he|she|diner|owner|applicant|learner|player|parent|driver|rider|host|citizen|resident)\b(?!')"
)
_ACTS = (
    r"asks?|asking|asked|wants?|wanted|wishes|requests?|requested|requesting|inquires?|enquires?|needs?"
    r"|mentions?|mentioned|says?|said"
    r"|tells?|reports?|reported|complains?|complained|expresses|would like|looks? for|is looking|tries"
    r"|talks?|brings? up|states?"
    r"|describes?|raises|seeks?|wonders?|is interested|has (?:a|an|any|some) (?:question|problem|issue"
    r"|complaint|request|concern)"
    r"|refers?|insists?|orders?|books?|claims?|prefers?|intends?|plans?|hopes|demands?|chooses?|picks?"
    r"|selects?|discuss(?:es)?"
)
_LEAD = re.compile(
    r"^(?:when(?:ever)?|if|once|while|as (?:soon|long) as|in case|every time|after|always when|each time)\s+",
    re.IGNORECASE,
)
_FINITE = (
    r"(?:is|are|was|were|isn't|aren't|wasn't|has|have|had|hasn't|haven't|does|do|did|doesn't|don't"
    r"|didn't|can|can't|cannot|will"
    rf"|won't|{_ACTS}|fails?|failed|shows?|exceeds?|costs?|exists?|gives?|provides?|confirms?|agrees?"
    r"|accepts?|declines?|refuses?)"
)
_COPULA = (
    r"(?:is|are|was|were|isn't|aren't|wasn't|weren't|has|have|had|hasn't|haven't|does|do|did|doesn't"
    r"|don't|didn't|can|can't|cannot"
    r"|will|won't|fails|failed|shows|exceeds|costs|exists|contains|includes|needs|requires|says)"
)
_NONE = re.compile(r"^(?:there (?:is|are|were|was) (?:no|not any|nothing)|no|nothing)\b ?", re.IGNORECASE)
_CLAUSE_START = (
    rf"(?:(?:{_FINITE}|not)\b|(?:(?:the|a|an|their|his|her|its|our|this|that|no|there|it|they|he|she"
    r"|nothing|any)\b"
    rf"(?: [\w'-]+){{0,4}}? {_FINITE}\b))"
)
_OR = re.compile(rf",? or (?={_CLAUSE_START})", re.IGNORECASE)
_AND = re.compile(rf",?(?: and| but)(?: also| then| still)? (?={_CLAUSE_START})|,? but (?=\w)", re.IGNORECASE)
_UNLESS = re.compile(r",? (?:unless|except (?:when|if)) ", re.IGNORECASE)
_WITHOUT = re.compile(
    r",? without (?:giving|providing|saying|telling|specifying|mentioning|stating|having (?:given"
    r"|provided)|naming|an?|the|their) (?P<thing>.+)$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    rf"^(?P<subject>{_PERSON}|(?:the|a|an|their|its|his|her|this|that|no|any)(?: [\w'-]+){{1,3}}?(?= "
    rf"{_FINITE}\b))",
    re.IGNORECASE,
)
_WISH = re.compile(
    rf"^{_PERSON}(?: (?:also|now|again|explicitly|first|then|still|just|only))? (?:{_ACTS})\b", re.IGNORECASE
)
_RESULT_LEAD = re.compile(
    r"^(?:(?:the|a|any) )?(?:[\w-]+ ){0,2}?(?:tools?|lookup|search|results?|system|query|call|check"
    r"|response|output|data|records?)"
    r"(?:'s)?(?: results?| output)? (?:shows?|says?|returns?|indicates?|reports?|finds?|found|reveals?"
    r"|confirms?|tells?(?: us)?)(?: that)? ",
    re.IGNORECASE,
)
_VALUE_NOUN = re.compile(
    r"\b(?:id|ids|number|numbers|name|date|dates|time|address|e-?mail|phone|size|code|amount|city"
    r"|reason|reference|details|colou?r"
    r"|destination|origin|budget|age|quantity|type|kind|model|account|card|document|title|location"
    r"|birth|party)\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\b(?P<aux>has|have|had|did|does|do|hasn't|haven't|didn't|doesn't|don't)?(?P<negated> not| never"
    r"|(?<=n't))?(?: yet| already| also)?"
    r" ?(?P<verb>given?|gave|gives|provided?|provides|told|tells?|mention(?:s|ed)?|specif(?:y|ies|ied)"
    r"|stated?|states|shared?|shares"
    r"|supplied|supplies|said|says?|indicated?|entered|named)"
    r"(?: (?:us|me|you|the agent))?(?: yet| already)?(?: (?:their|his|her|the|an?|any|its|which|what"
    r"|how many|how much|when|where|whether))?"
    r"(?: (?P<thing>.+))$",
    re.IGNORECASE,
)
_UNKNOWN = re.compile(
    r"^(?:(?:the|their|an?|his|her|no) )?(?P<thing>.+?) (?:is|are|was|were|has|have) (?:still |yet )?(?:been )?"
    r"(?:missing|unknown|unclear|not (?:yet )?(?:been )?(?:known|given|provided|stated|specified|clear"
    r"|mentioned))",
    re.IGNORECASE,
)
_BARE = frozenset(map(stem, ("where", "when", "why", "how")))
_COMPARISON = re.compile(
    r"(?P<less>under|below|less than|fewer than|younger than|shorter than|smaller than|lower than"
    r"|cheaper than|no more than|at most|up to)"
    r"|(?P<more>over|above|more than|greater than|exceed(?:s|ing)?|older than|longer than|larger than"
    r"|bigger than|higher than|at least)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*(?:of )?(?:[$€£]\s?|usd |eur )?(\d[\d,]*(?:\.\d+)?)(?:\s?(%|k\b))?", re.IGNORECASE)
_KINDS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "start",
        re.compile(
            r"\b(?:conversation|chat|session|interaction|call)\b.{0,20}\b(?:start|begin|began|open|just|new)"
            r"|\bfirst (?:message|reply|contact|turn)\b"
            r"|\b(?:start|beginning) of (?:the|a|each|every)\b|\b(?:starts?|begins?|opens?) (?:a|the) (?:new "
            r")?(?:conversation|chat)",
            re.IGNORECASE,
        ),
    ),
    ("greeting", re.compile(r"\bgreet(?:s|ed|ing)?\b|\bsays? (?:hello|hi|good morning)\b", re.IGNORECASE)),
    (
        "farewell",
        re.compile(
            r"\b(?:says? (?:good ?)?bye|good ?bye|farewell|no (?:more|further|other) (?:questions?|requests?)"
            r"|nothing (?:else|more)|is (?:all )?done$"
            r"|takes? (?:their )?leave|wraps? up|is (?:about to |leaving$)|leaves?$)|\b(?:ends?|ending"
            r"|finish(?:es)?|closes?) the (?:conversation|chat|call)"
            r"|\b(?:conversation|chat|call)\b.{0,15}\b(?:end|over|finish|clos)",
            re.IGNORECASE,
        ),
    ),
    (
        "thanks",
        re.compile(r"\bthank(?:s|ed|ing)?\b|\bgratitude\b|\bgrateful\b|\bappreciation\b", re.IGNORECASE),
    ),
    (
        "language",
        re.compile(
            r"\b(?:writes?|speaks?|talks?|asks?|types?|messages?|uses?)\b.{0,25}\b(?:in"
            r"|language)\b.{0,30}\b(?:language|"
            r"english|spanish|french|german|italian|portuguese|dutch)\b|\bspeaks? (?:english|spanish|french"
            r"|german|italian|portuguese|dutch)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "off topic",
        re.compile(
            r"\bunrelated\b|\boff[- ]topic\b|\birrelevant\b|\bout of scope\b|\boutside (?:of |the scope|our"
            r"|the)|\bnot (?:related|relevant|about|connected)\b"
            r"|\b(?:anything|something|topics?|questions?|things?) (?:else|other)\b|\bother than\b|\bbeyond\b",
            re.IGNORECASE,
        ),
    ),
    (
        "agreement",
        re.compile(
            r"\b(?:confirm(?:s|ed)?|agree(?:s|d)?|accept(?:s|ed)?|approve[sd]?|says? yes|affirm(?:s|ed)?"
            r"|consent(?:s|ed)?)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "refusal",
        re.compile(
            r"\b(?:decline[sd]?|refuse[sd]?|reject(?:s|ed)?|says? no|turn(?:s|ed) (?:it |this )?down"
            r"|disagree[sd]?|not interested)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "question",
        re.compile(
            r"\bask(?:s|ing)? (?:a|any|some) questions?$|\bhas (?:a|any|some) questions?$|\basks? (?:something"
            r"|anything)$",
            re.IGNORECASE,
        ),
    ),
)
_ANGER = re.compile(
    r"\b(?:angry|furious|frustrat\w+|annoy\w+|upset|rude|irritated|unhappy|dissatisf\w+|impatient"
    r"|aggressive|abusive|swears?|insult\w*"
    r"|offensive|profan\w+|vulgar|curs(?:es|ing)|complain(?:s|ed|ing)?|disappoint\w+|emotional|hostile"
    r"|agitated)\b(?P<about>.*)",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\b(?:asks?|wonders?|to know|inquires?|enquires?)\b", re.IGNORECASE)
_ABOUT = re.compile(r"\b(?:with|about|at|that|of|because|over)\b (?P<what>.+)", re.IGNORECASE)


@dataclass(frozen=True)
class Bound:
    """What a number is compared with.

    Args:
        limit: The number.
        above: Whether it must be more, rather than less.
        inclusive: Whether the limit itself will do.
    """

    limit: float
    above: bool
    inclusive: bool

    def admits(self, value: float) -> bool:
        """Whether a number is what it must be."""
        return (value == self.limit and self.inclusive) or (
            value != self.limit and (value > self.limit) == self.above
        )


@dataclass(frozen=True)
class Clause:
    """One statement of a condition.

    Args:
        kind: What it speaks of.
        text: Its words.
        variants: Sets of content words; any one of them is what it is about.
        negated: Whether it must not hold ("unless …").
        subject: For a result: the words of what it is about.
        thing: For `given`: what is or is not given.
        bound: For a comparison: what the number must be.
    """

    kind: Kind
    text: str
    variants: tuple[tuple[Word, ...], ...]
    negated: bool = False
    subject: tuple[Word, ...] = ()
    thing: str = ""
    bound: Bound | None = None

    @cached_property
    def decisive(self) -> frozenset[str]:
        """The stems of what it is all about: what is to be done ("to cancel"), or how a thing is ("is free")."""
        found = re.findall(
            r"\b(?:to|is|are|was|were) (?:not |still |already )?(\w+)(?:(?:,? or |/)(\w+))?",
            self.text.lower(),
        )
        return frozenset(stem(word) for pair in found for word in pair if word)


@lru_cache(maxsize=2_048)
def parse(condition: str) -> tuple[tuple[Clause, ...], ...]:
    """Take a condition apart: it holds where all clauses of any one alternative hold."""
    text = asked_by(_LEAD.sub("", condition.strip().rstrip(".")).strip()[:1_000])
    subject = ""
    alternatives = []
    for part in _OR.split(text):
        clauses: list[Clause] = []
        main, *exceptions = _UNLESS.split(part)
        for piece, excepted in [(main, False), *((exception, True) for exception in exceptions)]:
            for clause_text in _split_without(_AND.split(piece)):
                clause_text = clause_text.strip(" ,")
                named = _SUBJECT.match(clause_text)
                if named and not _starts_with_verb(clause_text):
                    subject = named["subject"]
                elif subject and not clause_text.lower().startswith("without "):
                    clause_text = f"{subject} {clause_text}"
                if clause_text:
                    clauses.append(_clause(clause_text, excepted))
        if clauses:
            alternatives.append(tuple(clauses))
    return tuple(alternatives)


def _starts_with_verb(text: str) -> bool:
    return re.match(rf"(?:{_FINITE}|not)\b", text, re.IGNORECASE) is not None


def _split_without(parts: list[str]) -> Iterator[str]:
    for part in parts:
        match = _WITHOUT.search(part)
        if match is None:
            yield part
        else:
            yield part[: match.start()]
            yield f"without {match['thing']}"


def _clause(text: str, negated: bool) -> Clause:
    if text.startswith("without "):
        return Clause("given", text, (), not negated, thing=text.removeprefix("without "))
    by_person = re.match(_PERSON, text, re.IGNORECASE) is not None
    reported = _RESULT_LEAD.match(text)
    if reported:
        return _about_result(text[reported.end() :], text, negated)
    for kind, pattern in _KINDS:
        if (match := pattern.search(text)) and (
            by_person or kind in ("start", "farewell", "off topic", "language")
        ):
            if kind == "farewell" and _ASKS.search(text[: match.start()]):
                continue  # "asks when the bus leaves"
            rest = content(text[match.end() :])
            denied = negated != _is_denied(text[: match.start()])
            return Clause(kind, text, (rest,) if rest else (), denied, thing=text[match.end() :])
    if (compared := _compared(text, negated)) is not None:
        return compared
    if (given := _given(text, negated, by_person)) is not None:
        return given
    if by_person and (anger := _ANGER.search(text)):
        about = _ABOUT.search(anger["about"])
        variants = _variants(about["what"]) if about else ()
        return Clause("anger", text, variants, negated != _is_denied(text[: anger.start()]))
    if _WISH.match(text):
        return Clause("wish", text, _variants(text), negated)
    if by_person:
        return Clause("state", text, _variants(text), negated)
    return _about_result(text, text, negated)


def _is_denied(before: str) -> bool:
    return any(word in NEGATORS for word in re.findall(r"[\w']+", before.lower())[-3:])


def _given(text: str, negated: bool, by_person: bool) -> Clause | None:
    if not by_person and (unknown := _UNKNOWN.match(text)) and _VALUE_NOUN.search(unknown["thing"]):
        return Clause("given", text, (), not negated, thing=unknown["thing"])
    match = _GIVEN.search(text) if by_person else None
    if match is None:
        return None
    denied = bool(match["negated"]) or (match["aux"] or "").endswith("n't")
    handed_over = match["verb"].lower().startswith(("giv", "gave", "provid", "suppl", "shar", "enter"))
    if not denied and not (handed_over and _VALUE_NOUN.search(match["thing"])):
        return None
    return Clause("given", text, _variants(text), negated != denied, thing=match["thing"])


def _compared(text: str, negated: bool) -> Clause | None:
    for match in _COMPARISON.finditer(text):
        number = _NUMBER.match(text, match.end())
        if number is None:
            continue
        limit = float(number[1].replace(",", "")) * (1_000 if (number[2] or "").lower() == "k" else 1)
        said = match[0].lower()
        bound = Bound(
            limit,
            above=bool(match["more"]),
            inclusive=said in ("at least", "at most", "no more than", "up to"),
        )
        rest = re.sub(
            _PERSON, " ", f"{text[: match.start()]} {text[number.end() :]}", count=1, flags=re.IGNORECASE
        )
        about = words(rest) or words("age old")
        if re.match("older|younger", said):
            about += words("age old")
        return Clause("comparison", text, (about,), negated, bound=bound)
    return None


def _about_result(text: str, whole: str, negated: bool) -> Clause:
    match = re.match(
        rf"^(?P<subject>(?:(?!there\b)[\w'-]+ ){{1,6}}?)(?={_COPULA}\b|(?:not |already |still )?\w+ed\b"
        r"|(?:un)?(?:available|free)\b)",
        text,
        re.IGNORECASE,
    )
    about = words(match["subject"]) if match else ()
    rest = text[match.end() :] if match else text
    if none := _NONE.match(text):
        rest = f"unfound {text[max(none.end(), match.end() if match else 0) :]}"
    subject = (
        tuple(word._replace(negated=False) for word in content(match["subject"]) or about) if match else ()
    )
    return Clause("result", whole, _variants(rest) or (words(rest),), negated, subject=subject)


def _variants(text: str) -> tuple[tuple[Word, ...], ...]:
    """Sets of content words: "cancel or change a booking" is {cancel, booking} and {change, booking}."""
    listed = re.split(r",? or |/| or,? |, (?=\w+(?:, | or ))", text)
    if len(listed) == 1 and (about := re.search(r"\babout (.+)", text)):
        listed = re.split(r",? and |, ", about[1])
    sets = [content(part) for part in listed]
    sets = [found for found in sets if found]
    if len(sets) < 2:
        whole = content(text) or words(text)
        return (whole,) if whole else ()
    # "asks about an order or where it is": only the nouns before say what "it" is.
    sets = [found if any(word.stem not in _BARE for word in found) else found + sets[0] for found in sets]
    first_is_verb = re.search(r"\bto (?:\w+(?:, | or |/))+\w+", text) is not None
    tail = sets[-1][1:] if first_is_verb else ()
    return tuple(found + tuple(word for word in tail if word not in found) for found in sets)
