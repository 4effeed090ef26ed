"""Names in what customers write: of people, of places, of things; and the words of a free request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.dates import dates_in, times_in
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.roles import fit
from arq_graph.models.offline.shapes import Candidate, denied
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.withheld import MASK, is_no_value, is_sentence, what_is_given
from arq_graph.models.offline.words import likeness, stem

_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'’.-]*(?<!\.)"
_NAME = rf"{_CAPITALISED}(?: (?:(?:of|de|del|da|di|la|le|the|van|von|and|&) )*{_CAPITALISED})*"
_PERSON_CUES = (
    re.compile(
    r"\b(?:my|the|his|her|their|guest'?s?|patient'?s?|full|whose) (?:\w+ )?name(?: is|'s"
    r"|:)\s+(?P<name>[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*){0,3})", re.IGNORECASE),
    re.compile(r"\bname(?: is|:)\s*(?P<name>[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*){0,3})", re.IGNORECASE),
    re.compile(rf"\b(?:[Uu]nder|[Ii]n) (?:the name(?: of)?|my name,?)?\s*(?P<name>{_NAME})"),
    re.compile(rf"\b(?:I am|I'm|I’m|[Tt]his is|[Ii]t's|[Cc]all me|[Cc]alled|[Nn]amed)\s+(?P<name>{_NAME})"),
    re.compile(rf"\b(?:[Ff]or|[Tt]o|[Ww]ith|[Bb]y|[Ff]rom)\s+(?:(?:Mr|Mrs|Ms|Dr)\.? )?(?P<name>{_NAME})"),
)  # fmt: skip
_NAME_ENDS = re.compile(
    r"\b(?:and|from|i|my|for|on|at|the|with|but|is|please|here|calling|speaking|in|to|a)\b.*", re.IGNORECASE
)
_NOT_NAMES = listed(
    "i i'm i'd i've i'll monday tuesday wednesday thursday friday saturday sunday january february "
    "march april may june july"
    " august september october november december hi hello hey thanks thank yes no ok okay please the a "
    "an my is are can could do"
    " as so if then once since because after before while until though"
    " does what where when who how why not dear sir madam mr mrs ms dr mon tue wed thu fri sat sun today "
    "tomorrow and or but also it"
    " it's this that there here we you would will"
)
_STREET = re.compile(r"(?:\b(?:Street|Road|Lane|Avenue)|straße|strasse|gasse)$")
_PREPOSITIONS = listed("in at on for from to with by of near around under")
_TO_BE_HAD = listed(
    "item product dish meal food drink medicine medication book title service treatment device "
    "equipment thing article"
    " flavor flavour"
)
_QUOTED = re.compile(r"[\"“”«]([^\"“”»]{1,200})[\"“”»]|(?<!\w)['‘]([^'’]{2,200})['’](?!\w)")
_VERBS_OF_WISH = (
    r"(?:order(?:ing)?|want|have|like|get|need|buy|book|reserve|borrow|rent|add|take|try|find|renew"
    r"|return|got|prefer|about|looking for"
    r"|search for|available|called|cancel|recommend)"
)
_NOUN_PHRASE = re.compile(
    rf"\b{_VERBS_OF_WISH}\s+(?:to (?:order|have|book|buy|get|reserve|borrow|rent"
    r"|try)\s+)?(?:me\s+)?(?:a|an|the|one|two|three|four|\d+|some|more|my|your|any)\s+"
    r"(?P<phrase>[a-zà-ÿ][\w'-]*(?: [a-zà-ÿ][\w'-]*){0,3})",
    re.IGNORECASE,
)
_ORDERED = re.compile(
    r"(?:^|[.!?,]\s+|\b(?:please|to|you|i|we|and|let's|let me)\s+)(?P<verb>[a-z]+)\s+"
    r"(?:the|my|a|an|our|your|his|her|their|some)\s+",
    re.IGNORECASE,
)
_PHRASE = re.compile(r"[a-zà-ÿ][\w'-]*(?: [a-zà-ÿ][\w'-]*){0,3}")
_POINTING = listed("one ones it that this same thing things other first last next rest")
_PHRASE_ENDS = re.compile(
    r"\b(?:for|on|at|in|to|with|without|please|and|from|by|tomorrow|today|tonight|is|are|that|which|i"
    r"|but|if|or|of course|now|under)\b.*",
    re.IGNORECASE,
)
POLITE = re.compile(
    r"^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|dear \w+|yes|ok(?:ay)?|sure|well|um|so"
    r"|please|thanks|thank you|actually|sorry"
    r"|no|there|once (?:more|again)|again|as i said)\b[,.!: ]*)+",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|an?) (?=\w)")
"""Belongs to no name, unless it is written large: "in the Harz", but "The Hague"."""
_AROUND = f" .,!;:\"'{MASK}"
_JOINTS = re.compile(
    r"^(?:and|but|because|though|although)\b|\b(?:and|but|because|though|although)$", re.IGNORECASE
)
_ANSWER_LEAD = re.compile(
    r"^(?:(?:it|that|this)(?:'s| is| would be| should be)|i(?:'d| would) (?:say|like|prefer|love)|i "
    r"think|make (?:it|that)|let'?s (?:say|do|make it)"
    r"|my \w+(?: \w+)? (?:is|are)|the \w+(?: \w+)? (?:is|are)|i(?:'m| am)|just|maybe|for|to|from|in|at"
    r"|on|(?:i|we) (?:live|stay|work)|the one (?:called|named))\s+",
    re.IGNORECASE,
)


def quoted_in(text: str) -> list[Candidate]:
    """What stands in quotation marks."""
    return [Candidate((match[1] or match[2]).strip(), *match.span()) for match in _QUOTED.finditer(text)]


def bare_answer(text: str) -> str:
    """A short answer without what surrounds it: "It's Anna, please." is "Anna"."""
    answer, before = text.strip(_AROUND), ""
    while answer != before:  # "I think it is Anna"
        before = answer
        answer = _ANSWER_LEAD.sub("", POLITE.sub("", _JOINTS.sub("", answer))).strip(_AROUND)
    answer = _ARTICLE.sub("", answer)
    answer = re.sub(r"[,.!]*\s*(?:please|thanks|thank you)[.! ]*$", "", answer, flags=re.IGNORECASE)
    return answer.strip(_AROUND)


def answered(text: str, answering: bool, wanted: Wanted, others: Sequence[Wanted] = ()) -> Candidate | None:
    """The bare answer to a question for the value, with where it stands.

    An order is none, nor is a refusal, nor what is left of a sentence that gave another value.
    """
    is_none = dialogue.says_yes(text) or dialogue.hesitates(text)
    given = what_is_given(text, wanted, others) if answering and not is_none else ""
    answer = bare_answer(given)
    if not answer or MASK in answer or stem(answer.split()[0].lower()) in wanted.deeds:
        return None
    if is_no_value(answer, wanted, others) or is_sentence(answer):
        return None
    start = max(given.find(answer), 0)
    return Candidate(answer, start, start + len(answer), 0.8)


def people_in(text: str, wanted: Wanted, answering: bool, others: Sequence[Wanted] = ()) -> list[Candidate]:
    """Names of people."""
    found = []
    for rank, cue in enumerate(_PERSON_CUES):
        for match in cue.finditer(text):
            name = _NAME_ENDS.sub("", match["name"]).strip(" .,")
            if name and not _is_no_name(name) and not denied(text, match.start("name")):
                start = match.start("name")
                weight = fit(text, start, start + len(name), wanted, others)
                if weight is not None:
                    weight += 0.0 if rank == len(_PERSON_CUES) - 1 else 1.5
                    found.append(_person(name, start, weight, wanted))
    # "Seat Anna", "the guest Anna": the tool's verb or the argument's own name stands before it.
    named = [each for each in _capitalised(text, wanted, others) if each.weight > 1.5]
    found += [_person(str(each.value), each.start, each.weight, wanted) for each in named]
    answer = answered(text, answering, wanted, others)
    if (
        not found
        and answer is not None
        and len(str(answer.value).split()) <= 4
        and re.fullmatch(r"[^\W\d_][^\d?!]*", str(answer.value))
        and not dialogue.says_no(str(answer.value))
    ):
        return [_person(str(answer.value), answer.start, answer.weight, wanted)]
    return _best(found)


def _best(found: Iterable[Candidate]) -> list[Candidate]:
    """The surest; of several as sure the first that was looked for."""
    best = max(found, key=lambda candidate: candidate.weight, default=None)
    return [best] if best else []


def _person(name: str, start: int, weight: float, wanted: Wanted) -> Candidate:
    part = _part_of_name(name, wanted)
    start += name.rindex(part)
    return Candidate(part, start, start + len(part), weight)


def _is_no_name(name: str) -> bool:
    return name.split()[0].lower() in _NOT_NAMES or any(ch.isdigit() for ch in name)


def _part_of_name(name: str, wanted: Wanted) -> str:
    if "first" in wanted.tokens or "given" in wanted.tokens:
        return name.split()[0]
    if {"last", "family", "surname"} & set(wanted.tokens):
        return name.split()[-1]
    return name


def places_in(text: str, wanted: Wanted, answering: bool, others: Sequence[Wanted] = ()) -> list[Candidate]:
    """Names of places; for an origin those after "from", for a destination those after "to"."""
    tokens = set(wanted.tokens)
    is_address = bool(tokens & {"address", "street"})
    if is_address:
        said = re.finditer(
            r"\b\d{1,5}[a-z]?,? (?:[A-Z][\w'.-]+ ?){1,4}(?:,[^.!?\n]{2,60})?|\b[A-Z][\w'.-]+(?:straße"
            r"|strasse|gasse| Street| Road| Lane| Avenue) \d+[^.!?\n]{0,40}",
            text,
        )
        match = next((each for each in said if not denied(text, each.start())), None)
        if match:
            ends = "please|thanks|and|but|i|for|by|at" + ("" if "address" in tokens else "|in")
            address = re.sub(rf",? (?:{ends})\b.*$|{MASK}.*$", "", match[0], flags=re.IGNORECASE).strip(" ,")
            return [Candidate(address, match.start(), match.start() + len(address))]
    elif tokens & {"origin", "from", "departure", "source"}:
        cues = r"from|leaving|departing"
    elif tokens & {"destination", "to", "arrival"}:
        cues = r"to|towards|into|for"
    else:
        cues = r"in|at|to|near|around|for|of|from|visit|visiting"
    found: list[Candidate] = []
    if not is_address:
        for match in re.finditer(
            rf"\b(?:{cues}|{'|'.join(map(re.escape, wanted.tokens))})\s+(?:the )?(?P<name>{_NAME})", text
        ):
            is_street = _STREET.search(match["name"]) is not None
            if not is_street and not _is_no_name(match["name"]) and not denied(text, match.start("name")):
                start, end = match.span("name")
                # Said to be in, at or near, it is a place by that; after another word it may be anybody's.
                at = re.match(r"in|at|near|around", match[0]) is not None
                weight = 2.1 if at else fit(text, start, end, wanted, others)
                if weight is not None:
                    found.append(Candidate(match["name"].rstrip("."), start, end, weight))
        if found:
            return _best(found)
        route = re.search(r"\bfrom (?P<origin>[a-z]{3,}) to (?P<destination>[a-z]{3,})\b", text)
        if route and tokens & {"origin", "from", "departure"}:
            return [Candidate(route["origin"], *route.span("origin"))]
        if route and tokens & {"destination", "to", "arrival"}:
            return [Candidate(route["destination"], *route.span("destination"))]
    answer = answered(text, answering, wanted, others)
    words = str(answer.value).split() if answer else []
    if answer and len(words) <= (12 if is_address else 4) and not dialogue.asks(text):
        return [answer]
    return []


def things_in(text: str, wanted: Wanted, answering: bool, others: Sequence[Wanted] = ()) -> list[Candidate]:
    """Names of things: quoted, one of the description's examples, capitalised, or what is wished for."""
    if quoted := [found for found in quoted_in(text) if not denied(text, found.start)]:
        return quoted
    lowered = text.lower()
    for example in wanted.examples:
        at = lowered.find(example.lower())
        if at >= 0 and not denied(text, at):
            return [Candidate(example, at, at + len(example), 1.8)]
    if "author" in wanted.tokens or "artist" in wanted.tokens:
        return [Candidate(m["name"], *m.span("name")) for m in re.finditer(rf"\bby (?P<name>{_NAME})", text)][
            :1
        ]
    named = list(_acted_on(text, wanted, others))
    if wanted.required and not wanted.tokens[-1].endswith("type"):
        named += _capitalised(text, wanted, others)
    if named:
        return _best(named)
    phrase = _phrase_for(text, wanted)
    if phrase is not None:
        return [phrase]
    answer = answered(text, answering, wanted, others)
    words = str(answer.value).split() if answer else []
    if answer and len(words) <= 5 and not dialogue.asks(text) and not dialogue.says_no(text):
        return [_first_part(answer, others)]
    return []


