"""How fast conversations are scored, on one core, and how the time grows with the graph.

Beside it, on the same conversations in the same run, the trajectory match of `openevals`, which compares the calls
of a conversation with those of a reference and says yes or no. Its `superset` asks what our GC on unordered gold calls
asks, except that a failed call counts there. Conversations are made here, of about the size of recorded airline ones,
or read from a tau-bench file.
"""

from __future__ import annotations

import gc
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from arq_graph.milestones import (
    Call,
    Message,
    Milestone,
    MilestoneGraph,
    Result,
    Transcript,
    read_transcript,
    score,
)
from arq_graph.milestones.milestone import PatternCheck
from arq_graph.milestones.reports.records import make_conversation_record

CONVERSATIONS = 1_000
REPEATS = 3
SIZES = (1_000, 10_000, 100_000)
FAILED = "(?i)^error"

Messages = list[dict[str, Any]]


@dataclass(frozen=True)
class Task:
    """A conversation in the form of chat messages, and the calls that it should hold.

    Args:
        messages: What was said and called.
        actions: The gold calls.
    """

    messages: Messages
    actions: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Speed:
    """How fast one way of scoring is.

    Args:
        what: What was done.
        gives: What it gives for a conversation.
        per_second: Conversations a second of one core's time; None where it could not be run.
        agree: Of how many conversations it says yes or no as we do; None for our own.
    """

    what: str
    gives: str
    per_second: float | None
    agree: int | None = None


@dataclass(frozen=True)
class Growth:
    """Seconds of one core's time for a graph of one size.

    Args:
        milestones: How many.
        make: Making the graph from its milestones.
        first: The first score, with what is computed once per graph.
        again: Each score after it.
    """

    milestones: int
    make: float
    first: float
    again: float


def made(count: int = CONVERSATIONS, seed: int = 0) -> list[Task]:
    """Conversations with 1 to 8 gold calls, some of them left out, among others; the same at every run."""
    chance = random.Random(seed)
    return [_task(chance) for _ in range(count)]


def recorded(file: Path) -> list[Task]:
    """The conversations of a tau-bench file that have gold calls.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """
    from benchmarks.airline import Run, read_runs

    runs = list(read_runs(file))
    return [
        Task(raw["traj"], run.actions)
        for raw, run in zip(json.loads(file.read_text(encoding="utf-8")), runs, strict=True)
        if isinstance(run, Run) and run.actions
    ]


def speeds(tasks: Sequence[Task]) -> list[Speed]:
    """Every way of scoring these conversations."""
    graphs = [_graph(task) for task in tasks]
    transcripts = [read_transcript(task.messages) for task in tasks]
    pairs = list(zip(graphs, transcripts, strict=True))
    # What is computed once per graph is done: one graph serves many conversations.
    verdicts = [score(graph, transcript).goal_completed for graph, transcript in pairs]

    def alone() -> None:
        for graph, transcript in pairs:
            score(graph, transcript)

    def with_record() -> None:
        for graph, transcript in pairs:
            make_conversation_record(transcript, score(graph, transcript))

    def from_messages() -> None:
        for task in tasks:
            score(_graph(task), read_transcript(task.messages))

    measured = [
        Speed("arq_graph: score", "GC, PR, what was reached", _per_second(alone, len(tasks))),
        Speed(
            "and all that a report says", "and path, waste, invented, …", _per_second(with_record, len(tasks))
        ),
        Speed(
            "messages read, graph made, score",
            "GC, PR, what was reached",
            _per_second(from_messages, len(tasks)),
        ),
    ]
    return measured + [_peer(mode, tasks, verdicts) for mode in ("superset", "unordered")]


def growth() -> Iterator[Growth]:
    """Seconds for ever larger graphs, on a conversation of 900 events."""
    for size in SIZES:
        milestones = _milestones(size)
        transcript = _long_conversation()
        started = time.process_time()
        graph = MilestoneGraph(milestones)
        is_made = time.process_time()
        score(graph, transcript)
        is_scored = time.process_time()
        score(graph, transcript)
        yield Growth(size, is_made - started, is_scored - is_made, time.process_time() - is_scored)


def _graph(task: Task) -> MilestoneGraph:
    return MilestoneGraph.from_actions(task.actions, ordered=False, failed_if=FAILED)


