"""Measure how fast conversations are scored on one core, and how the time grows with the graph.

Beside it, on the same conversations in the same run, the trajectory match of `openevals`, which compares the calls
of a conversation with those of a reference and answers yes or no. Its `superset` asks what our GC on unordered gold
calls asks, except that a failed call counts there. The conversations are generated, of about the size of recorded
airline ones, or read from a tau-bench file.
"""

from __future__ import annotations

import gc
import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
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
COMMAND_CONVERSATIONS = 10_000
FAILED = "(?i)^error"
SCORE_FIGURES = "GC, PR, what was reached"

_MILESTONE_FILE = """
failed_if: '(?i)^error'
milestones:
- {name: Start, type: NFC}
- {name: tool_1, type: FC}
- {name: tool_2, type: FC}
- {name: tool_3, type: FC, arguments: {bags: 1}}
- {name: tool_4, type: FC, dependencies: [tool_1, tool_2]}
- {name: said goodbye, type: NFC, check: {said_by: agent, pattern: Goodbye}, dependencies: [tool_3, tool_4]}
- {name: End, type: NFC, dependencies: [said goodbye]}
"""

Messages = list[dict[str, Any]]
Action = Mapping[str, Any]


@dataclass(frozen=True)
class Task:
    """A conversation as chat messages, and the gold calls that it is measured against."""

    messages: Messages
    actions: Sequence[Action]


@dataclass(frozen=True)
class Speed:
    """The speed of one way of scoring.

    Args:
        name: What was done.
        figures: What it returns for a conversation.
        per_second: Conversations a second of one core's time; None if it isn't installed.
        agreeing: The number of conversations in which its yes or no is ours; None for our own.
    """

    name: str
    figures: str
    per_second: float | None
    agreeing: int | None = None


@dataclass(frozen=True)
class GraphTimes:
    """Seconds of one core's time for a graph of one size.

    Args:
        milestone_count: The number of milestones.
        make: Making the graph from its milestones.
        first_score: The first score, with what is computed once per graph.
        next_score: Each score after it.
    """

    milestone_count: int
    make: float
    first_score: float
    next_score: float


def make_tasks(count: int = CONVERSATIONS, seed: int = 0) -> list[Task]:
    """Generate conversations with 1 to 8 gold calls, some left out, among others; the same in every run."""
    rng = random.Random(seed)
    return [_make_task(rng) for _ in range(count)]


def read_tasks(file: Path) -> list[Task]:
    """Return the conversations of a tau-bench file that have gold calls.

    Raises:
        InputError: The file can't be read, or holds something else.
    """
    from benchmarks.airline import Run, read_runs

    runs = list(read_runs(file))
    records = json.loads(file.read_text(encoding="utf-8"))
    tasks: list[Task] = []
    for record, run in zip(records, runs, strict=True):
        if isinstance(run, Run) and run.actions:
            tasks.append(Task(record["traj"], run.actions))
    return tasks


def measure_speeds(tasks: Sequence[Task]) -> list[Speed]:
    """Score these conversations in every way."""
    graphs = [_make_graph(task) for task in tasks]
    transcripts = [read_transcript(task.messages) for task in tasks]
    pairs = list(zip(graphs, transcripts, strict=True))
    # This also computes what is computed once per graph: one graph serves many conversations.
    verdicts = [score(graph, transcript).goal_completed for graph, transcript in pairs]

    def score_alone() -> None:
        for graph, transcript in pairs:
            score(graph, transcript)

    def score_with_record() -> None:
        for graph, transcript in pairs:
            make_conversation_record(transcript, score(graph, transcript))

    def read_and_score() -> None:
        for task, graph in zip(tasks, graphs, strict=True):
            score(graph, read_transcript(task.messages))

    def score_on_own_graphs() -> None:
        for task in tasks:
            score(_make_graph(task), read_transcript(task.messages))

    count = len(tasks)
    return [
        Speed("arq_graph: score", SCORE_FIGURES, _measure_rate(score_alone, count)),
        Speed(
            "and all that a report says",
            "and path, waste, invented, …",
            _measure_rate(score_with_record, count),
        ),
        Speed("messages read, score", SCORE_FIGURES, _measure_rate(read_and_score, count)),
        Speed("messages read, graph made, score", SCORE_FIGURES, _measure_rate(score_on_own_graphs, count)),
        _measure_openevals("superset", tasks, verdicts),
        _measure_openevals("unordered", tasks, verdicts),
    ]


