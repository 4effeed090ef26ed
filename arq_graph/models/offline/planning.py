"""Planning offline: the calls that the need asks for, one after the other, and another way after a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from arq_graph.models.offline.calls import Candidate
from arq_graph.models.offline.filling import properties_of, resolved
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.guessing import need_in_words
from arq_graph.models.offline.planned import PossibleCall
from arq_graph.models.offline.replies import Reply
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.toolnames import ToolName, name_of
from arq_graph.models.offline.wording import joined


def plan_next(scene: Scene, schema: Mapping[str, Any], *, one_by_one: bool = False) -> dict[str, Any]:
    """The answers to a planner's queries.

    Args:
        scene: The conversation.
        schema: The schema of the answer; its `action` names the tools.
        one_by_one: Whether calls are put to the customer one at a time.
    """
    return _Planning(scene, schema, one_by_one).answers()


@dataclass(frozen=True)
class _Planning:
    scene: Scene
    schema: Mapping[str, Any]
    one_by_one: bool = False

    @cached_property
    def _steps(self) -> tuple[PossibleCall, ...]:
        """The calls that the need asks for: what is required first, then what only reads, what changes something."""
        found = [step for step in self._proposed() if step.call["should_run"]]
        if required := [step for step in found if step.candidate.relevance.is_required]:
            return tuple(required)
        is_done = any(not name_of(line).only_reads for line in self.scene.fresh_results)
        if affirmed := [step for step in found if step.call["affirmed_in"]]:
            return tuple(affirmed)  # a yes is to what was asked, and to nothing else
        if self.scene.accepted and is_done:
            # What the customer has just agreed to is done; what is still to be put to them is put now.
            return tuple(step for step in found if self.one_by_one and step.needs_agreement)
        if is_done or any(
            not step.name.only_reads and (self._is_doubtful(step) or not step.missing) for step in found
        ):
            # Where all is there to do it, or it is asked whether to, nothing is asked besides to look it up,
            # nor is it looked up again.
            found = [
                step
                for step in found
                if not step.name.only_reads
                or not (self._is_doubtful(step) or step.missing or step.candidate.is_known(step.values))
            ]
        return tuple(sorted(found, key=lambda step: (not step.name.only_reads, -step.call["score"])))

    def _proposed(self) -> Iterator[PossibleCall]:
        now = self.scene.prompt.now
        names = self.scene.prompt.ids("candidates")
        for tool in self.scene.prompt.entries("tools"):
            name = str(tool.get("name"))
            key = str(tool.get("key") or name)
            fields = self._fields(key)
            if name not in names or fields is None:
                continue
            others = [other for other in names if other != name]
            sections = {**self.scene.prompt.sections, "now": {**now, "other_candidates": others}}
            scene = Scene(replace(self.scene.prompt, sections=sections))
            candidate = Candidate(tool, scene, fields, self.schema)
            for call in candidate.answers()["tool_calls_for_candidate_tool"]:
                yield PossibleCall(key, candidate, call)

    def _fields(self, key: str) -> Mapping[str, Any] | None:
        action = resolved(properties_of(self.schema, self.schema).get("action", {}), self.schema)
        for option in action.get("anyOf", ()):
            asked = properties_of(option, self.schema)
            if key in asked:
                return properties_of(asked[key], self.schema)
        return None

    @property
    def _failed(self) -> set[str]:
        """Tools that failed in this turn."""
        return {line.tool for line in self.scene.fresh_results if Finding(line).failed}

    @cached_property
    def _open(self) -> tuple[PossibleCall, ...]:
        """What is still to be called: after a failure only by another tool, and only what changes nothing by itself."""
        if self.scene.prompt.complaints or self.scene.prompt.now.get("steps_left") == 0:
            return ()
        failed = self._failed
        return tuple(
            step
            for step in self._steps
            if not step.missing
            and (not failed or step.call["affirmed_in"] or self._is_harmless(step, failed))
        )

    def _is_harmless(self, step: PossibleCall, failed: set[str]) -> bool:
        return step.tool not in failed and (step.name.only_reads or self._is_asked_first(step))

    def _is_asked_first(self, step: PossibleCall) -> bool:
        """Whether the customer has to agree before the call runs."""
        return self._is_doubtful(step) or step.needs_agreement

    @cached_property
    def _observation(self) -> str | None:
        results = self.scene.fresh_results
        if not results:
            return None
        newest = Finding(results[-1])
        if newest.failed:
            return "failed"
        found_nothing = newest.is_empty and name_of(results[-1]).only_reads
        return "empty" if found_nothing else "as_expected"

    @property
    def _newest(self) -> str:
        return self.scene.fresh_results[-1].id if self.scene.fresh_results else ""

    def answers(self) -> dict[str, Any]:
        """The answers, by query."""
        steps, plan = self._open, self.scene.prompt.sections.get("plan")
        remaining = plan.get("steps") if isinstance(plan, Mapping) else None
        differs = self._observation not in (None, "as_expected")
        return {
            "last_customer_message": self.scene.last.text,
            "request": need_in_words(self.scene),
            "plan_so_far": _in_words(remaining),
            "newest_result": f"{self._newest}: {self.scene.fresh_results[-1].text[:200]}"
            if self._newest
            else None,
            "result_against_expectation": self._compared if self._newest else None,
            "values_at_hand": self._values,
            "previous_steps": self._done or None,
            "observation": self._observation,
            "change": self._change if differs and remaining else None,
            "next_steps": [*map(_shown, steps), self._last_step],
            "thought": f"{self._compared} {need_in_words(self.scene)}".strip(),
            "action": steps[0].action(self.scene) if steps else {"final_answer": self._final_answer},
            "answer_rests_on_this_prompt": True,
            "reasoning": f"{need_in_words(self.scene)} {self._compared}".strip(),
        }

    @property
    def _compared(self) -> str:
        how = {"failed": "failed", "empty": "found nothing", "as_expected": "told what was asked of it"}
        return f"{self._newest} {how[self._observation]}." if self._observation else ""

    @property
    def _values(self) -> str:
        at_hand = [
            f"{self._label(step, key)}: {each['value_in_context']}"
            for step in self._steps
            for key, each in step.call["arguments"].items()
            if each["given"]
        ]
        return "; ".join(dict.fromkeys(at_hand)) or "None is needed, or none is here."

    @staticmethod
    def _label(step: PossibleCall, key: str) -> str:
        return step.candidate.wanted[key].label

    @property
    def _done(self) -> str:
        how = {True: "which failed", False: "which told what it could"}
        return "; ".join(
            f"tried to {ToolName(line.tool).as_order}, {how[Finding(line).failed]} ({line.id})"
            for line in self.scene.fresh_results
        )

    @property
    def _change(self) -> dict[str, str]:
        instead = f"{self._open[0].name.as_order} in its place" if self._open else self._last_step["step"]
        return {"what": f"What was to come next is left out; now: {instead}.", "why": self._compared}

    @property
    def _last_step(self) -> dict[str, Any]:
        asked = [str(entry["argument"]) for entry in self._asks_for if entry["argument"]]
        if self._open and not self._failed:
            step, reason = "tell the customer what came of it", "Then what was asked for is done."
        elif asked:
            step, reason = f"ask for the {joined(asked)}".replace("_", " "), "Nothing here tells it."
        elif self._asks_for:
            step, reason = "ask whether to go ahead", "It is not done without the customer's word."
        elif self._observation == "failed" or self._failed:
            step, reason = "say that it did not work", f"{self._compared} The same call would fail again."
        elif self._observation == "empty":
            step, reason = "say that nothing was found", self._compared
        else:
            step, reason = "answer the customer", "No call is left to make."
        return {"step": step, "reason": reason, "tool": None}

    @cached_property
    def _waiting(self) -> tuple[PossibleCall, ...]:
        """The calls that need something of the customer before they can be made."""
        waiting = tuple(
            step
            for step in self._steps
            if step.tool not in self._failed and (step.missing or self._is_asked_first(step))
        )
        put = [step for step in waiting if not step.missing]
        return tuple(put[:1]) if put and self.one_by_one else waiting

    def _is_doubtful(self, step: PossibleCall) -> bool:
        return "another_request" in step.bases(self.scene).values()

    @property
    def _asks_for(self) -> list[dict[str, Any]]:
        return [
            {"tool": step.tool, "argument": argument}
            for step in self._waiting
            for argument in [*step.missing, *([] if step.missing else [None])]
        ]

    @property
    def _final_answer(self) -> dict[str, Any]:
        insights = [insight for step in self._waiting for insight in step.insights()]
        sections = {**self.scene.prompt.sections, **({"insights": insights} if insights else {})}
        text = Reply(Scene(replace(self.scene.prompt, sections=sections))).text
        return {"asks_for": self._asks_for, "answer": text}


def _shown(step: PossibleCall) -> dict[str, Any]:
    return {"step": step.name.as_order, "reason": step.candidate.relevance.why, "tool": step.tool}


def _in_words(steps: Any) -> str | None:
    if not isinstance(steps, list) or not steps:
        return None
    return "; ".join(str(step.get("description")) for step in steps if isinstance(step, Mapping))
