"""Texts in Mermaid drawings."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"[^\w ,'/]|_(?=_)")
_LABEL_LIMIT = 200


def make_label(text: str) -> str:
    """Return a text as the label of a node or an arrow, of at most 200 characters, to be put in double quotes.

    Mermaid writes a character by its number: #34; is a quote. A list's "1." or "-" would start a list.
    """
    return _SPECIAL.sub(lambda match: f"#{ord(match[0])};", " ".join(text.split())[:_LABEL_LIMIT])
