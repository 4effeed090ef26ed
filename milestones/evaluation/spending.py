"""What a run may spend: counted while it goes on, and lent in equal parts to shards and workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Annotated

from pydantic import Field

from arq_graph.errors import InputError
from arq_graph.reasoning.usage import UsageTracker

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Prices = Mapping[str, tuple[Amount, Amount]]
"""What a million tokens cost, read and written, by the model's name or the beginning of it."""


@dataclass
class SpendingLimit:
    """Calls and cost of a run, and the most that they may be.

    What is lent counts as spent until it is given back, so that all parts together never exceed the whole. Turns under
    way are finished, here as there.

    Args:
        max_calls: How many model calls may be made; None: any number.
        max_cost: What they may cost; None: any amount.
        prices: What tokens cost.
        of: What it is the limit of, for messages.
    """

    max_calls: int | None
    max_cost: float | None
    prices: Prices
    of: str = ""
    # The sum over finished conversations: adding up all calls at each turn would take longer and longer.
    calls: int = 0
    cost: float = 0.0
    ended: str | None = None
    cut: str | None = None  # why some were cut off while others went on
    under_way: list[UsageTracker] = field(default_factory=list)

    @property
    def reached(self) -> str | None:
        """Why nothing more is begun, in words; None as long as something is."""
        if self.ended:
            return self.ended
        calls = self.calls + sum(each.calls for each in self.under_way)
        if self.max_calls is not None and calls >= self.max_calls:
            return f"max_calls: the limit of {self.max_calls:,}{self.of} is reached (model calls so far: {calls:,})"
        if self.max_cost is None:
            return None
        cost = self.cost + sum(map(self.cost_of, self.under_way))
        said = f"max_cost: the limit of {self.max_cost:g}{self.of} is reached (cost so far: {cost:g})"
        return said if cost >= self.max_cost else None

    def cost_of(self, used: UsageTracker) -> float:
        """What calls cost by the prices.

        Raises:
            InputError: A model that answered has no price, or reports no tokens, while a cost is to hold.
        """
        cost = 0.0
        for model, tokens in used.answers if self.prices else ():
            name = max((each for each in self.prices if model.startswith(each)), key=len, default=None)
            if name is not None and tokens is not None:
                read, written = self.prices[name]
                cost += (tokens["input_tokens"] * read + tokens["output_tokens"] * written) / 1_000_000
            elif self.max_cost is not None:
                way = f"has no price: give --prices {model or 'MODEL'}=IN/OUT (in Python, prices=), or"
                raise InputError(
                    f"the cost cannot be limited, because {model or 'a model'} "
                    f"{way if name is None else 'reports no tokens:'} limit the calls with --max-calls (in Python, "
                    "max_calls=)"
                )
        return cost

    def add(self, calls: int, cost: float) -> None:
        """Count a conversation that is over."""
        self.calls += calls
        self.cost += cost

    def lend(self, borrowers: int) -> SpendingLimit:
        """Lend an equal part of what is left to one of so many that have none."""
        part = SpendingLimit(
            self.max_calls and ceil((self.max_calls - self.calls) / borrowers),
            self.max_cost and (self.max_cost - self.cost) / borrowers,
            self.prices,
            of=" for this part",
        )
        self.add(part.max_calls or 0, part.max_cost or 0)
        return part

    def take_back(self, part: SpendingLimit, calls: int, cost: float) -> None:
        """Count what was spent in place of what was lent."""
        self.add(calls - (part.max_calls or 0), cost - (part.max_cost or 0))
        self.cut = replace(part, calls=calls, cost=cost).reached or self.cut
