"""Classify the exceptions of model calls by their attributes and class names.

No provider's package is imported here: the same condition has another class in each of them, but the HTTP
status and the names in the class hierarchy are stable.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from json import JSONDecodeError
from socket import gaierror

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from arq_graph.errors import (
    ArqGraphError,
    ModelRequestError,
    ModelUnavailableError,
    unwrap_exception_group,
)

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
_NOT_SUPPORTED_STATUS = frozenset({400, 404, 415, 422, 500, 501})
# What a model's class raises for a setting that it does not take; Pydantic's ValidationError is a ValueError.
_NOT_SUPPORTED_TYPES = (NotImplementedError, TypeError, AssertionError, ValueError)
# Base classes of connection errors in httpx, requests, botocore and OpenAI-like SDKs, and of errors in their streams.
_LOST_CONNECTION_NAMES = frozenset(
    {"APIConnectionError", "ConnectionError", "HTTPClientError", "RequestException", "TransportError"}
    | {"APIError", "EventStreamError", "ResponseError"}
)
# Errors of httpx and requests for a URL that no request can be sent to.
_BAD_URL_NAMES = frozenset({"UnsupportedProtocol", "InvalidURL", "InvalidSchema", "MissingSchema"})
# Their errors for a header that holds an empty key, or one with a line break.
_BAD_HEADER_NAMES = frozenset({"LocalProtocolError", "InvalidHeader"})
# What LangChain's OpenAI classes raise when the response of status 200 isn't a chat completion.
_MALFORMED_RESPONSE_TYPES = frozenset(
    {ValueError, KeyError, IndexError, AttributeError, TypeError, JSONDecodeError, ValidationError}
)
_MAX_DESCRIPTION = 600

_NAME_ADVICE = "Look at the model name and at base_url: the provider knows no such model or address."
_ADDRESS_ADVICE = "Look at the model's base_url: it begins with http:// or https:// and names a host."
_SETTING_ADVICE = (
    "Look at what the provider says: a setting of the model or of the request must change first."
)
_LENGTH_ADVICE = "The prompt is longer than the model reads: shorten the history or take another model."
_COMPLETION_ADVICE = "The endpoint answered, but not with a chat completion: look at base_url."
_RETRY_ADVICE = (
    "Try again later; if it still fails, look at the provider's status and at base_url, or raise timeout."
)
_UNREACHABLE_ADVICE = "Look at base_url, at the network, and at whether the server runs; then try again."
_METHOD_ADVICE = "The chat model's class refuses every call that the library can make: look at what it says."


@dataclass(frozen=True)
class Failure:
    """One failed model call.

    Args:
        error: What the call raised.
        status: The HTTP status that the provider answered with, if it did.
        is_transient: True if the same request may succeed later.
        maybe_unsupported: True if the provider, or the model's class, may not know this way of asking.
        is_unreachable: True if the address can't be resolved or refuses the connection.
        advice: What to look at, where that is known.
    """

    error: Exception
    status: int | None
    is_transient: bool = False
    maybe_unsupported: bool = False
    is_unreachable: bool = False
    advice: str = ""

    @property
    def is_from_provider(self) -> bool:
        """True if the provider or the network failed; anything else is a bug and is raised as it is."""
        return self.is_transient or bool(self.advice)

    def blames(self, part: str) -> bool:
        """Return whether the provider, or the model's class, names this part of the request."""
        # Bedrock refuses marks for its cache with 403, and botocore adds the name of the operation to the message.
        if not self.maybe_unsupported and self.status != 403:
            return False
        response = getattr(self.error, "response", None)
        message: object = self.error
        if isinstance(response, dict):
            message = response.get("Error", {}).get("Message") or self.error
        text = f"{message} {getattr(self.error, 'param', None)}"
        return re.search(rf"(?i)\b({part})", text) is not None

    @property
    def description(self) -> str:
        """The error's class and message, with its cause where the message doesn't tell it, at a limited length."""
        kind = type(self.error).__name__
        first_cause = _find_unreachable_address(self.error) or _list_causes(self.error)[-1]
        if type(first_cause).__name__ in _BAD_HEADER_NAMES:  # its message would show the key
            return f"{kind}: a header is empty, or holds a line break"
        text = f"{kind}: {self.error}" if str(self.error) else kind
        if self.advice == _COMPLETION_ADVICE:
            response = getattr(self.error, "response", None)
            text += f"; the response was: {getattr(response, 'text', '')}"
        elif self.status is None and str(first_cause) not in text:  # such as "Connection error."
            text += f" ({first_cause})"
        text = " ".join(text.split())
        return text if len(text) <= _MAX_DESCRIPTION else f"{text[:_MAX_DESCRIPTION]}…"

    def make_unavailable_error(
        self, label: str, model: str, tries: int, seconds: float
    ) -> ModelUnavailableError:
        """Return the error for a model that could not be reached, or was overloaded, until time was up."""
        count = "1 try" if tries == 1 else f"{tries} tries"
        problem = f"the model {model} did not answer ({count}, timeout {seconds:g} s); the last error was:"
        advice = _RETRY_ADVICE
        if self.is_unreachable:
            problem = f"no server can be reached at the address of the model {model} ({count}):"
            advice = _UNREACHABLE_ADVICE
        return ModelUnavailableError(f"{label}: {problem} {self.description}. {advice}")

    def make_request_error(self, label: str, model: str) -> ModelRequestError:
        """Return the error for a request that the provider rejects."""
        advice = self.advice or _METHOD_ADVICE
        return ModelRequestError(f"{label}: {model} failed: {self.description}. {advice}")