def measure_command(count: int = COMMAND_CONVERSATIONS) -> Iterator[Speed]:
    """Measure `arq-graph score FILE --json REPORT` over a file of generated conversations, from start to end.

    First in one process, by its processor time; then in one process for each core, by the clock, which other programs
    slow down. Each is the best of several runs. The modules are compiled by the first, as they are when a package is
    installed.
    """
    with TemporaryDirectory() as folder:
        conversations = Path(folder) / "conversations.jsonl"
        with conversations.open("w", encoding="utf-8") as stream:
            for task in make_tasks(count):
                stream.write(json.dumps({"messages": task.messages}) + "\n")
        (Path(folder) / "milestones.yaml").write_text(_MILESTONE_FILE, encoding="utf-8")
        command = [sys.executable, "-c", "from arq_graph.cli import main; main()", "score"]
        command += [str(conversations), "--milestones", "milestones.yaml", "--json", "report.json"]
        environment = os.environ | {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}

        def measure(read_clock: Callable[[], float], processes: int) -> float:
            seconds = []
            for _ in range(REPEATS):
                start = read_clock()
                own_command = [*command, "--processes", str(processes)]
                subprocess.run(own_command, cwd=folder, env=environment, check=True, capture_output=True)
                seconds.append(read_clock() - start)
            return count / min(seconds)

        name = f"arq-graph score, {count:,} conversations"
        yield Speed(f"{name}, one process", "the report, as JSON", measure(read_child_seconds, 1))
        cores = os.cpu_count() or 1
        yield Speed(f"{name}, by the clock on {cores} cores", "the same", measure(time.perf_counter, cores))


def read_child_seconds() -> float:
    """Return the processor time of the processes that this one has started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_graph_sizes() -> Iterator[GraphTimes]:
    """Measure larger and larger graphs, on a conversation of 900 events."""
    for size in SIZES:
        milestones = _make_milestones(size)
        transcript = _make_long_conversation()
        start = time.process_time()
        graph = MilestoneGraph(milestones)
        make_end = time.process_time()
        score(graph, transcript)
        first_score_end = time.process_time()
        score(graph, transcript)
        end = time.process_time()
        yield GraphTimes(size, make_end - start, first_score_end - make_end, end - first_score_end)


def _make_graph(task: Task) -> MilestoneGraph:
    return MilestoneGraph.from_actions(task.actions, ordered=False, failed_if=FAILED)


def _measure_openevals(mode: str, tasks: Sequence[Task], verdicts: Sequence[bool | None]) -> Speed:
    name = f"openevals: {mode}"
    # Otherwise it could send what it compares to a tracing service.
    os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"
    try:
        match: Any = import_module("openevals.trajectory.match")
    except ImportError:
        return Speed(name, "not installed: pip install 'arq_graph[bench]'", None)
    evaluate = match.create_trajectory_match_evaluator(
        trajectory_match_mode=mode, tool_args_match_mode="exact"
    )
    references = [_make_reference(task) for task in tasks]

    def evaluate_all() -> list[bool]:
        results: list[bool] = []
        for task, reference in zip(tasks, references, strict=True):
            evaluation = evaluate(outputs=task.messages, reference_outputs=reference)
            results.append(bool(evaluation["score"]))
        return results

    agreeing = sum(result == verdict for result, verdict in zip(evaluate_all(), verdicts, strict=True))
    return Speed(name, "yes or no", _measure_rate(evaluate_all, len(tasks)), agreeing)


def _make_reference(task: Task) -> Messages:
    calls: list[dict[str, Any]] = []
    for number, action in enumerate(task.actions):
        arguments = action.get("kwargs", action.get("arguments"))
        calls.append(_make_call(f"gold_{number}", action["name"], arguments))
    return [{"role": "assistant", "content": "", "tool_calls": calls}]


def _make_call(id: str, tool: str, arguments: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


def _measure_rate(run: Callable[[], Any], count: int) -> float:
    """Return how many conversations a second of this process's time `run` handles, in the best of several runs."""
    seconds = []
    gc.collect()
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    return count / min(seconds)


