"""Free texts in what customers write: what is to be said, noted or looked for, without the order that it comes in."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.naming import POLITE, quoted_in
from arq_graph.models.offline.shapes import Candidate
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.withheld import MASK, is_no_value, withholds
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
    r"(?P<order>[^.!?:\n]{1,80}?)(?::\s+|\s(?:that says|saying|reading|to say)(?: that)?\s+|\sthat\s+)"
    r"(?P<said>[^\n]+)$",
    re.IGNORECASE,
)
_TELLS = listed("tell let inform remind notify write message note record report mention say put")
_ASKED_TO = re.compile(r"(?:please )?(?:can|could|would|will) you\b", re.IGNORECASE)
_POLITE_END = re.compile(
    r"[,.!? ]{0,9}(?:\b(?:please|thanks|thank you|would you|will you|ok(?:ay)?)\b[,.!? ]{0,9}){0,4}$",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:(?:please|can you|could you|would you|i (?:want|need|wish|have) to|i(?:'d| would) like to)\s+)*"
    r"(?P<verb>[a-z]+)\s+",
    re.IGNORECASE,
)

_ORDER_LEAD = re.compile(
    r"(?:also|and|then)?,? ?(?:please|can|could|would|will|i (?:want|need|would|'d))\b", re.IGNORECASE
)


def text_in(text: str, wanted: Wanted, answering: bool, others: Sequence[Wanted] = ()) -> list[Candidate]:
    """The words of a request, as far as the argument wants them."""
    tokens = set(wanted.tokens)
    label = re.search(
        rf"(?:^|[{MASK}.,;:!?]\s*|\band )(?:the |my )?{re.escape(wanted.label)} (?:is|should be|would be|reads):?"
        rf"(?: that)? (?P<said>[^{MASK}\n]+)",
        text,
        re.IGNORECASE,
    )
    if (label or answering) and withholds(text, wanted):
        return []
    if label and not dialogue.asks(text) and not is_no_value(label["said"], wanted, others):
        return [Candidate(label["said"].strip(" .\"'“”"), *label.span("said"))]
    if answering and not dialogue.asks(text):
        answer = POLITE.sub("", text.strip(f" {MASK}")).strip()
        return [Candidate(answer, 0, len(text))] if answer and not is_no_value(answer, wanted, others) else []
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
        if match:
            return [Candidate(match[1].strip(), *match.span(1))]
        if not any(_only_orders(each, wanted, others) for each in dialogue.sentences(text) if content(each)):
            return []
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
    known = wanted.deeds | wanted.objects | frozenset(map(stem, _TELLS))
    for sentence in dialogue.sentences(text):
        plain = POLITE.sub("", sentence)
        if dialogue.asks(plain.rstrip("?")) and not _ASKED_TO.match(plain):
            continue
        quoted = quoted_in(sentence)
        rest = text[text.find(plain) :]
        reported = None if quoted else _REPORTED.match(rest)
        order = reported["order"] if reported else sentence[: quoted[0].start] if quoted else ""
        told = {stem(word) for word in re.findall(r"[a-z]+", order.lower())}
        if not any(likeness(one, other) >= 0.9 for one in told for other in known):
            continue
        said = str(quoted[0].value) if quoted else _as_far_as_told(reported["said"]) if reported else ""
        if said:
            return Candidate(said, text.find(said), text.find(said) + len(said))
    return None


def _as_far_as_told(said: str) -> str:
    """The text up to where something else is asked for, without the "please" behind it."""
    first, *rest = dialogue.sentences(said) or (said,)
    for sentence in rest:
        if dialogue.asks(sentence) or dialogue.is_small_talk(sentence) or _ORDER_LEAD.match(sentence):
            break
        first = said[: said.find(sentence, len(first)) + len(sentence)]
    return _POLITE_END.sub("", first).strip(" .\"'“”")


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
