"""A world to act in that is no set of tools: a household, a shop's website, a text game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Observation:
    """What a world shows after an action.

    Args:
        text: What there is to see.
        valid: Whether the action was possible; one that was not has changed nothing.
    """

    text: str
    valid: bool = True


@runtime_checkable
class Environment(Protocol):
    """A world that is acted in with texts.

    To go on with a thread in another process its actions are repeated from the beginning: after `reset` the same
    actions must show the same.

    Attributes:
        done: Whether the task has ended, reached or not.
        score: How well it went so far, on the world's own scale; None where it keeps none.
    """

    done: bool
    score: float | None

    def reset(self) -> str:
        """Begin anew, and return the first observation."""
        ...

    def step(self, action: str) -> Observation:
        """Take an action."""
        ...

    def actions(self) -> Sequence[str] | None:
        """The actions that are possible now; None where any text may be one."""
        ...
