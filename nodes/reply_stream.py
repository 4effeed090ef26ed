"""Streaming the reply while it is written: sentence by sentence, each checked before it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

import regex  # type: ignore[import-untyped]

from arq_graph.nodes.events import ReplyDelta
from arq_graph.nodes.state_view import StateView

# A sentence ends at a stop followed by white space, at a stop of a script without spaces, or with its line. Without a
# bound on the marks in between, a long row of stops would take quadratic time.
_SENTENCE_END = regex.compile(
    r"[.!?][^\w\s]{0,9}\s+|[\p{Sentence_Terminal}--[.!?]][^\w\s]*\s*|\n\s*", regex.V1
)
_MAX_UNSENT = 240
"""Characters without a sentence's end after which whole words are sent."""


@dataclass
class DeltaWriter:
    """Writes the pieces of a reply as events, under a number of its own after each restart."""

    state: StateView
    _revision_id: int = field(default=0, init=False)
    _is_new: bool = field(default=True, init=False)

    def restart(self) -> None:
        """Begin the reply again with the next piece."""
        self._is_new = True

    def write(self, text: str) -> None:
        """Write the next piece."""
        if self._is_new:
            # Made from the clock, since another process may resume the turn.
            self._revision_id = max(self._revision_id + 1, time_ns() // 1_000)
            self._is_new = False
        self.state.emit(ReplyDelta(revision=self._revision_id, text=text))


@dataclass
class ReplyStream:
    """Writes a partial answer's last revision to `stream_mode="custom"` as it grows.

    Once a revision has something that must not show, the rest of it is withheld. The text may be incomplete when it is
    checked. Empty content means the draft.
    """

    writer: DeltaWriter
    must_not_show: Callable[[str], bool]
    draft: str | None = None
    _revision_count: int = field(default=0, init=False)
    _sent_length: int = field(default=0, init=False)
    _is_withheld: bool = field(default=False, init=False)

    def __call__(self, answer: Mapping[str, Any]) -> None:
        """Write the new part of a partial answer; an empty answer starts the reply again."""
        revisions = answer.get("revisions")
        if not isinstance(revisions, list):
            revisions = []
        if len(revisions) != self._revision_count:
            self._revision_count = len(revisions)
            self._sent_length = 0
            self._is_withheld = False
            self.writer.restart()
        if revisions and isinstance(revisions[-1], dict) and not self._is_withheld:
            self._write_revision(revisions[-1])

    def _write_revision(self, revision: dict[str, Any]) -> None:
        content = revision.get("content")
        if not isinstance(content, str):
            return
        is_complete = next(reversed(revision)) != "content"  # the next field has begun
        if is_complete and not content.strip():
            content = self.draft or ""
        end = len(content) if is_complete else self._find_end(content)
        if end <= self._sent_length:
            return
        if self.must_not_show(content):
            self._is_withheld = True
            return
        self.writer.write(content[self._sent_length : end])
        self._sent_length = end

    def _find_end(self, content: str) -> int:
        """Return the end of the last whole sentence, or of the last whole word of a long one; 0 if there is none."""
        ends: list[int] = [match.end() for match in _SENTENCE_END.finditer(content, self._sent_length)]
        if ends:
            return ends[-1]
        if len(content) - self._sent_length > _MAX_UNSENT:
            return content.rfind(" ", self._sent_length) + 1
        return 0
