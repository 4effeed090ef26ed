"""Finding out, once per endpoint, which method it takes.

Parallel first calls all start with the same method: most endpoints take the first one, and waiting would cost
a round. Moving on to the next is done by one of them, and the others wait for what it finds.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from langchain_core.language_models import BaseChatModel

from arq_graph.errors import ModelUnavailableError
from arq_graph.reasoning.methods import METHODS, Method

_MAX_REMEMBERED = 512
_NAME_FIELDS = ("model_name", "model", "model_id", "deployment_name")
_ADDRESS_FIELDS = ("openai_api_base", "base_url", "azure_endpoint", "endpoint_url", "anthropic_api_url")


class Ended(Enum):
    """How a search ended that found no method."""

    EXHAUSTED = auto()  # every method failed
    VACANT = auto()  # whoever searched went away: the next one searches


Found = Method | Ended | ModelUnavailableError


@dataclass(frozen=True)
class Wait:
    """A wait for somebody else's search; the answer is what it found, or None when waiting took too long."""

    search: Future[Found]


class Negotiation:
    """What is known of one endpoint; shared by all asks of this process, from any thread.

    Args:
        proven: The method that has led to a valid answer.
        takes_temperature: False once the endpoint has refused a temperature.
    """

    def __init__(self) -> None:
        self.proven: Method | None = None
        self.takes_temperature = True
        self.lock = threading.RLock()
        self.failed: set[Method] = set()
        self.search: Future[Found] | None = None
        self.exhausted = 0

    def join(self) -> Route:
        """The way of one ask through the methods."""
        return Route(self)


class Route:
    """One ask's way through the methods.

    Args:
        method: The method to ask with now.
        works: Whether it is known to work: its failures are then the provider's, not the method's.
    """

    def __init__(self, shared: Negotiation) -> None:
        self._shared = shared
        self._tried: list[Method] = []
        self._search: Future[Found] | None = None
        with shared.lock:
            self._exhausted = shared.exhausted
            self.works = shared.proven is not None
            self.method = shared.proven or self._next() or METHODS[0]

    def move_on(self) -> Generator[Wait, Found | None, bool]:
        """Take another method after this one failed; False if there is none, or this one is proven by now."""
        self._tried.append(self.method)
        alone = False
        while True:
            with self._shared.lock:
                if self._shared.proven is not None:
                    moved = self._shared.proven is not self.method
                    self._stay_with(self._shared.proven)
                    return moved
                if self._shared.exhausted > self._exhausted:
                    # While our call was under way, somebody else tried the other methods in vain.
                    self._stay_with(self._tried[0])
                    return False
                self._shared.failed.add(self.method)
                if alone or self._search is not None or self._shared.search is None:
                    return self._lead(alone)
                search = self._shared.search
            found = yield Wait(search)
            if isinstance(found, ModelUnavailableError):
                raise ModelUnavailableError(str(found)) from found
            if isinstance(found, Method):
                moved = found is not self.method
                self._stay_with(found)
                return moved
            if found is Ended.EXHAUSTED:
                self._stay_with(self._tried[0])
                return False
            alone = found is None

    def gave_object(self) -> None:
        """The method gave a JSON object: it works, and who waits may use it."""
        self.works = True
        self._release(self.method)

    def gave_answer(self) -> None:
        """The method gave a valid answer: it is the one for this endpoint."""
        with self._shared.lock:
            self._shared.proven = self._shared.proven or self.method
        self.gave_object()

    def gave_up(self) -> None:
        """The method never gave a valid answer: unless another ask had one, the next ask tries another."""
        with self._shared.lock:
            self._shared.failed.add(self.method)
            if len(self._shared.failed) == len(METHODS):
                self._shared.failed.clear()

    def leave(self, error: BaseException | None = None) -> None:
        """Whatever happened, let nobody wait any longer.

        Args:
            error: What ended the ask; an endpoint that cannot be reached is so for those who wait, too.
        """
        self._release(error if isinstance(error, ModelUnavailableError) else Ended.VACANT)

    def _lead(self, alone: bool) -> bool:
        following = self._next()
        if following is None:
            self._shared.failed.clear()
            self._shared.exhausted += 1
            self._release(Ended.EXHAUSTED)
            self._stay_with(self._tried[0])
            return False
        if self._search is None and not alone:
            self._search = self._shared.search = Future()
            # A running future cannot be cancelled: one waiter's cancellation must not end the others' wait.
            self._search.set_running_or_notify_cancel()
        self.method = following
        return True

    def _next(self) -> Method | None:
        untried = [method for method in METHODS if method not in self._tried]
        fresh = [method for method in untried if method not in self._shared.failed]
        return next(iter(fresh or untried), None)

    def _stay_with(self, method: Method) -> None:
        self.method = method
        self.works = True

    def _release(self, found: Found) -> None:
        with self._shared.lock:
            search, self._search = self._search, None
            if search is not None:
                self._shared.search = None
                search.set_result(found)


_memory: OrderedDict[tuple[Any, ...], Negotiation] = OrderedDict()
_memory_lock = threading.Lock()


def negotiation_with(model: BaseChatModel) -> Negotiation:
    """What this process knows of a model's endpoint: its class, model name and base URL tell endpoints apart.

    A model that has neither a name nor a URL is an endpoint of its own, forgotten when it is.
    """
    identity = tuple(_first_text(model, fields) for fields in (_NAME_FIELDS, _ADDRESS_FIELDS))
    named = any(identity)
    key = (type(model), *(identity if named else (id(model),)))
    with _memory_lock:
        known = _memory.get(key)
        if known is None:
            known = _memory[key] = Negotiation()
            if not named:
                weakref.finalize(model, _memory.pop, key, None).atexit = False
            if len(_memory) > _MAX_REMEMBERED:
                _memory.popitem(last=False)
        _memory.move_to_end(key)
        return known


def _first_text(model: BaseChatModel, fields: tuple[str, ...]) -> str | None:
    for field in fields:
        value = getattr(model, field, None)
        if value:
            return str(value)
    return None
