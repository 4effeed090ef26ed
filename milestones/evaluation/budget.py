"""The budget of a run, in model calls and in money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf

from arq_graph.errors import InputError
from arq_graph.reasoning.usage import UsageTracker, track_usage

Prices = Mapping[str, tuple[float, float]]
"""The price of a million input tokens and of a million output tokens, by the model's name or a prefix of it."""


@dataclass
class Budget:
    """The calls and the cost of a run so far, and their maxima.

    When a limit is reached, the running turns are finished. What a worker process spent is added when it returns its
    conversations.

    Args:
        max_calls: The maximal number of model calls; None: any number.
        max_cost: The maximal cost; None: any amount.
        prices: The prices of tokens.
        is_shared: Whether the limits hold for several suites together, as messages then say.
    """

    max_calls: int | None
    max_cost: float | None
    prices: Prices
    is_shared: bool = False
    # The sums over finished conversations: adding up all calls at each turn would take longer and longer.
    calls: int = 0
    cost: float = 0.0
    _running_usages: list[UsageTracker] = field(default_factory=list)

    @property
    def stop_reason(self) -> str | None:
        """The reason why the run must stop: a limit is reached, or the cost is unknown. None below both limits."""
        scope = " for all suites together" if self.is_shared else ""
        calls = self.calls + sum(usage.calls for usage in self._running_usages)
        if self.max_calls is not None and calls >= self.max_calls:
            maximum = f"{self.max_calls:,}{scope}"
            return f"max_calls: the limit of {maximum} is reached (model calls so far: {calls:,})"
        if self.max_cost is None:
            return None
        try:
            cost = self.cost + sum(self.compute_cost(usage) for usage in self._running_usages)
        except InputError as error:
            return str(error)  # the conversation that caused it raises the error at its end
        if cost < self.max_cost:
            return None
        return f"max_cost: the limit of {self.max_cost:g}{scope} is reached (cost so far: {cost:g})"

    @contextmanager
    def track(self) -> Iterator[UsageTracker]:
        """Count the model calls inside the block, which is one conversation.

        Raises:
            InputError: After the block, if the cost is limited and that of a call is unknown.
        """
        with track_usage() as usage:
            self._running_usages.append(usage)
            try:
                yield usage
            finally:
                self._running_usages.remove(usage)
        self.add(usage.calls, self.compute_cost(usage))

    def compute_cost(self, usage: UsageTracker) -> float:
        """Return the cost of calls; without prices it is 0.

        Raises:
            InputError: The cost is limited, and a model that answered has no price or reports no tokens.
        """
        if not self.prices:
            return 0.0
        cost = 0.0
        for model, tokens in usage.answers:
            price = self._find_price(model)
            if price is not None and tokens is not None:
                input_price, output_price = price
                millionths = tokens["input_tokens"] * input_price + tokens["output_tokens"] * output_price
                cost += millionths / 1_000_000
            elif self.max_cost is not None:
                raise InputError(_describe_unknown_cost(model, has_price=price is not None))
        return cost

    def add(self, calls: int, cost: float) -> None:
        """Add what a finished conversation spent."""
        self.calls += calls
        self.cost += cost

    def make_worker_budget(self) -> Budget:
        """Return a budget that is never used up, but refuses a model of unknown cost if this one limits the cost."""
        max_cost = None if self.max_cost is None else inf
        return Budget(max_calls=None, max_cost=max_cost, prices=self.prices)

    def _find_price(self, model: str) -> tuple[float, float] | None:
        prefixes = [prefix for prefix in self.prices if model.startswith(prefix)]
        return self.prices[max(prefixes, key=len)] if prefixes else None


def _describe_unknown_cost(model: str, *, has_price: bool) -> str:
    problem = f"the cost cannot be limited, because {model or 'a model'}"
    advice = "limit the calls with --max-calls (in Python, max_calls=)"
    if has_price:
        return f"{problem} reports no tokens: {advice}"
    prices = f"--prices {model or 'MODEL'}=IN/OUT (in Python, prices=)"
    return f"{problem} has no price: give {prices}, or {advice}"
