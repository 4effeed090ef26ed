"""Choosing what to do: what an active guideline grants is called as soon as its arguments are found, else answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.models.offline.activation import is_constant
from arq_graph.models.offline.arguments import Argument, asked_for
from arq_graph.models.offline.instance import Instances
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.reply import Reply
from arq_graph.models.offline.stems import share, stems


class Proposal:
    """A call of one tool: its entry in the prompt, the property that asks about it, and its arguments."""

    def __init__(self, entry: Mapping[str, Any], key: str, arguments: Sequence[Argument]) -> None:
        self.entry = entry
        self.name = str(entry["name"])
        self.key = key
        self.arguments = arguments
        self.missing = [each for each in arguments if each.is_required and each.found is None]
        self.values = {each.name: each.found.value for each in arguments if each.found}

    def decisions(self) -> dict[str, Any]:
        """The answer to what is asked about each argument."""
        return {each.key: _decision(each) for each in self.arguments}


def _decision(argument: Argument) -> dict[str, Any]:
    if (found := argument.found) is None:
        return {"given": False, "basis": "nobody", "customer_should_provide_it": True}
    basis = "this_request" if found.is_said else "known"
    return {"value_in_context": found.source, "basis": basis, "given": True, "value": found.value}


def due_calls(prompt: Prompt, calls: Mapping[str, Mapping[str, Any]], kinds: Instances) -> list[Proposal]:
    """The calls to make, in the agent's order: called for, and neither made nor waiting yet.

    `calls` has what is asked about a call of each tool, by the property that asks it.
    """
    listed = [entry for entry in prompt.entries("tools") if entry.get("name") in prompt.listed("candidates")]
    proposals = [each for entry in listed if (each := _proposal(prompt, entry, calls, kinds))]
    spoken_of = _spoken_of(prompt, [each for each in proposals if not each.entry.get("granted_by")])
    wanted = [each for each in proposals if each in spoken_of or _is_granted(prompt, each, len(listed))]
    return [each for each in wanted if not _is_done(prompt, each)]


def _proposal(
    prompt: Prompt, entry: Mapping[str, Any], calls: Mapping[str, Mapping[str, Any]], kinds: Instances
) -> Proposal | None:
    keys = (entry.get("key"), entry["name"], f"tool_{entry['name']}")
    key = next((each for each in keys if each in calls), None)
    if key is None:
        return None
    asked = kinds.asked(calls[key].get("arguments"))
    arguments = []
    for argument in entry.get("arguments") or ():
        value = kinds.asked(asked.get(argument.get("key") or argument["name"])).get("value")
        arguments.append(Argument(argument, value, prompt, kinds))
    return Proposal(entry, key, arguments)


def _is_granted(prompt: Prompt, proposal: Proposal, candidates: int) -> bool:
    is_alone = candidates == 1 and not prompt.listed("other_candidates")
    for guideline in proposal.entry.get("granted_by") or ():
        condition = guideline.get("condition")
        said = stems(f"{condition} {guideline.get('action')} {prompt.request}")
        is_active = guideline.get("id") in prompt.listed("active") and not is_constant(condition)
        if is_active and (is_alone or stems(proposal.name) & said):
            return True
    return False


def _spoken_of(prompt: Prompt, free: Sequence[Proposal]) -> list[Proposal]:
    """Tools that no guideline has to grant: those whose own words the customer says, or that were just asked about.

    Where the words fit several tools alike, the only harmless one will do.
    """
    about = [stems(f"{each.name} {each.entry.get('description') or ''}") for each in free]
    tools_of, said = Counter(stem for own in about for stem in own), stems(prompt.request)
    # The fewer tools a stem stands in, the better it tells them apart.
    score = {
        each.name: sum(1 / tools_of[stem] for stem in own & said)
        for each, own in zip(free, about, strict=True)
    }
    answered = [each for each in free if any(a.was_asked_for and a.found for a in each.arguments)]
    clear = [each for each in free if score[each.name] >= 1 or each in answered]
    harmless = [each for each in free if score[each.name] and not each.entry.get("needs_agreement")]
    return clear or (harmless if len(harmless) == 1 else [])


def _is_done(prompt: Prompt, proposal: Proposal) -> bool:
    """Whether this very call was made in this turn, waits for a yes, or was refused, or its tool failed."""
    if any(f".{proposal.key}" in place for place in prompt.complaints):
        return True
    made = [line for line in prompt.results if line.tool == proposal.name]
    if any(line.failed or dict(line.arguments).items() <= proposal.values.items() for line in made):
        return True
    waiting = [each for each in prompt.waiting if each.get("tool") == proposal.name]
    return any(proposal.values.items() <= each.get("arguments", {}).items() for each in waiting)


def candidate_answers(prompt: Prompt, properties: Mapping[str, Any], kinds: Instances) -> dict[str, Any]:
    """The answers to the tool caller's queries, by the property of each tool."""
    lists = {
        name: kinds.asked(each).get("tool_calls_for_candidate_tool") for name, each in properties.items()
    }
    calls = {name: kinds.asked(kinds.resolved(each).get("items")) for name, each in lists.items() if each}
    answers: dict[str, Any] = {name: prompt.request for name in properties if name not in calls}
    answers |= {name: {"subtleties_to_be_aware_of": "Nothing calls for it now."} for name in calls}
    for due in due_calls(prompt, calls, kinds):
        call = {"score": 9, "arguments": due.decisions(), "should_run": True}
        call["applicability_rationale"] = "An active guideline calls for it."
        answers[due.key] = {"tool_calls_for_candidate_tool": [call]}
    return answers


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
