"""What an agent does next: it calls tools, or it gives its final answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, convert_to_messages
from pydantic import BeforeValidator, Field, Json

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import Record
from arq_graph.reasoning.sections import clean

ActionKind = Literal["call", "answer", "nothing"]

# Pydantic takes no lone surrogate, which a model may well write.
Text = Annotated[str, BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)]
Arguments = dict[Any, Any] | Json[dict[Any, Any]] | Text


class ToolCall(Record):
    """A tool call; where its arguments are a text, they are no JSON object."""

    tool: Text
    arguments: Arguments = Field({}, union_mode="left_to_right")


class Action(Record):
    """One action of an agent: all that one message of it does. Pre-Act 4.2.

    With calls it is a tool call, whatever is said beside them; with words alone it is a final answer; with
    neither it is nothing.

    Args:
        calls: The tool calls, in order.
        answer: The words.
    """

    calls: tuple[ToolCall, ...] = ()
    answer: Text = ""

    @property
    def kind(self) -> ActionKind:
        """`call`, `answer` or `nothing`."""
        if self.calls:
            return "call"
        return "answer" if self.answer.strip() else "nothing"

    @property
    def tools(self) -> Counter[str]:
        """How many times each tool is called."""
        return Counter(call.tool for call in self.calls)

    @property
    def label(self) -> str:
        """The action's name: the tools that it calls, in alphabetical order, or `final answer`, or `nothing`."""
        if self.calls:
            return " + ".join(sorted(call.tool for call in self.calls))
        return "final answer" if self.kind == "answer" else "nothing"

    @classmethod
    def of(cls, message: AIMessage) -> Action:
        """The action that a message of the agent is."""
        made = (*message.tool_calls, *message.invalid_tool_calls)
        calls = [{"tool": call["name"], "arguments": call["args"]} for call in made]
        return cls.model_validate({"calls": calls, "answer": message.text})


def action_of(value: Any) -> Action:
    """The action that an agent's output is.

    Args:
        value: A text, which is a final answer; a message of the agent, of LangChain or as OpenAI writes it; or
            `{"calls": [{"tool": …, "arguments": {…}}]}` or `{"answer": …}`.

    Raises:
        InputError: It is a message of somebody else.
        NotImplementedError: It is none of these.
    """
    if isinstance(value, Action):
        return value
    if isinstance(value, str):
        return Action(answer=value)
    if isinstance(value, Mapping) and ("calls" in value or "answer" in value):
        return Action.model_validate(value)
    (message,) = convert_to_messages([value])
    if not isinstance(message, AIMessage):
        raise InputError(f"a message of the type {message.type!r} is no action of an agent")
    return Action.of(message)
