"""What somebody who misspelled a name probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean `x`?" for the nearest known word, or nothing where none is near."""
    from rapidfuzz import fuzz, process  # loaded where something is wrong already

    near = process.extractOne(word, list(known), scorer=fuzz.ratio, processor=str.casefold, score_cutoff=60)
    return f"; did you mean `{near[0]}`?" if near else ""
