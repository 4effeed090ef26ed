"""What a run of conversations may cost, and what it has cost so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Self

from pydantic import Field, PrivateAttr, model_validator

from arq_graph.agent.parts import Part
from arq_graph.errors import InputError
from arq_graph.reasoning.usage import UsageTracker, track_usage

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Prices = Mapping[str, tuple[float, float]]
"""What a million tokens cost, read and written, by the model's name or the beginning of it."""

_MILLION = 1_000_000


class Budget(Part):
    """What a run may cost, as `aevaluate` says, and what it has spent."""

    max_calls: Annotated[int, Field(ge=1, strict=True)] | None = None
    max_cost: Annotated[Amount, Field(gt=0)] | None = None
    prices: Mapping[str, tuple[Amount, Amount]] = {}
    _calls: int = PrivateAttr(0)
    _cost: float = PrivateAttr(0.0)
    _under_way: list[UsageTracker] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _cost_can_be_known(self) -> Self:
        if self.max_cost is not None and not self.prices:
            raise ValueError(
                "has `max_cost` and no price: give `prices`, such as {'gpt-4o': (2.5, 10)}, what a million tokens "
                "cost, read and written"
            )
        return self

    def add(self, calls: int, cost: float) -> None:
        """Count what is over."""
        self._calls += calls
        self._cost += cost

    @contextmanager
    def tracking(self) -> Iterator[UsageTracker]:
        """Count all calls that one conversation makes inside the block, those of its user and judge included."""
        with track_usage() as used:
            self._under_way.append(used)
            try:
                yield used
            finally:
                self._under_way.remove(used)
                self.add(used.calls, self.cost_of(used))

    @property
    def reached(self) -> str | None:
        """Which ceiling is reached, in words; None while none is."""
        calls = self._calls + sum(used.calls for used in self._under_way)
        if self.max_calls is not None and calls >= self.max_calls:
            return f"max_calls: {calls:,} of {self.max_calls:,} model calls are made"
        cost = self._cost + sum(map(self.cost_of, self._under_way))
        if self.max_cost is not None and cost >= self.max_cost:
            return f"max_cost: {cost:g} of {self.max_cost:g} is spent"
        return None

    def cost_of(self, used: UsageTracker) -> float:
        """What calls cost by the prices; a model without a price, and one that reports no tokens, cost nothing."""
        cost = 0.0
        for model, spent in used.by_model.items() if self.prices else ():
            price = self._price(model)
            if spent.usage is not None and price is not None:
                read, written = spent.usage["input_tokens"], spent.usage["output_tokens"]
                cost += (read * price[0] + written * price[1]) / _MILLION
        return cost

    def require_known_cost(self, used: UsageTracker) -> None:
        """Refuse to go on where a model has no price, or reports no tokens: a ceiling for cost would not hold."""
        for model, spent in used.by_model.items() if self.max_cost is not None else ():
            is_priced = self._price(model) is not None
            if spent.usage is None or not is_priced:
                what = "reports no tokens" if is_priced else "has no price in `prices`"
                raise InputError(
                    f"max_cost cannot hold: {model or 'a model'} {what}; give its price, or max_calls instead"
                )

    def _price(self, model: str) -> tuple[float, float] | None:
        known = [name for name in self.prices if model.startswith(name)]
        return self.prices[max(known, key=len)] if known else None
