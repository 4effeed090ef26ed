"""Names in what customers write: of people, of places, of things; and the words of a free request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.dates import dates_in
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.shapes import Candidate, denied
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import content, likeness, stem

_CAPITALISED = r"[A-ZÀ-ÖØ-Þ][\w'’.-]*(?<!\.)"
_NAME = rf"{_CAPITALISED}(?: (?:(?:of|de|del|da|di|la|le|the|van|von|and|&) )*{_CAPITALISED})*"
_PERSON_CUES = (
    re.compile(
    r"\b(?:my|the|his|her|their|guest'?s?|patient'?s?|full|whose) (?:\w+ )?name(?: is|'s"
    r"|:)\s+(?P<name>[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*){0,3})", re.IGNORECASE),
    re.compile(r"\bname(?: is|:)\s*(?P<name>[^\W\d_][\w'’-]*(?: [^\W\d_][\w'’-]*){0,3})", re.IGNORECASE),
    re.compile(rf"\b(?:[Uu]nder|[Ii]n) (?:the name(?: of)?|my name,?)?\s*(?P<name>{_NAME})"),
    re.compile(rf"\b(?:I am|I'm|I’m|[Tt]his is|[Ii]t's|[Cc]all me|[Cc]alled|[Nn]amed)\s+(?P<name>{_NAME})"),
    re.compile(rf"\b(?:[Ff]or|[Tt]o|[Ww]ith|[Bb]y)\s+(?:(?:Mr|Mrs|Ms|Dr)\.? )?(?P<name>{_NAME})"),
)  # fmt: skip
_NAME_ENDS = re.compile(
    r"\b(?:and|from|i|my|for|on|at|the|with|but|is|please|here|calling|speaking|in|to|a)\b.*", re.IGNORECASE
)
_NOT_NAMES = listed(
    "i i'm i'd i've i'll monday tuesday wednesday thursday friday saturday sunday january february "
    "march april may june july"
    " august september october november december hi hello hey thanks thank yes no ok okay please the a "
    "an my is are can could do"
    " does what where when who how why dear sir madam mr mrs ms dr mon tue wed thu fri sat sun today "
    "tomorrow and or but also it"
    " it's this that there here we you would will"
)
_TO_BE_HAD = listed(
    "item product dish meal food drink medicine medication book title service treatment device "
    "equipment thing article"
    " flavor flavour"
)
_SEARCHES = listed("query search keyword keywords topic subject term terms phrase")
_REMARKS = listed("note notes comment comments feedback remark remarks instructions requests request")
_SEARCH_LEAD = re.compile(r"^(?:(?:\w+ )?(?:about|on|regarding) |an? |the |any |some )", re.IGNORECASE)
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
_PHRASE_ENDS = re.compile(
    r"\b(?:for|on|at|in|to|with|without|please|and|from|by|tomorrow|today|tonight|is|are|that|which|i"
    r"|but|if|or|of course|now|under)\b.*",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|dear \w+|yes|ok(?:ay)?|sure|well|um|so"
    r"|please|thanks|thank you|actually|sorry"
    r"|no|there)\b[,.! ]*)+",
    re.IGNORECASE,
)
_ANSWER_LEAD = re.compile(
    r"^(?:(?:it|that|this)(?:'s| is| would be| should be)|i(?:'d| would) (?:say|like|prefer|love)|i "
    r"think|make (?:it|that)|let'?s (?:say|do|make it)"
    r"|my \w+(?: \w+)? (?:is|are)|the \w+(?: \w+)? (?:is|are)|i(?:'m| am)|just|maybe|for|to|from|in|at"
    r"|on|the one (?:called|named))\s+",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(?:because|since|due to|as i|the reason (?:is|being)(?: that)?|owing to|so "
    r"that)\s+(?P<reason>[^.!?\n]+)",
    re.IGNORECASE,
)
_SEARCH = re.compile(
    r"\b(?:search(?:ing)? for|look(?:ing)? (?:up|for)|find(?: me)?|(?:ask|asking|know|information|info"
    r"|question|details|hear|something|anything|more|tell me"
    r"|books?) (?:about|on)|recommend(?: me)?|show me)\s+(?P<query>[^.!?\n]+)",
    re.IGNORECASE,
)  # fmt: skip


def quoted_in(text: str) -> list[Candidate]:
    """What stands in quotation marks."""
    return [Candidate((match[1] or match[2]).strip(), *match.span()) for match in _QUOTED.finditer(text)]


def bare_answer(text: str) -> str:
    """A short answer without what surrounds it: "It's Anna, please." is "Anna"."""
    answer = _POLITE.sub("", text.strip())
    answer = _ANSWER_LEAD.sub("", answer)
    answer = re.sub(r"[,.!]*\s*(?:please|thanks|thank you)[.! ]*$", "", answer, flags=re.IGNORECASE)
    return answer.strip(" .,!;:\"'")


def people_in(text: str, wanted: Wanted, answering: bool) -> list[Candidate]:
    """Names of people."""
    for cue in _PERSON_CUES:
        for match in cue.finditer(text):
            name = _NAME_ENDS.sub("", match["name"]).strip(" .,")
            if name and not _is_no_name(name) and not denied(text, match.start("name")):
                return [Candidate(_part_of_name(name, wanted), *match.span("name"))]
    answer = bare_answer(text) if answering and not dialogue.says_yes(text) else ""
    if (
        answer
        and len(answer.split()) <= 4
        and re.fullmatch(r"[^\W\d_][^\d?!]*", answer)
        and not dialogue.says_no(answer)
    ):
        return [Candidate(_part_of_name(answer, wanted), 0, len(text))]
    return []


def _is_no_name(name: str) -> bool:
    return name.split()[0].lower() in _NOT_NAMES or any(ch.isdigit() for ch in name)


def _part_of_name(name: str, wanted: Wanted) -> str:
    if "first" in wanted.tokens or "given" in wanted.tokens:
        return name.split()[0]
    if {"last", "family", "surname"} & set(wanted.tokens):
        return name.split()[-1]
    return name


def places_in(text: str, wanted: Wanted, answering: bool) -> list[Candidate]:
    """Names of places; for an origin those after "from", for a destination those after "to"."""
    tokens = set(wanted.tokens)
    if "address" in tokens:
        match = re.search(
            r"\b\d{1,5}[a-z]?,? (?:[A-Z][\w'.-]+ ?){1,4}(?:,[^.!?\n]{2,60})?|\b[A-Z][\w'.-]+(?:straße"
            r"|strasse|gasse| Street| Road| Lane| Avenue) \d+[^.!?\n]{0,40}",
            text,
        )
        if match:
            address = re.sub(r",? (?:please|thanks|and|for|by|at)\b.*$", "", match[0], flags=re.IGNORECASE)
            return [Candidate(address.strip(" ,"), *match.span())]
    elif tokens & {"origin", "from", "departure", "source"}:
        cues = r"from|leaving|departing"
    elif tokens & {"destination", "to", "arrival"}:
        cues = r"to|towards|into|for"
    else:
        cues = r"in|at|to|near|around|for|of|from|visit|visiting"
    if "address" not in tokens:
        for match in re.finditer(
            rf"\b(?:{cues}|{'|'.join(map(re.escape, wanted.tokens))})\s+(?:the )?(?P<name>{_NAME})", text
        ):
            if not _is_no_name(match["name"]) and not denied(text, match.start("name")):
                return [Candidate(match["name"].rstrip("."), *match.span("name"))]
        route = re.search(r"\bfrom (?P<origin>[a-z]{3,}) to (?P<destination>[a-z]{3,})\b", text)
        if route and tokens & {"origin", "from", "departure"}:
            return [Candidate(route["origin"], *route.span("origin"))]
        if route and tokens & {"destination", "to", "arrival"}:
            return [Candidate(route["destination"], *route.span("destination"))]
    answer = bare_answer(text) if answering and not dialogue.says_yes(text) else ""
    if answer and len(answer.split()) <= (12 if "address" in tokens else 4) and not dialogue.asks(text):
        return [Candidate(answer, 0, len(text))]
    return []


def things_in(text: str, wanted: Wanted, answering: bool) -> list[Candidate]:
    """Names of things: quoted, one of the description's examples, capitalised, or what is wished for."""
    if quoted := [found for found in quoted_in(text) if not denied(text, found.start)]:
        return quoted
    lowered = text.lower()
    for example in wanted.examples:
        at = lowered.find(example.lower())
        if at >= 0 and not denied(text, at):
            return [Candidate(example, at, at + len(example))]
    if "author" in wanted.tokens or "artist" in wanted.tokens:
        return [Candidate(m["name"], *m.span("name")) for m in re.finditer(rf"\bby (?P<name>{_NAME})", text)][
            :1
        ]
    capitalised = list(_capitalised(text))
    if capitalised and wanted.required and not wanted.tokens[-1].endswith("type"):
        return capitalised[:1]
    named = _phrase_for(text, wanted)
    if named is not None:
        return [named]
    answer = bare_answer(text) if answering and not dialogue.says_yes(text) else ""
    if answer and len(answer.split()) <= 5 and not dialogue.asks(text) and not dialogue.says_no(text):
        return [Candidate(answer, 0, len(text))]
    return []


