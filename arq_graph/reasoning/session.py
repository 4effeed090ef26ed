"""The state of an ask: the models that it may turn to, and the settings with which it asks the current one."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from arq_graph.errors import ModelRequestError, ModelUnavailableError
from arq_graph.reasoning.endpoints import (
    Marker,
    Method,
    Schema,
    get_cache_marker,
    join_text_blocks,
    mark_for_cache,
)
from arq_graph.reasoning.failures import Failure
from arq_graph.reasoning.transport import Transport, with_more_tokens, with_temperature

_log = logging.getLogger(__name__)

_REST = 60.0  # seconds for which other models are asked before an endpoint that was out of reach


class ModelQueue:
    """The models that an ask may still turn to, in order, and the errors of those that gave no answer."""

    def __init__(self, transports: Sequence[Transport]) -> None:
        now = time.monotonic()
        self.waiting = sorted(transports, key=lambda transport: transport.endpoint.rests_until > now)
        self._main = transports[0]
        self.errors: dict[Transport, ModelUnavailableError | ModelRequestError] = {}

    def note_loss(self, transport: Transport, error: ModelUnavailableError | ModelRequestError) -> None:
        """Note that a model gave no answer."""
        self.errors[transport] = error
        if isinstance(error, ModelUnavailableError):
            transport.endpoint.rests_until = time.monotonic() + _REST
            return
        if transport is self._main:
            self.waiting = []  # its settings must be mended; a fallback would hide that
        if not self.waiting:
            # A fallback that rejects the request can't replace the models that are out of reach: try these again.
            self.waiting = self._list_unavailable()

    def describe_lost(self, *, besides: Transport) -> str:
        """Return the names of the other models that gave no answer."""
        return " and ".join(transport.name for transport in self.errors if transport is not besides)

    def make_error(self) -> ModelUnavailableError | ModelRequestError:
        """Return one error with the messages of all models that gave no answer."""
        message = "\n".join(map(str, self.errors.values()))
        return ModelUnavailableError(message) if self._list_unavailable() else ModelRequestError(message)

    def _list_unavailable(self) -> list[Transport]:
        errors = self.errors.items()
        return [transport for transport, error in errors if isinstance(error, ModelUnavailableError)]


class ModelSession:
    """One model during an ask, with the method and the settings by which it is asked.

    Attributes:
        transport: Makes the calls.
        model: The copy of the model that is called.
        method: The way in which it is asked for JSON.
        is_settled: True once the method is known to work; a call that fails is then the provider's fault.
        is_limit_raised: True once the token limit of the copy was raised.
    """

    def __init__(self, transport: Transport, temperature: float | None) -> None:
        endpoint = transport.endpoint
        self.transport = transport
        self.model = transport.model
        if endpoint.takes_temperature:
            self.model = with_temperature(transport.model, temperature)
        self.method, *self._other_methods = endpoint.methods
        self.is_settled = not self._other_methods
        self.is_limit_raised = False
        self._cache_marker: Marker | None = None
        if endpoint.takes_cache_marks:
            self._cache_marker = get_cache_marker(transport.model)
        self._first_failure: Failure | None = None
        self._answered_method: Method | None = None

    def prepare_messages(self, prompt: Sequence[BaseMessage], schema: Schema) -> list[BaseMessage]:
        """Return the prompt in the form that this endpoint takes."""
        messages = self.method.prepare_messages(prompt, schema)
        if self._cache_marker:
            return mark_for_cache(messages, self._cache_marker)
        return join_text_blocks(messages)

    def leave_out_refused_part(self, failure: Failure, *, is_streaming: bool) -> bool:
        """Leave out, here and in later asks, the part of the request that the endpoint refuses.

        Returns:
            False if the failure doesn't name a part that can be left out.
        """
        endpoint = self.transport.endpoint
        if failure.blames("temperature") and self.model is not self.transport.model:
            endpoint.takes_temperature = False
            self.model = self.transport.model
        elif failure.blames("cach") and self._cache_marker:
            endpoint.takes_cache_marks = False
            self._cache_marker = None
        elif failure.blames("stream") and is_streaming and endpoint.streams:
            endpoint.streams = False
        else:
            return False
        return True

    def replace_refused_method(self, failure: Failure) -> Failure | None:
        """Take another method after the endpoint refused this one.

        If none is left, the last one that was answered at all is settled. If none was answered, the failure of the
        first one decides: a server's own error is worth waiting for, a rejected request is not.

        Returns:
            The failure of the first method, if the endpoint rejects the request by every method.
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
        """Take another method, as this one's answer held no JSON object.

        Returns:
            False if none is left; then this one is settled.
        """
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
        if len(endpoint.methods) == 1:
            return
        endpoint.methods = (self.method,)
        if self._first_failure:
            model, reason = self.transport.name, self._first_failure.description
            _log.info("%s is asked by %s from now on, as it said: %s", model, self.method.name, reason)

    def raise_token_limit(self) -> bool:
        """Double the token limit, once; return False if that isn't possible."""
        if self.is_limit_raised:
            return False
        larger = with_more_tokens(self.model)
        if larger is None:
            return False
        self.model = larger
        self.is_limit_raised = True
        return True
