"""A thread whose process dies at one of its writes, once."""

from collections.abc import Callable, Sequence
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from arq_graph import resume_or_invoke

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Crash(Exception):
    """The end of the process."""


class CrashingSaver(InMemorySaver):
    """Fails once, instead of the write of that number."""

    def __init__(self, fatal_write: int | None = None) -> None:
        super().__init__()
        self.fatal_write = fatal_write
        self.write_count = 0

    def put(self, *arguments: Any, **named: Any) -> Any:
        self._count()
        return super().put(*arguments, **named)

    def put_writes(self, *arguments: Any, **named: Any) -> None:
        self._count()
        super().put_writes(*arguments, **named)

    def _count(self) -> None:
        self.write_count += 1
        if self.write_count == self.fatal_write:
            raise Crash


def run_turns(make_app: Callable[[], Any], inputs: Sequence[str | Command[Any]]) -> list[Any]:
    """Run the turns, each again in a new app after a crash, and return the state after each."""
    states: list[Any] = []
    for input in inputs:
        turn_input: Any = {"messages": [("user", input)]} if isinstance(input, str) else input
        try:
            state = resume_or_invoke(make_app(), turn_input, THREAD, durability="sync")
        except Crash:
            saved = make_app().get_state(THREAD).values.get("messages", [])
            is_saved = any(message.text == input for message in saved)
            state = resume_or_invoke(make_app(), None if is_saved else turn_input, THREAD, durability="sync")
        states.append(state)
    return states