def _peer(mode: str, tasks: Sequence[Task], verdicts: Sequence[bool | None]) -> Speed:
    what = f"openevals: {mode}"
    # Otherwise it could send what it compares to a tracing service.
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    try:
        match: Any = import_module("openevals.trajectory.match")
    except ImportError:
        return Speed(what, "not installed: pip install 'arq_graph[bench]'", None)
    evaluate = match.create_trajectory_match_evaluator(
        trajectory_match_mode=mode, tool_args_match_mode="exact"
    )
    references = [_reference(task) for task in tasks]

    def run() -> list[bool]:
        return [
            bool(evaluate(outputs=task.messages, reference_outputs=wanted)["score"])
            for task, wanted in zip(tasks, references, strict=True)
        ]

    agree = sum(found == ours for found, ours in zip(run(), verdicts, strict=True))
    return Speed(what, "yes or no", _per_second(run, len(tasks)), agree)


def _reference(task: Task) -> Messages:
    calls = [
        {
            "id": f"gold_{number}",
            "type": "function",
            "function": {
                "name": action["name"],
                "arguments": json.dumps(action.get("kwargs", action.get("arguments"))),
            },
        }
        for number, action in enumerate(task.actions)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}]


def _per_second(run: Callable[[], Any], count: int) -> float:
    taken = []
    gc.collect()
    for _ in range(REPEATS):
        started = time.process_time()
        run()
        taken.append(time.process_time() - started)
    return count / min(taken)


def _task(chance: random.Random) -> Task:
    gold = [_action(chance) for _ in range(chance.randint(1, 8))]
    actions = [action for action in gold if chance.random() < 0.9]
    actions += [_action(chance) for _ in range(chance.randint(0, 5))]
    chance.shuffle(actions)
    messages: Messages = [{"role": "user", "content": "Hello, I need some help with my reservation, please."}]
    for number, action in enumerate(actions):
        function = {"name": action["name"], "arguments": json.dumps(action["kwargs"])}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        result = (
            "Error: not found"
            if chance.random() < 0.05
            else json.dumps({**action["kwargs"], "text": "x" * 400})
        )
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "name": action["name"], "content": result},
        ]
        if chance.random() < 0.7:
            messages += [
                {"role": "assistant", "content": "I have looked into it. " * 12},
                {"role": "user", "content": "Thank you, please go on with it. " * 3},
            ]
    return Task([*messages, {"role": "assistant", "content": "Goodbye, and thank you for calling."}], gold)


def _action(chance: random.Random) -> dict[str, Any]:
    passengers = [
        {"name": f"P{chance.randint(1, 99)}", "born": "1990-04-05"} for _ in range(chance.randint(0, 2))
    ]
    arguments = {"reservation_id": f"R{chance.randint(1, 999)}", "passengers": passengers, "bags": 1}
    return {"name": f"tool_{chance.randint(1, 14)}", "kwargs": arguments}


def _milestones(size: int, seed: int = 0) -> list[Milestone]:
    """Tools, states, joins of 1 to 3 earlier ones, and here and there a cycle."""
    chance = random.Random(seed)
    names = ["Start"]
    milestones = [Milestone(name="Start", type="NFC")]
    for number in range(size - 2):
        name = f"m{number}"
        before = {chance.choice(names[-50:]): None for _ in range(chance.choice((1, 1, 2, 3)))}
        kind = chance.random()
        if kind < 0.1:
            milestones.append(Milestone(name=name, type="Aggregator", dependencies=tuple(before)))
        elif kind < 0.101:
            check = PatternCheck(pattern=rf"\bword {number}\b", said_by="agent")
            milestones.append(Milestone(name=name, type="NFC", dependencies=tuple(before), check=check))
        else:
            back = (f"m{number + 1}",) if chance.random() < 0.01 and number < size - 3 else ()
            tool = f"tool{number % 2_000}"
            milestones.append(Milestone(name=name, type="FC", dependencies=(*before, *back), tool=tool))
        names.append(name)
    return [*milestones, Milestone(name="End", type="NFC", dependencies=tuple(names[-3:]))]


def _long_conversation(calls: int = 300) -> Transcript:
    events: list[Any] = []
    for number in range(calls):
        tool = f"tool{number}"
        events.append(Call(tool, {"id": number}))
        events.append(Result(len(events), tool, "ok"))
        events.append(Message("agent", f"That was word {number}."))
    return Transcript(tuple(events))
