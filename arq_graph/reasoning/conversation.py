"""A conversation as a model reads it: one JSON object a line.

Lines are only ever appended, so that the prompt of the next turn begins with the prompt of this one. Images follow the
line that names them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from langchain_core.messages import BaseMessage

from arq_graph.reasoning.endpoints import Block
from arq_graph.reasoning.history import History, Line, Speaker
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.values import collect_values

CHARACTERS_PER_TOKEN = 4  # close enough to any tokenizer for a limit
_TOKENS_PER_IMAGE = 1_000  # about what providers count for one of ordinary size


@dataclass(frozen=True)
class ShownSummary:
    """A prompt's section with the summary of a history's first lines.

    Args:
        text: The section.
        line_count: How many lines it covers; these are not shown.
        cited_ids: Those of the covered lines that it names, so that an answer may cite them.
    """

    text: str
    line_count: int
    cited_ids: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """A history as a prompt shows it.

    Args:
        history: The messages, as numbered lines.
        max_tokens: If the history is longer where a turn begins, the prompt shows only the last turns before it, up to
            half as many tokens.
        shows_images: Whether the model takes images.
        summary: What stands in the place of the first lines, if these are summarised.
    """

    history: History
    max_tokens: int = 16_000
    shows_images: bool = True
    summary: ShownSummary | None = None

    @property
    def messages(self) -> tuple[BaseMessage, ...]:
        """The messages."""
        return self.history.messages

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines, including those that the prompt leaves out; a message with nothing but tool calls has none."""
        return self.history.lines

    def render_lines(self, indices: Iterable[int]) -> Mapping[int, str]:
        """Return at least these lines by their index, as the prompt shows them."""
        return self.history.render(indices, self.max_tokens, shows_images=self.shows_images)

    @cached_property
    def token_counts(self) -> list[int]:
        """The tokens of each line, counted roughly; 0 for those that the summary covers."""
        start = self._covered_count
        texts = self.render_lines(range(start, len(self.lines)))
        counts = [0] * start
        for index, line in enumerate(self.lines[start:], start=start):
            counts.append(_count_tokens(texts[index]))
            if line.attachments:
                counts[index] += _TOKENS_PER_IMAGE * len(self._list_images(line))
        return counts

    @property
    def token_count(self) -> int:
        """The tokens of the summary and of all lines after those that it covers."""
        return self._summary_tokens + sum(self.token_counts)

    @cached_property
    def first_shown(self) -> int:
        """The index of the first line that the prompt shows; a turn is shown whole or not at all.

        It changes only where a turn begins: a history that is too long by then is cut to half of `max_tokens`.
        """
        counts = self.token_counts
        start, shown_tokens = self._covered_count, self._summary_tokens
        later_turns: deque[int] = deque()
        for index, line in enumerate(self.lines[start:], start=start):
            if line.speaker == "customer" and index > start:
                later_turns.append(index)
                if shown_tokens > self.max_tokens:
                    while later_turns and shown_tokens > self.max_tokens // 2:
                        shown_tokens -= sum(counts[start : later_turns[0]])
                        start = later_turns.popleft()
            shown_tokens += counts[index]
        return start

    @property
    def _covered_count(self) -> int:
        return self.summary.line_count if self.summary else 0

    @property
    def _summary_tokens(self) -> int:
        return _count_tokens(self.summary.text) if self.summary else 0

    @cached_property
    def _shown_indices(self) -> list[int]:
        """The indices of the lines that the prompt shows.

        The agent's message that the customer answers is always one of them: it may ask for a yes.
        """
        indices = list(range(self.first_shown, len(self.lines)))
        reply_index = self._find_last("agent", before=self._last_customer_index)
        if reply_index is not None and reply_index < self.first_shown:
            indices.insert(0, reply_index)
        return indices

    @cached_property
    def blocks(self) -> list[Block]:
        """The lines that the prompt shows, after a note if earlier ones are neither shown nor summarised."""
        hidden = self.lines[self._covered_count : self.first_shown]
        if not hidden:
            return self.render(self._shown_indices)
        note = {
            "note": "the conversation is long: earlier messages are not shown",
            "not_shown": len(hidden),
            "up_to": hidden[-1].id,
            "values_mentioned": collect_values(hidden, self.max_tokens // 4),
        }
        return self.render(self._shown_indices, as_json(note))

    def render(self, indices: Sequence[int], text: str = "") -> list[Block]:
        """Return lines in blocks after a text, with images behind their lines.

        A text block ends with a customer's line, up to which earlier calls were made, or where an image follows.
        """
        lines, texts = self.lines, self.render_lines(indices)
        blocks: list[Block] = []
        for index in indices:
            line = lines[index]
            if text or blocks:
                text += "\n"
            text += texts[index]
            images = self._list_images(line) if line.attachments else []
            if line.speaker == "customer" or images:
                blocks.append({"type": "text", "text": text})
                blocks.extend(images)
                text = ""
        if text:
            blocks.append({"type": "text", "text": text})
        return blocks

    def _list_images(self, line: Line) -> list[Block]:
        return line.list_images() if self.shows_images else []

    @cached_property
    def lines_by_id(self) -> dict[str, Line]:
        """The lines that the prompt shows or its summary cites, by id."""
        lines = [self.lines[index] for index in self._shown_indices]
        if self.summary:
            covered = self.lines[: self.summary.line_count]
            lines += [line for line in covered if line.id in self.summary.cited_ids]
        return {line.id: line for line in lines}

    def find_line_id(self, message_id: str | None) -> str | None:
        """Return the line id of a message; None if the prompt doesn't show it."""
        for line in self.lines_by_id.values():
            if message_id and line.message.id == message_id:
                return line.id
        return None

    @cached_property
    def last_customer_line(self) -> Line | None:
        """The customer's last message."""
        index = self._last_customer_index
        return None if index is None else self.lines[index]

    @property
    def turn_id(self) -> str:
        """The id of the current turn, that of the last customer message; "" before the first."""
        return self.last_customer_line.turn_id if self.last_customer_line else ""

    @cached_property
    def answered_turn_id(self) -> str | None:
        """The turn of the agent's last reply before the last customer message, which may answer that reply."""
        reply_index = self._find_last("agent", before=self._last_customer_index)
        turn_index = self._find_last("customer", before=reply_index)
        return None if turn_index is None else self.lines[turn_index].turn_id

    @cached_property
    def unreadable_line(self) -> Line | None:
        """The customer's message that waits for a reply, if it has an attachment that the model can't be shown."""
        index = self._last_customer_index
        if index is None or any(line.speaker == "agent" for line in self.lines[index:]):
            return None
        line = self.lines[index]
        return line if line.list_unsupported(shows_images=self.shows_images) else None

    @cached_property
    def current_turn_results(self) -> tuple[Line, ...]:
        """The tool results after the last customer message."""
        start = self._last_customer_index or 0
        return tuple(line for line in self.lines[start:] if line.speaker == "tool")

    @cached_property
    def answered_turn_results(self) -> tuple[Line, ...]:
        """The tool results of the turn of `answered_turn_id`."""
        reply_index = self._find_last("agent", before=self._last_customer_index)
        start = self._find_last("customer", before=reply_index)
        if start is None:
            return ()
        return tuple(line for line in self.lines[start:reply_index] if line.speaker == "tool")

    @cached_property
    def _last_customer_index(self) -> int | None:
        return self._find_last("customer", before=len(self.lines))

    def _find_last(self, speaker: Speaker, *, before: int | None) -> int | None:
        """Return the index of the last line of a speaker before another one; None if there is none."""
        for index in range((before or 0) - 1, -1, -1):
            if self.lines[index].speaker == speaker:
                return index
        return None


def _count_tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)  # rounded up
