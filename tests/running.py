"""Running graphs and nodes in both ways: each test that takes `runs` runs once sync and once async."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextvars import copy_context
from typing import Any

import pytest


class Runs:
    """Runs a graph or a node, sync or (with a runner, whose one event loop lasts for the test) async."""

    def __init__(self, runner: asyncio.Runner | None) -> None:
        self.runner = runner

    @property
    def is_async(self) -> bool:
        return self.runner is not None

    def invoke(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        if self.runner is None:
            return graph.invoke(*args, **kwargs)
        return self._run(graph.ainvoke(*args, **kwargs))

    def batch(self, graph: Any, *args: Any, **kwargs: Any) -> Any:
        if self.runner is None:
            return graph.batch(*args, **kwargs)
        return self._run(graph.abatch(*args, **kwargs))

    def stream(self, graph: Any, *args: Any, **kwargs: Any) -> list[Any]:
        if self.runner is None:
            return list(graph.stream(*args, **kwargs))

        async def collect() -> list[Any]:
            return [part async for part in graph.astream(*args, **kwargs)]

        result: list[Any] = self._run(collect())
        return result

    def call(self, sync: Any, asynchronous: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a function, or its twin that is awaited."""
        if self.runner is None:
            return sync(*args, **kwargs)
        return self._run(asynchronous(*args, **kwargs))

    def _run(self, awaited: Coroutine[Any, Any, Any]) -> Any:
        assert self.runner is not None
        return self.runner.run(awaited, context=copy_context())  # what the test set is seen


@pytest.fixture(params=["sync", "async"])
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    if request.param == "sync":
        yield Runs(None)
    else:
        with asyncio.Runner() as runner:
            yield Runs(runner)