def _first_part(answer: Candidate, others: Sequence[Wanted]) -> Candidate:
    """Of an answer that lists, its first part where another name is wanted too: that one takes the next."""
    first = re.split(r",\s*|\s+and\s+", str(answer.value))[0]
    if not any(other.kind in ("thing", "person", "place") and other.required for other in others):
        return answer
    return Candidate(first, answer.start, answer.start + len(first), answer.weight)


def _acted_on(text: str, wanted: Wanted, others: Sequence[Wanted]) -> Iterator[Candidate]:
    """What a customer wants the tool to do that to, in plain words: "tune the harp"."""
    for match in _ORDERED.finditer(text) if wanted.is_acted_on else ():
        phrase = _PHRASE.match(text, match.end())
        if phrase is None or not any(
            likeness(stem(match["verb"].lower()), deed) >= 0.9 for deed in wanted.deeds
        ):
            continue
        name = _PHRASE_ENDS.sub("", phrase[0]).strip()
        head = stem(name.split()[-1]) if name else ""
        of_itself = any(likeness(head, label) >= 0.9 for label in wanted.objects)
        if of_itself:  # "hire the sailing boat" is said of the sailing one, "hire a boat" of any
            name = " ".join(name.split()[:-1])
        is_rival = any(likeness(head, label) >= 0.9 for other in others for label in other.objects)
        if name and not is_rival and name.split()[-1] not in _POINTING and not denied(text, match.end()):
            yield Candidate(name, match.end(), match.end() + len(name), 1.3)


