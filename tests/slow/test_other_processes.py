"""Conversations that are held in other processes: pools that are forked or spawned, our own, and a Dask cluster."""

from __future__ import annotations

import json
import os
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

from arq_graph import ScriptedChatModel, arms
from arq_graph.milestones import Report, Suite, evaluate, read_report
from tests.cli.shop import write_shop

pytestmark = pytest.mark.slow

Settings = dict[str, Any]


@contextmanager
def dask(threads: int = 2) -> Iterator[Settings]:
    distributed = pytest.importorskip("distributed")
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
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


@pytest.mark.parametrize("crew", ["fork", "spawn", "own", "dask"])
def test_processes_hold_what_one_would(tmp_path: Path, crew: str) -> None:
    tried = Suite.from_yaml(write_shop(tmp_path).with_name("suite.yaml"))
    apps = {**arms(["guided:direct", "desk:echo"], folder=tmp_path), "graph": GRAPH}
    settings: Settings = {"model": "offline", "runs": 4, "concurrency": 3}
    file = tmp_path / "results.jsonl"

    def told(report: Report) -> Any:
        times = {"turn_seconds"}
        return [one.model_dump(exclude=times) for one in (*report.conversations, *report.broken)]

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
