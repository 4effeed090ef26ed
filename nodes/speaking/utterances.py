"""What code decides about an utterance: whether it may be said, and what it asks the customer for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.confirmation import asks_beside
from arq_graph.nodes.outcomes import outcome_of
from arq_graph.nodes.speaking.calls import JudgedMove, Rules, Situation
from arq_graph.nodes.speaking.moves import SPEAK
from arq_graph.nodes.speaking.policies import entries_in
from arq_graph.nodes.speaking.questions import QuestionRow
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.violations import PromptFacts, leaks, repeats
from arq_graph.nodes.yes import asks
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json

_CITED = re.compile(r"[\s,;]+")


@dataclass(frozen=True)
class SpeechJudge:
    """Holds utterances against the questions before them, the rules, and what they rest on.

    Args:
        name: The blueprint's name, for complaints.
        tools: The agent's tools by name.
        situation: The thread, the gate, and what waits for the customer.
        facts: What an utterance must not give away, and what it may cite.
        rules: The rules.
        row: The questions that were asked in a row.
        too_many: Ids of results that are too many, unless the choice was left to the agent.
        must_end: Whether nothing is left but to end the task.
    """

    name: str
    tools: Mapping[str, ToolArguments]
    situation: Situation
    facts: PromptFacts
    rules: Rules
    row: QuestionRow
    too_many: Sequence[str] = ()
    must_end: bool = False

    def judge(self, speech: Any, waiting: Sequence[ToolInsight]) -> JudgedMove:
        """Decide on an utterance.

        Args:
            speech: The answer.
            waiting: The calls that code puts to the customer below it.
        """
        text = str(speech.utterance)
        ends = bool(getattr(speech, "ends_task", False))
        waits = hasattr(speech, "ends_task") and not ends
        asking = bool(speech.asks) or asks(text)
        insights = self._asked_for(speech)
        unsayable = self._unsayable(text, waiting, asking=asking, waits=waits)
        refusals = [("utterance", message) for message in unsayable]
        refusals += self._unsourced(speech)
        if self.must_end and not ends and hasattr(speech, "ends_task"):
            refusals.append(("ends_task", "no step is left: end the task, and say how far it got"))
        if self.rules.required and not asking and not waiting:
            named = ", ".join(sorted(self.rules.required))
            refusals.append(("", f"a policy requires a call of {named} before this; ask for what it lacks"))
        return JudgedMove(
            "speak",
            text,
            refusals=tuple(self._complaint(*each) for each in refusals),
            faults=tuple(self._complaint(*each) for each in self._faults(text, asking or bool(waiting))),
            insights=insights,
            asks=asking,
            speech=speech,
        )

    def _unsayable(
        self, text: str, waiting: Sequence[ToolInsight], *, asking: bool, waits: bool
    ) -> list[str]:
        if waiting:
            beside = asks_beside(text, waiting)
            return [*leaks(text, self.facts), *([beside] if beside else [])]
        if not text.strip():
            return ["it is empty"]
        return [*leaks(text, self.facts), *self.row.faults(text, asks=asking or waits)]

    def _asked_for(self, speech: Any) -> tuple[ToolInsight, ...]:
        return tuple(
            ToolInsight(
                turn=self.situation.conversation.turn,
                tool=entry.tool,
                kind="missing",
                argument=argument.name,
                description=argument.description,
            )
            for entry in getattr(speech, "asks_for", ())
            if entry.tool in self.tools
            for argument in self.tools[entry.tool].arguments
            if entry.argument in (argument.name, argument.key)
        )

    def _unsourced(self, speech: Any) -> list[tuple[str, str]]:
        found = []
        for number, stated in enumerate(getattr(speech, "facts", ())):
            cited = [part for part in _CITED.split(stated.source or "") if part]
            unknown = [
                id for id in cited if id not in self.facts.sources and id not in self.facts.conversation.by_id
            ]
            if unknown or not cited:
                why = (
                    f"there is no {as_json(' '.join(unknown))} in this prompt"
                    if unknown
                    else "it has no source"
                )
                found.append(
                    (f"facts[{number}]", f"{as_json(stated.fact)}: {why}; look it up, or leave it out")
                )
        found += [
            (f"promises[{number}]", f"no tool here does {as_json(promise.what)}: decline it")
            for number, promise in enumerate(getattr(speech, "promises", ()))
            if promise.tool is None
        ]
        return found

    def _faults(self, text: str, asking: bool) -> list[tuple[str, str]]:
        """What is asked again for, and said all the same if it does not get better."""
        found = []
        conversation = self.situation.conversation
        policies = self.rules.policies
        if text.strip() and not asking and repeats(text, conversation):
            found.append(("utterance", "an earlier message says exactly this"))
        if asking:
            return found
        if self.too_many and "narrow_many_results" in policies:
            found.append(
                ("utterance", f"{', '.join(self.too_many)} holds too many: ask what narrows it down")
            )
        empty = [line.id for line in conversation.results if outcome_of(line) == "empty"]
        newest = conversation.results[-1].id if conversation.results else None
        if newest in empty and len(empty) > 1 and "weigh_requirements" in policies:
            found.append(("utterance", "nothing meets it all: ask which wish matters more"))
        elif newest in empty and "widen_no_results" in policies:
            found.append(("utterance", "nothing was found: ask what may be wider, or offer an alternative"))
        if self.rules.is_half_said and "complete_half_requests" in policies:
            found.append(("utterance", "the request is only half said: ask how it goes on"))
        return found

    def _complaint(self, place: str, message: str) -> Complaint:
        return Complaint(self.name, f"move.{SPEAK}.{place}" if place else f"move.{SPEAK}", message)


def too_many_in(conversation: Conversation, limit: int) -> list[str]:
    """The newest result of this turn, where it lists more entries than a limit."""
    line = conversation.results[-1] if conversation.results else None
    count = entries_in(line.message.text) if line else None
    return [line.id] if line and count is not None and count > limit else []