def _capitalised(text: str, wanted: Wanted, others: Sequence[Wanted]) -> Iterator[Candidate]:
    dates = [(span.start, span.end) for span in dates_in(text)]
    for match in re.finditer(_NAME, text):
        start, name, labelled = match.start(), match[0], 0.0
        while " " in name:
            first = name.split()[0].lower()
            is_label = any(likeness(stem(first), label) >= 0.9 for label in wanted.objects)
            is_order = stem(first) in wanted.deeds
            is_capital_by_place = first in _PREPOSITIONS and not re.search(r"[\w,;:)]\s*$", text[:start])
            if first not in _NOT_NAMES and not is_label and not is_order and not is_capital_by_place:
                break
            labelled = 1.5 if is_label else labelled
            start += name.index(" ") + 1
            name = name[name.index(" ") + 1 :]
        if name.endswith(" I") and re.match(r" [a-z]", text[match.end() :]):  # "As Ida I would …"
            name = name[:-2]
        measure = re.search(r"(?<![\w.,-])\d+(?:[.,]\d+)?\s$", text[max(0, start - 20) : start])
        if measure:  # a unit goes with its number
            start, name = start - len(measure[0]), f"{measure[0]}{name}"
        begins_sentence = not re.search(r"(?:[\w,;:)]|\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.)\s*$", text[:start])
        words = name.split()
        if begins_sentence and (len(words) < 2 or words[0].lower() in _NOT_NAMES):
            continue
        if (
            (_is_no_name(name) and not measure)
            or name.isupper()
            or denied(text, start)
            or any(a <= start < b for a, b in dates)
            or re.search(r"\b(?:name is|I'm|I am|this is)\s+$", text[:start])
            or (name.endswith(("'s", "’s")) and re.match(r" (?!is\b)[a-z]", text[match.end() :]))
        ):
            continue
        weight = fit(text, start, match.end(), wanted, others)
        if weight is not None:
            before = re.search(r"(\w+)\s+$", text[max(0, start - 30) : start])
            ordered = 0.6 if before and stem(before[1].lower()) in wanted.deeds else 0.0
            end = _end_of(text, match.end(), wanted, others)
            said = text[start:end] if end > match.end() else name
            yield Candidate(said.rstrip("."), start, end, weight + labelled + ordered)


def _end_of(text: str, end: int, wanted: Wanted, others: Sequence[Wanted]) -> int:
    """Where a name ends that says its hour, "River tour at 14:00", where nothing else takes the hour."""
    label = re.match(r" (?P<noun>[a-z]+) (?:at|from|of) ", text[end:])
    if label is None or stem(label["noun"]) not in wanted.objects:
        return end
    if any(other.kind in ("time", "moment") for other in others):
        return end
    return next((span.end for span in times_in(text) if span.start == end + label.end()), end)


def _phrase_for(text: str, wanted: Wanted) -> Candidate | None:
    """The noun phrase of a wish, if its head is what is wanted, or what is wanted is something to be had."""
    for match in _NOUN_PHRASE.finditer(text):
        phrase = _PHRASE_ENDS.sub("", match["phrase"]).strip()
        words = phrase.split()
        if not words or denied(text, match.start("phrase")):
            continue
        is_head = any(likeness(stem(words[-1].lower()), name) >= 0.9 for name in wanted.objects)
        if is_head and len(words) > 1:
            words = words[:-1]
        elif is_head or not (_TO_BE_HAD & set(wanted.tokens)):
            continue
        start = match.start("phrase")
        return Candidate(" ".join(words), start, start + len(phrase))
    return None
