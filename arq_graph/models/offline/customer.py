"""Playing a simulated user: one wish after the other, and what it knows where the agent names it."""

from __future__ import annotations

from collections.abc import Iterator
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
    wishes = [wish for wish in prompt.entries("wishes") if wish.get("request")]
    begun = [wish for wish in reversed(wishes) if wish["request"] in said]
    answers = _answers(prompt, begun, stems(last)) if begun and "?" in last else iter(())
    further = [*answers, *(wish["request"] for wish in wishes if wish not in begun), closing]
    new = (text for text in further if said.count(text) < (_MOST_ANSWERS if text not in (closing, "") else 1))
    message = "" if closing and closing in said else next(new, "")
    return {"message": message or "Exit.", "finished": not message, "one_message_of_the_user": True}


def _answers(prompt: Prompt, wishes: list[dict[str, Any]], asked: frozenset[str]) -> Iterator[str]:
    """What may be said to a question, the fittest first."""
    for wish in wishes:
        yield from (str(said) for topic, said in (wish.get("answers") or {}).items() if stems(topic) <= asked)
        yield from (f"Yes, {offer}, please." for offer in wish.get("accepts") or () if stems(offer) <= asked)
    for facts in [*(wish.get("slots") for wish in wishes), prompt.sections.get("known")]:
        known = facts.items() if isinstance(facts, dict) else ()
        told = [f"the {label(name)} is {value}" for name, value in known if stems(name) <= asked]
        if told:
            yield f"T{', '.join(told)[1:]}."
    yield "I do not know that."
    yield from (str(wish["fallback"]) for wish in wishes if wish.get("fallback"))
