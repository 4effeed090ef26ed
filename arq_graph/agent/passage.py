"""The record of a passage that a retriever has found, stored in the channel `passages`."""

from __future__ import annotations

from arq_graph.agent.record import Record


class Passage(Record):
    """A passage that a retriever found for this turn, by the id under which prompts show it and answers cite it.

    `title`, `source` and `url` are those of the document's metadata. Of a passage that is longer than the limit only
    the beginning is kept; `shortened_from_characters` is then its whole length.
    """

    id: str
    text: str
    title: str = ""
    source: str = ""
    url: str = ""
    shortened_from_characters: int | None = None
