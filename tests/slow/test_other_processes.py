"""Conversations that run in other processes: forked or spawned pools, our own workers, and a Dask cluster."""

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
    ReplayChatModel,
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
def start_dask(threads: int = 2, failures: int = 1) -> Iterator[Settings]:
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
def start_pool(method: str) -> Iterator[Settings]:
    with ProcessPoolExecutor(2, get_context(method)) as executor:
        yield {"executor": executor}


@contextmanager
def start_workers() -> Iterator[Settings]:
    yield {"workers": 2}


EXECUTORS: dict[str, Callable[[], Any]] = {
    "fork": lambda: start_pool("fork"),
    "spawn": lambda: start_pool("spawn"),
    "workers": start_workers,
    "dask": start_dask,
}


def build_graph() -> Any:
    """Return a graph that stores threads, asks a model, and names its process."""
    model = ScriptedChatModel(lambda call: f"I am process {os.getpid():>7}.")
    builder = StateGraph(MessagesState)

    async def answer(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder.add_node("answer", answer)
    builder.set_entry_point("answer")
    return builder.compile(InMemorySaver())


GRAPH = build_graph()


class Dies:
    """An app whose process ends in the second run."""

    async def ainvoke(self, given: Any, config: Any = None) -> Any:
        if config["configurable"]["thread_id"].split(" / ")[2] == "2":
            os._exit(3)
        return {"messages": [AIMessage("I live.")]}


class DiesOnce:
    """An app whose process is killed in the second turn of one conversation, and never again."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    async def ainvoke(self, given: Any, config: Any = None) -> Any:
        is_fatal = config["configurable"]["thread_id"].startswith("order (helpful) / app / 2 / ")
        if is_fatal and len(given["messages"]) > 1 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"messages": [AIMessage("I live.")]}


def dump(report: Report) -> list[Any]:
    """Return a report's records without their times."""
    return [record.model_dump(exclude={"turn_seconds"}) for record in (*report.conversations, *report.broken)]


def read_shop_suite(folder: Path) -> Suite:
    return Suite.from_yaml(write_shop(folder).with_name("suite.yaml"))


@pytest.mark.parametrize("executor", ["fork", "spawn", "workers", "dask"])
def test_other_processes_get_the_same_results_as_one(tmp_path: Path, executor: str) -> None:
    suite = read_shop_suite(tmp_path)
    apps = {**load_arms(["direct", "desk:echo"], folder=tmp_path), "graph": GRAPH}
    settings: Settings = {"model": "offline", "runs": 4, "concurrency": 3}
    file = tmp_path / "results.jsonl"

    with EXECUTORS[executor]() as processes:
        report = evaluate(suite, apps, results=file, **processes, **settings)
    assert dump(report) == dump(evaluate(suite, apps, **settings))
    assert all(record.error is None for record in report.conversations)
    texts = set()
    for line in file.read_text().splitlines()[1:]:
        for message in json.loads(line)["messages"]:
            if "I am process" in str(message["content"]):
                texts.add(message["content"])
    assert len(texts) == 2
    assert f"I am process {os.getpid():>7}." not in texts


@pytest.mark.parametrize("executor", ["fork", "workers"])
def test_a_run_is_recorded_and_replayed_by_processes(tmp_path: Path, executor: str) -> None:
    suite = read_shop_suite(tmp_path)
    arms = load_arms(["direct", "create_agent"])
    file = tmp_path / "answers.jsonl"
    with EXECUTORS[executor]() as processes:
        recorder = RecordingChatModel(file, "offline")
        recorded = evaluate(suite, arms, model=recorder, runs=3, concurrency=2, **processes)
    replay = ReplayChatModel(file)
    replayed_here = evaluate(suite, arms, model=replay, runs=3)
    with EXECUTORS[executor]() as processes:
        replayed_there = evaluate(suite, arms, model=replay, runs=3, **processes)
    assert len(recorded.conversations) == 12
    assert dump(recorded) == dump(replayed_here) == dump(replayed_there)


def test_the_example_for_a_cluster_resumes_without_running_a_conversation_twice(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    suite = write_shop(tmp_path).with_name("suite.yaml")
    script = Path(__file__).parents[2] / "examples" / "on_a_cluster.py"
    for _ in range(2):
        command = [sys.executable, script, suite, "offline"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert len(suite.with_suffix(".results.jsonl").read_text().splitlines()) == 1 + 8
    assert len(read_report(suite.with_suffix(".results.report.json")).conversations) == 8


def test_a_process_that_dies_loses_only_its_own_conversations(tmp_path: Path) -> None:
    report = evaluate(read_shop_suite(tmp_path), {"app": Dies()}, runs=6, concurrency=1, workers=2)
    assert [record.run for record in report.broken] == [2, 2]
    assert all("its worker died" in record.error for record in report.broken)
    assert (len(report.conversations), report.missing) == (10, 0)


@pytest.mark.parametrize("failures", [0, 3], ids=["its work is lost", "Dask repeats its work"])
def test_no_conversation_is_lost_or_stored_twice_when_a_worker_of_a_cluster_is_killed(
    tmp_path: Path, failures: int
) -> None:
    suite = read_shop_suite(tmp_path)
    marker, file = tmp_path / "killed", tmp_path / "results.jsonl"
    apps = {"app": DiesOnce(marker)}
    settings: Settings = {"runs": 6, "concurrency": 2, "results": file}
    with start_dask(threads=1, failures=failures) as processes:
        first = evaluate(suite, apps, **processes, **settings)
        assert marker.exists()
        resumed = evaluate(suite, apps, resume=True, **processes, **settings)
    planned = []
    for kind in ("helpful", "unhelpful"):
        planned += [f"order ({kind}) / app / {run}" for run in range(1, 7)]
    lost = [record.error.partition(": ")[0] for record in first.broken]
    assert sorted([*lost, *(record.id for record in first.conversations)]) == planned
    assert ("order (helpful) / app / 2" in lost) is (failures == 0)
    assert all("its worker died: KilledWorker" in record.error for record in first.broken)
    assert (sorted(record.id for record in resumed.conversations), resumed.broken) == (planned, ())
    stored = [talk.id for talk in read_transcripts(file) if isinstance(talk, Transcript)]
    assert sorted(stored) == planned, "each is stored once"