def _make_task(rng: random.Random) -> Task:
    gold_actions = [_make_action(rng) for _ in range(rng.randint(1, 8))]
    actions = [action for action in gold_actions if rng.random() < 0.9]
    actions += [_make_action(rng) for _ in range(rng.randint(0, 5))]
    rng.shuffle(actions)
    messages: Messages = [{"role": "user", "content": "Hello, I need some help with my reservation, please."}]
    for number, action in enumerate(actions):
        id = f"call_{number}"
        call = _make_call(id, action["name"], action["kwargs"])
        result = "Error: not found"
        if rng.random() >= 0.05:
            result = json.dumps(action["kwargs"] | {"text": "x" * 400})
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": id, "name": action["name"], "content": result})
        if rng.random() < 0.7:
            messages.append({"role": "assistant", "content": "I have looked into it. " * 12})
            messages.append({"role": "user", "content": "Thank you, please go on with it. " * 3})
    messages.append({"role": "assistant", "content": "Goodbye, and thank you for calling."})
    return Task(messages, gold_actions)


def _make_action(rng: random.Random) -> dict[str, Any]:
    passengers: list[dict[str, str]] = []
    for _ in range(rng.randint(0, 2)):
        passengers.append({"name": f"P{rng.randint(1, 99)}", "born": "1990-04-05"})
    arguments = {"reservation_id": f"R{rng.randint(1, 999)}", "passengers": passengers, "bags": 1}
    return {"name": f"tool_{rng.randint(1, 14)}", "kwargs": arguments}


def _make_milestones(size: int, seed: int = 0) -> list[Milestone]:
    """Return tools, states, joins of 1 to 3 earlier ones, and here and there a cycle."""
    rng = random.Random(seed)
    names = ["Start"]
    milestones = [Milestone(name="Start", type="NFC")]
    for number in range(size - 2):
        name = f"m{number}"
        dependencies: list[str] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            dependency = rng.choice(names[-50:])
            if dependency not in dependencies:
                dependencies.append(dependency)
        kind = rng.random()
        if kind < 0.1:
            milestone = Milestone(name=name, type="Aggregator", dependencies=tuple(dependencies))
        elif kind < 0.101:
            check = PatternCheck(pattern=rf"\bword {number}\b", said_by="agent")
            milestone = Milestone(name=name, type="NFC", dependencies=tuple(dependencies), check=check)
        else:
            if rng.random() < 0.01 and number < size - 3:
                dependencies.append(f"m{number + 1}")
            tool = f"tool{number % 2_000}"
            milestone = Milestone(name=name, type="FC", dependencies=tuple(dependencies), tool=tool)
        milestones.append(milestone)
        names.append(name)
    milestones.append(Milestone(name="End", type="NFC", dependencies=tuple(names[-3:])))
    return milestones


def _make_long_conversation(call_count: int = 300) -> Transcript:
    events: list[Call | Result | Message] = []
    for number in range(call_count):
        tool = f"tool{number}"
        events.append(Call(tool, {"id": number}))
        events.append(Result(len(events), tool, "ok"))
        events.append(Message("agent", f"That was word {number}."))
    return Transcript(tuple(events))
