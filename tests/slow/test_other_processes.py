"""Conversations that are held in other processes: pools that are forked or spawned, our own, and a Dask cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from arq_graph import ScriptedChatModel
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import (
    RecordingChatModel,
    Report,
    Suite,
    Transcript,
    evaluate,
    read_report,
    read_transcripts,
)
from tests.cli.shop import write_shop

pytestmark = pytest.mark.slow

Settings = dict[str, Any]


@contextmanager
def dask(threads: int = 2, failures: int = 1) -> Iterator[Settings]:
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": failures}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=threads, dashboard_address=None, host="127.0.0.1", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield {"executor": client.get_executor(), "workers": 2 * threads}


@contextmanager
def pool(method: str) -> Iterator[Settings]:
    with ProcessPoolExecutor(2, get_context(method)) as executor:
        yield {"executor": executor}


@contextmanager
def own() -> Iterator[Settings]:
    yield {"workers": 2}


CREWS: dict[str, Callable[[], Any]] = {
    "fork": lambda: pool("fork"),
    "spawn": lambda: pool("spawn"),
    "own": own,
    "dask": dask,
    "dask, one at a time": lambda: dask(threads=1),
}


def graph() -> Any:
    """A graph that keeps threads, tells its process, and asks a model."""
    model = ScriptedChatModel(lambda call: f"I am process {os.getpid():>7}.")
    builder = StateGraph(MessagesState)

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder.add_node("answer", answer)
    builder.set_entry_point("answer")
    return builder.compile(InMemorySaver())


GRAPH = graph()


class Dies:
    """An app whose process ends in the second run."""

    async def ainvoke(self, given: Any, config: Any = None) -> Any:
        if config["configurable"]["thread_id"].split(" / ")[2] == "2":
            os._exit(3)
        return {"messages": [AIMessage("I live.")]}


class DiesOnce:
    """An app whose process is killed in the second turn of one conversation, and never again."""

    def __init__(self, killed: Path) -> None:
        self.killed = killed

    async def ainvoke(self, given: Any, config: Any = None) -> Any:
        is_it = config["configurable"]["thread_id"].startswith("order (helpful) / app / 2 / ")
        if is_it and len(given["messages"]) > 1 and not self.killed.exists():
            self.killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"messages": [AIMessage("I live.")]}


def told(report: Report) -> list[Any]:
    """What a report says of each conversation, apart from how long it took."""
    return [one.model_dump(exclude={"turn_seconds"}) for one in (*report.conversations, *report.broken)]


@pytest.mark.parametrize("crew", ["fork", "spawn", "own", "dask"])
def test_processes_hold_what_one_would(tmp_path: Path, crew: str) -> None:
    tried = Suite.from_yaml(write_shop(tmp_path).with_name("suite.yaml"))
    apps = {**load_arms(["direct", "desk:echo"], folder=tmp_path), "graph": GRAPH}
    settings: Settings = {"model": "offline", "runs": 4, "concurrency": 3}
    file = tmp_path / "results.jsonl"

    with CREWS[crew]() as executor:
        there = evaluate(tried, apps, results=file, **executor, **settings)
    assert told(there) == told(evaluate(tried, apps, **settings))
    assert all(one.error is None for one in there.conversations)
    kept = [json.loads(line) for line in file.read_text().splitlines()][1:]
    said = {
        each["content"] for one in kept for each in one["messages"] if "I am process" in str(each["content"])
    }
    assert len(said) == 2
    assert f"I am process {os.getpid():>7}." not in said


@pytest.mark.parametrize("crew", ["fork", "own", "dask"])
def test_a_run_is_recorded_and_replayed_by_processes(tmp_path: Path, crew: str) -> None:
    tried, apps = (
        Suite.from_yaml(write_shop(tmp_path).with_name("suite.yaml")),
        load_arms(["direct", "create_agent"]),
    )
    file = tmp_path / "answers.jsonl"
    with CREWS[crew]() as executor:
        recorder = RecordingChatModel(file, "offline")
        first = evaluate(tried, apps, model=recorder, runs=3, concurrency=2, **executor)
    replay = RecordingChatModel(file)
    here = evaluate(tried, apps, model=replay, runs=3)
    with CREWS[crew]() as executor:
        there = evaluate(tried, apps, model=replay, runs=3, **executor)
    assert len(first.conversations) == 12
    assert told(first) == told(here) == told(there)


def test_the_example_for_a_cluster_goes_on_where_it_was(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    suite = write_shop(tmp_path).with_name("suite.yaml")
    script = Path(__file__).parents[2] / "examples" / "on_a_cluster.py"
    for _ in range(2):
        command = [sys.executable, script, suite, "offline"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert len(suite.with_suffix(".results.jsonl").read_text().splitlines()) == 1 + 8
    assert len(read_report(suite.with_suffix(".results.report.json")).conversations) == 8


@pytest.mark.parametrize("crew", ["own", "dask, one at a time"])
def test_a_process_that_dies_costs_its_conversations_alone(tmp_path: Path, crew: str) -> None:
    tried = Suite.from_yaml(write_shop(tmp_path).with_name("suite.yaml"))
    with CREWS[crew]() as executor:
        report = evaluate(tried, {"app": Dies()}, runs=6, concurrency=1, **executor)
    lost = [one.run for one in report.broken]
    assert lost.count(2) == 2
    assert all("its worker died" in one.error for one in report.broken)
    assert (len(report.conversations), report.missing) == (12 - len(lost), 0)
    # Dask may have sent a dead worker something more before it notices.
    assert lost == [2, 2] or crew != "own"


@pytest.mark.parametrize("failures", [0, 3], ids=["its work is lost", "Dask does its work again"])
def test_a_worker_of_a_cluster_that_is_killed_loses_no_conversation_and_none_is_held_twice(
    tmp_path: Path, failures: int
) -> None:
    tried = Suite.from_yaml(write_shop(tmp_path).with_name("suite.yaml"))
    apps, killed, file = (
        {"app": DiesOnce(tmp_path / "killed")},
        tmp_path / "killed",
        tmp_path / "results.jsonl",
    )
    settings: Settings = {"runs": 6, "concurrency": 2, "results": file}
    with dask(threads=1, failures=failures) as executor:
        first = evaluate(tried, apps, **executor, **settings)
        assert killed.exists()
        again = evaluate(tried, apps, resume=True, **executor, **settings)
    everything = {f"order ({kind}) / app / {run}" for kind in ("helpful", "unhelpful") for run in range(1, 7)}
    lost = [one.error.partition(": ")[0] for one in first.broken]
    assert sorted([*lost, *(one.id for one in first.conversations)]) == sorted(everything)
    assert ("order (helpful) / app / 2" in lost) is (failures == 0)
    assert all("its worker died: KilledWorker" in one.error for one in first.broken)
    assert (sorted(one.id for one in again.conversations), again.broken) == (sorted(everything), ())
    finished = [one.id for one in read_transcripts(file) if isinstance(one, Transcript)]
    assert sorted(finished) == sorted(everything), "each is kept once"
