"""A user whose words are given: they are said as they stand, one after the other, whatever is answered."""

from __future__ import annotations

from collections.abc import Sequence

from arq_graph.milestones.transcript import Message


class ScriptedUser:
    """Says what it was given to say, and leaves.

    Args:
        lines: What is said, in order.
    """

    def __init__(self, *lines: str) -> None:
        self._left = list(lines)

    async def aspeak(self, said: Sequence[Message]) -> str | None:
        """What the user says next; see `User`."""
        return self._left.pop(0) if self._left else None
