"""Every error this library raises on purpose.

ArqGraphError
├── SpecError                  an agent file or specification is wrong (file, line, what was expected)
├── BlueprintDefinitionError   a blueprint class cannot be asked (raised when the class is made)
├── PromptError                a template or a prompt setting is wrong
├── StateError                 a graph's state does not hold what a node needs
├── InputError                 a setting, or what a person or a file gave, cannot be used (conversation, thread)
├── ToolError                  a tool cannot be used as it is (untyped, without a name)
└── ReasoningError             asking a model did not lead to an answer
    ├── BlueprintError         the model never gave a valid answer; `attempts` holds each raw text
    │   └── UnsatisfiedError   its answers were valid, but none met the blueprint's verification
    ├── RefusalError           the model refused; its words are in `refusal`
    ├── ModelUnavailableError  overload, time-out or lost connection for longer than the caller waits
    └── ModelRequestError      the provider rejects the request (key, model name, setting)

`ModelUnavailableError` is worth another try later; all others need a change first.
Every message says what is wrong, where, and what to do.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

if TYPE_CHECKING:
    from langchain_core.messages.ai import UsageMetadata
    from pydantic import ValidationError

T = TypeVar("T")

MAX_MESSAGE = 4_000
"""How many characters an error's message has at most, about a screen."""
MAX_PROBLEMS = 10
"""How many of a file's problems an error names; the others are counted."""
_MAX_PROBLEM = 600

_LIBRARY_PATHS = tuple(map(sysconfig.get_path, ("stdlib", "purelib", "platlib")))


class ArqGraphError(Exception):
    """Root of all errors that this library raises on purpose; the message is cut if it is longer than a screen."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shorten(message))


class SpecError(ArqGraphError, ValueError):
    """An agent's specification is wrong.

    Args:
        message: What was wrong and what was expected.
        file: The file it stands in, if it came from one.
        line: The line in that file, counted from 1.
    """

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None) -> None:
        self.file = file
        self.line = line
        place = file or ""
        if line is not None:
            place = f"{place}:{line}" if place else f"line {line}"
        super().__init__(f"{place}: {message}" if place else message)

    @classmethod
    def from_problems(
        cls, problems: Sequence[tuple[int | None, str]], *, file: str | None = None
    ) -> SpecError:
        """Return one error for the problems of a file, each a line number and a message.

        The first ten have a line of text each, and the others are counted.
        """
        line, message = problems[0]
        if len(problems) == 1:
            return cls(message, file=file, line=line)
        texts = [shorten(message, _MAX_PROBLEM)]
        for other_line, other_message in problems[1:MAX_PROBLEMS]:
            texts.append(str(cls(shorten(other_message, _MAX_PROBLEM), file=file, line=other_line)))
        if len(problems) > MAX_PROBLEMS:
            texts.append(f"and {len(problems) - MAX_PROBLEMS:,} more; mend these first, and look again")
        return cls("\n".join(texts), file=file, line=line)


class BlueprintDefinitionError(ArqGraphError, TypeError):
    """A blueprint class cannot be asked: a field has no stage, or a type that strict JSON schema cannot say."""


class PromptError(ArqGraphError, ValueError):
    """A prompt template is missing, broken, or names a variable that the node does not give it."""


class StateError(ArqGraphError, ValueError):
    """A graph's state does not hold what a node needs, or holds another type in one of its channels."""


class InputError(ArqGraphError, ValueError):
    """A setting, or something that a person or a file gave, cannot be used: a conversation, a thread id, an answer."""


class ToolError(ArqGraphError, ValueError):
    """A tool cannot be used as it is: it has no types, or no name."""


@dataclass(frozen=True)
class Complaint:
    """One thing that a valid answer does not meet.

    Args:
        blueprint: The blueprint's name.
        query: Path of the query, such as "G3.score".
        message: What is wrong, and what was expected.
    """

    blueprint: str
    query: str
    message: str

    def __str__(self) -> str:
        return f"{self.blueprint}.{self.query}: {self.message}"


@dataclass(frozen=True)
class Attempt:
    """One answer of the model, used or not.

    Args:
        text: The model's raw text.
        method: How it was asked: "json_schema", "function_calling", "json_mode" or "prompt".
        error: Why the text is not a valid answer; None if it is one.
        complaints: What a valid answer did not meet.
        usage: Tokens of this call, if the model reports them.
        model: The name of the model that answered.
    """

    text: str
    method: str
    error: str | None
    complaints: tuple[Complaint, ...]
    usage: UsageMetadata | None
    model: str


