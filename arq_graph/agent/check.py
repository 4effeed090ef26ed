"""Checks of what comes in and what goes out: a moderation model, a filter of personal data, a jailbreak classifier."""

from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal

from langchain_core.runnables import Runnable
from pydantic import Field, PlainValidator, ValidationInfo, WithJsonSchema

from arq_graph.agent.modules import load_object
from arq_graph.agent.part import Part, Text
from arq_graph.agent.record import Record

CheckedSide = Literal["input", "output"]
CheckOutcome = Literal["reply", "block", "takeover"]


class CheckResult(Part):
    """The result of a check.

    Args:
        passed: True if there is nothing to object to the text.
        reason: Why it passed or failed; it is recorded, and never shown to the customer or to a model.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    passed: bool
    reason: str = ""


def _read_checker(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str):
        value = load_object(value, info.context.folder if info.context else None)
    if isinstance(value, Runnable):
        return value
    if not callable(value) or inspect.isclass(value):
        raise ValueError(f'must be a function, a Runnable or "module:function", but is {value!r:.60}')
    try:
        inspect.signature(value).bind("text")
    except TypeError as error:
        raise ValueError(
            f"is {_get_name(value)!r}, which can't be called with the text alone ({error}): write it as "
            "`def check(text: str) -> bool`"
        ) from None
    except ValueError:  # a function in C has no signature
        pass
    return value


_CHECKER_SCHEMA = {"type": "string", "description": "module:function"}


class Check(Part):
    """A check of each message of the customer (`on="input"`) or of each reply (`on="output"`).

    Args:
        on: What it checks. input: the text of the customer's messages since the last check, beside the matching, before
            any tool runs and any text is sent. output: the text of the reply, before any of it is sent.
        by: A function of the text, sync or async, a LangChain Runnable, or "module:function". It returns True if the
            text passes and False if not, or a `CheckResult` (or a dict with its fields) with a reason. None means
            that it can't tell, which counts as an error.
        then: What happens if the text doesn't pass. reply: the agent says `text`, and the turn ends. block: the same,
            and what the customer wrote is left out of all later prompts. takeover: the conversation is handed over to
            a person. If several checks fail, takeover goes before block, and block before reply.
        text: What the agent then says. None: its `fallback`, or its `handed_over` for a takeover.
        on_error: What happens if the check raises, exceeds its time, or returns something else. block: the message is
            blocked, and the agent says its `fallback`. pass: nothing, besides a warning.
        timeout: Seconds that the check may take.
        name: Its name in records. None: that of the function.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    on: CheckedSide
    by: Annotated[Any, PlainValidator(_read_checker), WithJsonSchema(_CHECKER_SCHEMA)]
    then: CheckOutcome = "block"
    text: Text | None = None
    on_error: Literal["block", "pass"] = "block"
    timeout: Annotated[float, Field(gt=0)] = 10
    name: Text | None = None

    @property
    def label(self) -> str:
        """Its name in records."""
        return self.name or _get_name(self.by)


def _get_name(checker: Any) -> str:
    if isinstance(checker, Runnable):
        return checker.get_name()
    return str(getattr(checker, "__name__", type(checker).__name__))


class CheckDecision(Record):
    """The decision of one check in a turn.

    `then` is what follows if the text didn't pass, and `text` what the agent says in that case; `message_ids` are the
    customer's messages that an input check read. `is_error` says that the check failed itself.
    """

    check: str
    on: CheckedSide
    passed: bool
    reason: str = ""
    then: CheckOutcome | None = None
    text: str = ""
    message_ids: tuple[str, ...] = ()
    is_error: bool = False
