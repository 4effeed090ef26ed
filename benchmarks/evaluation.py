"""How near to the ideal many conversations come that wait for a model, and what memory one takes that waits.

An endpoint on this machine, in a process of its own, answers every request after 200 ms. The ideal is the time that
so many answers take with so many conversations at once, and nothing beside it. What the app's own client takes of one
core is told by the same turns without users, worlds, records and measure.

Where nothing waits, because the offline model answers, a core is what limits a process; then workers are counted.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
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

CONVERSATIONS = 200
AT_ONCE = 50
SECONDS = 0.2
ANSWER = "Your order is on its way. It arrives on Thursday."
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Run:
    """One run against the endpoint.

    Args:
        app: What answers.
        calls: How many requests were made.
        seconds: How long it took.
        ideal: How long the answers alone take.
        directly: How long the same turns take with the app alone.
    """

    app: str
    calls: int
    seconds: float
    ideal: float
    directly: float

    @property
    def ratio(self) -> float:
        """How many times the ideal it took."""
        return self.seconds / self.ideal


class Bare:
    """The least app there is: one request a turn, without any library between."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ainvoke(self, input: Any, config: Any = None, **_: Any) -> Any:
        """Ask, and give what is answered."""
        body = json.dumps({"messages": [message.text for message in input["messages"]]}).encode()
        line = self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self._port)
        line[1].write(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        head = await line[0].readuntil(b"\r\n\r\n")
        answer = await line[0].readexactly(int(head.lower().partition(b"content-length:")[2]))
        self._idle.append(line)
        content = json.loads(answer)["choices"][0]["message"]["content"]
        return {"messages": [AIMessage(content)]}


class OneModel:
    """An app that gives the whole conversation to a chat model."""

    def __init__(self, port: int) -> None:
        self._model = _model(port)

    async def ainvoke(self, input: Any, config: Any = None, **_: Any) -> Any:
        """Ask, and give what is answered."""
        return {"messages": [await self._model.ainvoke(input["messages"], config)]}


def create_agent(port: int) -> Any:
    """LangChain's agent on the same model."""
    from langchain.agents import create_agent

    return create_agent(_model(port), tools=[])


APPS: dict[str, Callable[[int], Any]] = {
    "a bare socket": Bare,
    "a chat model (langchain-openai)": OneModel,
    "langchain create_agent": create_agent,
}


def guided_per_second(workers: int, seconds: float = 6.0) -> float:
    """Conversations of the order desk with the offline model, a second, by so many worker processes (0: by this one).

    What it takes to begin the processes is not counted.
    """
    suite = Suite.from_yaml(_ROOT / "examples" / "order_desk" / "suite.yaml")
    settings: dict[str, Any] = {"model": "offline", "concurrency": 4}
    with ProcessPoolExecutor(workers, get_context("spawn")) if workers else nullcontext() as executor:
        evaluate(suite, load_arms(["guided"]), executor=executor, **settings)
        runs, taken = 1, 0.0
        while taken < seconds:
            begun = time.perf_counter()
            report = evaluate(suite, load_arms(["guided"]), runs=runs, executor=executor, **settings)
            taken, runs = time.perf_counter() - begun, runs * 2
    return len(report.conversations) / taken


def runs() -> Iterator[Run]:
    """Every app, 200 conversations at 50 at a time, each in a process that did nothing before."""
    for name in APPS:
        yield Run(name, **_in_a_process_of_its_own("run", name))


def bytes_per_waiting(name: str) -> int:
    """What memory one conversation takes that waits for its first answer, in a process that did nothing before."""
    return int(_in_a_process_of_its_own("memory", name))


def _in_a_process_of_its_own(what: str, name: str) -> Any:
    command = [sys.executable, "-m", "benchmarks.evaluation", what, name]
    return json.loads(subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout)


def _run(make: Callable[[int], Any]) -> dict[str, float]:
    with endpoint(SECONDS) as port:
        app = make(port)
        _evaluate(app, AT_ONCE)  # connections and imports that a first call makes are not counted
        started = time.perf_counter()
        calls = _evaluate(app, CONVERSATIONS)
        seconds = time.perf_counter() - started
    with endpoint(SECONDS) as port:
        directly = asyncio.run(_directly(make(port)))
    return {"calls": calls, "seconds": seconds, "ideal": calls * SECONDS / AT_ONCE, "directly": directly}


def _bytes_per_waiting(app: Callable[[int], Any], count: int = 4 * AT_ONCE) -> int:
    """The growth of this process, divided by how many wait."""
    with endpoint(4.0) as port:
        made = app(port)
        peak = 0

        class Watched:
            async def ainvoke(self, input: Any, config: Any = None, **settings: Any) -> Any:
                nonlocal peak
                peak = max(peak, _resident())
                return await made.ainvoke(input, config, **settings)

        _evaluate(Watched(), 2, at_once=2, turns=1)
        gc.collect()
        before = _resident()
        peak = 0
        _evaluate(Watched(), count, at_once=count, turns=1)
    return (peak - before) // count


def _evaluate(app: Any, conversations: int, at_once: int = AT_ONCE, turns: int = 3) -> int:
    requests = ("Where is my order?", "When does it arrive?", "Who brings it?")
    user = UserSpec.model_validate({"intents": requests, "closing": ""})
    graph = MilestoneGraph.from_actions([{"name": "look_up", "kwargs": {}}])
    suite = Suite(
        scenarios=(Scenario(name="order", user=user, milestones=graph, limits=Limits(turns=turns)),)
    )
    report = evaluate(suite, {"app": app}, runs=conversations, concurrency=at_once)
    assert len(report.conversations) == conversations, report.broken[:1]
    assert not (errors := [one.error for one in report.conversations if one.error]), errors[0]
    return sum(one.turns for one in report.conversations)


async def _directly(app: Any, turns: int = 3) -> float:
    """Seconds of the same turns with the app alone, after some that are not counted."""
    room = asyncio.Semaphore(AT_ONCE)

    async def converse() -> None:
        messages: list[Any] = []
        async with room:
            for _ in range(turns):
                messages.append(HumanMessage("Where is my order?"))
                messages.append((await app.ainvoke({"messages": messages}))["messages"][-1])

    await asyncio.gather(*(converse() for _ in range(AT_ONCE)))
    started = time.perf_counter()
    await asyncio.gather(*(converse() for _ in range(CONVERSATIONS)))
    return time.perf_counter() - started


def _model(port: int) -> Any:
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    return ChatOpenAI(model="slow", base_url=f"http://127.0.0.1:{port}/v1", api_key=SecretStr("none"))


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


@contextmanager
def endpoint(seconds: float) -> Iterator[int]:
    """An endpoint that answers after so many seconds; its port."""
    command = [sys.executable, "-m", "benchmarks.evaluation", str(seconds)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def _serve(seconds: float) -> None:
    message = {"role": "assistant", "content": ANSWER}
    body = json.dumps(
        {
            "id": "one",
            "object": "chat.completion",
            "created": 0,
            "model": "slow",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }
    ).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(asked.partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                await asyncio.sleep(seconds)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4_096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "memory":
        print(_bytes_per_waiting(APPS[sys.argv[2]]))
    elif sys.argv[1] == "run":
        print(json.dumps(_run(APPS[sys.argv[2]])))
    else:
        asyncio.run(_serve(float(sys.argv[1])))
