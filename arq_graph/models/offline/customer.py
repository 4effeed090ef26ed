"""Playing a simulated user: one wish after the other, and what it knows where the agent names it."""

from __future__ import annotations

from typing import Any

from arq_graph.models.offline.prompt import Prompt
from arq_graph.models.offline.stems import label, stems

_MOST_ANSWERS = 2


def play_customer(prompt: Prompt) -> dict[str, Any]:
    """What the user says next, from the sections `wishes`, `known`, `closing` and `talk`."""
    talk = prompt.entries("talk")
    said = [str(entry.get("text")) for entry in talk if entry.get("from") == "you"]
    last = str(talk[-1].get("text")) if talk and talk[-1].get("from") == "agent" else ""
    closing = str(prompt.sections.get("closing") or "")
    message = "" if closing and closing in said else _message(prompt, said, last) or closing
    return {
        "message": message or "Exit.",
        "finished": not message,
        "one_message_of_the_user": True,
        "tells_what_is_not_known": False,
    }


def _message(prompt: Prompt, said: list[str], last: str) -> str:
    wishes = [wish for wish in prompt.entries("wishes") if isinstance(wish.get("request"), str)]
    begun = [wish for wish in wishes if wish["request"] in said]
    if begun and "?" in last:
        answer = _answer(prompt, begun, last)
        if said.count(answer) < _MOST_ANSWERS:
            return answer
        if (fallback := str(begun[-1].get("fallback") or "")) and fallback not in said:
            return fallback
    return next((wish["request"] for wish in wishes if wish["request"] not in said), "")


def _answer(prompt: Prompt, wishes: list[dict[str, Any]], question: str) -> str:
    asked = stems(question)
    for wish in reversed(wishes):
        answers, offers = _mapping(wish.get("answers")), wish.get("accepts") or ()
        for topic, said in answers.items():
            if stems(topic) <= asked:
                return str(said)
        for offer in offers:
            if stems(str(offer)) <= asked:
                return f"Yes, {offer}, please."
    known = [_mapping(wish.get("slots")) for wish in reversed(wishes)] + [
        _mapping(prompt.sections.get("known"))
    ]
    for facts in known:
        told = [f"the {label(name)} is {value}" for name, value in facts.items() if stems(name) <= asked]
        if told:
            return f"T{', '.join(told)[1:]}."
    return "I do not know that."


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
