"""What a scripted model was asked, as tests look at it."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph import ScriptedChatModel
from tests.schemas import inline_references


@dataclass(frozen=True)
class Prompt:
    """One call of a model."""

    call: Any

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The schema of the answer, without references."""
        schema: dict[str, Any] = inline_references(self.call.schema or {})
        return schema

    @property
    def module(self) -> str:
        return self.call.module or ""

    @property
    def head(self) -> str:
        return str(self.call.messages[0].text)

    @property
    def tail(self) -> str:
        return str(self.call.messages[1].text)

    @property
    def text(self) -> str:
        """The head and the tail."""
        return f"{self.head}\n{self.tail}"

    @property
    def complaint(self) -> str:
        """What the model has to correct, or "" if it is asked for the first time."""
        return str(self.call.messages[-1].text) if len(self.call.messages) > 2 else ""

    def section(self, name: str) -> Any:
        """Return the value in a section; None if the prompt hasn't got it."""
        values = re.findall(rf"^<{name}>(.*)</{name}>$", self.text, re.MULTILINE)
        return json.loads(values[-1]) if values else None

    @property
    def now(self) -> dict[str, Any]:
        return self.section("now") or {}

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the conversation."""
        conversation = re.search(r"<conversation>\n(.*?)\n?</conversation>", self.tail, re.DOTALL)
        assert conversation, self.tail
        return [json.loads(line) for line in conversation[1].split("\n") if line]

    @property
    def turn(self) -> list[dict[str, Any]]:
        """The lines after the customer's last one."""
        turn: list[dict[str, Any]] = []
        for line in self.lines:
            turn.append(line)
            if line.get("from") == "customer":
                turn.clear()
        return turn

    def results(self, tool: str) -> list[dict[str, Any]]:
        """Return the lines of a tool's results in this turn."""
        return [line for line in self.turn if line.get("tool") == tool]


def get_prompts(model: ScriptedChatModel, module: str) -> list[Prompt]:
    """Return what a module asked the model."""
    return [Prompt(call) for call in model.calls if call.module == module]
