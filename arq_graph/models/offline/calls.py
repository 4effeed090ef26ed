"""Choosing calls: a tool that an active guideline unlocks is called as soon as its arguments are known.

An argument's value is known by the shape of the example in its description ("like ORD-1001"), by its choices, by
its name before it ("order 17"), from a tool's result or a variable of its name, or because the agent asked for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph.models.offline.activation import is_constant
from arq_graph.models.offline.prompt import Prompt, find_common, has_negation, split_words, to_phrase

_EXAMPLE = re.compile(r"\b(?:like|such as) ([\w@./:+-]*\d(?:[\w@./:+-]*\w)?)")


@dataclass
class Call:
    """A call of a tool.

    Attributes:
        name, description: The tool's.
        key: The property that stands for the tool in answers.
        values: The arguments that are known, by name.
        answers: The answers to the queries about each argument, by key.
        missing: The required arguments that aren't known, as the prompt's insights describe them.
        is_asked_for: True if the agent has just asked for one of its arguments, and the customer didn't say no.
    """

    name: str
    description: str
    key: str
    values: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    missing: list[dict[str, Any]] = field(default_factory=list)
    is_asked_for: bool = False


def find_calls(prompt: Prompt) -> list[Call]:
    """Return the calls to make, including those whose arguments aren't all known."""
    unlocked, free = [], []
    for tool in prompt.get_entries("tools"):
        if tool["name"] not in prompt.now.get("candidates", []):
            continue
        if not tool.get("granted_by"):
            free.append(_prepare_call(prompt, tool))
        elif _is_unlocked(prompt, tool):
            unlocked.append(_prepare_call(prompt, tool))
    calls = unlocked + _find_requested(prompt, free)
    return [call for call in calls if not _is_done(prompt, call)]


def describe_argument(name: str, description: str | None) -> str:
    """Return what the customer is asked for: an argument's name in words, with its description."""
    text = (description or "").strip().rstrip(".")
    if text.casefold() in ("", to_phrase(name)):
        return f"the {to_phrase(name)}"
    return f"the {to_phrase(name)} ({text[:1].lower()}{text[1:]})"


def _is_unlocked(prompt: Prompt, tool: Mapping[str, Any]) -> bool:
    for guideline in tool["granted_by"]:
        if guideline["id"] in prompt.now.get("active", []) and not is_constant(guideline.get("condition")):
            return True
    return False


def _find_requested(prompt: Prompt, calls: Sequence[Call]) -> list[Call]:
    """Return the call whose description has most of the customer's words; if they were asked, one of those."""
    asked = [call for call in calls if call.is_asked_for]
    request = prompt.open_request if asked else prompt.request
    best, highest = asked[:1], 0
    for call in asked or calls:
        count = len(find_common(f"{call.name} {call.description}", request))
        if count > highest:
            best, highest = [call], count
    return best


def _is_done(prompt: Prompt, call: Call) -> bool:
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


def _prepare_call(prompt: Prompt, tool: Mapping[str, Any]) -> Call:
    call = Call(tool["name"], str(tool.get("description")), key=tool.get("key") or tool["name"])
    for argument in tool.get("arguments") or ():
        name, description = argument["name"], argument.get("description")
        is_asked_for = describe_argument(name, description) in prompt.last_reply
        value, source = _find_value(prompt, argument, is_asked_for)
        if is_asked_for and (value is not None or not prompt.says_no):
            call.is_asked_for = True
        if value is not None:
            call.values[name] = value
            basis = "this_request" if source.startswith("M") else "known"
            answer = {"given": True, "value": value, "value_in_context": source, "basis": basis}
        else:
            answer = {"given": False, "basis": "nobody", "customer_should_provide_it": True}
            if argument.get("required"):
                missing = {"tool": call.name, "argument": name, "description": description}
                call.missing.append(missing)
        call.answers[argument.get("key") or name] = answer
    return call


def _find_value(prompt: Prompt, argument: Mapping[str, Any], is_asked_for: bool) -> tuple[Any, str]:
    """Return the newest value in the conversation, or else a variable, with its id; (None, "") without one."""
    name = argument["name"]
    for line in reversed(prompt.lines):
        value = None
        if line.speaker == "customer":
            is_answer = is_asked_for and line.id == prompt.request_id
            value = _read_value(argument, line.text, is_answer)
        elif line.speaker == "tool" and not line.failed:
            value = (dict(line.arguments) | line.fields).get(name)
        if value is not None:
            return value, line.id
    for variable in prompt.get_entries("variables"):
        if variable.get("name") == name:
            return variable.get("value"), str(variable.get("id"))
    return None, ""


def _read_value(argument: Mapping[str, Any], text: str, is_answer: bool) -> Any:
    """Return the value that a message of the customer has for an argument, None without one."""
    if example := _EXAMPLE.search(argument.get("description") or ""):
        letters_replaced = re.sub("[A-Za-z]+", "[A-Za-z]+", re.escape(example[1]))
        shape = re.sub(r"\d+", r"\\d+", letters_replaced)
        match = re.search(rf"(?<![\w-]){shape}(?![\w-])", text)
        return match[0].upper() if match else None
    for choice in argument.get("one_of", ()):
        if set(split_words(choice)).issubset(split_words(text)):
            return choice
    kind = str(argument.get("type")).removesuffix(" or null")
    name_words = "|".join(split_words(argument["name"]))
    if kind == "string" and (match := re.search(rf"(?i)\b(?:{name_words}) ([\w-]*\d[\w-]*)", text)):
        return match[1]
    if not is_answer or "one_of" in argument or kind.startswith(("list", "array", "object")):
        return None
    if kind == "boolean":
        return not has_negation(text)
    if kind in ("integer", "number"):
        number = re.search(r"\d+", text)
        return int(number[0]) if number else None
    if has_negation(text):
        return None
    return text.rpartition(f"{to_phrase(argument['name'])} is ")[2].strip(" .!?")