def _capitalised(text: str) -> Iterator[Candidate]:
    dates = [(span.start, span.end) for span in dates_in(text)]
    for match in re.finditer(_NAME, text):
        start, name = match.start(), match[0]
        while " " in name and name.split()[0].lower() in _NOT_NAMES:
            start += name.index(" ") + 1
            name = name[name.index(" ") + 1 :]
        begins_sentence = not re.search(r"(?:[\w,;:)]|\b(?:Dr|Mr|Mrs|Ms|Prof|St)\.)\s*$", text[:start])
        words = name.split()
        if begins_sentence and (len(words) < 2 or words[0].lower() in _NOT_NAMES):
            continue
        if (
            _is_no_name(name)
            or name.isupper()
            or denied(text, start)
            or any(a <= start < b for a, b in dates)
        ):
            continue
        if re.search(r"\b(?:by|name is|I'm|I am|this is|for|from|in|under)\s+$", text[:start]):
            continue  # a person's or a place's name
        yield Candidate(name.rstrip("."), start, match.end())


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


def text_in(text: str, wanted: Wanted, answering: bool) -> list[Candidate]:
    """The words of a request, as far as the argument wants them."""
    tokens = set(wanted.tokens)
    if answering and not dialogue.asks(text):
        answer = _POLITE.sub("", text.strip()).strip()
        return [Candidate(answer, 0, len(text))] if answer else []
    if tokens & {"reason", "cause", "purpose", "explanation"}:
        match = _REASON.search(text)
        return [Candidate(match["reason"].strip(), *match.span("reason"))] if match else []
    if tokens & _SEARCHES:
        if quoted := quoted_in(text):
            return quoted[:1]
        match = _SEARCH.search(text)
        if match:
            query = _SEARCH_LEAD.sub("", match["query"].strip())
            return [Candidate(query, *match.span("query"))]
    if tokens & _REMARKS:
        match = re.search(
            r"\b(?:note|comment|feedback|remark|instruction|request)s?(?: is| are|:|that)\s*([^\n]+)",
            text,
            re.IGNORECASE,
        )
        return [Candidate(match[1].strip(), *match.span(1))] if match else []
    said = [
        sentence
        for sentence in dialogue.sentences(text)
        if content(sentence) and not dialogue.is_small_talk(sentence)
    ]
    body = _POLITE.sub("", " ".join(said))[:500].strip()
    return [Candidate(body, 0, len(text))] if body else []