def classify_failure(error: Exception, model: BaseChatModel | None = None) -> Failure:
    """Classify what a model call raised; the model, if it is known, tells more."""
    status = _get_http_status(error)
    cause_names = {type(cause).__name__ for cause in _list_causes(error)}
    if cause_names & _BAD_URL_NAMES:
        return Failure(error, status, advice=_ADDRESS_ADVICE)
    if cause_names & _BAD_HEADER_NAMES or status in (401, 403):
        return Failure(error, status, advice=_advise_on_key(model))
    if isinstance(error, ContextOverflowError) or (status == 400 and "maximum context length" in str(error)):
        return Failure(error, status, advice=_LENGTH_ADVICE)
    if type(error) in _MALFORMED_RESPONSE_TYPES and "BaseChatOpenAI" in _list_class_names(model):
        return Failure(error, status, is_transient=True, maybe_unsupported=True, advice=_COMPLETION_ADVICE)
    if status is not None:
        return Failure(
            error,
            status,
            is_transient=status in _TRANSIENT_STATUS or status >= 500,
            maybe_unsupported=status in _NOT_SUPPORTED_STATUS,
            advice=_NAME_ADVICE if status == 404 else _SETTING_ADVICE,
        )
    is_lost = isinstance(error, ConnectionError | TimeoutError)
    is_lost = is_lost or not _LOST_CONNECTION_NAMES.isdisjoint(_list_class_names(error))
    return Failure(
        error,
        None,
        is_transient=is_lost or getattr(error, "is_retryable", False) is True,
        maybe_unsupported=isinstance(error, _NOT_SUPPORTED_TYPES),
        is_unreachable=is_lost and _find_unreachable_address(error) is not None,
    )


def is_model_failure(error: BaseException | None, model_failures: Collection[BaseException] = ()) -> bool:
    """Return whether a model or the way to it failed, which says nothing about the app and is worth another try.

    A lost connection may be that of the app's own database. So it counts only if it is among the `model_failures`,
    which a `UsageTracker` has collected.
    """
    for cause in list_causes_and_contexts(error):
        if isinstance(cause, ArqGraphError):
            return isinstance(cause, ModelRequestError | ModelUnavailableError)
        if not isinstance(cause, Exception) or cause not in model_failures:
            continue
        if classify_failure(cause).is_from_provider:
            return True
    return False


def list_causes_and_contexts(error: BaseException | None) -> list[BaseException]:
    """Return an error, and what caused it or was being handled when it was raised, the first of these last."""
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


def _find_unreachable_address(error: BaseException) -> BaseException | None:
    """Return the error of the socket for an address that can't be resolved or that refuses the connection."""
    for cause in map(unwrap_exception_group, list_causes_and_contexts(error)):
        if isinstance(cause, gaierror | ConnectionRefusedError):
            return cause
    return None


def _advise_on_key(model: BaseChatModel | None) -> str:
    if model is None:
        return "Look at the API key, and whether it may use this model at its address."
    variable = ""
    if model.lc_secrets:
        variable = f" ({next(iter(model.lc_secrets.values()))}, unless your code gives another)"
    owner = type(model).__name__
    return f"Look at the API key of {owner}{variable}, and whether it may use this model at its address."


def _list_causes(error: BaseException) -> list[BaseException]:
    """Return an error and its causes, the first cause last."""
    causes = [error]
    while cause := causes[-1].__cause__:
        causes.append(cause)
    return causes


def _get_http_status(error: BaseException) -> int | None:
    """Return the status that a provider answered with; some classes wrap the error that holds it."""
    response = getattr(error, "response", None)
    candidates = [
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "code", None),
    ]
    if isinstance(response, dict):  # botocore
        candidates.insert(0, response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    for status in candidates:
        if isinstance(status, int) and 300 <= status < 600:
            return status
    return _get_http_status(error.__cause__) if error.__cause__ else None


def _list_class_names(value: object) -> set[str]:
    return {cls.__name__ for cls in type(value).__mro__}
