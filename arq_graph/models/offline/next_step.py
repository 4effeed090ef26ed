"""The next step of a planner or a speaker: a call as soon as its arguments are found, else an answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.reply import Reply, Wanted
from arq_graph.models.offline.stems import share, stems
from arq_graph.models.offline.tool_choice import Proposal, Tools


def options_of(schema: Mapping[str, Any], kinds: Instances) -> dict[str, Mapping[str, Any]]:
    """What each option of a choice asks, by the one property of the option."""
    choice = kinds.resolved(schema)
    options = [kinds.asked(option) for option in choice.get("anyOf") or [choice]]
    return {name: kinds.asked(asked) for option in options for name, asked in option.items()}


@dataclass(frozen=True)
class Step:
    """What is done next.

    Args:
        prompt: The prompt.
        options: What each option asks, by its property.
        kinds: Fills the schema that they belong to.
    """

    prompt: Prompt
    options: Mapping[str, Mapping[str, Any]]
    kinds: Instances

    @cached_property
    def _due(self) -> list[Proposal]:
        return Tools(self.prompt, self.options, self.kinds).due

    @cached_property
    def ready(self) -> list[Proposal]:
        """The calls that can be made now."""
        return (
            [each for each in self._due if not each.missing] if self.prompt.now.get("steps_left", 1) else []
        )

    @cached_property
    def reply(self) -> Reply:
        """The answer, where nothing is called."""
        wanted = [
            Wanted(each.name, argument.name, argument.description)
            for each in self._due
            for argument in each.missing
        ]
        return Reply(self.prompt, tuple(wanted))

    @property
    def asks_for(self) -> list[dict[str, Any]]:
        """What the answer asks the customer for."""
        return [
            {"tool": each.name, "argument": argument.name} for each in self._due for argument in each.missing
        ]

    def call(self) -> dict[str, Any]:
        """The first call that can be made, as an option."""
        first = self.ready[0]
        made = {"arguments": first.decisions(), "expected": f"What {first.name} tells.", "go_ahead": True}
        return {first.key: made}


def plan(prompt: Prompt, action: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to a planner's queries: the calls that can be made, and the final answer."""
    step = Step(prompt, options_of(action, kinds), kinds)
    newest = prompt.results[-1] if prompt.results else None
    failed = newest is not None and (newest.failed or newest.id in prompt.listed("failed"))
    empty = newest is not None and newest.id in prompt.listed("empty")
    outcome = "failed" if failed else "empty" if empty else "as_expected"
    why = "An active guideline or the customer's words call for it."
    steps: list[dict[str, Any]] = [
        {"step": f"call {each.name}", "reason": why, "tool": each.name} for each in step.ready
    ]
    telling = f"tell what was found{f' ({outcome})' if failed or empty else ''}"
    steps.append({"step": telling, "reason": "Then all that can be done now is done.", "tool": None})
    final = {"final_answer": {"asks_for": step.asks_for, "answer": step.reply.text}}
    return {
        "thought": f"Next: {steps[0]['step']}.",
        "last_customer_message": prompt.request,
        "request": prompt.request,
        "newest_result": f"{newest.id}: {newest.text[:200]}" if newest else None,
        "previous_steps": ", ".join(f"{line.tool} ({line.id})" for line in prompt.results) or None,
        "observation": outcome if newest else None,
        "change": {"what": telling, "why": f"{newest.id}: {outcome}"}
        if newest and (failed or empty)
        else None,
        "next_steps": steps,
        "action": step.call() if step.ready else final,
        "answer_rests_on_this_prompt": True,
    }


def move(prompt: Prompt, options: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to a speaker's queries: a call, an action in a world, or an utterance."""
    step = Step(prompt, options_of(options, kinds), kinds)
    failed = any(line.failed for line in prompt.results)
    spoken = {
        "speak": {
            "asks_for": step.asks_for,
            "utterance": step.reply.text,
            "asks": step.reply.asks,
            "facts": [],
            "promises": [],
            "mentions_failure": failed,
            "ends_task": not step.reply.asks,
        }
    }
    action = _action(prompt) if "act" in step.options and prompt.now.get("steps_left", 1) else None
    made = step.call() if step.ready else {"act": {"action": action}} if action else spoken
    return {
        "last_customer_message": prompt.request,
        "goal": prompt.request,
        "question_is_worth_it": step.reply.asks,
        "move": made,
    }


def _action(prompt: Prompt) -> str | None:
    """The action of the world that shares most words with the goal and was not taken yet."""
    world = prompt.sections.get("world")
    actions = [each for each in (world or {}).get("actions") or () if isinstance(each, str)]
    taken = [line.arguments.get("action") for line in prompt.results]
    goal = stems(prompt.request)
    left = [each for each in actions if each not in taken]
    best = max(left, key=lambda each: share(stems(each), goal, {}), default=None)
    return best if best and share(stems(best), goal, {}) > 0 else None
