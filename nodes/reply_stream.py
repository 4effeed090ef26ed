"""The reply while it is written: sentence by sentence, each looked at before it goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import time_ns
from typing import Any

import regex  # type: ignore[import-untyped]

from arq_graph.nodes.channels import StateView
from arq_graph.nodes.events import ReplyDelta

# A sentence ends at a stop with white space behind it, at a stop of a script that has none, or with its line. Without a
# bound on the marks between, a long row of stops would take quadratic time.
_END = regex.compile(r"[.!?][^\w\s]{0,9}\s+|[\p{Sentence_Terminal}--[.!?]][^\w\s]*\s*|\n\s*", regex.V1)
_MAX_PENDING = 240


@dataclass
class ReplyStream:
    """Writes what an answer's last revision says to `stream_mode="custom"`, as the answer grows.

    Once a revision holds something that must not show, nothing more of it goes out; the end of what is looked at may
    still be missing. An empty content stands for the draft.
    """

    state: StateView
    must_not_show: Callable[[str], object]
    draft: str | None = None
    _number = _place = _sent = 0
    _is_held = False

    def __call__(self, answer: Mapping[str, Any]) -> None:
        """Look at an answer as far as it is written; an empty one begins anew."""
        revisions = answer.get("revisions")
        revisions = revisions if isinstance(revisions, list) else []
        if len(revisions) != self._place:
            self._place, self._sent, self._is_held = len(revisions), 0, False
        revision = revisions[-1] if revisions else None
        if not isinstance(revision, dict) or not isinstance(content := revision.get("content"), str):
            return
        is_whole = next(reversed(revision)) != "content"
        if is_whole and not content.strip():
            content = self.draft or ""
        if self._is_held or (end := self._end(content, is_whole=is_whole)) <= self._sent:
            return
        if self.must_not_show(content):
            self._is_held = True
            return
        if not self._sent:  # by the clock, for another process may go on with the turn
            self._number = max(self._number + 1, time_ns() // 1_000)
        self.state.emit(ReplyDelta(revision=self._number, text=content[self._sent : end]))
        self._sent = end

    def _end(self, content: str, *, is_whole: bool) -> int:
        """How much of a content can go out: whole sentences, of one that is too long whole words."""
        if is_whole:
            return len(content)
        ends = [end.end() for end in _END.finditer(content, self._sent)]
        if not ends and len(content) - self._sent > _MAX_PENDING:
            ends = [content.rfind(" ", self._sent) + 1]
        return ends[-1] if ends else 0
