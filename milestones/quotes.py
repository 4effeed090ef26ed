"""Quotes as evidence: whether what a judge cites stands in the conversation, and says enough to show anything."""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import normalize

from arq_graph.milestones.transcript import Transcript

SHORTEST_QUOTE = 6
"""Letters and digits that a quote has at least, unless it is all that the event says.

In a script without upper and lower case each counts double: there a few of them are a word.
"""

_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})


def is_quoted(quote: str, transcript: Transcript, event: int) -> bool:
    """Whether a quote is evidence from that event: it stands there, in whole words, and is not too short.

    Case, white space and the kind of quotation marks do not matter. A few letters stand in almost any text,
    so a quote needs `SHORTEST_QUOTE` of them, or has to be all that the event says.
    """
    if not 1 <= event <= len(transcript):
        return False
    text = transcript.event(event).text
    if not is_in(quote, text):
        return False
    return _size(quote) >= SHORTEST_QUOTE or _bare(quote) == _bare(text)


def is_in(quote: str, text: str) -> bool:
    """Whether a quote stands in a text, in whole words; an empty one does not."""
    sought, flat = _flat(quote), _flat(text)
    return bool(sought) and any(
        not _is_within_word(flat, start) and not _is_within_word(flat, start + len(sought))
        for start in _places(sought, flat)
    )


def _flat(text: str) -> str:
    return " ".join(normalize("NFKC", text).translate(_STRAIGHT).casefold().split())


def _places(sought: str, text: str) -> Iterator[int]:
    start = text.find(sought)
    while start >= 0:
        yield start
        start = text.find(sought, start + 1)


def _is_within_word(text: str, place: int) -> bool:
    """Whether the text before and after a place is one word; scripts without case do not show where words end."""
    return 0 < place < len(text) and _shows_words(text[place - 1]) and _shows_words(text[place])


def _shows_words(character: str) -> bool:
    return character.isdigit() or character.lower() != character.upper()


def _size(quote: str) -> int:
    return sum((1 if _shows_words(one) else 2) for one in _flat(quote) if one.isalnum())


def _bare(text: str) -> str:
    flat = _flat(text)
    return "".join(one for one in flat if one.isalnum()) or flat
