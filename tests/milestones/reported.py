"""Conversations of which it is known how far they get, and reports on them, made as a user makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arq_graph.milestones import (
    BrokenRecord,
    MilestoneGraph,
    Report,
    Transcript,
    Verdict,
    parse_milestones,
    score_transcripts,
)
from tests.milestones.conversations import called, conversation, user


def steps(*tools: str) -> MilestoneGraph:
    """Start, the tools one after the other, End."""
    return MilestoneGraph.from_actions([{"name": tool} for tool in tools])


def shop() -> MilestoneGraph:
    """An order is found, and then paid for or, where somebody says so, given up with good reason; or not."""
    return parse_milestones("""
- {name: Start, type: NFC}
- {name: find, type: FC, dependencies: [Start]}
- {name: pay, type: FC, dependencies: [find]}
- {name: Given up, type: NFC, dependencies: [find]}
- {name: End, type: NFC, dependencies: [pay, Given up]}
""")


def talk(
    id: str, goal: bool | None = True, *, about: dict[str, Any] | None = None, **fields: Any
) -> Transcript:
    """A conversation that completes the goal, misses it, or of which that is undecided.

    Args:
        id: Its id.
        goal: Whether it completes the goal; None: undecided.
        about: What a file of an evaluation's results says of it: arm, goal, …
        **fields: Those of `Transcript`; `reward` is what the record says of its outcome.
    """
    extra = {"goal": goal, "reward": fields.pop("reward", None), "arq_graph": {"record": about or {}}}
    paid = called("pay") if goal else user("hm")
    return conversation(user("please"), called("find"), paid, id=id, extra=extra, **fields)


def runs(task: str, *goals: bool | None, **fields: Any) -> list[Transcript]:
    """Several runs of one task."""
    return [talk(f"{task}-{n}", goal, task=task, **fields) for n, goal in enumerate(goals)]


def of_each_kind(task: str, *goals: bool | None, **fields: Any) -> list[Transcript]:
    """One task as a suite has it with several kinds of users: a scenario for each."""
    named = {kind: f"{task} ({kind})" for kind in ("helpful", "perturbed", "unhelpful")}
    return [
        talk(
            f"{scenario}-{fields}", goal, task=scenario, about={"user": kind, "scenario": scenario, **fields}
        )
        for (kind, scenario), goal in zip(named.items(), goals, strict=True)
    ]


def knows(graph: Any, transcript: Transcript, observations: Any) -> Iterator[Verdict]:
    """A judge that knows what the transcripts of `talk` are about."""
    if transcript.extra.get("goal") is not None:
        yield Verdict("Given up", False)


def reported(*talks: Transcript | BrokenRecord) -> Report:
    """A report on these conversations."""
    return score_transcripts(shop(), talks, judge=knows).report()


def of(*goals: bool | None, **fields: Any) -> Report:
    """A report on conversations 0, 1, … of which the goal was completed or not."""
    return reported(*(talk(str(n), goal, **fields) for n, goal in enumerate(goals)))


def walked(*lengths: int) -> Report:
    """A report on conversations that went so many of ten steps; progress differs, no goal is completed."""
    names = [f"step {number}" for number in range(10)]
    said = [
        conversation(user("go"), *map(called, names[:length]), id=str(n)) for n, length in enumerate(lengths)
    ]
    return score_transcripts(steps(*names), said).report()
