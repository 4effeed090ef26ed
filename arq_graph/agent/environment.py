"""Worlds to act in that aren't sets of tools: a household, a shop's website, a text game."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Observation:
    """The response of a world to an action.

    Args:
        text: What there is to see.
        valid: False if the action wasn't possible and changed nothing.
    """

    text: str
    valid: bool = True


@runtime_checkable
class Environment(Protocol):
    """A world in which an agent acts by texts.

    To resume a thread in another process, its actions are repeated from the beginning: after `reset`, the same actions
    must lead to the same observations.

    Attributes:
        done: Whether the task has ended, reached or not.
        score: How well it has gone so far, on the world's own scale; None if the world doesn't keep a score.
    """

    done: bool
    score: float | None

    def reset(self) -> str:
        """Start again, and return the first observation."""
        ...

    def step(self, action: str) -> Observation:
        """Take an action."""
        ...

    def actions(self) -> Sequence[str] | None:
        """Return the actions that are possible now; None if any text may be an action."""
        ...
