"""An operator's word on tool calls, asked in the terminal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from arq_graph.cli.prompting import ask
from arq_graph.cli.screen import labelled, output, printable, sentence, words

_CHOICES = {"a": "approve", "e": "edit", "r": "reject", "s": "respond"}

Calls = Sequence[Mapping[str, Any]]


def approve_all(calls: Calls, _problem: str | None) -> list[dict[str, Any]]:
    """Approve every call as it is."""
    return [{"type": "approve"} for _ in calls]


def ask_operator(calls: Calls, problem: str | None) -> list[dict[str, Any]]:
    """Ask whoever sits at the terminal about each call.

    Args:
        calls: The calls that wait.
        problem: What was wrong with the last answer, if it did not fit.

    Raises:
        EOFError: Nobody answers any more.
    """
    if problem:
        output().print(words(problem, "yellow"))
    decisions = [_decision(call, f"{number} of {len(calls)}") for number, call in enumerate(calls, start=1)]
    output().print()
    return decisions


def _decision(call: Mapping[str, Any], place: str) -> dict[str, Any]:
    console = output()
    rows = [
        (name, "dim", [words(json.dumps(value, ensure_ascii=False))]) for name, value in call["args"].items()
    ]
    console.print()
    console.print(
        sentence(
            words("Your word, operator: ", "bold yellow"),
            f"may {call['name']} run? ",
            words(f"({place})", "dim"),
        )
    )
    if call.get("description"):
        console.print(words(printable(call["description"].strip().split("\n\n")[0], 300), "dim"))
    console.print(labelled(rows))
    kind = _choice()
    if kind == "edit":
        return {"type": "edit", "edited_action": {"name": call["name"], "args": _arguments(call["args"])}}
    if kind == "reject":
        reason = ask("Why not (may be empty)? ").strip()
        return {"type": "reject", "message": reason or None}
    if kind == "respond":
        return {"type": "respond", "message": ask("What to take for its result? ")}
    return {"type": "approve"}


def _choice() -> str:
    while True:
        said = ask("[a]pprove, [e]dit, [r]eject, or re[s]pond in its place? ").strip().lower()
        for key, kind in _CHOICES.items():
            if said in (key, kind):
                return kind
        output().print(words("Answer with a, e, r or s.", "yellow"))


def _arguments(current: Mapping[str, Any]) -> dict[str, Any]:
    while True:
        written = ask("Arguments as JSON: ", prefilled=json.dumps(current, ensure_ascii=False))
        try:
            arguments = json.loads(written)
        except (ValueError, RecursionError) as error:
            output().print(words(f"That is not JSON: {error}", "yellow"))
            continue
        if isinstance(arguments, dict):
            return arguments
        output().print(words('Write an object, like {"name": "value"}.', "yellow"))
