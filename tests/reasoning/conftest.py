"""Asking in both ways: each test that takes `asks` runs once sync and once async."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

import pytest

from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.reasoner import Reasoner
from tests.reasoning.verdict import PROMPT, Verdict

T = TypeVar("T")


class Asks:
    """Asks a reasoner, sync or (with a runner, whose one event loop lasts for the test) async."""

    def __init__(self, runner: asyncio.Runner | None) -> None:
        self._runner = runner

    def one(
        self, reasoner: Reasoner, blueprint: Any = Verdict, messages: Any = PROMPT, **kw: Any
    ) -> Answer[Any]:
        if self._runner is None:
            return reasoner.ask(blueprint, messages, **kw)
        return self._run(reasoner.aask(blueprint, messages, **kw))

    def all(self, reasoner: Reasoner, questions: Sequence[Question[Any]], **kw: Any) -> list[Any]:
        if self._runner is None:
            return reasoner.ask_all(questions, **kw)
        return self._run(reasoner.aask_all(questions, **kw))

    def stream(self, graph: Any, *args: Any, **kw: Any) -> list[Any]:
        if self._runner is None:
            return list(graph.stream(*args, **kw))

        async def collect() -> list[Any]:
            return [part async for part in graph.astream(*args, **kw)]

        return self._run(collect())

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        assert self._runner is not None
        return self._runner.run(coroutine, context=copy_context())

    @property
    def is_async(self) -> bool:
        return self._runner is not None


@pytest.fixture(params=["sync", "async"])
def asks(request: pytest.FixtureRequest) -> Iterator[Asks]:
    if request.param == "sync":
        yield Asks(None)
    else:
        with asyncio.Runner() as runner:
            yield Asks(runner)
