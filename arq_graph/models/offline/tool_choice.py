"""Choosing what to do: a tool that an active guideline unlocks is called as soon as its arguments are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.models.offline.activation import is_constant
from arq_graph.models.offline.arguments import Argument
from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.reply import write_reply
from arq_graph.models.offline.schema_filler import SchemaFiller
from arq_graph.models.offline.words import find_common


class ProposedCall:
    """A call of a tool: the tool's entry in the prompt, the property that asks about it, and its arguments."""

    def __init__(self, tool: Mapping[str, Any], key: str, arguments: Sequence[Argument]) -> None:
        self.tool = tool
        self.name = str(tool["name"])
        self.key = key
        self.arguments = arguments
        self.missing: list[Argument] = []
        self.values: dict[str, Any] = {}
        for argument in arguments:
            if argument.found:
                self.values[argument.name] = argument.found.value
            elif argument.is_required:
                self.missing.append(argument)

    def answer_arguments(self) -> dict[str, Any]:
        """Return the answers to the queries about each argument."""
        answers: dict[str, Any] = {}
        for argument in self.arguments:
            answers[argument.key] = {"given": False, "basis": "nobody", "customer_should_provide_it": True}
            if argument.found:
                value, source, basis = argument.found
                answers[argument.key] = {
                    "given": True,
                    "value": value,
                    "value_in_context": source,
                    "basis": basis,
                }
        return answers


def find_calls(prompt: Prompt, schemas: Mapping[str, Any], filler: SchemaFiller) -> list[ProposedCall]:
    """Return the calls to make; `schemas` has the queries about a call of each tool, by property."""
    calls = []
    for tool in prompt.get_entries("tools"):
        names = (str(tool.get("key")), tool["name"], f"tool_{tool['name']}")
        keys = [name for name in names if name in schemas]
        if not keys or tool["name"] not in prompt.get_from_tail("candidates"):
            continue
        queries = filler.get_properties(filler.get_properties(schemas[keys[0]]).get("arguments"))
        arguments = []
        for entry in tool.get("arguments") or ():
            query = queries.get(entry.get("key") or entry["name"])
            schema = filler.get_properties(query).get("value")
            arguments.append(Argument(entry, schema, prompt, filler))
        calls.append(ProposedCall(tool, keys[0], arguments))
    due = [call for call in calls if _is_unlocked(prompt, call)]
    due.extend(_find_requested(prompt, [call for call in calls if not call.tool.get("granted_by")]))
    return [call for call in due if not _is_done(prompt, call)]


def _find_requested(prompt: Prompt, calls: Sequence[ProposedCall]) -> list[ProposedCall]:
    """Return the tool that the customer was asked about or names best; of several, the one that needs no agreement."""
    counts = {}
    for call in calls:
        if any(argument.was_asked_for and argument.found for argument in call.arguments):
            return [call]
        description = f"{call.name} {call.tool.get('description')}"
        counts[call.name] = len(find_common(description, prompt.request))
    highest = max(counts.values(), default=0)
    best = [call for call in calls if highest and counts[call.name] == highest]
    if len(best) > 1:
        best = [call for call in best if not call.tool.get("needs_agreement")]
    return best if len(best) == 1 else []


def _is_unlocked(prompt: Prompt, call: ProposedCall) -> bool:
    for guideline in call.tool.get("granted_by") or ():
        if guideline["id"] in prompt.get_from_tail("active") and not is_constant(guideline.get("condition")):
            return True
    return False


def _is_done(prompt: Prompt, call: ProposedCall) -> bool:
    """Return True if the call was made this turn or is pending, if code refused it, or if its tool failed."""
    if any(f".{call.key}" in place for place in prompt.complaints):
        return True
    for line in prompt.results:
        if line.tool == call.name and (line.failed or line.arguments.items() <= call.values.items()):
            return True
    for pending in prompt.pending_calls:
        if pending["tool"] == call.name and call.values.items() <= pending["arguments"].items():
            return True
    return False


