"""The checks of the card desk. In an app of yours, a moderation model would stand here."""

import re

_INSULTS = {"idiot", "idiots", "stupid"}
_CARD_NUMBER = re.compile(r"\b(?:\d[ -]?){13,19}\b")


def is_civil(text: str) -> bool:
    """Return True if a message has no insult."""
    return _INSULTS.isdisjoint(re.findall(r"\w+", text.casefold()))


def has_no_full_card_number(text: str) -> bool:
    """Return True if a reply shows no whole card number."""
    return not _CARD_NUMBER.search(text)
