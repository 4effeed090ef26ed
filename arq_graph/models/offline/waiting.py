"""Calls that wait for the customer's word, and what their last message is to each: a yes, another value, neither."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import agreeing, dialogue
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.toolnames import ToolName
from arq_graph.models.offline.words import words

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Waiting:
    """The calls of one tool that were put to the customer.

    Args:
        scene: The conversation.
        name: The tool's name, taken apart.
    """

    scene: Scene
    name: ToolName

    @cached_property
    def _entries(self) -> tuple[tuple[str, Arguments], ...]:
        entries = self.scene.prompt.now.get("awaiting_confirmation")
        return tuple(
            (str(entry.get("tool")), entry["arguments"])
            for entry in (entries if isinstance(entries, list) else ())
            if isinstance(entry, Mapping) and isinstance(entry.get("arguments"), Mapping)
        )

    @cached_property
    def calls(self) -> tuple[Arguments, ...]:
        """The arguments of each."""
        return tuple(arguments for tool, arguments in self._entries if tool == self.name.name)

    @cached_property
    def _put(self) -> str:
        """What was said to the customer, with the values of every call that waits."""
        return " ".join([self.scene.said_before(self.scene.last), *(_shown(a) for _, a in self._entries)])

    @cached_property
    def names_another(self) -> bool:
        """Whether the last message names a value that was not put."""
        return agreeing.names_another(self.scene.last.text, self._put)

    @cached_property
    def agreed(self) -> Sequence[Arguments]:
        """Those that the last message is a plain yes to: where it names what one of them is about, to that one."""
        text = self.scene.last.text
        is_yes = dialogue.says_yes(text, self._put) or self._is_said_again
        if not is_yes or self.names_another:
            return ()
        about = [agreeing.told_values(_shown(arguments)) for _, arguments in self._entries]
        meant = agreeing.named_values(text).intersection(*[frozenset[str]().union(*about)])
        return [each for each in self.calls if not meant or meant & agreeing.told_values(_shown(each))]

    @property
    def _is_said_again(self) -> bool:
        """Whether the last message repeats what was put, and says the deed or what it is done to."""
        text = self.scene.last.text
        if dialogue.says_no(text) or not agreeing.repeats(text, self._put):
            return False
        is_named = any(word.stem in self.name.deeds for word in words(text))
        return is_named or bool(agreeing.named_values(text))


def _shown(arguments: Arguments) -> str:
    return json.dumps(arguments, ensure_ascii=False, default=str)
