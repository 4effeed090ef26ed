"""Random small milestone graphs (cycles, joins, weights, states that hold) and conversations that touch them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from arq_graph.milestones import (
    Call,
    Forbidden,
    Message,
    Milestone,
    MilestoneGraph,
    Result,
    Transcript,
)

WORDS = ("apple", "pear", "plum")


@st.composite
def milestone_lists(draw: st.DrawFn, *, judged: bool = False) -> list[Milestone]:
    size = draw(st.integers(1, 6))
    names = [f"m{number}" for number in range(size)]
    weights = st.sampled_from([1, 1, 1, 2, 0.5, 0.1, 3])
    milestones = [Milestone(name="Start", type="NFC")]
    for number, name in enumerate(names):
        # The first dependency comes before, so that most milestones can be reached; others may close a cycle.
        before = draw(st.sampled_from(["Start", *names[:number]]))
        others = draw(st.lists(st.sampled_from(["Start", *names]), max_size=2))
        dependencies = tuple(dict.fromkeys([before, *others]))
        requires = draw(st.sampled_from(["any", "any", "all"]))
        kind = draw(st.sampled_from(["FC", "FC", "said", "join", "judged" if judged else "FC"]))
        rest = {"dependencies": dependencies, "requires": requires, "weight": draw(weights)}
        if kind == "join":
            joined = {"dependencies": dependencies, "requires": draw(st.sampled_from(["any", "all"]))}
            milestones.append(Milestone(name=name, type="Aggregator", **joined))
        elif kind == "FC":
            milestones.append(Milestone(name=name, type="FC", tool=f"tool{number % 3}", **rest))
        else:
            check = {"pattern": WORDS[number % 3]} if kind == "said" else None
            holds = draw(st.booleans())
            milestones.append(Milestone(name=name, type="NFC", check=check, holds=holds, **rest))
    ends = tuple(draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True)))
    requires = draw(st.sampled_from(["any", "all"]))
    milestones.append(
        Milestone(name="End", type="NFC", dependencies=ends, requires=requires, weight=draw(weights))
    )
    return milestones


@st.composite
def graphs(draw: st.DrawFn, *, judged: bool = False) -> MilestoneGraph:
    forbidden = draw(st.sampled_from([(), (Forbidden(pattern="plum", said_by="user"),)]))
    made = milestone_lists(judged=judged).map(
        lambda milestones: MilestoneGraph(milestones, failed_if="^Error", forbidden=forbidden)
    )
    return draw(made.filter(lambda graph: not graph.check().errors))


@st.composite
def event_lists(draw: st.DrawFn, max_size: int = 14) -> tuple[Any, ...]:
    """Messages, calls, and results that may come late, in another order, or never."""
    events: list[Any] = []
    waiting: list[int] = []
    for _ in range(draw(st.integers(1, max_size))):
        kind = draw(st.sampled_from(["user", "agent", "call", "call", "result", "result"]))
        if kind == "result" and waiting:
            call = waiting.pop(draw(st.integers(0, len(waiting) - 1)))
            text = draw(st.sampled_from(["ok", "ok", "Error: no", *WORDS]))
            called = events[call - 1]
            assert isinstance(called, Call)
            events.append(Result(call, called.tool, text, failed=draw(st.sampled_from([False, False, True]))))
        elif kind in ("call", "result"):
            events.append(Call(f"tool{draw(st.integers(0, 2))}", {}))
            waiting.append(len(events))
        else:
            events.append(Message("user" if kind == "user" else "agent", draw(st.sampled_from(WORDS))))
    return tuple(events)


transcripts = event_lists().map(Transcript)
