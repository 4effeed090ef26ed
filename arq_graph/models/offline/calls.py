"""Deciding on tool calls: the answers to the tool caller's queries (ARQ paper, 5.1.2 and Appendix B)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.claims import find_each
from arq_graph.models.offline.filling import expanded, properties_of
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.guessing import need_in_words
from arq_graph.models.offline.records import Found
from arq_graph.models.offline.relevance import CALLED_FOR_FROM, Relevance
from arq_graph.models.offline.roles import NAMED
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.values import any_given
from arq_graph.models.offline.waiting import Waiting
from arq_graph.models.offline.wanted import Wanted, wanted_of
from arq_graph.models.offline.words import stem

MAX_CALLS = 8
_CALLS = "tool_calls_for_candidate_tool"
_LASTING = ("identifier", "email", "phone", "person")
_SPELT = ("choice", "email", "url")
"""Kinds of value that are told apart by their letters alone."""
_REPEATABLE = ("identifier", "choice", "thing", "place", "email")


def propose_calls(scene: Scene, properties: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The answers for every tool of the prompt that is asked for.

    Args:
        scene: The conversation.
        properties: The properties of the answer; the tools are among them.
        schema: The whole schema, for references.
    """
    answers: dict[str, Any] = {
        "last_customer_message": scene.last.text,
        "most_recent_customer_inquiry_or_need": need_in_words(scene),
        "most_recent_customer_inquiry_or_need_was_already_resolved": _is_resolved(scene),
    }
    reasons = []
    for tool in scene.prompt.entries("tools"):
        name = str(tool.get("name"))
        if name in properties:
            fields = properties_of(properties[name], schema)
            candidate = Candidate(tool, scene, properties_of(fields.get(_CALLS, {}), schema), schema)
            answers[name] = candidate.answers()
            reasons.append(f"{name}: {candidate.relevance.why}")
    return {**answers, "reasoning": " ".join(reasons)}


def _is_resolved(scene: Scene) -> bool:
    """Whether results of this turn have answered the need already."""
    return any(not Finding(line).failed for line in scene.fresh_results)


