"""The state a conversation is in: the last message, the need that is still open, what tools found."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import agreeing, dialogue
from arq_graph.models.offline.sections import Line, Prompt
from arq_graph.models.offline.withheld import without_denials
from arq_graph.models.offline.words import Word, content, words

_MY = re.compile(r"\bmy (\w+)(?= (?:is|was)\b)", re.IGNORECASE)
_NOTHING = Line("", "customer", "")


@dataclass(frozen=True)
class Scene:
    """A conversation as the rules look at it.

    Args:
        prompt: The prompt it stands in.
    """

    prompt: Prompt

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """Everything said and found, oldest first."""
        return self.prompt.lines

    @cached_property
    def last_index(self) -> int:
        """Index of the last customer message; -1 if there is none."""
        wanted = self.prompt.now.get("turn")
        for index in range(len(self.lines) - 1, -1, -1):
            if self.lines[index].speaker == "customer" and wanted in (None, self.lines[index].id):
                return index
        return max((i for i, line in enumerate(self.lines) if line.speaker == "customer"), default=-1)

    @property
    def last(self) -> Line:
        """The last customer message, an empty one if there is none."""
        return self.lines[self.last_index] if self.last_index >= 0 else _NOTHING

    @cached_property
    def customer(self) -> tuple[Line, ...]:
        """The customer's messages, oldest first."""
        return tuple(line for line in self.lines if line.speaker == "customer")

    @cached_property
    def agent(self) -> tuple[Line, ...]:
        """The agent's messages, oldest first."""
        return tuple(line for line in self.lines if line.speaker == "agent")

    @cached_property
    def fresh_results(self) -> tuple[Line, ...]:
        """Tool results of this turn."""
        return tuple(line for line in self.lines[self.last_index + 1 :] if line.speaker == "tool")

    @cached_property
    def known_results(self) -> tuple[Line, ...]:
        """The newest result of each tool and arguments, newest first."""
        newest: dict[tuple[str, str], Line] = {}
        for line in reversed(self.lines):
            if line.speaker == "tool":
                newest.setdefault((line.tool, repr(sorted(line.arguments.items(), key=str))), line)
        return tuple(newest.values())

    def is_fresh(self, line: Line) -> bool:
        """Whether a result is of this turn."""
        return line in self.fresh_results

    def index_of(self, id: str | None) -> int:
        """Where the line with an id stands; -1 if nowhere."""
        return next((index for index, line in enumerate(self.lines) if line.id == id), -1)

    def question_before(self, line: Line) -> str:
        """The question of the agent that a customer message follows; empty if it follows none."""
        text = self.said_before(line)
        return dialogue.question_in(text) or dialogue.choice_in(text)

    def said_before(self, line: Line) -> str:
        """The agent's message that a customer message follows; empty if it follows none."""
        for before in reversed(self.lines[: self.index_of(line.id)]):
            if before.speaker in ("agent", "customer"):
                return before.text if before.speaker == "agent" else ""
        return ""

    def agrees(self, line: Line) -> bool:
        """Whether a customer message is a plain yes to what the agent said before it, and to no other value."""
        said = self.said_before(line)
        if not dialogue.says_yes(line.text, said):
            return False
        return not (said and agreeing.names_another(line.text, said, alike=True))

    @cached_property
    def open_question(self) -> str:
        """The question of the agent that the last customer message answers."""
        return self.question_before(self.last)

    def answers(self, line: Line) -> bool:
        """Whether a customer message answers the agent's question rather than raising something of its own."""
        if not self.question_before(line):
            return False
        text = line.text
        if dialogue.asks(text) or dialogue.takes_leave(text) or dialogue.brings_up(text):
            return False
        if dialogue.says_yes(text) or dialogue.hesitates(text):
            return True
        # Who "cannot tell the street" asks for nothing, nor who says "my street is …" when asked for it.
        asked = self.question_before(line).lower()
        told = _MY.sub(lambda match: "it" if match[1].lower() in asked else match[0], text)
        return len(text.split()) <= 6 or not dialogue.requests(without_denials(told, of_telling=True))

    def follows_up(self, line: Line) -> bool:
        """Whether a customer message only makes sense after the one before it: "and for two?", "what about …?"."""
        return dialogue.is_elliptical(line.text) and any(
            before.speaker == "customer" for before in self.lines[: self.index_of(line.id)]
        )

    @cached_property
    def inquiry(self) -> tuple[Line, ...]:
        """The customer's messages that make up what they want now, newest first.

        The last one; and where it answers a question of the agent or follows up, what that was about.
        """
        chain: list[Line] = []
        for line in reversed(self.lines[: self.last_index + 1]):
            if line.speaker != "customer":
                continue
            chain.append(line)
            refused = dialogue.says_no(line.text) and not dialogue.corrects(line.text)
            if refused or not (self.answers(line) or self.follows_up(line)):
                break
        return tuple(chain)

    @property
    def latest(self) -> tuple[Line, ...]:
        """The last customer message, with the one that it follows up."""
        return self.inquiry if self.follows_up(self.last) else (self.last,)

    @cached_property
    def accepted(self) -> str:
        """What the agent proposed and the customer has just agreed to, in the agent's words."""
        return self._agreed_in(self.last)

    @cached_property
    def agreed(self) -> str:
        """What the customer has agreed to for the open need, now or before they gave what it took."""
        return " ".join(self._agreed_in(line) for line in self.inquiry).strip()

    def _agreed_in(self, line: Line) -> str:
        if not self.agrees(line):
            return ""
        put = self.question_before(line)
        return dialogue.question_in(put) or dialogue.offer_in(put)

    @cached_property
    def need(self) -> str:
        """What the customer wants now, in their words (and in the agent's, where they only agreed)."""
        said = [line.text for line in reversed(self.inquiry)]
        return " ".join([*said, self.accepted]).strip()

    @cached_property
    def need_words(self) -> tuple[Word, ...]:
        """The words of the open need."""
        return tuple(word for line in self.inquiry for word in content(line.text)) + content(self.accepted)

    @cached_property
    def context_words(self) -> tuple[Word, ...]:
        """The words of what was said shortly before, by either side."""
        spoken = [line for line in self.lines[: self.last_index] if line.speaker != "tool"][-4:]
        return tuple(word for line in spoken for word in words(line.text))

    @cached_property
    def profile_words(self) -> tuple[Word, ...]:
        """What the agent is for."""
        return words(f"{self.prompt.profile.get('name') or ''}. {self.prompt.profile.get('text') or ''}")

    @property
    def is_first_message(self) -> bool:
        """Whether the agent has not said anything yet."""
        return not any(line.speaker == "agent" for line in self.lines[: max(self.last_index, 0)])

    @cached_property
    def variables(self) -> list[dict[str, Any]]:
        """What is known about the customer and the situation, each with id, name and value."""
        return self.prompt.entries("variables")
