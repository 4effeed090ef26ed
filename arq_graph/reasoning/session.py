"""The state of an ask that belongs to one model: the method and the settings with which it is asked."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from arq_graph.reasoning.endpoints import (
    METHODS,
    Marker,
    Method,
    Schema,
    get_cache_marker,
    join_text_blocks,
    mark_for_cache,
)
from arq_graph.reasoning.failures import Failure
from arq_graph.reasoning.transport import Transport, copy_with

_log = logging.getLogger(__name__)
_TOKEN_LIMIT_FIELDS = ("max_tokens", "max_output_tokens", "num_predict")


class ModelSession:
    """One model during an ask, with the method and the settings by which it is asked.

    Attributes:
        transport: Makes the calls.
        model: The copy of the model that is called.
        method: The way in which it is asked for JSON.
        is_settled: True once the method is known to work; a call that fails is then the provider's fault.
    """

    def __init__(self, transport: Transport, temperature: float | None) -> None:
        endpoint = transport.endpoint
        self.transport = transport
        self.model = transport.model
        self._raised_limit: dict[str, Any] = {}
        if endpoint.takes_temperature:
            self.model = transport.get_model(temperature)
        self._sends_temperature = self.model is not transport.model
        self.method, *self._other_methods = endpoint.methods
        self.is_settled = not self._other_methods
        self._cache_marker: Marker | None = None
        if endpoint.takes_cache_marks:
            self._cache_marker = get_cache_marker(transport.model)
        self._first_failure: Failure | None = None
        self._is_schema_refused = False
        self._answered_method: Method | None = None

    @property
    def is_limit_raised(self) -> bool:
        """True once the token limit of the copy was raised."""
        return bool(self._raised_limit)

    def prepare_messages(self, prompt: Sequence[BaseMessage], schema: Schema) -> list[BaseMessage]:
        """Return the prompt in the form that this endpoint takes."""
        messages = self.method.prepare_messages(prompt, schema)
        if self._cache_marker:
            return mark_for_cache(messages, self._cache_marker)
        return join_text_blocks(messages)

    def leave_out_refused_part(self, failure: Failure, *, is_streaming: bool) -> bool:
        """Leave out, here and in later asks, the part that the failure names; return False if it names none."""
        endpoint = self.transport.endpoint
        if failure.blames("temperature") and self._sends_temperature:
            endpoint.takes_temperature = False
            self._sends_temperature = False
            self.model = copy_with(self.transport.model, **self._raised_limit)
        elif failure.blames("cach") and self._cache_marker:
            endpoint.takes_cache_marks = False
            self._cache_marker = None
        elif failure.blames("stream") and is_streaming:
            endpoint.streams = False
        else:
            return False
        return True

    def allow_other_methods(self) -> None:
        """Let the methods be tried that follow a settled one, once: it works, but not with a schema like this one."""
        if self.is_settled and not self._is_schema_refused:
            following = METHODS[METHODS.index(self.method) + 1 :]
            self._other_methods = list(following)
            self.is_settled = not following
        self._is_schema_refused = True

    def replace_refused_method(self, failure: Failure) -> Failure | None:
        """Take another method after a refusal; return the first method's failure if every method is rejected.

        If none is left, the last one that was answered at all is settled. If none was answered, the failure of the
        first one decides: a server's own error is worth waiting for, a rejected request is not.
        """
        self._first_failure = self._first_failure or failure
        if self._other_methods:
            self.method = self._other_methods.pop(0)
            return None
        first = self._first_failure
        is_rejected = first.status is None or not first.is_transient
        if is_rejected and not self._answered_method:
            return first
        self.method = self._answered_method or self.transport.endpoint.methods[0]
        self.is_settled = True
        return None

    def replace_method(self) -> bool:
        """Take another method after an answer without JSON; if none is left, settle this one and return False."""
        self._answered_method = self.method
        if not self._other_methods:
            self.is_settled = True
            return False
        self.method = self._other_methods.pop(0)
        return True

    def remember_method(self) -> None:
        """Remember for later asks that the method led to a valid answer."""
        self.is_settled = True
        endpoint = self.transport.endpoint
        if len(endpoint.methods) == 1 and not self._is_schema_refused:
            return
        endpoint.methods = (self.method,)
        if self._first_failure:
            model, reason = self.transport.name, self._first_failure.description
            _log.info("%s is asked by %s from now on, as it said: %s", model, self.method.name, reason)

    def raise_token_limit(self) -> bool:
        """Double the token limit, once; return False if the model has none, or already the highest."""
        if self.is_limit_raised:
            return False
        highest = (self.model.profile or {}).get("max_output_tokens") or float("inf")
        for field in _TOKEN_LIMIT_FIELDS:
            limit = getattr(self.model, field, None)
            if isinstance(limit, int) and 0 < limit < highest:
                self._raised_limit = {field: min(2 * limit, highest)}
                self.model = copy_with(self.model, **self._raised_limit)
                return True
        return False
