"""What an argument wants, read from its name, its type and its description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from arq_graph.models.offline.dates import kind_of_moment
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.words import in_words, stem

ValueKind = Literal[
    "boolean", "choice", "identifier", "email", "phone", "url", "date", "time", "moment", "money", "number", "person",
    "place", "text", "thing", "list", "object",
]  # fmt: skip

_NAMES: tuple[tuple[ValueKind, frozenset[str]], ...] = (
    ("email", listed("email mail")),
    ("phone", listed("phone mobile telephone tel cell")),
    ("url", listed("url link website")),
    ("moment", listed("datetime timestamp moment")),
    ("date", listed("date day night evening weekday birthday dob deadline checkin checkout arrival departure when")),
    ("time", listed("time hour")),
    ("text", listed(
    "query question text message description reason note notes comment comments issue problem symptom "
    "symptoms details complaint"
        " subject topic summary keyword keywords search content body feedback remark remarks request "
        "requests instructions"
        " requirements explanation cause purpose term terms phrase")),
    ("place", listed(
    "city location destination origin place address country airport town area street region branch "
    "station venue")),
)  # fmt: skip
_FORMATS: dict[str, ValueKind] = {
    "date": "date", "date-time": "moment", "time": "time", "email": "email", "uri": "url", "uuid": "identifier",
}  # fmt: skip
_IDENTIFIERS = listed(
    "id ids number no num nr code reference ref sku isbn barcode uuid pnr plate iban vin serial "
    "identifier zip postcode"
)
_PEOPLE = listed(
    "guest patient passenger recipient attendee holder contact customer client member user person "
    "traveler traveller rider visitor pupil tenant resident companion participant friend employee owner"
    " applicant first last full family given surname your billing shipping"
)
_MONEY = listed("amount price budget cost fee deposit salary total payment sum spend")
_EXAMPLE = re.compile(
    r"(?:\blike|\bsuch as|\be\.?g\.?,?|\bfor (?:example|instance),?|\bexamples?:|\bformat(?: is)?:?"
    r"|\blooks like|\bas in)\s+"
    r"[`'\"“‘(]?(?P<example>[^`'\"”’;)\n]+)",
    re.IGNORECASE,
)
_OPTIONS = re.compile(
    r"(?:\bone of|\beither|\boptions?(?: are)?|\ballowed(?: values)?|\bvalues?(?: are)?|\bmust be"
    r"|\bcan be)[: ]+(?P<listed>[^.;)\n]+)",
    re.IGNORECASE,
)
_DAY_FORMAT = re.compile(r"\bYY(?:YY)?[-/.]MM|\bMM[-/.]DD\b|\bDD[-/.]MM\b")
_CLOCK_FORMAT = re.compile(r"HH:MM", re.IGNORECASE)
_NAME_OF = re.compile(r"(?:the )?(?:name|title) of\b", re.IGNORECASE)
_DATED = re.compile(
    r"(?:the |a )?(?:[a-z]+ )?(?:(?P<date>date|day|night|evening)|time|hour)"
    r"(?:[.,;:(]|\s*$|\s(?:of|on|when|at|for|to|from|by|as|like)\b)",
    re.IGNORECASE,
)
_DIGITS = re.compile(
    r"\b(\d{1,2}|two|three|four|five|six|seven|eight|nine|ten|twelve)[- ]digits?\b", re.IGNORECASE
)


@dataclass(frozen=True)
class Wanted:
    """An argument to find a value for.

    Args:
        name: The name in code.
        type: JSON schema's type.
        description: What its designer says about it.
        options: The values it may have, if they are listed.
        items: For a list: what each item is.
        fields: For an object: its members.
        required: Whether it has to be given.
        format: JSON schema's format, such as `date`.
        as_json: Whether the value is passed as a string that holds JSON.
        deeds: Stems of the verbs that may mean what its tool does.
        is_acted_on: Whether it is what the tool does that to: the instrument of `tune`.
    """

    name: str
    type: str = "string"
    description: str = ""
    options: tuple[Any, ...] = ()
    items: Wanted | None = None
    fields: tuple[Wanted, ...] = ()
    required: bool = True
    format: str = ""
    as_json: bool = False
    deeds: frozenset[str] = frozenset()
    is_acted_on: bool = False

    @cached_property
    def label(self) -> str:
        """Its name in plain words."""
        return in_words(self.name)

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """The words of its name."""
        return tuple(self.label.split())

    @cached_property
    def objects(self) -> frozenset[str]:
        """The stems of what it belongs to: for `order_id`, "order"."""
        found = frozenset(
            stem(token) for token in self.tokens if token not in _IDENTIFIERS and token not in ("of", "the")
        )
        return found or frozenset(stem(token) for token in self.tokens)

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values it may have, by its schema or by its description."""
        if self.options or self.type != "string":
            return self.options
        match = _OPTIONS.search(self.description)
        if match is None:
            quoted = re.findall(r"['\"`]([\w -]{1,30})['\"`]", self.description)
            listed = (
                quoted
                if len(quoted) > 1 and not _EXAMPLE.search(self.description)
                else _alternatives(self.description)
            )
        else:
            listed = [part.strip(" '\"`()") for part in re.split(r",|\||/| or | and ", match["listed"])]
        listed = [part for part in listed if part and len(part.split()) <= 3]
        return tuple(listed) if len(listed) > 1 else ()

    @cached_property
    def examples(self) -> tuple[str, ...]:
        """Values that its description gives as examples."""
        match = _EXAMPLE.search(self.description)
        if match is None:
            return ()
        parts = re.split(r",| or | and |(?<!\d)/|/(?!\d)", match["example"])
        return tuple(
            part.strip(" .'\"`") for part in parts if part.strip(" .'\"`") and len(part.split()) <= 3
        )

    @cached_property
    def digits(self) -> int | None:
        """How many digits it has, where the description says so."""
        match = _DIGITS.search(self.description)
        if match is None:
            return None
        spelled = [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
        return int(match[1]) if match[1].isdigit() else spelled.index(match[1].lower())

    @cached_property
    def kind(self) -> ValueKind:
        """What sort of value it is."""
        if self.type == "boolean":
            return "boolean"
        if self.choices:
            return "choice"
        if self.format in _FORMATS:
            return _FORMATS[self.format]
        if self.type == "array":
            return "list"
        if self.type == "object":
            return "object"
        tokens = frozenset(self.tokens)
        if self.type in ("integer", "number"):
            return self._kind_of_number(tokens)
        shown = self._shown_moment
        if shown and not any(kind == "text" and names & tokens for kind, names in _NAMES):
            return shown
        for kind, names in _NAMES:
            if kind in ("moment", "date", "time") and _NAME_OF.match(self.description):
                continue  # the name of a night, not its date
            if names & tokens and not (kind in ("text", "place", "date") and tokens & _IDENTIFIERS - {"no"}):
                if kind in ("date", "time") and {"date", "time"} <= tokens | frozenset(
                    self.description.lower().split()
                ):
                    return "moment" if {"date", "time"} & tokens and "duration" not in tokens else kind
                return kind
        if self._speaks_of_dates(tokens):
            return "date"
        if dated := _DATED.match(self.description):
            return "date" if dated["date"] else "time"
        if {"title", "name"} & tokens and re.search(
            r"\b(?:problem|issue|ticket|request|complaint|incident)\b", self.description, re.IGNORECASE
        ):
            return "text"
        if tokens & _IDENTIFIERS and not {"name"} & tokens:
            return "identifier"
        if self.digits or re.match(
            r"(?:the )?(?:\w+ )?(?:id|number|code)\b", self.description, re.IGNORECASE
        ):
            return "identifier"
        if tokens & _MONEY:
            return "money"
        if ("name" in tokens and tokens - {"name"} <= _PEOPLE) or tokens <= _PEOPLE | {
            "surname",
            "firstname",
            "lastname",
        }:
            return "person"
        if (
            self.examples
            and re.search(r"\d", self.examples[0])
            and re.fullmatch(r"[\w#-]+", self.examples[0])
        ):
            return "identifier"
        return "thing"

    @property
    def _shown_moment(self) -> ValueKind | None:
        """Date, time or both, where its description shows how one is written."""
        shown = (*self.examples, *re.findall(r"\(([^()]{4,25})\)", self.description))
        kinds: set[ValueKind | None] = {kind_of_moment(text) for text in shown}
        kinds |= {"date"} if _DAY_FORMAT.search(self.description) else set()
        kinds |= {"time"} if _CLOCK_FORMAT.search(self.description) else set()
        if "moment" in kinds or {"date", "time"} <= kinds:
            return "moment"
        return next((kind for kind in kinds if kind), None)

    def _kind_of_number(self, tokens: frozenset[str]) -> ValueKind:
        if tokens & _MONEY:
            return "money"
        if tokens & _IDENTIFIERS and "of" not in tokens and not {"num", "no"} & tokens:
            return "identifier"
        return "number"

    def _speaks_of_dates(self, tokens: frozenset[str]) -> bool:
        ends = {"start", "end", "from", "to", "until", "begin", "check", "pickup", "return"} & tokens
        return bool(ends) and re.search(r"\bdate|\bday\b|YYYY", self.description, re.IGNORECASE) is not None


def _alternatives(description: str) -> list[str]:
    match = re.search(r"[(:]\s*((?:[\w-]+\s*[/|]\s*)+[\w-]+)\s*\)?", description)
    if match is None:
        match = re.search(r"(?<!\S)((?:[\w-]+\s*\|\s*)+[\w-]+)", description)
    return [part.strip() for part in re.split(r"[/|]", match[1])] if match else []


def wanted_of(
    name: str, schema: Mapping[str, Any], description: str = "", required: bool = True, shown_type: str = ""
) -> Wanted:
    """What a property of a JSON schema wants.

    Args:
        name: The property.
        schema: Its schema, `anyOf` with null allowed.
        description: What the prompt says about it.
        required: Whether it must be given.
        shown_type: Its type as the prompt shows it, which may be a format, or one that the schema cannot say.
    """
    described = description or str(schema.get("description") or "")
    for option in schema.get("anyOf") or schema.get("oneOf") or ():
        if isinstance(option, Mapping) and option.get("type") != "null":
            return wanted_of(
                name, {"description": schema.get("description"), **option}, described, required, shown_type
            )
    kind = schema.get("type", "string")
    if isinstance(kind, list):
        kind = next((option for option in kind if option != "null"), "string")
    options = tuple(option for option in schema.get("enum", ()) if option is not None)
    if "const" in schema:
        options = (schema["const"],)
    as_json = "holds JSON" in str(schema.get("description") or "")
    if as_json and shown_type.split(" ")[0] in ("object", "list", "array"):
        kind = "object" if shown_type == "object" else "array"
    items = schema.get("items")
    listed = schema.get("required", ())
    return Wanted(
        name=name,
        type=kind,
        description=described,
        options=options,
        items=wanted_of(_singular(name), items, described) if isinstance(items, Mapping) else None,
        fields=tuple(
            wanted_of(key, field, "", key in listed and not _nullable(field))
            for key, field in schema.get("properties", {}).items()
            if isinstance(field, Mapping)
        ),
        required=required,
        format=str(schema.get("format") or shown_type),
        as_json=as_json,
    )


def _nullable(schema: Mapping[str, Any]) -> bool:
    options = schema.get("anyOf", ())
    return any(isinstance(option, Mapping) and option.get("type") == "null" for option in options)


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name


def wanted_thing(thing: str) -> Wanted:
    """A thing named in a condition ("the number of guests") as an argument to look for."""
    named = re.split(r"\b(?:they|he|she|of their|for the|for their|to be)\b", thing)[0]
    counted = (
        re.search(r"\b(?:number of|how many|quantity|age|party size)\b", thing, re.IGNORECASE) is not None
    )
    tokens = re.findall(r"[^\W_]+", named.lower())[:5]
    return Wanted("_".join(tokens) or thing, "integer" if counted else "string")
