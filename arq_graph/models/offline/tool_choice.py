"""Choosing tools: what an active guideline grants is called as soon as its arguments are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline.activation import is_constant
from arq_graph.models.offline.arguments import Argument
from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import stems, weights, words


@dataclass(frozen=True)
class Proposal:
    """A call of one tool: the tool as the prompt shows it, the property that asks about it, and its arguments."""

    entry: Mapping[str, Any]
    key: str
    arguments: tuple[Argument, ...]

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.entry.get("name"))

    @cached_property
    def missing(self) -> tuple[Argument, ...]:
        """The required arguments that nobody told."""
        return tuple(each for each in self.arguments if each.entry.get("required") and each.found is None)

    @cached_property
    def values(self) -> dict[str, Any]:
        """The arguments that were found, by name."""
        return {each.name: each.found.value for each in self.arguments if each.found}

    def decisions(self) -> dict[str, Any]:
        """The answer to what is asked about each argument."""
        return {str(each.entry.get("key") or each.name): _decision(each) for each in self.arguments}


def _decision(argument: Argument) -> dict[str, Any]:
    found = argument.found
    return {
        "value_in_context": found.source if found else None,
        "customer_should_provide_it": found is None,
        "already_provided_and_needed_again": None,
        "problematic_to_guess": True,
        "basis": "nobody" if found is None else "this_request" if found.is_said else "known",
        "given": found is not None,
        "value": found.value if found else None,
    }


@dataclass(frozen=True)
class Tools:
    """The tools of a prompt, and which of them are called for.

    Args:
        prompt: The prompt.
        calls: The schema of a call of each tool, by the property that asks for it.
        kinds: Fills the schema that they belong to.
    """

    prompt: Prompt
    calls: Mapping[str, Mapping[str, Any]]
    kinds: Instances

    @cached_property
    def due(self) -> list[Proposal]:
        """The calls to make, in the agent's order: called for, not made yet in this turn, and not declined."""
        names = [name for name in self.prompt.listed("candidates") if isinstance(name, str)]
        candidates = [entry for entry in self.prompt.entries("tools") if entry.get("name") in names]
        proposals = [self._proposal(entry) for entry in self._wanted(candidates)]
        return [
            each for each in proposals if each and not self._is_done(each) and not self._is_declined(each)
        ]

    def _proposal(self, entry: Mapping[str, Any]) -> Proposal | None:
        name = str(entry.get("name"))
        key = str(entry.get("key") or (name if name in self.calls else f"tool_{name}"))
        if key not in self.calls:
            return None
        asked = self.kinds.asked(self.calls[key].get("arguments"))
        decisions = [
            (argument, self.kinds.asked(asked.get(argument.get("key") or argument.get("name"))))
            for argument in entry.get("arguments") or ()
        ]
        found = (
            Argument(each, decision.get("value", {}), self.prompt, self.kinds) for each, decision in decisions
        )
        return Proposal(entry, key, tuple(found))

    def _wanted(self, candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The tools that an active guideline's condition calls for, or that the customer's words speak of."""
        active = set(self.prompt.listed("active"))
        spoken = self._spoken_of(candidates)
        wanted = []
        for entry in candidates:
            granting = [each for each in entry.get("granted_by") or () if each.get("id") in active]
            by_guideline = any(self._is_meant(entry, each, candidates) for each in granting)
            if by_guideline or entry in spoken or self._was_asked_about(entry):
                wanted.append(entry)
        return wanted

    def _is_meant(
        self, entry: Mapping[str, Any], guideline: Mapping[str, Any], candidates: list[dict[str, Any]]
    ) -> bool:
        """Whether a guideline means this tool: of several, those that its action or the customer speaks of."""
        if is_constant(guideline.get("condition")):
            return False
        others = bool(self.prompt.listed("other_candidates")) or len(candidates) > 1
        said = stems(f"{guideline.get('condition')} {guideline.get('action')} {self.prompt.request}")
        return not others or bool(stems(str(entry.get("name"))) & said)

    def _spoken_of(self, candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Tools that no guideline has to grant: the customer says a word that belongs to this tool alone."""
        free = [entry for entry in candidates if not entry.get("granted_by")]
        about = [stems(f"{entry.get('name')} {entry.get('description') or ''}") for entry in free]
        weight, said = weights(about), stems(self.prompt.request)
        scores = [sum(weight[stem] for stem in each & said) for each in about]
        clear = [entry for entry, score in zip(free, scores, strict=True) if score >= 1]
        # Where the words fit several, the only harmless one will do.
        near = [e for e, score in zip(free, scores, strict=True) if score and not e.get("needs_agreement")]
        return clear or (near if len(near) == 1 else [])

    def _was_asked_about(self, entry: Mapping[str, Any]) -> bool:
        proposal = self._proposal(entry) if not entry.get("granted_by") else None
        return proposal is not None and any(each.was_asked_for and each.found for each in proposal.arguments)

    def _is_done(self, proposal: Proposal) -> bool:
        """Whether this very call was made in this turn, or has to be left alone after it failed."""
        blamed = any(f".{proposal.key}" in place for place in self.prompt.complaints)
        return blamed or any(
            line.tool == proposal.name
            and (line.failed or dict(line.arguments).items() <= proposal.values.items())
            for line in self.prompt.results
        )

    def _is_declined(self, proposal: Proposal) -> bool:
        """Whether the customer has just said no to this very call."""
        put = {"tool": proposal.name, "arguments": proposal.values}
        waiting = [each for each in self.prompt.listed("awaiting_confirmation") if isinstance(each, dict)]
        return says_no(self.prompt) and any({**each, **put} == each for each in waiting)


def says_no(prompt: Prompt) -> bool:
    """Whether the customer's last message says no."""
    return bool({"no", "not", "don't", "don’t"} & set(words(prompt.request)))


def candidate_answers(prompt: Prompt, properties: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to the tool caller's queries, by the property of each tool."""
    listed = {
        name: kinds.asked(each).get("tool_calls_for_candidate_tool") for name, each in properties.items()
    }
    calls = {name: kinds.asked(kinds.resolved(each).get("items")) for name, each in listed.items() if each}
    due = {proposal.key: proposal for proposal in Tools(prompt, calls, kinds).due}
    answers: dict[str, Any] = {
        "last_customer_message": prompt.request,
        "most_recent_customer_inquiry_or_need": prompt.request,
    }
    for key in calls:
        why = "An active guideline calls for it." if key in due else "Nothing calls for it now."
        proposed = [_call(due[key], why)] if key in due else []
        answers[key] = {"subtleties_to_be_aware_of": why, "tool_calls_for_candidate_tool": proposed}
    return answers


def _call(proposal: Proposal, why: str) -> dict[str, Any]:
    decisions = {"arguments": proposal.decisions()} if proposal.arguments else {}
    return {"applicability_rationale": why, "score": 9, **decisions, "should_run": True}
