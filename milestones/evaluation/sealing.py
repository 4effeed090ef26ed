"""A `sys.exit` in an app's own tasks, kept from ending the event loop and every conversation in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

_inside: ContextVar[bool] = ContextVar("arq_graph_sealed", default=False)


class ProgramEnded(Exception):
    """An app or one of its tools called `sys.exit`."""

    @classmethod
    def by(cls, error: SystemExit) -> ProgramEnded:
        """What stands for a `SystemExit` where the program goes on."""
        return cls(f"it called sys.exit({'' if error.code is None else repr(error.code)})")


@contextmanager
def sealed() -> Iterator[None]:
    """Let a `SystemExit` in tasks that are made inside the block fail those tasks alone, as `ProgramEnded`.

    asyncio hands it to whoever runs the loop, past everybody who awaits the task. Tasks of others are left as they
    are, and so is the loop once no such block is open.
    """
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    factory = before if isinstance(before, _Sealing) else _Sealing(before)
    loop.set_task_factory(factory)
    factory.blocks += 1
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
        factory.blocks -= 1
        if not factory.blocks and loop.get_task_factory() is factory:
            loop.set_task_factory(factory.before)


class _Sealing:
    """Makes tasks; those of a block are sealed."""

    def __init__(self, before: Callable[..., Any] | None) -> None:
        self.before = before
        self.blocks = 0

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **settings: Any) -> Any:
        context = settings.get("context")
        if _inside.get() if context is None else context.get(_inside, False):
            coro = _Sealed(coro)
        if self.before is not None:
            return self.before(loop, coro, **settings)
        return asyncio.Task(coro, loop=loop, **settings)


class _Sealed(Coroutine[Any, Any, Any]):
    """A coroutine that cannot end the program.

    It is no `async def` around the other: where its task is cancelled before it begins, that one would never be
    closed, and Python would warn of it.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)  # anyio and debuggers look at `cr_frame` and the like

    def __await__(self) -> Any:
        return self._inner.__await__()

    def send(self, value: Any) -> Any:
        try:
            return self._inner.send(value)
        except SystemExit as error:
            raise ProgramEnded.by(error) from error

    def throw(
        self,
        typ: Any,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Any:
        try:
            # Of one argument: the form with three is deprecated.
            return self._inner.throw(typ) if val is None and tb is None else self._inner.throw(typ, val, tb)
        except SystemExit as error:
            raise ProgramEnded.by(error) from error

    def close(self) -> None:
        self._inner.close()
