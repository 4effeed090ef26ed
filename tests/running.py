"""Running graphs and nodes in both ways: each test that takes `runs` runs once sync and once async."""

import asyncio
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest


class Runs:
    """Runs a graph or a node, sync or (with a runner, whose one event loop lasts for the test) async."""

    def __init__(self, runner: asyncio.Runner | None) -> None:
        self.runner = runner

    def call(self, sync: Any, asynchronous: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function, or its twin that is awaited."""
        if self.runner is None:
            return sync(*args, **kwargs)
        # What the test set is seen.
        return self.runner.run(asynchronous(*args, **kwargs), context=copy_context())

    def invoke(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call(graph.invoke, graph.ainvoke, *args, **kwargs)

    def batch(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        return self.call(graph.batch, graph.abatch, *args, **kwargs)

    def stream(self, graph: Any, *args: Any, **kwargs: Any) -> list[Any]:
        async def collect() -> list[Any]:
            return [part async for part in graph.astream(*args, **kwargs)]

        return list(self.call(lambda: list(graph.stream(*args, **kwargs)), collect))


@pytest.fixture(params=["sync", "async"])
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    if request.param == "sync":
        yield Runs(None)
    else:
        with asyncio.Runner() as runner:
            yield Runs(runner)
