"""Worked examples for the planners' prompts: one situation, as a plan that is refined and as a thought."""

from __future__ import annotations

from functools import cache
from typing import Any

from langchain_core.tools import BaseTool, tool

from arq_graph.nodes.plans import pre_act_blueprint, react_blueprint
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.worked_examples import Example

_SITUATION = {
    "conversation": [
        "M1 customer: A table for four at eight, please! My number is 555-0101.",
        "T1 find_table(guests=4, time=20:00): error: the book is locked",
    ],
    "tools": ["find_table(guests, time)", "note_callback(phone)"],
}


def _tools() -> list[ToolArguments]:
    @tool
    def find_table(guests: int, time: str) -> str:
        """Find a free table for tonight."""
        return f"{guests} {time}"

    @tool
    def note_callback(phone: str) -> str:
        """Note that somebody is to be called back."""
        return phone

    shown: list[BaseTool] = [find_table, note_callback]
    return [ToolArguments(each) for each in shown]


def _call(**further: Any) -> dict[str, Any]:
    phone = {
        "value_in_context": "M1: My number is 555-0101",
        "customer_should_provide_it": True,
        "already_provided_and_needed_again": None,
        "problematic_to_guess": True,
        "basis": "this_request",
        "given": True,
        "value": "555-0101",
    }
    return {"note_callback": {"arguments": {"phone": phone}, **further}}


@cache
def pre_act_examples() -> tuple[Example, ...]:
    """A look-up that failed, and the plan that takes another way."""
    answer = pre_act_blueprint(_tools(), frozenset()).blueprint.model_validate(
        {
            "last_customer_message": "A table for four at eight, please! My number is 555-0101.",
            "request": "a table for four at eight",
            "plan_so_far": "the final answer: say whether a table is free",
            "newest_result": "T1: the book is locked",
            "result_against_expectation": "It was to tell which tables are free; it failed.",
            "values_at_hand": "the phone number: M1",
            "previous_steps": "Looked for a table for four at eight; the book is locked (T1).",
            "observation": "failed",
            "change": {
                "what": "A call back is noted in place of telling which table is free.",
                "why": "T1: nothing can be looked up while the book is locked.",
            },
            "next_steps": [
                {
                    "step": "note a call back",
                    "reason": "The customer left a number, so a colleague can look later.",
                    "tool": "note_callback",
                },
                {
                    "step": "say that it cannot be looked up now, and that they are called back",
                    "reason": "Then all that can be done now is done.",
                    "tool": None,
                },
            ],
            "action": _call(expected="that the call back is noted"),
            "answer_rests_on_this_prompt": True,
        }
    )
    plan = "version 1: find_table, then the final answer: say whether a table is free"
    return (Example({**_SITUATION, "plan": plan}, answer),)


@cache
def react_examples() -> tuple[Example, ...]:
    """The same look-up, and the next thing to do."""
    answer = react_blueprint(_tools(), frozenset()).blueprint.model_validate(
        {
            "thought": "The book is locked (T1), so no table can be found now. The customer left a number: a call "
            "back can be noted.",
            "action": _call(),
        }
    )
    return (Example(_SITUATION, answer),)
