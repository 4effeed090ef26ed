"""Worked examples for the prompts, the same in all three modes (ARQ paper, 6.1.1).

An example is a situation and an answer; in `arq` mode the prompt shows the filled queries, in `cot` and
`direct` the response alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import yaml

from arq_graph.nodes.blueprint_node import PROMPTS
from arq_graph.nodes.judgements import GuidelineJudgement
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.proposals import tool_blueprint
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.blueprint import ARQ, Mode
from arq_graph.reasoning.modes import response_fields


@dataclass(frozen=True)
class Example:
    """A worked example.

    Args:
        situation: What the step would be shown, in a few words or as data.
        answer: The answer by id, or one answer.
    """

    situation: Any
    answer: ARQ | Mapping[str, ARQ]


def shown(example: Example, mode: Mode) -> dict[str, Any]:
    """An example as the prompt of a mode shows it."""
    return {"situation": example.situation, "answer": in_mode(example.answer, mode)}


def in_mode(value: Any, mode: Mode) -> Any:
    """An answer, or answers by id, as a mode has them: all of it, or the response alone."""
    if isinstance(value, ARQ):
        if mode == "arq":
            return value.model_dump(mode="json")
        return {name: in_mode(getattr(value, name), mode) for name in response_fields(type(value))}
    if isinstance(value, Mapping):
        return {name: in_mode(item, mode) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [in_mode(item, mode) for item in value]
    return value


@cache
def matcher_examples() -> tuple[Example, ...]:
    """An action of two parts, of which one was done, for something else."""
    return tuple(
        Example(
            each["situation"], {id: GuidelineJudgement(**judged) for id, judged in each["answer"].items()}
        )
        for each in _read("guideline_matcher.yaml")
    )


def _read(name: str) -> list[dict[str, Any]]:
    """The worked examples of a data file beside the prompts."""
    examples: list[dict[str, Any]] = yaml.safe_load((PROMPTS / name).read_text(encoding="utf-8"))
    return examples


@cache
def tool_examples() -> tuple[Example, ...]:
    """A call whose argument the customer gave, with one that was left open."""
    from langchain_core.tools import tool

    @tool
    def book_table(guests: int, time: str, terrace: bool = False) -> str:
        """Book a table for tonight."""
        return f"{guests} {time} {terrace}"

    answer = tool_blueprint([ToolArguments(book_table)], frozenset()).model_validate(
        {
            "last_customer_message": "Then for four of us, please.",
            "most_recent_customer_inquiry_or_need": "a table for four tonight",
            "most_recent_customer_inquiry_or_need_was_already_resolved": False,
            "book_table": {
                "subtleties_to_be_aware_of": "It books at once.",
                "tool_calls_for_candidate_tool": [
                    {
                        "applicability_rationale": "The customer wants a table; the time is not known yet.",
                        "relevant_subtleties": None,
                        "comparison_with_other_candidates": None,
                        "potentially_better_tool_rationale": None,
                        "score": 8,
                        "arguments": {
                            "guests": _decision("M3: four of us", 4),
                            "time": _decision(None, None, problematic_to_guess=True),
                            "terrace": _decision(None, None),
                        },
                        "same_call_is_already_staged": False,
                        "potentially_better_tool_name": None,
                        "better_tool_should_run_in_tandem": False,
                        "repeat_is_justified": False,
                        "should_run": True,
                    }
                ],
            },
        }
    )
    return (
        Example(
            "book_table(guests, time, terrace=False); the customer said for how many, and no time.", answer
        ),
    )


def _decision(where: str | None, value: Any, problematic_to_guess: bool = False) -> dict[str, Any]:
    return {
        "value_in_context": where,
        "customer_should_provide_it": True,
        "already_provided_and_needed_again": None,
        "problematic_to_guess": problematic_to_guess,
        "given": value is not None,
        "value": value,
    }


@cache
def reviser_examples() -> tuple[Example, ...]:
    """A reply that offers what nothing in the prompt offers, and the revision without it."""
    return tuple(
        Example(each["situation"], MessageBlueprint.model_validate(each["answer"]))
        for each in _read("message_reviser.yaml")
    )
