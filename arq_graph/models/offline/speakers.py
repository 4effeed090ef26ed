"""Speaking offline: the calls that the need asks for, a question for what they lack, an action that fits the goal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.filling import properties_of
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.guessing import need_in_words
from arq_graph.models.offline.planning import plan_next
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.wording import joined, sentence
from arq_graph.models.offline.words import in_words, overlap

_STUCK = "I am not sure how to go on."
_NEXT = ("What should I do next?", "And what should I do after that?")
"""Ways to ask for the next action, since nothing may be asked twice in a row."""
MAX_SHOWN = 200
_STILL_STUCK = "I could not find a way to reach this, I am afraid."
MAX_REPEATED = 2


def next_move(scene: Scene, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The answers to a speaker's queries.

    Args:
        scene: The conversation.
        schema: The schema of the answer; its `move` names the tools.
    """
    return _Speaking(scene, schema).answers()


@dataclass(frozen=True)
class _Speaking:
    scene: Scene
    schema: Mapping[str, Any]

    @cached_property
    def _world(self) -> Mapping[str, Any] | None:
        found = self.scene.prompt.sections.get("world")
        return found if isinstance(found, dict) else None

    @cached_property
    def _plan(self) -> dict[str, Any]:
        """What a planner would do: the move is its action."""
        properties = properties_of(self.schema, self.schema)
        as_plan = {**self.schema, "properties": {**properties, "action": properties.get("move", {})}}
        return plan_next(self.scene, as_plan, one_by_one=True)

    def answers(self) -> dict[str, Any]:
        """The answers, by query."""
        need = need_in_words(self.scene)
        move = self._move
        asks = "speak" in move and move["speak"]["asks"]
        return {
            "last_customer_message": self.scene.last.text,
            "goal": need,
            "known": self._plan["values_at_hand"],
            "uncertain": move["speak"]["utterance"] if asks else None,
            "can_find_out": None,
            "question_is_worth_it": bool(asks),
            "reasoning": need,
            "move": move,
        }

    @cached_property
    def _move(self) -> dict[str, Any]:
        action = self._plan["action"]
        if "final_answer" not in action:
            return {key: each for key, each in action.items() if key != "final_answer"}
        if self._world is not None and not self._world.get("done"):
            return self._in_world()
        answer = action["final_answer"]
        text = str(answer["answer"])
        if "?" in text and self.scene.prompt.now.get("questions_left") == 0:
            return self._speech(self._without_asking(answer["asks_for"]), [])
        return self._speech(text if "?" in text else f"{text} {self._by_policy}".strip(), answer["asks_for"])

    def _without_asking(self, asks_for: list[dict[str, Any]]) -> str:
        """How things stand, where enough was asked in a row."""
        lacking = [in_words(str(entry["argument"])) for entry in asks_for if entry["argument"]]
        needed = f"the {joined(lacking)}" if lacking else "your answer"
        ways = (f"I cannot go on without {needed}.", f"As soon as I have {needed}, I will go on.")
        said = self.scene.agent[-1].text if self.scene.agent else ""
        return next(way for way in ways if way != said)

    @property
    def _by_policy(self) -> str:
        """The question that a policy wants, as far as the situation that the prompt notes tells."""
        now = self.scene.prompt.now
        if now.get("questions_left") == 0:
            return ""
        policies = {entry.get("name") for entry in self.scene.prompt.entries("policies")}
        newest = self.scene.fresh_results[-1].id if self.scene.fresh_results else None
        if newest in (now.get("empty") or ()) and "widen_no_results" in policies:
            return "Shall I look for something else?"
        if now.get("too_many") and not now.get("told_to_pick") and "narrow_many_results" in policies:
            return "What matters most to you?"
        if now.get("half_request") and "complete_half_requests" in policies:
            return "How does that go on?"
        return ""

    def _in_world(self) -> dict[str, Any]:
        """The possible action that has most to do with the goal, and was not tried more than another."""
        assert self._world is not None
        listed = self._world.get("actions")
        tried = Counter(str(line.arguments.get("action")) for line in self.scene.lines if line.tool == "act")
        if isinstance(listed, list) and self._has_steps:
            open_ones = [str(each) for each in listed if tried[str(each)] < MAX_REPEATED]
            if open_ones:
                return {"act": {"action": max(open_ones, key=lambda each: self._promise(each, tried))}}
        elif self._has_steps and self.scene.answers(self.scene.last) and not self.scene.fresh_results:
            return {"act": {"action": self.scene.last.text.strip().rstrip(".!").lower()}}
        may_ask = self.scene.prompt.now.get("questions_left") != 0 and self._has_steps
        if not may_ask or self.scene.prompt.complaints:
            return self._speech(_STILL_STUCK, [])
        asked = [line.text for line in self.scene.agent[-1:]]
        question = next((way for way in _NEXT if not any(way in text for text in asked)), _NEXT[0])
        return self._speech(f"{self._shown} {question}", [])

    @property
    def _shown(self) -> str:
        """What the last action of this turn showed."""
        acted = [line for line in self.scene.fresh_results if line.tool == "act"]
        if not acted:
            return _STUCK
        action, shown = (
            str(acted[-1].arguments.get("action") or ""),
            acted[-1].text[:MAX_SHOWN].replace("?", "."),
        )
        return f"{sentence(f'I did this: {action}')} {sentence(shown)}"

    @property
    def _has_steps(self) -> bool:
        return self.scene.prompt.now.get("steps_left") != 0

    def _promise(self, action: str, tried: Mapping[str, int]) -> float:
        said = max((overlap(action, line.text) for line in self.scene.customer), default=0.0)
        seen = self.scene.lines[-1].text if self.scene.lines else ""
        return said + 0.2 * overlap(action, seen) - tried.get(action, 0)

    def _speech(self, text: str, asks_for: list[dict[str, Any]]) -> dict[str, Any]:
        asks = "?" in text or bool(asks_for)
        results = self.scene.fresh_results
        newest = Finding(results[-1]) if results else None
        fails = text == _STILL_STUCK or bool(newest and (newest.failed or newest.is_empty))
        facts = [{"fact": text, "source": results[-1].id}] if results and not asks else []
        return {
            "speak": {
                **self._act_of_speech(asks, fails),
                "asks_for": asks_for,
                "utterance": text,
                "facts": facts,
                "promises": [],
                "asks": asks,
                "mentions_failure": fails,
                "closes": not fails and dialogue.takes_leave(self.scene.last.text),
                "states_belief": False,
                "offers_choice": False,
                "ends_task": not asks,
            }
        }

    def _act_of_speech(self, asks: bool, fails: bool) -> dict[str, str]:
        """Of the acts that speech is limited to, the one whose description is most like what is said."""
        acts = self.scene.prompt.sections.get("dialogue_acts")
        if not isinstance(acts, dict) or not acts:
            return {}
        wanted = (
            "ask what is to be done"
            if asks
            else "say that it did not work"
            if fails
            else "tell anything else"
        )
        return {"dialogue_act": max(acts, key=lambda name: overlap(wanted, str(acts[name])))}
