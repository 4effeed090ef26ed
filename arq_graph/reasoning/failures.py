"""What an exception of a model call means, read off its attributes and class names.

No provider's package is imported here: the same condition has another class in each of them, but the HTTP
status and the names in the class hierarchy are stable.
"""

from __future__ import annotations

from dataclasses import dataclass

from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from arq_graph.errors import ModelRequestError, ModelUnavailableError

_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
_NOT_SUPPORTED_STATUS = frozenset({400, 404, 415, 422, 500, 501})
_NOT_SUPPORTED_TYPES = (NotImplementedError, TypeError, AssertionError, ValidationError)
# Bases that HTTP clients and SDKs share: httpx, requests, openai, google, botocore.
_TRANSIENT_NAMES = frozenset(
    {
        "APIConnectionError",
        "TransportError",
        "RequestException",
        "ServiceUnavailable",
        "ResourceExhausted",
        "DeadlineExceeded",
        "EndpointConnectionError",
    }
)
# A bad URL or an unprintable key looks like a lost connection, and would stay one however often it is tried.
_BAD_ADDRESS_NAMES = frozenset({"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "MissingSchema"})
_MALFORMED_TYPES = (ValueError, KeyError, IndexError, AttributeError, TypeError)
_MAX_WORDS = 600


@dataclass(frozen=True)
class Failure:
    """One failed model call, with the HTTP status if the provider answered with one.

    The same request may succeed later (`transient`), the cause may be a way of asking that the provider does not
    know (`maybe_unsupported`), or the endpoint answered with something that is no chat completion (`malformed`).
    """

    error: Exception
    status: int | None
    transient: bool
    maybe_unsupported: bool
    malformed: bool = False

    @property
    def from_provider(self) -> bool:
        """Whether the provider or the network failed; anything else is a bug somewhere, and stays itself."""
        return self.status is not None or self.transient or _is_request(self.error)

    @property
    def rejects_temperature(self) -> bool:
        """Whether the provider refuses the sampling temperature."""
        named = f"{self.error} {getattr(self.error, 'param', None)}".lower()
        return self.status == 400 and "temperature" in named


def read_failure(error: Exception, *, openai_class: bool = False) -> Failure:
    """Tell what an exception of a model call means.

    The client of LangChain's OpenAI family (`openai_class`) raises plain Python errors when a 200 response is no
    chat completion.
    """
    status = http_status(error)
    if _is_request(error):
        return Failure(error, status, transient=False, maybe_unsupported=False)
    if _is_malformed(error, openai_class):
        return Failure(error, status, transient=True, maybe_unsupported=True, malformed=True)
    if status is not None:
        transient = status in _TRANSIENT_STATUS or status >= 500
        return Failure(error, status, transient, maybe_unsupported=status in _NOT_SUPPORTED_STATUS)
    connection = isinstance(error, ConnectionError | TimeoutError) or _names(error) & _TRANSIENT_NAMES
    transient = bool(connection) or getattr(error, "is_retryable", False) is True
    return Failure(error, None, transient, maybe_unsupported=isinstance(error, _NOT_SUPPORTED_TYPES))


def is_openai_class(model: BaseChatModel) -> bool:
    """Whether a model is of LangChain's OpenAI family, told without importing that package."""
    return any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__)


def http_status(error: BaseException) -> int | None:
    """The HTTP status that an exception carries, or None."""
    response = getattr(error, "response", None)
    botocore = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    places = [(error, "status_code"), (response, "status_code"), (error, "http_status"), (error, "code")]
    values = [botocore.get("HTTPStatusCode"), *(getattr(place, name, None) for place, name in places)]
    return next((value for value in values if isinstance(value, int) and 300 <= value < 600), None)


def retry_after(error: BaseException) -> float | None:
    """Seconds that the provider asks to wait (`Retry-After`, `retry-after-ms`), or None."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    for name, scale in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers[name]) / scale)
        except (KeyError, TypeError, ValueError):
            continue  # a date, which is further off than anybody waits, or nothing
    return None


def unavailable(failure: Failure, *, asked: str, tries: int, seconds: float) -> ModelUnavailableError:
    """The error for a model that could not be reached, or was overloaded, in so many tries and seconds."""
    return ModelUnavailableError(
        f"{asked}: the model did not answer ({tries} {'try' if tries == 1 else 'tries'}, timeout {seconds:g}"
        f" s); the last said: {_words(failure)}. Try again later; if it goes on, look at the provider's"
        " status, at base_url, or raise timeout."
    )


def rejected(failure: Failure, *, asked: str) -> ModelRequestError:
    """The error for a request that the provider rejects as it is."""
    return ModelRequestError(f"{asked}: {_words(failure)}. {_advice(failure)}")


def _is_request(error: BaseException) -> bool:
    """Whether the request itself is at fault, whatever the method of asking."""
    names, cause = _names(error), error.__cause__
    for _ in range(10):
        names |= _names(cause) if cause else set()
        cause = cause.__cause__ if cause else None
    return bool(names & _BAD_ADDRESS_NAMES) or _is_too_long(error)


def _is_too_long(error: BaseException) -> bool:
    """Whether the prompt is longer than the model reads; LangChain does not recognise every provider's words."""
    if isinstance(error, ContextOverflowError) or getattr(error, "code", None) == "context_length_exceeded":
        return True
    return http_status(error) == 400 and "maximum context length" in str(error)


def _is_malformed(error: BaseException, openai_class: bool) -> bool:
    """Whether the endpoint answered 200 with something that is no chat completion."""
    if "APIResponseValidationError" in _names(error):
        return True
    plain = type(error) in _MALFORMED_TYPES or type(error).__name__ in ("JSONDecodeError", "ValidationError")
    return openai_class and plain


def _names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _words(failure: Failure) -> str:
    words = f"{type(failure.error).__name__}: {failure.error}"
    try:
        body = getattr(getattr(failure.error, "response", None), "text", "")
    except RuntimeError:  # httpx: a body that was never read
        body = ""
    if failure.malformed and body:
        words += f"; the response was: {body}"
    words = " ".join(words.split())
    return words if len(words) <= _MAX_WORDS else f"{words[:_MAX_WORDS]}…"


def _advice(failure: Failure) -> str:
    if _is_too_long(failure.error):
        return "The prompt is longer than the model reads: shorten the history or take another model."
    if failure.status in (401, 403):
        return (
            "Look at the API key (api_key, or OPENAI_API_KEY), and whether it may use this model at base_url."
        )
    if failure.status == 404:
        return "Look at the model name and at base_url: the provider knows no such model or address."
    if failure.malformed:
        return "The endpoint answered, but not with a chat completion: look at base_url."
    if failure.status is not None:
        return "Look at what the provider says: a setting of the model or of the request must change first."
    if _is_request(failure.error):
        return "Look at base_url (it must start with http:// or https://) and at the API key."
    return "This chat model class takes no call that the library knows to make: take another model."
