"""Untrusted text: in prompts JSON inside a named section, on screens and pages nothing that is hidden.

What a designer, a customer or a tool wrote enters a prompt as JSON with `<` and `>` escaped, so that no text
can close its section or open another one.
"""

from __future__ import annotations

import json
import re
import unicodedata
from json.encoder import encode_basestring
from typing import Any, Literal, get_args

import regex  # type: ignore[import-untyped]

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# Control characters, which could drive a terminal, and those that turn the direction of a line.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)
_WORD = re.compile(r"[^\W_]+")

IdPrefix = Literal["C", "G", "I", "K", "M", "S", "T", "V"]
"""The first letter of an id in a prompt: of a pending call, a guideline, an insight, a glossary term, a message, a
passage of knowledge, a tool result or a variable."""

ID_PREFIXES: tuple[IdPrefix, ...] = get_args(IdPrefix)

COLLEAGUE = "colleague"
"""Key of an AI message's `response_metadata`: a person wrote it, who had taken the conversation over."""

RANGE_DASHES = r"[\u2012-\u2015\u2212\u301c\uff5e]"
"""Pattern of the dashes between the two ends of a range, such as 9:00–13:00; ids and words have hyphens."""

CASED = r"[\p{Lu}\p{Ll}\p{Lt}\p{N}]"
"""Pattern (of `regex`) of a digit, and of a letter of a script with upper and lower case.

Other scripts may put no space between a word and a value, so only these letters continue a value.
"""

INVISIBLE = r"[\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]|(?!\s)\p{Cc}"
"""Pattern (of `regex`) of the characters that nobody sees."""


def clean(text: str) -> str:
    """Return `text` with lone surrogates replaced: they cannot be sent as UTF-8."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def visible(text: str) -> str:
    """Return `text` with what is unprintable shown by its number, so that it cannot hide anything."""
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", clean(text))


def make_id(prefix: IdPrefix, number: int) -> str:
    """Return the id by which a prompt shows something and answers cite it; a reply must never show it."""
    return f"{prefix}{number}"


def normalize_text(text: str) -> str:
    """Return `text` as a reader sees it: compatibility characters made plain, invisible ones removed."""
    if text.isascii() and text.isprintable():
        return text
    normalized: str = regex.sub(INVISIBLE, "", unicodedata.normalize("NFKC", text))
    return normalized


def split_words(text: str) -> list[str]:
    """Return the words of a text without case, punctuation and Markdown, to compare with those of another text."""
    return _WORD.findall(text.casefold())


def name_in_words(name: str) -> str:
    """Return a name in code as words: "cancel order" for `cancel_order`, `cancel-order` and `cancelOrder`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", name).lower()


def escaped(text: str) -> str:
    """Return `text` without angle brackets, as JSON writes them, so that it cannot open or close a section."""
    return clean(text).replace("<", "\\u003c").replace(">", "\\u003e")


def as_json(value: Any) -> str:
    """Write `value` as one line of JSON that holds no angle bracket; what JSON cannot say becomes its `str`."""
    text = encode_basestring(value) if type(value) is str else _ENCODER.encode(value)
    return escaped(text)


def section(value: Any, name: str) -> str:
    """Put `value` as JSON between `<name>` and `</name>`."""
    return f"<{name}>{as_json(value)}</{name}>"
