"""An agent's next action: it calls tools, or it gives its final answer."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import AIMessage, convert_to_messages
from pydantic import BeforeValidator

from arq_graph.errors import InputError
from arq_graph.milestones.reports.records import Record
from arq_graph.reasoning.sections import clean

# Pydantic takes no lone surrogate, which a model may well write.
Text = Annotated[str, BeforeValidator(lambda value: clean(value) if isinstance(value, str) else value)]


class ToolCall(Record):
    """A tool call; arguments that aren't a JSON object are the text as the agent wrote it."""

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
        if self.answer.strip():
            return "answer"
        return "nothing"

    @property
    def tools(self) -> Counter[str]:
        """The number of calls of each tool."""
        return Counter(call.tool for call in self.calls)

    @property
    def label(self) -> str:
        """The action's name: the tools that it calls, in alphabetical order, or `final answer`, or `nothing`."""
        if self.calls:
            return " + ".join(sorted(self.tools.elements()))
        return "final answer" if self.kind == "answer" else "nothing"

    @classmethod
    def from_output(cls, value: Any) -> Self:
        """Return the action of an agent's output: a text, or a message of LangChain or in OpenAI's form.

        Raises:
            InputError: The message isn't an agent's.
            NotImplementedError: The output is something else.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            value = AIMessage(value)
        (message,) = convert_to_messages([value])
        if not isinstance(message, AIMessage):
            raise InputError(
                f"the agent returned a message of the type {message.type!r}: return an AI message"
            )
        calls = []
        for call in chain[Any](message.tool_calls, message.invalid_tool_calls):
            calls.append({"tool": call["name"], "arguments": call["args"]})
        return cls.model_validate({"calls": calls, "answer": message.text})
