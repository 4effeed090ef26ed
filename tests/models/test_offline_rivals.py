"""Of two conditions that share their words, the one holds that the message is about."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.prompts import JUDGEMENT, ask, closed, prompt

DESK = {
    "which": "the visitor asks which nights there are",
    "reserve": "the visitor wants to reserve a place at a night",
    "when": "the donor asks when they can donate",
    "whether": "the donor asks whether they may donate",
}


def holding(*names: str, said: str) -> set[str]:
    guidelines = [{"id": name, "condition": DESK[name], "action": "do it"} for name in names]
    schema = closed(**dict.fromkeys(names, JUDGEMENT))
    messages = prompt(said, head={"guidelines": guidelines}, now={"judge": list(names)})
    answers: dict[str, Any] = ask(messages, schema)
    return {name for name in names if answers[name]["condition_applies"]}


@pytest.mark.parametrize(
    ("names", "said", "held"),
    [
        (("which", "reserve"), "I would like to reserve places at a night.", {"reserve"}),
        (("which", "reserve"), "Which nights are there?", {"which"}),
        (("which",), "I would like to know the nights.", {"which"}),
        (("when", "whether"), "When can I donate?", {"when"}),
        (("when", "whether"), "May I donate again?", {"whether"}),
        (("whether",), "When can I donate?", {"whether"}),
    ],
)
def test_the_one_that_the_message_is_about_holds(names: tuple[str, ...], said: str, held: set[str]) -> None:
    assert holding(*names, said=said) == held
