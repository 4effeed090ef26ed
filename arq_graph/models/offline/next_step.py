"""The next step of a planner or a speaker: a call as soon as its arguments are found, else an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arq_graph.models.offline.arguments import asked_for
from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.reply import Reply
from arq_graph.models.offline.stems import share, stems
from arq_graph.models.offline.tool_choice import Proposal, due_calls


class Step:
    """What can be done next, of options with one property each: the calls that are ready, and the reply."""

    def __init__(self, prompt: Prompt, choice: Mapping[str, Any], kinds: Instances) -> None:
        options = [kinds.asked(option) for option in kinds.resolved(choice).get("anyOf") or [choice]]
        self.options = {name: kinds.asked(asked) for option in options for name, asked in option.items()}
        due = due_calls(prompt, self.options, kinds)
        missing = [(each, argument) for each in due for argument in each.missing]
        self.may_act = bool(prompt.now.get("steps_left", 1))
        self.ready = [each for each in due if not each.missing and self.may_act]
        self.reply = Reply(prompt, [(each.name, asked_for(a.name, a.description)) for each, a in missing])
        self.asks_for = [{"tool": each.name, "argument": argument.name} for each, argument in missing]


def _call(proposal: Proposal) -> dict[str, Any]:
    made = {"arguments": proposal.decisions(), "expected": f"What {proposal.name} tells.", "go_ahead": True}
    return {proposal.key: made}


def plan(prompt: Prompt, choice: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to a planner's queries: the calls that can be made, and the final answer."""
    step = Step(prompt, choice, kinds)
    newest = prompt.results[-1] if prompt.results else None
    outcome = "as_expected"
    if newest:
        outcome = next((name for name in ("failed", "empty") if newest.id in prompt.listed(name)), outcome)
    telling = f"tell what was found ({outcome})"
    steps: list[dict[str, Any]] = [
        {"step": f"call {each.name}", "reason": "It is called for.", "tool": each.name} for each in step.ready
    ]
    steps.append({"step": telling, "reason": "Then all that can be done now is done.", "tool": None})
    change = (
        {"what": telling, "why": f"{newest.id} {outcome}"} if newest and outcome != "as_expected" else None
    )
    return {
        "thought": f"Next: {steps[0]['step']}.",
        "last_customer_message": prompt.request,
        "request": prompt.request,
        "newest_result": f"{newest.id}: {newest.text[:200]}" if newest else None,
        "previous_steps": ", ".join(f"{line.tool} ({line.id})" for line in prompt.results) or None,
        "observation": outcome if newest else None,
        "change": change,
        "next_steps": steps,
        "action": _call(step.ready[0])
        if step.ready
        else {"final_answer": {"asks_for": step.asks_for, "answer": step.reply.text}},
        "answer_rests_on_this_prompt": True,
    }


def move(prompt: Prompt, choice: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to a speaker's queries: a call, an action in a world, or an utterance."""
    step = Step(prompt, choice, kinds)
    asks = "?" in step.reply.text
    speak = {
        "asks_for": step.asks_for,
        "utterance": step.reply.text,
        "asks": asks,
        "mentions_failure": any(line.failed for line in prompt.results),
        "ends_task": not asks,
    }
    made: dict[str, Any] = {"speak": speak}
    if step.ready:
        made = _call(step.ready[0])
    elif "act" in step.options and step.may_act and (action := _action(prompt)):
        made = {"act": {"action": action}}
    return {"last_customer_message": prompt.request, "goal": prompt.request, "move": made}


def _action(prompt: Prompt) -> str | None:
    """The action of the world that shares most words with the goal and was not taken yet."""
    goal, taken = stems(prompt.request), [line.arguments.get("action") for line in prompt.results]
    actions = (prompt.sections.get("world") or {}).get("actions") or ()
    fit = [each for each in actions if each not in taken and stems(each) & goal]
    return max(fit, key=lambda each: share(stems(each), goal), default=None)
