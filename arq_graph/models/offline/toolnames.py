"""Tools' names as plain words: what a tool does, to what, and whether it only looks something up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.wording import participle, to_customer
from arq_graph.models.offline.words import in_words, stem

_READING = frozenset(
    map(
        stem,
        listed(
            "get find search list look lookup check fetch show read query retrieve view calculate"
            " estimate describe track count compare validate verify is has load see tell convert"
            " translate quote suggest recommend browse explain where when who what which how"
        ),
    )
)
_LIGHT = frozenset(
    map(
        stem,
        listed(
            "issue do make create perform process start submit place request open run trigger initiate"
            " add register file log raise new set apply send record handle"
        ),
    )
)
_SAME_DEED = tuple(
    frozenset(map(stem, deeds))
    for deeds in (
        ("cancel", "delete", "remove", "void", "drop"),
        ("update", "change", "edit", "modify", "move", "reschedule", "switch", "correct"),
        ("book", "reserve", "schedule", "make", "arrange"),
        ("transfer", "send", "pay"),
        ("escalate", "transfer", "handover", "forward", "connect", "speak"),
        ("block", "freeze", "lock", "disable", "deactivate", "lost", "stolen"),
        ("renew", "extend", "prolong"),
        ("reset", "forget", "unlock", "recover"),
        ("order", "buy", "purchase", "place"),
        ("open", "create", "raise", "file", "log", "report"),
        ("return", "refund", "exchange"),
    )
)
_DEEDS = frozenset().union(*_SAME_DEED)
_FACTS = frozenset(
    map(
        stem,
        listed(
            "status details info information hours balance list history availability price prices menu "
            "weather rate rates"
            " time schedule overview summary stock lookup search forecast report statement location locations"
            " contacts directory address addresses"
        ),
    )
)
_QUALITIES = frozenset(map(stem, listed("free available next current latest nearest upcoming")))
"""What begins the name of things to be found, as in `free_rooms`, rather than of a deed."""
_ONLY_VERBS = listed(
    "cancel delete remove modify edit reschedule reserve buy send pay renew extend prolong disable deactivate unlock"
    " recover create forget close erase revoke suspend terminate"
)
"""What is never the thing that something is done to."""
_NOUN = re.compile(r"(?<!ques)(?<!men)(?<!au)(?<!posi)(?<=\w\w\w)(?:tion|ship|ment|ness)$")
_NO_ORDER = re.compile(r"(?:ing|ed|lost|stolen)$")
_COMPOUND = re.compile(r"(?:up|out|in|off|over|back)$")
_NO_ORDER_LEADS = listed(
    "the a an what when where which who whose how whether if all every your their this that"
)
_ORDERS = (
    _READING | _LIGHT | _DEEDS | frozenset(map(stem, (*_ONLY_VERBS, "have", "let", "give", "put")))
) - frozenset(map(stem, (*_NO_ORDER_LEADS, "is", "has", "lost", "stolen")))
"""What begins a description that says a deed."""
_PARTICLES = frozenset(("over", "up", "off", "out", "in", "back", "down", "on"))
_PREPOSITIONS = frozenset(("to", "for", "from", "with", "by", "of"))


def name_of(line: Line) -> ToolName:
    """The name of the tool that a result is of; whether it only reads is told by the result, too."""
    return ToolName(line.tool, lists=isinstance(line.result, list))


@dataclass(frozen=True)
class ToolName:
    """A tool's name, taken apart.

    Args:
        name: The name: `cancel_order`.
        description: What its designer says about it; empty where that is not known.
        lists: Whether its result is a list, as of what only looks something up.
    """

    name: str
    description: str = ""
    lists: bool = False

    @cached_property
    def _tokens(self) -> tuple[str, ...]:
        """The words of its name, the verb first: `order_cancel` is "cancel order"."""
        tokens = tuple(in_words(self.name).split())
        at = self._verb_at(tokens)
        return (*tokens[at:], *tokens[:at])

    def _verb_at(self, tokens: tuple[str, ...]) -> int:
        """Where the verb stands: at the end where the description begins with it, or the first word is a noun."""
        if len(tokens) < 2:
            return 0
        first, last = stem(tokens[0]), stem(tokens[-1])
        told = re.match(r"\W*(\w+)", self.description)
        begins = stem(told[1].lower()) if told else ""
        if (
            first in _READING
            or begins == first
            or (last in _FACTS and (begins != last or last not in _ORDERS))
        ):
            return 0
        if first in _LIGHT:  # "file_delete", but not "issue_refund"
            return len(tokens) - 1 if tokens[-1] in _ONLY_VERBS and begins == last else 0
        is_noun = _NOUN.search(tokens[0]) is not None
        is_last = tokens[-1] in _ONLY_VERBS or begins == last or (is_noun and last in _DEEDS)
        return len(tokens) - 1 if is_last or (is_noun and begins and begins not in _READING) else 0

    @cached_property
    def verb(self) -> str:
        """What it does, with its particle: "cancel", "hand over". The whole name where it has one word."""
        if len(self._tokens) > 1 and self._tokens[1] in _PARTICLES:
            return " ".join(self._tokens[:2])
        return self._tokens[0] if self._tokens else ""

    @cached_property
    def object(self) -> str:
        """What it does that to: "order"; empty where its name has one word."""
        return " ".join(self._tokens[len(self.verb.split()) :])

    @cached_property
    def _first(self) -> str:
        return stem(self._tokens[0]) if self._tokens else ""

    @property
    def is_light(self) -> bool:
        """Whether its verb says little by itself: "create", "issue", "submit"."""
        return self._first in _LIGHT

    @cached_property
    def deeds(self) -> frozenset[str]:
        """The stems of the verbs that may mean what it does."""
        return frozenset((self._first,)).union(*(group for group in _SAME_DEED if self._first in group))

    @property
    def reads(self) -> bool:
        """Whether its verb is one of looking up."""
        return self._first in _READING

    @cached_property
    def only_reads(self) -> bool:
        """Whether it looks something up rather than changes something, as far as the words tell."""
        if self.reads or self._first in _QUALITIES:
            return True
        if not self._tokens:
            return False
        if not _NO_ORDER.search(self._tokens[0]) and (self._first in _LIGHT or self._first in _DEEDS):
            return False
        if (self._noun and stem(self._noun.split()[-1]) in _FACTS) or self.lists:
            return True
        if told := re.match(r"\W*(\w+)", self.description):
            return stem(told[1].lower()) in _READING
        return len(self._tokens) == 1

    @property
    def _noun(self) -> str:
        """Its whole name without the preposition at its end: "price" of `price_of`."""
        tokens = list(self._tokens)
        while len(tokens) > 1 and tokens[-1] in _PREPOSITIONS:
            tokens.pop()
        return " ".join(tokens)

    @cached_property
    def _has_verb(self) -> bool:
        """Whether its name says a deed, rather than names a thing: `weather`, `price_of`, `free_rooms`."""
        if not self._tokens or (self._first in _FACTS and self._first not in _ORDERS):
            return False
        told = re.match(r"\W*(\w+)", self.description)
        begins = told[1].lower() if told else ""
        names_thing = begins in _NO_ORDER_LEADS
        is_order = self._first in _ORDERS and not _NO_ORDER.search(self._tokens[0])
        if begins and stem(begins) == self._first:
            return True
        if len(self._tokens) == 1:
            is_noun = names_thing or (_COMPOUND.search(self._tokens[0]) and stem(begins) in _ORDERS)
            return self._first in _READING or self._tokens[0] in _ONLY_VERBS or not is_noun
        is_fact = stem(self._noun.split()[-1]) in _FACTS or self._first in _QUALITIES
        return is_order or not (names_thing or is_fact or self._noun != " ".join(self._tokens))

    @property
    def _thing(self) -> str:
        """Its name in the order in which it is written."""
        return in_words(self.name) if self._noun == " ".join(self._tokens) else self._noun

    @property
    def as_order(self) -> str:
        """What it does, as an order: "cancel the order", "hand over to a colleague", "look up the weather"."""
        if self._tokens and not self._has_verb:
            return f"look up the {self._thing}" if self.only_reads else self.as_put
        return " ".join(part for part in (self.verb, self._with_article) if part)

    @property
    def as_put(self) -> str:
        """What it does, as an order to agree to, in no other words than its own."""
        if not self._tokens or self._has_verb:
            return self.as_order
        return self._told or f"go ahead with this: {self._thing}"

    @property
    def as_described(self) -> str:
        """What it does, as an order, in the first words of its description; empty where those are no order."""
        told = re.match(r"\W*([A-Za-z]+)\b", self.description)
        return self._told if told and told[1].lower() == self.verb.split()[0] else ""

    @property
    def _told(self) -> str:
        """The first words of its description, said to the customer, where they are an order."""
        told = re.match(r"\W*([A-Za-z]+)\b[^.!?\n]*", self.description)
        is_order = told and (stem(told[1].lower()) in _ORDERS or told[1].lower() == self.verb.split()[0])
        return to_customer(told[0][:1].lower() + told[0][1:].strip()) if told and is_order else ""

    @property
    def as_done(self) -> str:
        """What it did: "cancelled the order", "handed this over to a colleague", "marked this as resolved"."""
        if self._tokens and not self._has_verb:
            return f"looked up the {self._thing}" if self.only_reads else f"taken care of this: {self._thing}"
        verb, *particle = self.verb.split()
        did = participle(verb)
        if not self.object:
            return " ".join([did, *particle, "that"] if particle else [did, "it"])
        if self.object.split()[0] in _PREPOSITIONS:
            return " ".join([did, "this", *particle, self._with_article])
        if re.fullmatch(r"\w+ed", self.object):
            return f"{did} this as {self.object}"
        return " ".join([did, *particle, self._with_article])

    @property
    def _with_article(self) -> str:
        tokens = self.object.split()
        if not tokens or tokens[0] in ("the", "a", "an", "your", "my", "all"):
            return self.object
        if tokens[0] in _PREPOSITIONS:
            return " ".join([tokens[0], "a", *tokens[1:]]) if len(tokens) > 1 else self.object
        return f"the {self.object}"
