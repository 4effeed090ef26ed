"""Measure how near to the ideal conversations come that wait for a model, and how much memory a waiting one takes.

An endpoint on this machine, in a process of its own, answers every request after 200 ms. The ideal is the time that
these answers alone take with so many conversations at once. What the app's own client takes of one core is measured by
the same turns without users, worlds, records and measure.

Nothing waits where the offline model answers: there a core limits a process, and conversations a second are measured by
the number of workers.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.evaluation.evaluate import evaluate
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.users.user_spec import UserSpec
from benchmarks.slow_endpoint import read_body, run_endpoint

CONVERSATIONS = 100
AT_ONCE = 50
SECONDS = 0.2
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One run against the endpoint.

    Args:
        app: The app that answers.
        calls: The number of requests.
        seconds: The time it took.
        ideal: The time that the answers alone take.
        app_alone: The time that the same turns take with the app alone.
    """

    app: str
    calls: int
    seconds: float
    ideal: float
    app_alone: float

    @property
    def ratio(self) -> float:
        """The time it took, divided by the ideal."""
        return self.seconds / self.ideal


class BareSocket:
    """An app that makes one request a turn, without any library in between."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle_connections: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ainvoke(self, input: Any, config: Any = None, **_: Any) -> Any:
        """Return the endpoint's answer."""
        body = json.dumps({"messages": [message.text for message in input["messages"]]}).encode()
        if self._idle_connections:
            connection = self._idle_connections.pop()
        else:
            connection = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = connection
        writer.write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        answer = await read_body(reader)
        self._idle_connections.append(connection)
        content = json.loads(answer)["choices"][0]["message"]["content"]
        return {"messages": [AIMessage(content)]}


class ChatModelApp:
    """An app that gives the whole conversation to a chat model."""

    def __init__(self, port: int) -> None:
        self._model = _make_model(port)

    async def ainvoke(self, input: Any, config: Any = None, **_: Any) -> Any:
        """Return the model's answer."""
        return {"messages": [await self._model.ainvoke(input["messages"], config)]}


def make_langchain_agent(port: int) -> Any:
    """Make LangChain's agent on the same model."""
    from langchain.agents import create_agent

    return create_agent(_make_model(port), tools=[])


APPS: dict[str, Callable[[int], Any]] = {
    "a bare socket": BareSocket,
    "a chat model (langchain-openai)": ChatModelApp,
    "langchain create_agent": make_langchain_agent,
}


def measure_guided_rate(worker_count: int, min_seconds: float = 2.0) -> float:
    """Return the conversations a second of the order desk with the offline model, in so many worker processes.

    With 0 workers, this process runs them. Starting the processes isn't counted.
    """
    suite = Suite.from_yaml(_ROOT / "examples" / "order_desk" / "suite.yaml")
    arms = load_arms(["guided"])
    executor_context: AbstractContextManager[Executor | None] = nullcontext()
    if worker_count:
        executor_context = ProcessPoolExecutor(worker_count, get_context("spawn"))
    with executor_context as executor:
        settings: dict[str, Any] = {"model": "offline", "concurrency": 4, "executor": executor}
        evaluate(suite, arms, **settings)
        runs = 1
        while True:
            start = time.perf_counter()
            report = evaluate(suite, arms, runs=runs, **settings)
            seconds = time.perf_counter() - start
            if seconds >= min_seconds:
                return len(report.conversations) / seconds
            runs *= 2


def measure_runs() -> Iterator[Run]:
    """Run every app in 100 conversations at 50 at a time, each in a fresh process."""
    for name in APPS:
        yield Run(name, **_measure_in_fresh_process("run", name))


def measure_waiting_bytes(name: str) -> int:
    """Return the memory that a conversation takes that waits for its first answer, in a fresh process."""
    return int(_measure_in_fresh_process("memory", name))


def _measure_in_fresh_process(measurement: str, name: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.evaluation", measurement, name]
    process = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True)
    return json.loads(process.stdout)


def _measure_run(make_app: Callable[[int], Any]) -> dict[str, float]:
    with run_endpoint(SECONDS) as port:
        app = make_app(port)
        _evaluate(app, AT_ONCE)  # the first calls' connections and imports aren't counted
        start = time.perf_counter()
        calls = _evaluate(app, CONVERSATIONS)
        seconds = time.perf_counter() - start
    with run_endpoint(SECONDS) as port:
        app_alone = asyncio.run(_measure_app_alone(make_app(port)))
    return {
        "calls": calls,
        "seconds": seconds,
        "ideal": calls * SECONDS / AT_ONCE,
        "app_alone": app_alone,
    }


def _measure_memory(make_app: Callable[[int], Any], count: int = 4 * AT_ONCE) -> int:
    """Return this process's growth in bytes per waiting conversation."""
    with run_endpoint(SECONDS) as port:
        _evaluate(make_app(port), 2, at_once=2, turns=1)  # what first calls load isn't counted
    with run_endpoint(4.0) as port:
        app = make_app(port)
        peak = 0

        class WatchedApp:
            async def ainvoke(self, input: Any, config: Any = None, **settings: Any) -> Any:
                nonlocal peak
                peak = max(peak, _read_resident_bytes())
                return await app.ainvoke(input, config, **settings)

        gc.collect()
        bytes_before = _read_resident_bytes()
        _evaluate(WatchedApp(), count, at_once=count, turns=1)
    return (peak - bytes_before) // count


def _evaluate(app: Any, conversations: int, at_once: int = AT_ONCE, turns: int = 3) -> int:
    """Run so many conversations with simulated users, and return the number of turns."""
    intents = ("Where is my order?", "When does it arrive?", "Who brings it?")
    user = UserSpec.model_validate({"intents": intents, "closing": ""})
    graph = MilestoneGraph.from_actions([{"name": "look_up", "kwargs": {}}])
    scenario = Scenario(name="order", user=user, milestones=graph, limits=Limits(turns=turns))
    suite = Suite(scenarios=(scenario,))
    report = evaluate(suite, {"app": app}, runs=conversations, concurrency=at_once)
    assert len(report.conversations) == conversations, report.broken[:1]
    for conversation in report.conversations:
        assert not conversation.error, conversation.error
    return sum(conversation.turns for conversation in report.conversations)


async def _measure_app_alone(app: Any, turns: int = 3) -> float:
    """Return the seconds of the same turns with the app alone, after some that aren't counted."""
    semaphore = asyncio.Semaphore(AT_ONCE)

    async def converse() -> None:
        messages: list[Any] = []
        async with semaphore:
            for _ in range(turns):
                messages.append(HumanMessage("Where is my order?"))
                update = await app.ainvoke({"messages": messages})
                messages.append(update["messages"][-1])

    await asyncio.gather(*(converse() for _ in range(AT_ONCE)))
    start = time.perf_counter()
    await asyncio.gather(*(converse() for _ in range(CONVERSATIONS)))
    return time.perf_counter() - start


def _make_model(port: int) -> Any:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    return ChatOpenAI(model="slow", base_url=f"http://127.0.0.1:{port}/v1", api_key=SecretStr("none"))


def _read_resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        print(_measure_memory(APPS[sys.argv[2]]))
    else:
        print(json.dumps(_measure_run(APPS[sys.argv[2]])))
