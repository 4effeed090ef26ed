"""What an exception of a model call means, read off its attributes and class names.

No provider's package is imported here: the same condition has another class in each of them, but the HTTP
status and the names in the class hierarchy are stable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from arq_graph.errors import ModelRequestError, ModelUnavailableError

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
_NOT_SUPPORTED_STATUS = frozenset({400, 404, 415, 422, 500, 501})
# What a model class raises itself for a setting that it does not take; Pydantic's ValidationError is a ValueError.
_NOT_SUPPORTED_TYPES = (NotImplementedError, TypeError, AssertionError, ValueError)
# Of classes that do not raise LangChain's own errors: bases that httpx, requests, botocore and OpenAI-like SDKs share.
_TRANSIENT_NAMES = {
    *("APIConnectionError", "ConnectionError", "HTTPClientError", "RequestException", "TransportError"),
    *("APIError", "EventStreamError", "ResponseError"),  # in the middle of a streamed answer
}
# What httpx and requests say of a URL that no request can be sent to.
_NO_ADDRESS_NAMES = frozenset({"UnsupportedProtocol", "InvalidURL", "InvalidSchema", "MissingSchema"})
# And of a header that holds no key, or one with a line break.
_NO_HEADER_NAMES = frozenset({"LocalProtocolError", "InvalidHeader"})
# What LangChain's OpenAI family raises when a 200 response is no chat completion.
_MALFORMED = (ValueError, KeyError, IndexError, AttributeError, TypeError, JSONDecodeError, ValidationError)
_MAX_WORDS = 600

_NAME = "Look at the model name and at base_url: the provider knows no such model or address."
_ADDRESS = "Look at the model's base_url: it begins with http:// or https:// and names a host."
_SETTING = "Look at what the provider says: a setting of the model or of the request must change first."
_TOO_LONG = "The prompt is longer than the model reads: shorten the history or take another model."
_NO_COMPLETION = "The endpoint answered, but not with a chat completion: look at base_url."
_NO_METHOD = "The chat model's class refuses every call that the library can make: look at what it says."


@dataclass(frozen=True)
class Failure:
    """One failed model call, with the HTTP status if the provider answered with one.

    The same request may succeed later (`transient`), or the cause may be a way of asking that the provider does not
    know (`maybe_unsupported`). `advice` says what to look at, where that is known.
    """

    error: Exception
    status: int | None
    transient: bool = False
    maybe_unsupported: bool = False
    advice: str = ""

    @property
    def from_provider(self) -> bool:
        """Whether the provider or the network failed; anything else is a bug somewhere, and stays itself."""
        return self.transient or bool(self.advice)

    def blames(self, part: str) -> bool:
        """Whether the provider, or the model's class, names a part of the request that can be left out.

        Bedrock refuses marks for its cache with a 403, and botocore adds the name of the operation to what it says.
        """
        response = getattr(self.error, "response", None)
        told = response.get("Error", {}).get("Message") if isinstance(response, dict) else None
        told = f"{told or self.error} {getattr(self.error, 'param', None)}"
        return (self.maybe_unsupported or self.status == 403) and bool(re.search(rf"(?i)\b{part}", told))

    def unavailable(self, asked: str, model: str, tries: int, seconds: float) -> ModelUnavailableError:
        """The error for a model that could not be reached, or was overloaded, in so many tries and seconds."""
        return ModelUnavailableError(
            f"{asked}: the model {model} did not answer ({tries} {'try' if tries == 1 else 'tries'}, timeout"
            f" {seconds:g} s); the last said: {self.words}. Try again later; if it goes on, look at the provider's"
            " status, at base_url, or raise timeout."
        )

    def rejected(self, asked: str, model: str) -> ModelRequestError:
        """The error for a request that the provider rejects as it is."""
        return ModelRequestError(f"{asked}: {model} failed: {self.words}. {self.advice or _NO_METHOD}")

    @property
    def words(self) -> str:
        """What the provider says, at some length, and what is behind it."""
        words, (*_, cause) = f"{type(self.error).__name__}: {self.error}", _causes(self.error)
        if type(cause).__name__ in _NO_HEADER_NAMES:  # what it says would show the key
            return f"{type(self.error).__name__}: a header is empty, or holds a line break"
        if self.advice == _NO_COMPLETION:
            words += f"; the response was: {getattr(getattr(self.error, 'response', None), 'text', '')}"
        elif self.status is None and str(cause) not in words:  # "Connection error." alone does not say which
            words += f" ({cause})"
        words = " ".join(words.split())
        return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"


def classify_failure(error: Exception, model: BaseChatModel | None = None) -> Failure:
    """Tell what an exception of a model call means; `model` is the one that was called, where it is known."""
    status, names = _http_status(error), _names(error)
    causes = {type(cause).__name__ for cause in _causes(error)}
    if causes & _NO_ADDRESS_NAMES:
        return Failure(error, status, advice=_ADDRESS)
    if causes & _NO_HEADER_NAMES or status in (401, 403):
        return Failure(error, status, advice=_advice_on_key(model))
    if isinstance(error, ContextOverflowError) or (status == 400 and "maximum context length" in str(error)):
        return Failure(error, status, advice=_TOO_LONG)
    if type(error) in _MALFORMED and "BaseChatOpenAI" in _names(model):
        return Failure(error, status, transient=True, maybe_unsupported=True, advice=_NO_COMPLETION)
    if status is not None:
        transient = status in _TRANSIENT_STATUS or status >= 500
        advice = _NAME if status == 404 else _SETTING
        return Failure(error, status, transient, status in _NOT_SUPPORTED_STATUS, advice)
    is_lost = isinstance(error, ConnectionError | TimeoutError) or names & _TRANSIENT_NAMES
    transient = bool(is_lost) or getattr(error, "is_retryable", False) is True
    return Failure(error, None, transient, isinstance(error, _NOT_SUPPORTED_TYPES))


def _advice_on_key(model: BaseChatModel | None) -> str:
    named = next(iter(model.lc_secrets.values()), None) if model else None
    variable = f" ({named}, unless your code gives another)" if named else ""
    of = f" of {type(model).__name__}" if model else ""
    return f"Look at the API key{of}{variable}, and whether it may use this model at its address."


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _http_status(error: BaseException) -> int | None:
    """The status that a provider answered with; some classes raise an error of theirs from the one that has it."""
    response = getattr(error, "response", None)
    botocore = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    places = [(error, "status_code"), (response, "status_code"), (error, "code")]
    values = [botocore.get("HTTPStatusCode"), *(getattr(place, name, None) for place, name in places)]
    status = next((value for value in values if isinstance(value, int) and 300 <= value < 600), None)
    return _http_status(error.__cause__) if status is None and error.__cause__ else status


def _names(one: object) -> set[str]:
    return {cls.__name__ for cls in type(one).__mro__}
