"""What a reply has to ask, and what it must not: the calls that wait for a word, and the questions just asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.agreement import asks_something
from arq_graph.nodes.putting import doing, is_about, unnamed
from arq_graph.nodes.speaking.questions import QuestionRow


@dataclass(frozen=True)
class ReplyBounds:
    """What binds a reply.

    Args:
        put: The calls that it has to put to the customer.
        descriptions: What each tool does.
        row: The questions that were asked in a row, where a speaker made the draft: what binds the speaker then binds
            the reply.
    """

    put: Sequence[ToolInsight] = ()
    descriptions: Mapping[str, str] = field(default_factory=dict)
    row: QuestionRow | None = None

    def unaskable(self, text: str) -> list[str]:
        """Why a reply cannot ask what it asks."""
        return self.row.faults(text, asks=asks_something(text)) if self.row else []

    def unput(self, text: str) -> dict[str, str]:
        """The tools whose calls a reply does not put to the customer, and why."""
        return {call.tool: why for call in self.put if (why := self._not_put(call, text))}

    def _not_put(self, call: ToolInsight, text: str) -> str | None:
        description = self.descriptions.get(call.tool, "")
        if self.row is not None:
            unasked = None if asks_something(text) else "it states and does not ask: ask whether to go ahead"
            return unnamed(call, text, description) or unasked
        if is_about(call, text, description):
            return None
        return f"it does not ask about what waits for the customer's word: {doing(call, description)}"