class ReasoningError(ArqGraphError):
    """Asking a model did not lead to an answer."""


class BlueprintError(ReasoningError):
    """The model never gave a valid answer.

    Args:
        problem: What was asked, and the last thing that was wrong.
        attempts: Every attempt, with its raw text and its error.
        advice: What whoever catches the error can do next; the message ends with it.
    """

    def __init__(self, problem: str, attempts: Sequence[Attempt] = (), advice: str = "") -> None:
        self.problem = problem
        self.attempts = tuple(attempts)
        super().__init__(f"{problem}. {advice}" if advice else problem)


class UnsatisfiedError(BlueprintError):
    """The model's answers were valid, but none met the blueprint's verification within `max_candidates`."""


class RefusalError(ReasoningError):
    """The model refused to answer.

    Args:
        message: Which step was refused.
        refusal: The model's words.
    """

    def __init__(self, message: str, refusal: str = "") -> None:
        self.refusal = refusal
        super().__init__(message)


class ModelUnavailableError(ReasoningError):
    """The model could not be reached, or was overloaded, for longer than `timeout`; try again later."""


class ModelRequestError(ReasoningError):
    """The provider rejects the request as it is: a key, a model name or a setting must change first."""


def shorten(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a text of at most so many characters: of a longer one, its beginning and its end."""
    if len(text) <= limit:
        return text
    mark = f" … ({len(text) - limit:,} characters) … "
    end_length = limit // 4
    return text[: limit - end_length - len(mark)] + mark + text[-end_length:]


def describe_error(error: BaseException, *, with_location: bool = True) -> str:
    """Describe an error, with the line of the user's own code that raised it.

    The library's own errors are whole sentences already and are returned unchanged.
    """
    if isinstance(error, ArqGraphError) and str(error):
        return str(error)
    description = type(error).__name__
    if str(error):
        description += f": {error}"
    if with_location:
        description += _find_location(error)
    return description


def _find_location(error: BaseException) -> str:
    location = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        is_ours = frame.f_globals.get("__name__", "").startswith("arq_graph.")
        is_generated = file.startswith("<")
        if not is_ours and not is_generated and not file.startswith(_LIBRARY_PATHS):
            location = f" (line {line} of {file})"
    return location


def describe_location(function: object) -> str:
    """Return the location of a user's function, in brackets; "" if it isn't written in Python."""
    code = getattr(function, "__code__", None)
    return f" (line {code.co_firstlineno} of {code.co_filename})" if code else ""


def suggestion(word: str, candidates: Iterable[str], cutoff: int = 60) -> str:
    """Return "; did you mean `x`?" with the most similar of the candidates, or "" if none is similar enough.

    Args:
        word: The word that isn't known.
        candidates: The words that are known.
        cutoff: Least similarity, 0 to 100.
    """
    from rapidfuzz import fuzz, process  # imported late: only needed once something is wrong

    match = process.extractOne(
        word, list(candidates), scorer=fuzz.ratio, processor=str.casefold, score_cutoff=cutoff
    )
    return f"; did you mean `{match[0]}`?" if match else ""


def describe_first_error(error: ValidationError) -> str:
    """Return the first problem that Pydantic found, with its place."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    message = str(first["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def unwrap_exception_group(error: BaseException) -> BaseException:
    """Return the first error inside the exception groups that an async library raises for its tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def require_type(setting: str, value: object, expected: type[T], advice: str) -> T:
    """Return `value` if it is of the expected type.

    Raises:
        InputError: It isn't; the message ends with the advice, which says how to get such a value.
    """
    if isinstance(value, expected):
        return value
    kind = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
    raise InputError(f"{setting} is {kind}: {advice}")


def require_count(setting: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` if it is a whole number that isn't below the minimum; otherwise raise InputError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise InputError(f"{setting} must be a whole number from {minimum} on, not {value!r}")
    return value


def require_choice(setting: str, value: T, literal: Any) -> T:
    """Return `value` if it is one of the values of a `Literal` type; otherwise raise InputError."""
    choices = get_args(literal)
    if value not in choices:
        raise InputError(f"{setting} is {value!r}: it must be one of {', '.join(map(repr, choices))}")
    return value
