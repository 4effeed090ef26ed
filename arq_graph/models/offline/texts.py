"""Free texts in what customers write: what is to be said, noted or looked for, without the order that it comes in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.naming import POLITE, quoted_in
from arq_graph.models.offline.shapes import Candidate
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.words import content, likeness, stem

_SEARCHES = listed("query search keyword keywords topic subject term terms phrase")
_REMARKS = listed("note notes comment comments feedback remark remarks instructions requests request")
_SEARCH_LEAD = re.compile(r"^(?:(?:\w+ )?(?:about|on|regarding) |an? |the |any |some )", re.IGNORECASE)
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
_REPORTED = re.compile(
    r"^(?P<order>[^.!?:\n]{1,80}?)(?::\s+|\s(?:that says|saying|reading|to say)(?: that)?\s+|\sthat\s+)"
    r"(?P<said>[^\n]+)$",
    re.IGNORECASE,
)
_TELLS = listed("tell let inform remind notify write message note record report mention say")
_ORDER = re.compile(
    r"(?:(?:please|can you|could you|would you|i (?:want|need|wish|have) to|i(?:'d| would) like to)\s+)*"
    r"(?P<verb>[a-z]+)\s+",
    re.IGNORECASE,
)


def text_in(text: str, wanted: Wanted, answering: bool, others: Sequence[Wanted] = ()) -> list[Candidate]:
    """The words of a request, as far as the argument wants them."""
    tokens = set(wanted.tokens)
    if answering and not dialogue.asks(text):
        answer = POLITE.sub("", text.strip()).strip()
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
    if told := _reported(text, wanted):
        return [told]
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
        if content(sentence)
        and not dialogue.is_small_talk(sentence)
        and not _only_orders(sentence, wanted, others)
    ]
    body = POLITE.sub("", " ".join(said))[:500].strip()
    ordered = _ORDER.match(body)
    if ordered and stem(ordered["verb"].lower()) in wanted.deeds:
        body = body[ordered.end() :].strip()
    return [Candidate(body, 0, len(text))] if body else []


def _reported(text: str, wanted: Wanted) -> Candidate | None:
    """What an order to write it down says: "add a note that the bell is broken"."""
    text = text.strip()
    reported = _REPORTED.match(text)
    if reported is None or dialogue.asks(reported["order"]):
        return None
    known = wanted.deeds | wanted.objects | frozenset(map(stem, _TELLS))
    told = {stem(word) for word in re.findall(r"[a-z]+", reported["order"].lower())}
    said = reported["said"].strip(" .\"'“”")
    if not said or not any(likeness(one, other) >= 0.9 for one in told for other in known):
        return None
    return Candidate(said, reported.start("said"), reported.end("said"))


def _only_orders(sentence: str, wanted: Wanted, others: Sequence[Wanted]) -> bool:
    """Whether a sentence asks for the deed and says nothing that could be the text itself: "I want to leave a note"."""
    if not wanted.deeds:
        return False
    names = wanted.deeds | wanted.objects | frozenset(name for other in others for name in other.objects)
    first, *rest = sentence.split()
    plain = " ".join(
        (first, *(word for word in rest if not word[0].isupper() and not any(map(str.isdigit, word))))
    )
    return all(any(likeness(word.stem, name) >= 0.9 for name in names) for word in content(plain))
