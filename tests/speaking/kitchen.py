"""A world to act in: a mug has to be found and washed. And the task that goes with it."""

from __future__ import annotations

from arq_graph.agent.environment import Observation

TASK = "Wash the mug, please."


class Kitchen:
    """The mug is in a cupboard; `free` takes any text for an action and refuses what it does not know."""

    def __init__(self, *, free: bool = False) -> None:
        self.free = free
        self.done = False
        self.score: float | None = None
        self.open = False
        self.resets: list[int | None] = []
        self.steps: list[str] = []

    def reset(self, seed: int | None = None) -> str:
        self.resets.append(seed)
        self.steps = []
        self.done, self.score, self.open = False, 0.0, False
        return "You are in a kitchen. There are a cupboard and a sink."

    def _possible(self) -> list[str]:
        return ["look", "open the cupboard", *(["wash the mug"] if self.open else [])]

    def actions(self) -> list[str] | None:
        return None if self.free else self._possible()

    def step(self, action: str) -> Observation:
        self.steps.append(action)
        if action not in self._possible():
            return Observation("Nothing happens.", score=self.score, valid=False)
        if action == "open the cupboard":
            self.open, self.score = True, 0.5
            return Observation("There is a mug.", score=self.score)
        if action == "wash the mug":
            self.done, self.score = True, 1.0
            return Observation("The mug is clean.", done=True, score=self.score)
        return Observation("A kitchen.", score=self.score)