def answer_tool_caller(prompt: Prompt, filler: SchemaFiller) -> dict[str, Any]:
    """Return the answers to the tool caller's queries."""
    answers: dict[str, Any] = {}
    schemas = {}
    for name, schema in filler.properties.items():
        answers[name] = prompt.request
        calls = filler.get_properties(schema).get("tool_calls_for_candidate_tool")
        if calls:
            schemas[name] = filler.resolve(calls).get("items")
            answers[name] = {"subtleties_to_be_aware_of": "Nothing calls for it now."}
    for call in find_calls(prompt, schemas, filler):
        answer = {"score": 9, "arguments": call.answer_arguments(), "should_run": True}
        answer["applicability_rationale"] = "An active guideline calls for it."
        answers[call.key] = {"tool_calls_for_candidate_tool": [answer]}
    return answers


class NextStep:
    """The next step of a planner or speaker: the first call that is ready, or a reply that asks for what is missing."""

    def __init__(self, prompt: Prompt, filler: SchemaFiller, query: str) -> None:
        schema = filler.properties[query]
        self.options: dict[str, Any] = {}
        for option in filler.resolve(schema).get("anyOf") or [schema]:
            self.options |= filler.get_properties(option)
        calls = find_calls(prompt, self.options, filler)
        self.asks_for = []
        missing = []
        for call in calls:
            for argument in call.missing:
                self.asks_for.append({"tool": call.name, "argument": argument.name})
                missing.append((call.name, argument.description))
        self.reply = write_reply(prompt, missing)
        self.may_act = bool((prompt.sections.get("now") or {}).get("steps_left", 1))
        self.ready = [call for call in calls if self.may_act and not call.missing]
        self.call: dict[str, Any] = {}
        for call in self.ready[:1]:
            arguments = call.answer_arguments()
            self.call[call.key] = {"arguments": arguments, "expected": "A result.", "go_ahead": True}


def answer_planner(prompt: Prompt, filler: SchemaFiller) -> dict[str, Any]:
    """Return the answers to a planner's queries."""
    next_step = NextStep(prompt, filler, "action")
    steps: list[dict[str, Any]] = []
    for call in next_step.ready:
        steps.append({"step": f"call {call.name}", "reason": "It is called for.", "tool": call.name})
    steps.append({"step": "tell what was found", "reason": "Then all is done.", "tool": None})
    final_answer = {"asks_for": next_step.asks_for, "answer": next_step.reply}
    answers = {
        "thought": f"Next: {steps[0]['step']}.",
        "last_customer_message": prompt.request,
        "request": prompt.request,
        "next_steps": steps,
        "action": next_step.call or {"final_answer": final_answer},
        "answer_rests_on_this_prompt": True,
    }
    if prompt.results:
        newest = prompt.results[-1]
        answers["newest_result"] = f"{newest.id}: {newest.text[:200]}"
        answers["previous_steps"] = ", ".join(f"{line.tool} ({line.id})" for line in prompt.results)
        answers["observation"] = "as_expected"
        for outcome in ("failed", "empty"):
            if newest.id in prompt.get_from_tail(outcome):
                answers["observation"] = outcome
                answers["change"] = {"what": "tell what was found", "why": f"{newest.id} {outcome}"}
    return answers


def answer_speaker(prompt: Prompt, filler: SchemaFiller) -> dict[str, Any]:
    """Return the answers to a speaker's queries: a call, an action in a world, or an utterance."""
    next_step = NextStep(prompt, filler, "move")
    has_question = "?" in next_step.reply
    utterance = {
        "asks_for": next_step.asks_for,
        "utterance": next_step.reply,
        "asks": has_question,
        "mentions_failure": any(line.failed for line in prompt.results),
        "ends_task": not has_question,
    }
    move = next_step.call or {"speak": utterance}
    action = _choose_action(prompt)
    if action and "act" in next_step.options and next_step.may_act and not next_step.call:
        move = {"act": {"action": action}}
    return {"last_customer_message": prompt.request, "goal": prompt.request, "move": move}


def _choose_action(prompt: Prompt) -> str | None:
    """Return the world's action that shares most words with the goal and is new."""
    earlier_actions = [line.arguments.get("action") for line in prompt.results]
    counts = {}
    for action in (prompt.sections.get("world") or {}).get("actions") or ():
        count = len(find_common(prompt.request, action))
        if count and action not in earlier_actions:
            counts[action] = count
    return max(counts, key=counts.__getitem__, default=None)
