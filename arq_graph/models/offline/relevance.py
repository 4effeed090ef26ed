"""Does the open need call for a tool? Its name and description against the need and the guidelines that grant it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue, house
from arq_graph.models.offline.actions import segments
from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.rivals import objects_of
from arq_graph.models.offline.roles import NAMED
from arq_graph.models.offline.rules import holding
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.speaking import DEALS, WISHES, share
from arq_graph.models.offline.toolnames import ToolName
from arq_graph.models.offline.wanted import wanted_of
from arq_graph.models.offline.words import (
    Word,
    best_match,
    content,
    in_words,
    likeness,
    overlap,
    stem,
    weight,
    words,
)

CALLED_FOR_FROM = 0.5
"""From this on a call is proposed."""

_ASKING = frozenset(map(stem, listed("where when why how who hours")))
"""Says what is asked of a thing, not which thing it is."""
_LABELS = re.compile(r"[(,]\s*([^(),:]{1,60}):|\band ([^(),:]{1,60}):")
_NAMES = (*NAMED, "text", "choice", "list")


@dataclass(frozen=True)
class Relevance:
    """How much a tool is called for.

    Args:
        tool: The tool as the prompt describes it.
        scene: The conversation.
    """

    tool: Mapping[str, Any]
    scene: Scene

    @cached_property
    def name(self) -> str:
        """The tool's name."""
        return str(self.tool.get("name"))

    @cached_property
    def tool_name(self) -> ToolName:
        """Its name, taken apart."""
        return ToolName(self.name, str(self.tool.get("description") or ""))

    @property
    def only_reads(self) -> bool:
        """Whether it looks something up rather than changes something."""
        return self.tool_name.only_reads

    @cached_property
    def _objects(self) -> tuple[Word, ...]:
        """What it acts on."""
        return words(self.tool_name.object or self.tool_name.verb)

    @cached_property
    def granting(self) -> tuple[Mapping[str, Any], ...]:
        """The active guidelines that grant it."""
        granted = [g for g in self.tool.get("granted_by") or () if isinstance(g, Mapping)]
        if "active" not in self.scene.prompt.now:
            return tuple(granted)
        active = self.scene.prompt.ids("active")
        return tuple(guideline for guideline in granted if guideline.get("id") in active)

    @cached_property
    def _meant(self) -> tuple[Word, ...]:
        """The words of the need, and of what the granting guidelines are about and tell the agent to do."""
        need = self.scene.need_words
        for guideline in self.granting:
            need += words(str(guideline.get("condition") or "")) + self._told_to_do(guideline)
        return need

    def _told_to_do(self, guideline: Mapping[str, Any]) -> tuple[Word, ...]:
        """The words of what a guideline tells the agent to do; what is only offered waits for the customer."""
        parts = segments(str(guideline.get("action") or ""))
        waits = () if self.only_reads else ("forbid", "style", "offer", "recommend", "ask")
        return tuple(word for part in parts if part.deed not in waits for word in words(part.rest))

    @property
    def _verb_is_meant(self) -> bool:
        return self._is_verb_of(self._meant)

    def _is_verb_of(self, meant: Sequence[Word]) -> bool:
        return any(
            not word.negated and any(likeness(each, word.stem) >= 0.9 for each in self.tool_name.deeds)
            for word in meant
        )

    @cached_property
    def is_required(self) -> bool:
        """Whether a policy wants it called before anything else."""
        return self.name in self.scene.prompt.ids("required_first")

    @cached_property
    def degree(self) -> float:
        """How much it is called for: 0 to 1."""
        if self.is_required:
            return 1.0
        named = max((best_match(word, self._meant)[0] for word in self._objects), default=0.0) >= 0.7
        description = str(self.tool.get("description") or "")
        described = overlap(self.scene.need, description) if self.scene.need else 0.0
        if not self.tool.get("granted_by"):
            return self._of_free_tool(named, described)
        if not self.granting:
            return 0.1
        alone = not self.scene.prompt.ids("other_candidates")
        if self.only_reads:
            meant = described >= 0.3 or share(content(description), self._meant) >= 0.5
            return 0.9 if named else 0.7 if meant or alone else 0.4
        if self._verb_is_meant and not self.tool_name.is_light:
            return 0.9
        if self._is_accepted:
            return 0.8
        if self._is_only_offered:
            return 0.3
        if self.tool_name.is_light and named:
            return 0.8
        return 0.6 if alone and named else 0.3

    @property
    def _is_accepted(self) -> bool:
        """Whether the customer has agreed to an offer of what it does."""
        accepted = words(self.scene.agreed)
        return any(best_match(word, accepted)[0] >= 0.9 for word in self._objects)

    @property
    def _is_only_offered(self) -> bool:
        """Whether the guidelines that grant it tell the agent to offer something, and to do nothing by itself."""
        deeds = {
            segment.deed for each in self.granting for segment in segments(str(each.get("action") or ""))
        }
        return bool(deeds & {"offer", "recommend"}) and not deeds & {"use tool", "other", "hand over"}

    def _of_free_tool(self, named: bool, described: float) -> float:
        """A tool that is always available is called only for a need that speaks of it."""
        scene = self.scene
        need = scene.need_words
        for rule, _ in holding(scene):
            need += self._told_to_do(rule)
        if dialogue.is_small_talk(scene.last.text) and not scene.accepted:
            return 0.1
        if not self.only_reads:  # "send a message" is meant by words that say little elsewhere
            need += tuple(word for line in scene.inquiry for word in words(line.text))
        # What a tool that is named by its verb alone acts on is not in its name.
        objects = self._objects if self.tool_name.object or self.only_reads else ()
        met = [best_match(word, need)[0] >= 0.7 for word in objects]
        if self.only_reads:
            if self._is_asked_of_another:
                return 0.2
            spoken_of = _share_described(self.tool, need)
            return (
                0.8
                if met and all(met)
                else 0.7
                if any(met) and spoken_of >= 0.3
                else 0.6
                if spoken_of >= 0.5 or described >= 0.6
                else 0.2
            )
        is_dealt = bool(self.tool_name.deeds & DEALS) and WISHES.search(scene.last.text) is not None
        spoken = tuple(word for word in need if word.surface not in self._done_to_by_others)
        verb = self._is_verb_of(spoken) or self.tool_name.is_light or (is_dealt and any(met))
        return 0.8 if verb and (not met or any(met) or self._is_described) else 0.2

    @property
    def _done_to_by_others(self) -> frozenset[str]:
        """What other tools are to do something to, as it is said or was put: "cancel my reservation" makes none."""
        others = (ToolName(str(tool.get("name"))).deeds for tool in self.scene.prompt.entries("tools"))
        put = (
            word.surface for label in _LABELS.findall(self.scene.accepted) for word in words(" ".join(label))
        )
        return objects_of(frozenset[str]().union(*others) - self.tool_name.deeds, self._said) | frozenset(put)

    @property
    def _is_described(self) -> bool:
        """Whether its description, if not its name, tells what it is done to: a reservation, by `cancel_night`."""
        about = content(str(self.tool.get("description") or ""))
        wanted = words(" ".join(objects_of(self.tool_name.deeds, self._said)))
        return any(best_match(word, about)[0] >= 0.9 for word in wanted)

    @property
    def _said(self) -> tuple[str, ...]:
        """The messages of the open need."""
        return tuple(line.text for line in self.scene.inquiry)

    @property
    def _is_asked_of_another(self) -> bool:
        """Whether a question is about what the tool neither speaks of nor takes a name for."""
        arguments = [
            wanted_of(str(each.get("name")), each, required=each.get("required") is True)
            for each in self.tool.get("arguments") or ()
            if isinstance(each, Mapping)
        ]
        if house.is_asked_for(self.scene.last.text):
            things = self._objects if self.tool_name.reads else words(in_words(self.name))
            return any(each.required for each in arguments) or not house.is_meant(things, self.scene)
        if any(each.kind in _NAMES for each in arguments) or not dialogue.asks(self.scene.last.text):
            return False
        topics = [
            word
            for word in self.scene.need_words
            if word.stem not in _ASKING and weight(word.stem) == 1 and not any(map(str.isdigit, word.stem))
        ]
        about = words(f"{in_words(self.name)} . {self.tool.get('description') or ''}")
        return bool(topics) and not any(best_match(word, about)[0] >= 0.7 for word in topics)

    @cached_property
    def why(self) -> str:
        """What speaks for it, or against it, in words that name the evidence."""
        if self.is_required:
            return "It has to be called first."
        shared = [
            other.surface
            for word in words(in_words(self.name))
            if (other := best_match(word, self._meant)[1])
        ]
        named = ", ".join(f'"{word}"' for word in dict.fromkeys(shared))
        if self.degree >= CALLED_FOR_FROM:
            by = ", ".join(str(guideline.get("id")) for guideline in self.granting)
            return (
                f"{f'{by} calls for it' if by else 'The need calls for it'}{f': {named}' if named else ''}."
            )
        return f"Nothing that is wanted now calls for it{f'; only {named} is shared' if named else ''}."


def _share_described(tool: Mapping[str, Any], need: Sequence[Word]) -> float:
    said = [word for word in need if not any(character.isdigit() for character in word.stem)]
    about = content(str(tool.get("description") or ""))
    return sum(best_match(word, about)[0] >= 0.7 for word in said) / len(said) if said else 0.0
