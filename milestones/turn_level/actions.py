"""What an agent does next: it calls tools, or it gives its final answer."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import AIMessage, convert_to_messages
from pydantic import BeforeValidator

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import Record
from arq_graph.reasoning.sections import clean

# Pydantic takes no lone surrogate, which a model may well write.
Text = Annotated[str, BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)]


class ToolCall(Record):
    """A tool call; where its arguments are a text, they are no JSON object."""

    tool: Text
    arguments: dict[Any, Any] | Text


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
    def kind(self) -> Literal["call", "answer", "nothing"]:
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
    def of(cls, value: Any) -> Self:
        """The action that an agent's output is: a text, or a message of LangChain or as OpenAI writes it.

        Raises:
            InputError: It is a message of somebody else.
            NotImplementedError: It is none of these.
        """
        if isinstance(value, cls):
            return value
        (message,) = [AIMessage(value)] if isinstance(value, str) else convert_to_messages([value])
        if not isinstance(message, AIMessage):
            raise InputError(f"a message of the type {message.type!r} is no action of an agent")
        made = (*message.tool_calls, *message.invalid_tool_calls)
        calls = [{"tool": call["name"], "arguments": call["args"]} for call in made]
        return cls.model_validate({"calls": calls, "answer": message.text})
