"""What a user is about to say, before it is put into its persona's words."""

from __future__ import annotations

from dataclasses import dataclass

from arq_graph.milestones.users.asked import Fact
from arq_graph.milestones.users.personas import Moment


@dataclass(frozen=True)
class Reply:
    """What a user is about to say.

    Args:
        moment: Which of the persona's words it is put in.
        said: The words, before the facts.
        facts: The facts that it tells.
        key: What it is about: the same again in one intent is a fruitless turn.
        intent: The index of the intent.
        fruitless: It leads nowhere, even the first time.
        leaves: It is the last thing that is said.
    """

    moment: Moment
    said: str = ""
    facts: tuple[Fact, ...] = ()
    key: object = ""
    intent: int | None = None
    fruitless: bool = False
    leaves: bool = False
