"""Taking a guideline's action apart: its segments, what each does, and whether it shapes every reply."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, cast

from arq_graph.models.offline.wording import PERSON

Deed = Literal[
    "say", "ask", "offer", "recommend", "tell", "apologise", "thank", "greet", "wish", "sympathise", "refer", "refuse",
    "hand over", "forbid", "style", "use tool", "other",
]  # fmt: skip

_QUOTED = re.compile(r"[\"“”«]([^\"“”»]+)[\"“”»]|(?<!\w)['‘]((?:[^'’]|(?<=\w)['’](?=\w))+)['’](?!\w)")
_LEAD = re.compile(
    r"^(?:(?:please|then|also|first|next|finally|and|but|or|always|kindly|politely|briefly|warmly"
    r"|immediately|gently|clearly|sincerely|simply"
    r"|if possible|in that case|afterwards|before that|after that|make sure (?:to|that you|you)|be "
    r"sure to|remember to|you (?:should|must|have to|need to|can|may)"
    r"|the agent (?:should|must)|try to|only|just|again)\b,?\s+)+",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"^(?:(?:please|then|also|and|but|always)\b,?\s+)*(?:never|do not|don'?t|avoid|refrain|under no "
    r"circumstances|in no case|must not|mustn't|should not"
    r"|shouldn't|may not|cannot|stop|no\b|(?:you|the agent) (?:must|should|may|can) (?:not|never)|not\b)",
    re.IGNORECASE,
)
_STYLES = re.compile(
    r"^(?:be|stay|remain|keep|act|sound|use|write|answer|reply|respond|speak|talk|address|maintain"
    r"|adopt|phrase|format|communicate|call)\b"
    r"(?=.*\b(?:polite|friendly|formal|informal|brief|short|concise|professional|tone|style|language"
    r"|english|spanish|french|german|italian|emojis?"
    r"|simple|plain|calm|empathetic|patient|warm|kind|respectful|humou?r|casual|cheerful|sentences?"
    r"|words|markdown|bullet|lists?|by (?:their|his|her) (?:first |last )?name"
    r"|sir|madam|honest|positive|neutral|helpful|jargon|courteous|discreet|upbeat|reassuring|clear"
    r"|everyday|same language|rhyme|capitals?)\b)"
    r"|^(?:keep|stay|remain|maintain)\b",
    re.IGNORECASE,
)
_ALWAYS = re.compile(
    r"\b(?:always|every (?:reply|message|time|answer|response|turn)|each (?:reply|message|answer"
    r"|response|turn|time)|(?:in|throughout|during) (?:all|every|the (?:whole|entire)"
    r"|the conversation)|throughout|at all times|from now on|as long as|for the rest of|until|whenever"
    r"|all (?:replies|messages|answers))\b",
    re.IGNORECASE,
)
_REPORTS = re.compile(
    r"\b(?:tell|inform|explain|say|mention|state|remind|let (?:them|the \w+|him|her) know|warn|assure"
    r"|note|clarify|point out)\b",
    re.IGNORECASE,
)
_SPLIT = re.compile(
    r"[.;](?:\s+|$)|,?\s+(?:and then|then)\s+|,\s+(?:and|but)\s+(?=[a-z]+\b)|\s+but\s+|,\s+(?=(?!unless"
    r"|if|when|except|because|since|so|which|as\b)(?:then\s+)?[a-z]+ (?:the|a|an|for|whether|if|them"
    r"|their|that|how|when|where|what|which|who|why|it|about)\b)"
    r"|\s+and\s+(?=(?:please\s+|also\s+|then\s+|politely\s+)*(?:ask|offer|tell|say|apologi[sz]e|thank"
    r"|explain|inform|give|suggest|recommend|mention|do not|don't|never|avoid"
    r"|wish|greet|confirm|look|check|provide|share|remind|invite|refer|direct|transfer|escalate|send"
    r"|book|cancel|create|update|show|list|keep|use|request|let|point|describe"
    r"|express|welcome|state|warn|assure|propose|find|search|report|answer|verify|point|connect|add"
    r"|reserve|place|schedule|renew|return|open|call|hand out|promise|grant|throw in"
    r"|make (?:them|the \w+) an offer)\b)",
    re.IGNORECASE,
)
_DEEDS = tuple(
    (cast(Deed, deed), re.compile(rf"(?:{pattern})", re.IGNORECASE))
    for deed, pattern in (
        (
            "ask",
            r"ask\b|collect\b|gather\b|obtain\b|request\b|find out\b|enquire\b|inquire\b|clarify (?:what|which"
            r"|whether|if|when|how|where)|check with (?:the|them)|confirm (?:with|whether|that (?:they|the "
            r"customer))"
            r"|double-check with|invite (?:them|the \w+) to (?:tell|give|share|describe|provide)|have "
            r"(?:them|the \w+) (?:confirm|give|provide)|verify\b.*\bby asking",
        ),
        (
            "apologise",
            r"apologi[sz]e\b|say (?:you are |that you are )?sorry|express (?:regret|apolog)|offer (?:an|your"
            r"|our) apolog(?:y|ies)",
        ),
        (
            "sympathise",
            r"(?:express|show|offer) (?:some )?(?:empathy|sympathy|understanding|compassion|concern)"
            r"|empathi[sz]e\b|sympathi[sz]e\b|acknowledge\b|reassure\b|calm\b",
        ),
        ("thank", r"thank\b|express (?:gratitude|thanks|appreciation)"),
        ("greet", r"greet\b|welcome\b|say (?:hello|hi|good morning)\b|introduce yourself"),
        ("wish", r"wish\b|say (?:good ?bye|farewell)|bid\b|congratulate\b"),
        ("recommend", r"recommend\b|suggest\b|propose\b|advise\b|encourage\b|urge\b|upsell\b|invite\b"),
        (
            "offer",
            rf"offer\b|promise\b|hand out\b|grant\b|throw in\b|(?:make|give) (?:them |him |her |{PERSON} )?an offer\b"
            rf"|give (?:them|him|her|{PERSON}) (?=(?:an? )?(?:[\w%]+ )?(?:voucher|coupon|discount|refund|credit|gift"
            r"|upgrade|compensation)\b)",
        ),
        (
            "hand over",
            rf"(?:transfer|connect|forward) (?:it|them|him|her|this|{PERSON})\b|escalate\b|hand (?:it |them "
            r"|the \w+ )?over|put (?:them|the \w+) through|pass (?:them|the \w+|it) on",
        ),
        ("refuse", r"refuse\b|decline\b|turn (?:it|them|this|the \w+) down"),
        ("refer", r"refer\b|direct\b|point (?:them|the \w+) to|send (?:them|the \w+) to"),
        (
            "tell",
            r"tell\b|add that\b|make sure\b.*\bknows?\b|inform\b|explain\b|say\b|mention\b|state\b|remind\b|let (?:them"
            r"|the \w+|him|her) know|notify\b|warn\b|assure\b|note\b|point out|give\b|provide\b|share\b"
            r"|show\b|list\b|describe\b|present\b|report\b|answer\b|reply\b|respond\b|confirm\b"
            r"|summari[sz]e\b|read out|quote\b|name\b|advise that|clarify\b",
        ),
        (
            "use tool",
            r"look\b|check\b|search\b|find\b|fetch\b|get\b|use\b|call\b|book\b|cancel\b|create\b|update\b"
            r"|register\b|reserve\b|send\b|place\b|make\b|retrieve\b|run\b|open\b|schedule\b"
            r"|calculate\b|reset\b|issue\b|process\b|add\b|renew\b|block\b|submit\b|log\b|record\b"
            r"|change\b|verify\b|query\b|order\b|return\b|refund\b|file\b|arrange\b|initiate\b"
            r"|start\b|transfer\b|connect\b|forward\b|lock\b|freeze\b|extend\b|pay\b|help\b"
            r"|assist\b",
        ),
    )
)
_CONDITION = re.compile(
    r"^(?P<word>if|when|unless|in case)\s+(?P<condition>[^,]+),\s*(?P<rest>.+)$", re.IGNORECASE | re.DOTALL
)
_ASKS_WHETHER = re.compile(r"\b(?:ask|know|find out|check|confirm|clarify|see)\b", re.IGNORECASE)
_CONDITION_LAST = re.compile(
    r"^(?P<rest>.+?),?\s+(?P<word>if|unless|in case)\s+(?P<condition>(?:the|they|it|there|no|he|she"
    r"|this|that|any)\b.+)$",
    re.IGNORECASE | re.DOTALL,
)
TO_WHOM = re.compile(
    rf"^(?:(?:with|to|from) )?(?:{PERSON}|them|him|her|the customers|customers)\b(?!['’])[, ]*", re.IGNORECASE
)
_VERB = re.compile(
    r"^(?:let (?:them|him|her|the \w+) know|(?:make|give) (?:(?:them|him|her|the \w+) )?an offer(?: of| for)?|hand out"
    r"|throw in|make sure (?:that )?(?:the \w+|they) knows?|point out|find "
    r"out|read out|check with (?:the \w+|them)|double-check with"
    r" (?:the \w+|them)|have (?:the \w+|them) (?:confirm|give|provide)|express|by asking"
    r"|[a-z]+(?:-[a-z]+)?)\b[, ]*",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"^(?!(?:how|where|when|which|what|who|why|whether|if|to|about|of|for)\b"
    r"|(?:the|an?|their|its) (?:\w+ ){1,2}(?:when|where|which|who|(?:on|at|by|in) which)\b).*\b(?:is|are|was|were|has"
    r"|have|can|cannot|can't|will|won't|must|should|may"
    r"|opens?|closes?|costs?|takes?|starts?|ends?|do not|does not|don't|doesn't|applies|includes?"
    r"|requires?|needs?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Segment:
    """One part of an action.

    Args:
        text: Its words.
        deed: What it does.
        quote: What it says word for word, if it quotes.
        rest: Its words without the quoted ones and without lead-ins such as "then".
        condition: When it is to be done, if it says so ("if they are unhappy, …").
        unless: Whether it is to be done unless that condition holds.
        continuous: Whether it shapes every reply.
    """

    text: str
    deed: Deed
    quote: str = ""
    rest: str = ""
    condition: str = ""
    unless: bool = False
    continuous: bool = False

    @property
    def verb(self) -> str:
        """Its first word."""
        return self.rest.split()[0].lower() if self.rest else ""

    @cached_property
    def tail(self) -> str:
        """Its words behind the verb and the person addressed."""
        return TO_WHOM.sub("", _VERB.sub("", self.rest, count=1), count=1).strip()

    @property
    def is_statement(self) -> bool:
        """Whether it says all that is to be told ("tell them that …"), rather than naming it ("tell the price")."""
        if self.deed != "tell":
            return bool(self.quote)
        lowered = self.tail.lower()
        asks_for = lowered.startswith("to ") and self.verb in ("tell", "remind", "warn")
        return lowered.startswith("that ") or asks_for or _FINITE.match(self.tail) is not None


@lru_cache(maxsize=2_048)
def segments(action: str) -> tuple[Segment, ...]:
    """The parts of an action, in order."""
    quotes: list[str] = []

    def keep(match: re.Match[str]) -> str:
        quotes.append((match[1] or match[2]).strip())
        return f"\x02{len(quotes) - 1}\x03"

    masked = _QUOTED.sub(keep, action.strip()[:2_000])
    found = []
    for part in _parts(masked):
        numbers = [int(number) for number in re.findall(r"\x02(\d+)\x03", part)]
        text = re.sub(r"\x02(\d+)\x03", lambda match: f'"{quotes[int(match[1])]}"', part).strip(" ,")
        if text:
            found.append(
                _segment(text, re.sub(r"\x02\d+\x03", " ", part), [quotes[number] for number in numbers])
            )
    return tuple(found)


def _parts(text: str) -> list[str]:
    """Split at the joints, but not inside what the customer is to be told ("tell them that we do not … and …")."""
    if conditional := _CONDITION.match(text):
        first, *others = _parts(conditional["rest"])
        return [text[: conditional.start("rest")] + first, *others]
    parts = [part for part in _SPLIT.split(text) if part and part.strip()]
    joined: list[str] = []
    for part in parts:
        told = joined and re.search(r"\bthat\b", joined[-1]) and _REPORTS.search(joined[-1])
        starts_anew = re.match(
            r"\s*(?:then |also |please )?(?:ask|offer|apologi|thank|suggest|recommend|wish|tell|say)\b",
            part,
            re.IGNORECASE,
        )
        at = text.find(part, text.find(joined[-1]) + len(joined[-1])) if joined else 0
        turns = re.search(r"\bbut\s*$|,\s*and\s*$", text[:at]) and re.match(
            r"\s*(?:never|do not|don't|avoid)\b", part, re.IGNORECASE
        )
        if told and not starts_anew and not turns:
            joined[-1] = text[text.find(joined[-1]) : at + len(part)]
        else:
            joined.append(part)
    return joined or [text]


def _segment(text: str, masked: str, quotes: list[str]) -> Segment:
    condition, word = "", ""
    plain = masked.strip(" ,")
    if (match := _CONDITION.match(plain)) or (
        (match := _CONDITION_LAST.match(plain)) and not _ASKS_WHETHER.search(match["rest"])
    ):
        word, condition, plain = match["word"], match["condition"], match["rest"]
    forbids = _FORBIDS.match(plain) is not None
    rest = _LEAD.sub("", plain.strip()).strip()
    styled = _STYLES.match(rest) is not None or plain.strip().lower().startswith("only ")
    continuous = (
        forbids
        or styled
        or (
            _ALWAYS.search(plain) is not None
            and not re.search(r"\b(?:that|whether|if)\b.*\b(?:always|every|until)\b", plain)
        )
    )
    if forbids:
        deed: Deed = "forbid"
    elif quotes:
        deed = "ask" if re.match(r"ask\b", rest, re.IGNORECASE) and not quotes[0].strip() else "say"
    elif styled:
        deed = "style"
    else:
        deed = next((deed for deed, pattern in _DEEDS if pattern.match(rest)), "other")
    quote = quotes[0] if quotes else ""
    return Segment(text, deed, quote, rest, condition, word.lower() == "unless", continuous)


def is_continuous(action: str) -> bool:
    """Whether an action shapes every reply while its condition holds: one continuous part is enough."""
    return any(segment.continuous for segment in segments(action))