@dataclass(frozen=True)
class Candidate:
    """One tool that may be called.

    Args:
        tool: The tool as the prompt describes it.
        scene: The conversation.
        fields: The properties of one proposed call.
        schema: The whole schema, for references.
    """

    tool: Mapping[str, Any]
    scene: Scene
    fields: Mapping[str, Any]
    schema: Mapping[str, Any]

    @cached_property
    def relevance(self) -> Relevance:
        """How much it is called for."""
        return Relevance(self.tool, self.scene)

    @cached_property
    def wanted(self) -> dict[str, Wanted]:
        """Its arguments, by the property that asks for each."""
        described = {
            str(a.get("key") or a.get("name")): a
            for a in self.tool.get("arguments") or ()
            if isinstance(a, Mapping)
        }
        decisions = properties_of(self.fields.get("arguments", {}), self.schema)
        wanted = {
            key: self._argument(key, decision, described.get(key, {})) for key, decision in decisions.items()
        }
        acted_on = next((key for key, each in wanted.items() if self._is_acted_on(each)), None)
        return {key: replace(each, is_acted_on=key == acted_on) for key, each in wanted.items()}

    def _is_acted_on(self, wanted: Wanted) -> bool:
        """Whether an argument is what the tool does that to: as its name says, or the first where it says nothing."""
        object = {stem(word) for word in self.relevance.tool_name.object.split()}
        return wanted.kind in NAMED and (not object or bool(object & wanted.objects))

    def _argument(self, key: str, decision: Mapping[str, Any], described: Mapping[str, Any]) -> Wanted:
        value = expanded(properties_of(decision, self.schema).get("value", {}), self.schema)
        words = str(described.get("description") or decision.get("description") or "")
        kind = str(described.get("type") or "")
        name = str(described.get("name") or key)
        wanted = wanted_of(name, value, words, bool(described.get("required")), shown_type=kind)
        return replace(wanted, deeds=self.relevance.tool_name.deeds)

    def answers(self) -> dict[str, Any]:
        """The answers about this candidate."""
        calls = list(self._calls())[:MAX_CALLS] if self._is_asked_for else []
        return {"subtleties_to_be_aware_of": self._subtleties(calls), _CALLS: calls}

    @property
    def _is_asked_for(self) -> bool:
        now = self.scene.prompt.now
        return "candidates" not in now or self.relevance.name in self.scene.prompt.ids("candidates")

    def _subtleties(self, calls: Sequence[Mapping[str, Any]]) -> str:
        missing = self._missing(calls[0]) if calls else []
        if missing:
            return f"Nothing tells the {' or the '.join(missing)}; it must not be guessed."
        return "Only values that somebody gave may be passed." if calls else self.relevance.why

    def _missing(self, call: Mapping[str, Any]) -> list[str]:
        given = call["arguments"]
        return [
            wanted.label for key, wanted in self.wanted.items() if wanted.required and not given[key]["given"]
        ]

    def _calls(self) -> Iterator[dict[str, Any]]:
        waiting, last = self._waiting, self.scene.last
        if waiting.calls:
            if waiting.agreed and not self._is_told_otherwise:
                for arguments in waiting.agreed:
                    yield self._call(self._put(arguments), 10, last.id, "The customer agrees to it.")
                return
            if dialogue.says_no(last.text) and not self._is_corrected:
                return
            if dialogue.hesitates(last.text) and not self._is_told_otherwise:
                for arguments in waiting.calls:
                    yield self._call(
                        self._put(arguments), 8, None, "The customer has not said yes to it yet."
                    )
                return
        is_put_otherwise = waiting.calls and self.scene.answers(last) and self._is_told_otherwise
        if self.relevance.degree < CALLED_FOR_FROM and not is_put_otherwise:
            return
        score = 8 if is_put_otherwise else round(self.relevance.degree * 10)
        for values in self._combinations():
            yield self._call(values, score, None, self.relevance.why)

    @cached_property
    def _waiting(self) -> Waiting:
        return Waiting(self.scene, self.relevance.tool_name)

    @cached_property
    def _is_corrected(self) -> bool:
        """Whether the last message gives another value for an argument that was put to the customer."""
        return any(self._is_changed(key) for key in self._found)

    @cached_property
    def _is_told_otherwise(self) -> bool:
        """Whether it names a value that was not put."""
        return self._waiting.names_another or any(
            self._is_changed(key) for key in self._found if self.wanted[key].kind in _SPELT
        )

    def _is_changed(self, key: str) -> bool:
        put = [arguments.get(self.wanted[key].name) for arguments in self._waiting.calls]
        return any(
            found.source == self.scene.last.id and found.value not in put for found in self._found[key]
        )

    def _put(self, arguments: Mapping[str, Any]) -> dict[str, Found]:
        return {
            key: Found(arguments[wanted.name], self.scene.last.id, "as it was put to the customer")
            for key, wanted in self.wanted.items()
            if wanted.name in arguments
        }

    @cached_property
    def _found(self) -> dict[str, tuple[Found, ...]]:
        """The values of each argument.

        A new value for one of them makes this another request: what was said for the one before does not count
        for it, save who the customer is.
        """
        found = self._found_anywhere
        here = {line.id for line in self.scene.inquiry}
        if not any(self._is_renewed(key, values, here) for key, values in found.items()):
            return found
        said = {line.id for line in self.scene.customer} - here
        return {
            key: values
            if self.wanted[key].kind in _LASTING
            else tuple(value for value in values if value.source not in said)
            for key, values in found.items()
        }

    def _is_renewed(self, key: str, values: Sequence[Found], here: Collection[str]) -> bool:
        """Whether the open need gives a value other than the one given for an earlier need."""
        if not values or values[0].source not in here:
            return False
        earlier = [line for line in self.scene.customer if line.id not in here]
        before = any_given(self.wanted[key], reversed(earlier), self.scene)
        return before is not None and before.value not in [found.value for found in values]

    @cached_property
    def _found_anywhere(self) -> dict[str, tuple[Found, ...]]:
        return dict(zip(self.wanted, find_each(tuple(self.wanted.values()), self.scene), strict=True))

    def _combinations(self) -> Iterator[dict[str, Found]]:
        """One set of values for each call: several where an argument was given several values."""
        several = {
            key: values
            for key, values in self._found.items()
            if len(values) > 1
            and self.wanted[key].kind in _REPEATABLE
            and (self.relevance.only_reads or self.wanted[key].kind == "identifier")
        }
        calls = max((len(values) for values in several.values()), default=1)
        for number in range(calls):
            yield {
                key: values[number]
                if key in several and number < len(values)
                else values[-1 if self.wanted[key].kind == "choice" else 0]
                for key, values in self._found.items()
                if values
            }

    def _call(
        self, values: Mapping[str, Found], score: int, affirmed_in: str | None, why: str
    ) -> dict[str, Any]:
        arguments = {self.wanted[key].name: found.value for key, found in values.items()}
        staged = self._made(arguments, self._results_of_this_need)
        done = (
            None
            if staged or self.relevance.only_reads or self.relevance.is_required
            else self._made(arguments, self.scene.known_results)
        )
        others = self.scene.prompt.ids("other_candidates")
        if staged:
            why = f"Its result is here already: {staged.id}."
        elif done and not affirmed_in:
            why = f"It was done before: {done.id}."
        return {
            "applicability_rationale": why,
            "relevant_subtleties": None,
            "comparison_with_other_candidates": f"Judged apart from {', '.join(others)}." if others else None,
            "potentially_better_tool_rationale": None,
            "score": score,
            "arguments": {
                key: self._decision(wanted, values.get(key)) for key, wanted in self.wanted.items()
            },
            "same_call_is_already_staged": staged is not None,
            "potentially_better_tool_name": None,
            "better_tool_should_run_in_tandem": False,
            "repeat_is_justified": False,
            "should_run": staged is None and (done is None or affirmed_in is not None),
            "affirmed_in": affirmed_in,
        }

    @property
    def _results_of_this_need(self) -> tuple[Line, ...]:
        """What tools found since the open need came up, as long as the customer only answers questions about it.

        What has to be called first was not called in this turn, whatever it found before.
        """
        if self.relevance.is_required or not self.scene.answers(self.scene.last):
            return self.scene.fresh_results
        start = self.scene.index_of(self.scene.inquiry[-1].id) if self.scene.inquiry else 0
        return tuple(line for line in self.scene.lines[max(start, 0) :] if line.speaker == "tool")

    def _made(self, arguments: Mapping[str, Any], results: Sequence[Line]) -> Line | None:
        """The result of the same call, if it was made and did not fail."""
        same = _signature(arguments)
        for line in results:
            is_same = line.tool == self.relevance.name and _signature(line.arguments) == same
            if is_same and (self.scene.is_fresh(line) or not Finding(line).failed):
                return line
        return None

    def is_known(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the result of the same call stands in the conversation already."""
        return self._made(arguments, self.scene.known_results) is not None

    def _decision(self, wanted: Wanted, found: Found | None) -> dict[str, Any]:
        value = found.value if found else None
        if found and wanted.as_json:
            value = json.dumps(found.value, ensure_ascii=False)
        return {
            "value_in_context": f"{found.source}: {found.quote}" if found else None,
            "customer_should_provide_it": found is None and wanted.required,
            "already_provided_and_needed_again": None,
            "problematic_to_guess": wanted.required,
            "given": found is not None,
            "value": value,
        }


def _signature(arguments: Mapping[str, Any]) -> str:
    given = {key: value for key, value in arguments.items() if value is not None}
    return json.dumps(given, sort_keys=True, default=str)
