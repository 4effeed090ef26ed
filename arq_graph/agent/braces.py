"""A designer's text with fields in braces, as in "Shall I cancel {order_id}?"; a literal brace is doubled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from string import Formatter

from arq_graph.errors import suggestion


def find_wrong_fields(template: str, fields: Collection[str]) -> str | None:
    """Return what is wrong if a template doesn't have exactly these fields in braces, without formats; else None."""
    problem = "must hold nothing in braces"
    if fields:
        braces = [f"{{{field}}}" for field in fields]
        problem = f"must hold {' and '.join(braces)}, and nothing else in braces"
    expected = {(field, "", None) for field in fields}
    try:
        parts = {part[1:] for part in Formatter().parse(template) if part[1] is not None}
    except ValueError:  # a single brace
        return problem
    if parts == expected:
        return None
    unknown = sorted(str(name) for name, *_ in parts if name not in fields)
    if not unknown:
        return problem
    name = unknown[0]
    return f"{problem}, but has {{{name}}}{suggestion(name, fields)}"


def fill_fields(template: str, values: Mapping[str, str]) -> str:
    """Fill in the fields of a template, each value once and as it is, with any braces that it has."""
    parts: list[str] = []
    for literal, name, _, _ in Formatter().parse(template):
        parts.append(literal)
        if name is not None:
            parts.append(values[name])
    return "".join(parts)


def has_template_text(text: str, template: str) -> bool:
    """Return True if a text has all that stands around a template's fields, in order; False if nothing does."""
    end = 0
    for literal, *_ in Formatter().parse(template):
        start = text.find(literal.strip(), end)
        if start < 0:
            return False
        end = start + len(literal.strip())
    return end > 0
