"""What model calls cost: counted for each conversation, and held against the ceiling of the whole run."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Self
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook
from pydantic import Field, model_validator

from arq_graph.agent.parts import Part
from arq_graph.errors import InputError
from arq_graph.reasoning.replies import message_from, usage_of

Prices = Mapping[str, tuple[float, float]]
"""What a million tokens cost, read and written, by the model's name or the beginning of it."""

_MILLION = 1_000_000


class CallLimitReached(Exception):
    """One conversation has made as many model calls as it may; raised where it would make another."""


Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class Ceilings(Part):
    """What a run may cost.

    Raises:
        SpecError: A number is out of its range, or there is a ceiling for cost and no price.
    """

    max_calls: Annotated[int, Field(ge=1, strict=True)] | None = None
    """How many calls of models, those of users and judges included, 1 or more; None: any number."""
    max_cost: Annotated[Amount, Field(gt=0)] | None = None
    """What they may cost, in the unit of `prices`, above 0; None: anything."""
    prices: Mapping[str, tuple[Amount, Amount]] = {}
    """What a million tokens cost, read and written; a model is looked up by its name, then by the longest beginning
    of it."""

    @model_validator(mode="after")
    def _cost_can_be_known(self) -> Self:
        if self.max_cost is not None and not self.prices:
            raise ValueError(
                "has `max_cost` and no price: give `prices`, such as {'gpt-4o': (2.5, 10)}, what a million tokens "
                "cost, read and written"
            )
        return self


class Budget:
    """What a run has spent of its ceilings. Threads may share it.

    Args:
        ceilings: What it may cost.
    """

    def __init__(self, ceilings: Ceilings | None = None) -> None:
        self._ceilings = ceilings or Ceilings()
        self._lock = threading.Lock()
        self.calls = 0
        self.cost = 0.0
        self._not_known: str | None = None

    @property
    def reached(self) -> str | None:
        """Which ceiling is reached, in words; None while none is."""
        calls, cost = self._ceilings.max_calls, self._ceilings.max_cost
        if calls is not None and self.calls >= calls:
            return f"max_calls: {self.calls:,} of {calls:,} model calls are made"
        if cost is not None and self.cost >= cost:
            return f"max_cost: {self.cost:g} of {cost:g} is spent"
        return None

    def require_known_cost(self) -> None:
        """Refuse to go on where a ceiling for cost would not hold.

        Raises:
            InputError: A model has no price, or reports no tokens.
        """
        if self._ceilings.max_cost is not None and self._not_known is not None:
            raise InputError(self._not_known)

    def add(self, calls: int, cost: float) -> None:
        """Count what was spent before."""
        with self._lock:
            self.calls += calls
            self.cost += cost

    def count_call(self) -> None:
        """Count a call that begins."""
        with self._lock:
            self.calls += 1

    def count_tokens(self, models: tuple[str, ...], usage: UsageMetadata | None) -> float:
        """Count what an answer cost.

        Args:
            models: The model's names, the one that the answer itself tells first.
            usage: Its tokens, if it reports them.
        """
        if not self._ceilings.prices:
            return 0.0
        shown = models[0] if models else "a model"
        price = self._price(models)
        if usage is None or price is None:
            what = "reports no tokens" if usage is None else "has no price in `prices`"
            self._not_known = f"max_cost cannot hold: {shown} {what}; give its price, or max_calls instead"
            return 0.0
        cost = (usage["input_tokens"] * price[0] + usage["output_tokens"] * price[1]) / _MILLION
        with self._lock:
            self.cost += cost
        return cost

    def _price(self, models: tuple[str, ...]) -> tuple[float, float] | None:
        for model in models:
            if model in self._ceilings.prices:
                return self._ceilings.prices[model]
        for model in models:
            if known := [name for name in self._ceilings.prices if model.startswith(name)]:
                return self._ceilings.prices[max(known, key=len)]
        return None


class CallCounter(BaseCallbackHandler):
    """Counts the calls of one conversation's app, or of its user and judge, and their tokens.

    Args:
        budget: What the calls are held against, too.
        limit: How many calls may be made; None: any number.

    `failures` holds what calls raised, so that a model's lost connection can be told from another's.
    """

    run_inline = True  # in async runs, too: it only counts, and a thread for each event would cost more
    raise_error = True  # the call beyond the limit must not be made

    def __init__(self, budget: Budget | None = None, *, limit: int | None = None) -> None:
        self._budget = budget or Budget()
        self._limit = limit
        self._lock = threading.Lock()
        self._models: dict[UUID, str] = {}
        self.failures: list[BaseException] = []
        self.calls = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost = 0.0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Count what is called inside the block, in its threads and tasks too, whether or not a config is passed on."""
        token = _counter.set(self)
        try:
            yield
        finally:
            _counter.reset(token)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: Any,
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a call.

        Raises:
            CallLimitReached: It would be one too many.
        """
        with self._lock:
            if self._limit is not None and self.calls >= self._limit:
                raise CallLimitReached
            self.calls += 1
            self._models[run_id] = str((metadata or {}).get("ls_model_name") or "")
        self._budget.count_call()

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Count a call of a model that is no chat model."""
        self.on_chat_model_start(serialized, prompts, run_id=run_id, metadata=metadata)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call."""
        told = str((response.llm_output or {}).get("model_name") or "")
        usage: UsageMetadata | None = None
        for batch in response.generations:
            if batch and isinstance(batch[0], ChatGeneration):
                message = batch[0].message
                usage = usage_of(message)
                told = told or str(message.response_metadata.get("model_name") or "")
        self._end(run_id, told, usage)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Count the tokens of a call whose answer was cut off or filtered; one that failed has none."""
        with self._lock:
            self.failures.append(error)
        hidden = message_from(error) if isinstance(error, Exception) else None
        if hidden is not None:
            self._end(run_id, "", usage_of(hidden))
        else:
            with self._lock:
                self._models.pop(run_id, None)

    def _end(self, run_id: UUID, told: str, usage: UsageMetadata | None) -> None:
        with self._lock:
            begun = self._models.pop(run_id, "")
            if usage is not None:
                self.input_tokens += usage["input_tokens"]
                self.output_tokens += usage["output_tokens"]
        cost = self._budget.count_tokens(tuple(name for name in (told, begun) if name), usage)
        with self._lock:
            self.cost += cost


_counter: ContextVar[CallCounter | None] = ContextVar("arq_graph_evaluation_calls", default=None)
register_configure_hook(_counter, inheritable=True)
