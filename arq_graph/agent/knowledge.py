"""What an agent can look up: retrievers, and how much of what they find a prompt holds."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, Self

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import (
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from arq_graph.agent.modules import load_object
from arq_graph.agent.part import Part
from arq_graph.errors import SpecError, describe_error

Retriever = Runnable[str, Any] | Callable[..., Any]

_EXPECTED = "a LangChain retriever, or a function that takes the query and returns documents or texts"
_REFERENCE_SCHEMA = {"type": "string", "minLength": 3, "description": "module:retriever"}


def _read_retriever(value: object, info: ValidationInfo) -> Retriever:
    retriever: Any = value
    if isinstance(value, str):
        folder = info.context.folder if info.context else None
        retriever = load_object(value, folder)
    if _is_function(retriever) and _can_call(retriever):
        factory = getattr(retriever, "__name__", "the factory")
        try:
            retriever = retriever()
        except Exception as error:
            raise SpecError(f"can't be made: {factory} raised {describe_error(error)}") from error
    if problem := _find_problem(retriever):
        raise SpecError(problem)
    return retriever  # type: ignore[no-any-return]


def _find_problem(value: Any) -> str | None:
    """Return why a value can't be used as a retriever; None if it can."""
    kind = type(value).__name__
    if isinstance(value, BaseTool):
        return f"is the tool {value.name!r}: list it under `tools`, or give the retriever that it calls"
    if isinstance(value, BaseLanguageModel):
        return f"is a {kind}, which finds no passages: give {_EXPECTED}"
    if isinstance(value, Runnable):
        return None
    if hasattr(value, "as_retriever"):
        return f"is a vector store ({kind}): give the result of its as_retriever()"
    if isinstance(value, type):
        return f"is the class {value.__name__}: give an object of it, or a function without arguments that makes one"
    if not _is_function(value):
        return f"must be {_EXPECTED}, but is {value!r:.60}"
    if not _can_call(value, "query"):
        return f"is called with the query alone, but takes {signature(value)}"
    return None


def _is_function(value: object) -> bool:
    return callable(value) and not isinstance(value, Runnable | type)


def _can_call(function: Callable[..., Any], *args: str) -> bool:
    try:
        signature(function).bind(*args)
    except (TypeError, ValueError):  # ValueError: a function in C may have no signature
        return False
    return True


class Knowledge(Part):
    """A retriever whose passages the agent may cite. In a file, `module:retriever` is short for `{retriever: …}`.

    Args:
        retriever: A LangChain retriever, another runnable that takes a text and returns a list of documents, or a
            function of the query, sync or async, that returns documents or texts. A function that needs no argument is
            called once, when the agent is made, and returns one of these. In a file: "module:retriever".
        max_passages: How many passages are taken from it, the first ones; 1 to 50.
        max_tokens: How long these may be together, in tokens, about 4 characters each; 50 or more.
        timeout: Seconds that it may take; more than 0.

    Raises:
        SpecError: A value isn't valid for its field, or the retriever can't be loaded.
    """

    retriever: Annotated[Any, PlainValidator(_read_retriever), WithJsonSchema(_REFERENCE_SCHEMA)]
    max_passages: Annotated[int, Field(strict=True, ge=1, le=50)] = 4
    max_tokens: Annotated[int, Field(strict=True, ge=50)] = 1_500
    timeout: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 10.0

    _name: str = PrivateAttr("")

    if TYPE_CHECKING:

        def __init__(
            self,
            retriever: Retriever | str,
            *,
            max_passages: int = 4,
            max_tokens: int = 1_500,
            timeout: float = 10.0,
        ) -> None: ...

    @model_validator(mode="wrap")
    @classmethod
    def _read_short_form(cls, value: Any, make: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, Knowledge):
            return make(value)
        values = value if isinstance(value, dict) else {"retriever": value}
        knowledge = make(values)
        retriever = values["retriever"]
        if not isinstance(retriever, str):
            retriever = getattr(retriever, "__name__", type(retriever).__name__)
        knowledge._name = retriever
        return knowledge

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [dict(_REFERENCE_SCHEMA), handler(schema)]}

    @property
    def name(self) -> str:
        """Its "module:retriever" in a file, or the name of the function or class."""
        return self._name
