"""Untrusted text in prompts: JSON inside a named section.

What a designer, a customer or a tool wrote enters a prompt as JSON with `<` and `>` escaped, so that no text
can close its section or open another one.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return `text` with lone surrogates replaced: they cannot be sent as UTF-8."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def escaped(text: str) -> str:
    """Return `text` without angle brackets, as JSON writes them, so that it cannot open or close a section."""
    return clean(text).replace("<", "\\u003c").replace(">", "\\u003e")


def as_json(value: Any) -> str:
    """Write `value` as one line of JSON that holds no angle bracket; what JSON cannot say becomes its `str`."""
    return escaped(json.dumps(value, ensure_ascii=False, default=str))


def section(value: Any, name: str) -> str:
    """Put `value` as JSON between `<name>` and `</name>`."""
    return f"<{name}>{as_json(value)}</{name}>"
