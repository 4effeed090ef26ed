"""Every error this library raises on purpose.

ArqGraphError
├── SpecError                  an agent file or specification is wrong (file, line, what was expected)
├── BlueprintDefinitionError   a blueprint class cannot be asked (raised when the class is made)
├── PromptError                a template or a prompt setting is wrong
├── StateError                 a graph's state does not hold what a node needs
├── InputError                 what a person or a file handed in cannot be used (conversation, thread, answer)
├── ToolError                  a tool cannot be used as it is (untyped, without a name)
└── ReasoningError             asking a model did not lead to an answer
    ├── BlueprintError         the model never gave a valid answer; `attempts` holds each raw text
    │   └── UnsatisfiedError   its answers were valid, but none met the blueprint's verification
    ├── RefusalError           the model refused; its words are in `refusal`
    ├── ModelUnavailableError  overload, time-out or lost connection for longer than the caller waits
    └── ModelRequestError      the provider rejects the request (key, model name, setting)

`ModelUnavailableError` is worth another try later; all others need a change first.
Every message says what was wrong, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar, get_args

if TYPE_CHECKING:
    from arq_graph.reasoning.answer import Attempt

_T = TypeVar("_T")


def suggestion(word: str, known: Iterable[str], cutoff: int = 60) -> str:
    """Return "; did you mean `x`?" for the nearest known word, or nothing where none is near."""
    from rapidfuzz import fuzz, process  # loaded where something is wrong already

    near = process.extractOne(word, [*known], scorer=fuzz.ratio, processor=str.casefold, score_cutoff=cutoff)
    return f"; did you mean `{near[0]}`?" if near else ""


class ArqGraphError(Exception):
    """Root of all errors that this library raises on purpose."""


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
    def of_several(cls, problems: Sequence[tuple[int | None, str]], *, file: str | None = None) -> SpecError:
        """Return one error for all problems of a file, each told on a line of its own: its line, and its message."""
        told = [str(cls(message, file=file, line=line)) for line, message in problems[1:]]
        line, message = problems[0]
        return cls("\n".join([message, *told]), file=file, line=line)


class BlueprintDefinitionError(ArqGraphError, TypeError):
    """A blueprint class cannot be asked: a field has no stage, or a type that strict JSON schema cannot say."""


class PromptError(ArqGraphError, ValueError):
    """A prompt template is missing, broken, or names a variable that the node does not give it."""


class StateError(ArqGraphError, ValueError):
    """A graph's state does not hold what a node needs, or holds another type in one of its channels."""


class InputError(ArqGraphError, ValueError):
    """What a person or a file handed in cannot be used: a conversation, a thread id, a confirmation."""


def innermost(error: BaseException) -> BaseException:
    """What went wrong, where an async library raises it inside the groups of its tasks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def checked_type(name: str, given: object, wanted: type[_T], way: str) -> _T:
    """Return what is of the type that is wanted; of anything else, such as a file's name, say how to get it."""
    if not isinstance(given, wanted):
        what = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
        raise InputError(f"{name} is {what}: {way}")
    return given


def counted(setting: str, value: object, *, least: int = 1) -> int:
    """A setting that is a number of something."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{setting} must be a whole number from {least} on, not {value!r}")
    return value


def checked(setting: str, value: _T, choices: Any) -> _T:
    """A setting that is one of the values of a `Literal`."""
    if value not in get_args(choices):
        known = ", ".join(map(repr, get_args(choices)))
        raise InputError(f"{setting} is {value!r}: it must be one of {known}")
    return value


def refuse_options(
    given: Iterable[str], create: Callable[..., object], further: Iterable[str] = (), **parts: Any
) -> None:
    """Refuse options that are neither parameters of `create` nor `further` ones.

    One that belongs to one of an agent's parts, each class by the parameter that takes it, is to be given to that part.
    """
    own = signature(create).parameters
    known = [*(name for name, each in own.items() if each.default is not each.empty), *further]
    for option in given:
        if option in known:
            continue
        for name, part in parts.items():
            taken = signature(part).parameters
            if option in taken:
                first = [each for each in ("model", "agent") if each in taken]
                way = f"{name}={part.__name__}({', '.join([*first, option])}=…)"
                whom = "" if name in own else " to create_guided_agent"
                raise InputError(f"there is no option {option!r} here: give {way}{whom}")
        near, others = suggestion(option, known), ", ".join(known)
        raise InputError(f"there is no option {option!r} here{near}; there are {others}")


class ToolError(ArqGraphError, ValueError):
    """A tool cannot be used as it is: it has no types, or no name."""


class ReasoningError(ArqGraphError):
    """Asking a model did not lead to an answer."""


class BlueprintError(ReasoningError):
    """The model never gave a valid answer.

    Args:
        message: What was asked, and the last thing that was wrong.
        attempts: Every attempt, with its raw text and its error.
    """

    def __init__(self, message: str, attempts: Sequence[Attempt] = ()) -> None:
        self.attempts = tuple(attempts)
        super().__init__(message)


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
