"""What a run may spend: counted while it goes on, and lent in equal parts where several workers spend it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Annotated, NamedTuple

from pydantic import Field

from arq_graph.errors import InputError
from arq_graph.reasoning.usage import ModuleUsage, UsageTracker, track_usage

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Prices = Mapping[str, tuple[Amount, Amount]]
"""What a million tokens cost, read and written, by the model's name or the beginning of it."""

Spent = Mapping[str, ModuleUsage]
"""Calls and tokens by model."""


class Share(NamedTuple):
    """What one worker may spend before it begins no further turn; None: as much as it takes."""

    calls: int | None
    cost: float | None


@dataclass
class Ceiling:
    """Calls and cost of a run, and the most that they may be.

    What is lent to workers never adds up to more than is left, so that together they do not spend more. Turns under way
    are finished, here as there.

    Args:
        max_calls: How many model calls may be made; None: any number.
        max_cost: What they may cost; None: any amount.
        prices: What tokens cost.
        of: What it is the ceiling of, for messages.
    """

    max_calls: int | None
    max_cost: float | None
    prices: Prices
    of: str = ""
    # Of conversations that are over: adding up every call at each turn would take longer and longer.
    calls: int = 0
    cost: float = 0.0
    conversations: int = 0
    ended: str | None = None
    cut: str | None = None  # why some were cut off while others went on
    _under_way: list[UsageTracker] = field(default_factory=list)
    _lent: list[Share] = field(default_factory=list)

    def part(self, shards: int) -> Ceiling:
        """The ceiling of one of so many shards.

        Raises:
            InputError: There are more shards than calls.
        """
        calls = self.max_calls and self.max_calls // shards
        if calls == 0:
            raise InputError(f"max_calls is {self.max_calls}, which is less than one call for each shard")
        return replace(self, max_calls=calls, max_cost=self.max_cost and self.max_cost / shards)

    @property
    def reached(self) -> str | None:
        """Why nothing more is begun, in words; None as long as something is."""
        if self.ended:
            return self.ended
        calls = self.calls + sum(each.calls for each in self._under_way)
        if self.max_calls is not None and calls >= self.max_calls:
            return f"max_calls: {calls:,} of {self.max_calls:,} model calls{self.of} are made"
        if self.max_cost is None:
            return None
        cost = self.cost + sum(self.cost_of(each.by_model) for each in self._under_way)
        return f"max_cost: {cost:g} of {self.max_cost:g}{self.of} is spent" if cost >= self.max_cost else None

    def cost_of(self, spent: Spent, *, known: bool = False) -> float:
        """What calls cost by the prices.

        Raises:
            InputError: With `known`, a model has no price, or reports no tokens, while a cost is to hold.
        """
        cost = 0.0
        for model, of_model in spent.items() if self.prices else ():
            name = max((each for each in self.prices if model.startswith(each)), key=len, default=None)
            if name is not None and of_model.usage is not None:
                read, written = self.prices[name]
                tokens = of_model.usage
                cost += (tokens["input_tokens"] * read + tokens["output_tokens"] * written) / 1_000_000
            elif known and self.max_cost is not None:
                what = "has no price" if name is None else "reports no tokens"
                raise InputError(f"max_cost cannot hold: {model or 'a model'} {what}; use max_calls instead")
        return cost

    def add(self, calls: int, cost: float) -> None:
        """Count a conversation that is over."""
        self.calls += calls
        self.cost += cost
        self.conversations += 1

    @contextmanager
    def counting(self) -> Iterator[UsageTracker]:
        """Count a conversation that is held inside the block, from its first call on."""
        with track_usage() as used:
            self._under_way.append(used)
            try:
                yield used
            finally:
                self._under_way.remove(used)
                self.add(used.calls, self.cost_of(used.by_model))

    def lend(self, conversations: int, workers: int) -> tuple[int, Share] | None:
        """Lend an equal part of what is left, to so many conversations or fewer; None: wait for what others give back.

        One is expected to take up to twice the mean of those that are over: what is cut off would be held again.
        """
        calls = self._part(self.max_calls, self.calls, [each.calls or 0 for each in self._lent], workers)
        cost = self._part(self.max_cost, self.cost, [each.cost or 0 for each in self._lent], workers)
        for part, spent in ((calls, self.calls), (cost, self.cost)):
            if part is not None and spent:
                conversations = min(conversations, int(part * self.conversations / (2 * spent)))
        if conversations < 1 and workers > 1:  # too little for each of them may do for one
            return None if self._lent else self.lend(1, 1)
        self._lent.append(Share(None if calls is None else max(1, int(calls)), cost))
        return max(1, conversations), self._lent[-1]

    @staticmethod
    def _part(most: float | None, spent: float, lent: Sequence[float], workers: int) -> float | None:
        return None if most is None else (most - spent - sum(lent)) / (workers - len(lent))

    def give_back(self, share: Share, held: Sequence[tuple[int, float]]) -> None:
        """Take back what was lent, and count the conversations."""
        self._lent.remove(share)
        for calls, cost in held:
            self.add(calls, cost)
        if share.calls is not None and sum(calls for calls, _ in held) >= share.calls:
            self.cut = f"max_calls: some had a part of the {self.max_calls:,} model calls that was too small"
        if share.cost is not None and sum(cost for _, cost in held) >= share.cost:
            self.cut = f"max_cost: some had a part of the {self.max_cost:g} that was too small"

    def write_off(self, share: Share, conversations: int) -> tuple[int, float]:
        """Count all that was lent as spent, as nobody knows what a worker that died has spent; for each of so many."""
        self._lent.remove(share)
        each = ceil((share.calls or 0) / conversations), (share.cost or 0) / conversations
        for _ in range(conversations):
            self.add(*each)
        return each
