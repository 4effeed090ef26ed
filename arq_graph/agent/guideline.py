"""Guidelines: when a condition holds, the agent takes an action."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from langchain_core.tools import BaseTool
from pydantic import AfterValidator, Field, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from arq_graph.agent.mcp import load_mcp_tool
from arq_graph.agent.modules import load_object
from arq_graph.agent.part import Part, Text
from arq_graph.agent.takeover import hand_over
from arq_graph.agent.tool_file import load_described_tool
from arq_graph.agent.tools import ToolLike, is_reserved_name, make_tool
from arq_graph.errors import SpecError
from arq_graph.reasoning.sections import make_id

Condition = str | Callable[[Any], bool | Awaitable[bool]] | None
OnFailure = Literal["raise", "activate", "skip"]

_TOOL_IN_FILE = re.compile(r"\.ya?ml:")
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# In prompts, P is the profile, and T1, K1, V1, M1, I1, S1 and C1 are results, terms, variables, messages, insights,
# passages and pending calls.
_ID = re.compile(r"(?!(P|[TKVMISC][0-9]+)$)[A-Za-z0-9-][A-Za-z0-9_-]{0,63}")


def _check_id(id: str) -> str:
    if id and (not _ID.fullmatch(id) or is_reserved_name(id)):
        raise ValueError(
            f"is {id!r}, but an id is 1 to 64 of the characters A-Z a-z 0-9 _ - that does not begin with _ and that"
            " prompts and answers do not use for something else; choose another id"
        )
    return id


def _read_condition(value: object, info: ValidationInfo) -> Condition:
    if isinstance(value, Mapping) and list(value) == ["function"]:
        folder = info.context.folder if info.context else None
        value = load_object(str(value["function"]), folder)
    if not isinstance(value, str):
        if value is not None and not callable(value):
            raise ValueError(
                f"must be text, {{function: module:function}}, or left out, but is {value!r:.60}"
            )
        return value
    words = value.strip()
    if words in ("", "None"):
        raise ValueError(f"is {words!r}; for a guideline that always applies, leave it out")
    if _REFERENCE.fullmatch(words):
        raise ValueError(
            f"is {words!r}, which looks like a function and would be treated as words; in a file write"
            f' {{function: "{words}"}}, in Python give the function itself'
        )
    return words


def _read_tool(value: object, info: ValidationInfo) -> BaseTool:
    document = info.context
    folder = document.folder if document else None
    tool = value
    if isinstance(value, str):
        if value == hand_over.__name__:
            tool = hand_over
        elif value.startswith("mcp:"):
            tool = load_mcp_tool(value, document)
        elif _TOOL_IN_FILE.search(value):
            tool = load_described_tool(value, folder)
        elif ":" in value:
            tool = load_object(value, folder)
        else:
            raise SpecError(f'must be "module:function", "file.yaml:name" or hand_over, but is {value!r}')
    return make_tool(tool)


Id = Annotated[str, AfterValidator(_check_id)]

_TOOL_SCHEMA = {
    "type": "string",
    "description": "module:function, file.yaml:tool, mcp:server/tool or hand_over",
}
_FUNCTION_SCHEMA = {
    "type": "object",
    "properties": {"function": {"type": "string", "description": "module:function"}},
    "required": ["function"],
}
_CONDITION_SCHEMA = {"anyOf": [{"type": "string", "minLength": 1}, _FUNCTION_SCHEMA, {"type": "null"}]}

ConditionField = Annotated[Condition, PlainValidator(_read_condition), WithJsonSchema(_CONDITION_SCHEMA)]
# `Any` keeps Pydantic from building a schema of LangChain's tools.
ToolField = Annotated[Any, PlainValidator(_read_tool), WithJsonSchema(_TOOL_SCHEMA)]


class Guideline(Part):
    """When a condition holds, the agent takes an action.

    Args:
        condition: When the guideline applies, in words. None: always. A function of the state, sync or async: decided
            in code.
        action: What the agent then does, says or avoids, in words. None: an observation; only its condition is
            judged, and tools and relations may depend on it.
        id: 1 to 64 of `A-Z a-z 0-9 _ -`, not beginning with `_`. The agent numbers guidelines that have none `G1`,
            `G2`, … by position; until then it is empty.
        tools: Tools that can be called only while this guideline is active: LangChain tools, typed functions,
            "module:function", or in a file also "file.yaml:tool" and "mcp:server/tool".
        continuous: Whether the action shapes every reply rather than being done once. None: a model is asked.
        priority: If guidelines conflict, the higher priority wins; any whole number.
        entails: Ids of guidelines that are active whenever this one is.
        depends_on: Ids of guidelines without which this one isn't active.
        overrides: Ids of guidelines that aren't active while this one is.
        on_failure: What to do if the model gives no valid judgement.
        sensitive_to_tools: Whether a tool's result could make the condition true. None: a model is asked; until it
            has answered, true.
        always_judge: Whether it is judged every turn even if the matcher preselects among many guidelines by what
            was said: for conditions that the words of a message don't show, such as a tone or a danger.

    Raises:
        SpecError: A value isn't valid for its field.
    """

    condition: ConditionField = None
    action: Text | None = None
    id: Id = ""
    tools: tuple[ToolField, ...] = ()
    continuous: bool | None = None
    priority: Annotated[int, Field(strict=True)] = 0
    entails: tuple[Id, ...] = ()
    depends_on: tuple[Id, ...] = ()
    overrides: tuple[Id, ...] = ()
    on_failure: OnFailure = "raise"
    sensitive_to_tools: bool | None = None
    always_judge: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            condition: Condition = None,
            action: str | None = None,
            *,
            id: str = "",
            tools: Sequence[ToolLike] = (),
            continuous: bool | None = None,
            priority: int = 0,
            entails: Sequence[str] = (),
            depends_on: Sequence[str] = (),
            overrides: Sequence[str] = (),
            on_failure: OnFailure = "raise",
            sensitive_to_tools: bool | None = None,
            always_judge: bool = False,
        ) -> None: ...

    @model_validator(mode="after")
    def _has_condition_or_action(self) -> Self:
        if self.condition is None and self.action is None:
            raise ValueError("has neither a condition nor an action; write at least one")
        return self

    @property
    def condition_text(self) -> str | None:
        """The condition in words; for a function, the first line of its docstring, or its name."""
        return describe_condition(self.condition)


def describe_condition(condition: Condition) -> str | None:
    """Return a condition in words; for a function, the first line of its docstring, or its name."""
    if not callable(condition):
        return condition
    if docstring := inspect.getdoc(condition):
        return docstring.strip().partition("\n")[0]
    name = getattr(condition, "__name__", type(condition).__name__)
    return name.strip("<>").replace("_", " ")


def assign_ids(guidelines: tuple[Guideline, ...]) -> tuple[Guideline, ...]:
    """Return the guidelines, those without an id numbered `G1`, `G2`, … by their position."""
    used_ids = {guideline.id for guideline in guidelines}
    result = []
    for number, guideline in enumerate(guidelines, start=1):
        if not guideline.id:
            while make_id("G", number) in used_ids:
                number += 1
            guideline = guideline.model_copy(update={"id": make_id("G", number)})
            used_ids.add(guideline.id)
        result.append(guideline)
    return tuple(result)
