"""Settings of a chat model, made on a copy of it.

Some classes take a temperature or a time limit only when they are made, and refuse it as an argument of a call
(ChatOllama, ChatGoogleGenerativeAI); a changed copy suits them all.
"""

from __future__ import annotations

from functools import cached_property
from inspect import getattr_static
from typing import Any

from langchain_core.language_models import BaseChatModel

_TIMEOUT_FIELDS = ("request_timeout", "default_request_timeout", "timeout")
_LIMIT_FIELDS = ("max_tokens", "max_output_tokens", "num_predict")
_CLIENT_FIELDS = ("client", "async_client", "root_client", "root_async_client")


def quiet_copy(model: BaseChatModel, seconds: float) -> BaseChatModel:
    """A copy that streams nothing, retries nothing by itself, and gives each request so many seconds.

    Under LangGraph's `stream_mode="messages"` a client would stream otherwise, whatever tag the call has.
    """
    return limited(_changed(model, disable_streaming=True, streaming=False), seconds)


def limited(model: BaseChatModel, seconds: float) -> BaseChatModel:
    """A copy whose requests end after so many seconds; a shorter limit of the model's own stays.

    A client's own retries would multiply the limit, so there are none.
    """
    changes: dict[str, Any] = {"max_retries": 0}
    options: dict[str, Any] = {"max_retries": 0}
    for field in _TIMEOUT_FIELDS:
        own = getattr(model, field, None)
        if field in type(model).model_fields and (own is None or isinstance(own, int | float)):
            changes[field] = options["timeout"] = min(seconds, own or seconds)
    return _changed(model, **changes, **_clients(model, options))


def with_temperature(model: BaseChatModel, temperature: float | None) -> BaseChatModel:
    """A copy with a temperature, unless the model has one of its own or is known to take none."""
    own = getattr(model, "temperature", None) if "temperature" in model.model_fields_set else None
    if temperature is None or own is not None or (model.profile or {}).get("temperature") is False:
        return model
    return _changed(model, temperature=temperature)


def token_limit(model: BaseChatModel) -> int | None:
    """The limit that is set on the tokens of an answer; None where none is."""
    field = _limit_field(model)
    return getattr(model, field) if field else None


def with_token_limit(model: BaseChatModel, limit: int) -> BaseChatModel:
    """A copy with another limit on the tokens of an answer."""
    field = _limit_field(model)
    return _changed(model, **{field: limit}) if field else model


def _limit_field(model: BaseChatModel) -> str | None:
    limits = ((field, getattr(model, field, None)) for field in _LIMIT_FIELDS)
    return next((field for field, limit in limits if isinstance(limit, int) and limit > 0), None)


def _changed(model: BaseChatModel, **values: Any) -> BaseChatModel:
    cls = type(model)
    copy = model.model_copy(
        update={name: value for name, value in values.items() if name in cls.model_fields}
    )
    for name in set(vars(copy)) - cls.model_fields.keys():
        if isinstance(getattr_static(cls, name, None), cached_property):
            del vars(copy)[name]  # such as a client that was made with the old settings
    return copy


def _clients(model: BaseChatModel, options: dict[str, Any]) -> dict[str, Any]:
    """The clients of OpenAI's SDK and of those generated like it, which keep settings of their own."""
    clients = {}
    for field in _CLIENT_FIELDS:
        client: Any = getattr(model, field, None)
        inner: Any = getattr(client, "_client", None)
        if hasattr(client, "with_options"):
            clients[field] = client.with_options(**options)
        elif hasattr(inner, "with_options"):
            clients[field] = type(client)(inner.with_options(**options))
    return clients
