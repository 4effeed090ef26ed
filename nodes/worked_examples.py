"""Worked examples for the prompts, the same in all three modes (ARQ paper, 6.1.1).

An example is a situation and an answer; in `arq` mode the prompt shows the filled queries, in `cot` and
`direct` the response alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from arq_graph.nodes.blueprint_node import PROMPTS
from arq_graph.nodes.judgements import GuidelineJudgement
from arq_graph.nodes.message_schema import MessageBlueprint
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
    import yaml  # when it is used: importing is quicker

    examples: list[dict[str, Any]] = yaml.safe_load((PROMPTS / name).read_text(encoding="utf-8"))
    return examples


@cache
def examples_of_tools(
    name: str, blueprint: Callable[[list[ToolArguments]], type[ARQ]]
) -> tuple[Example, ...]:
    """Examples whose blueprint depends on their tools, of which the file holds the arguments' schemas."""
    return tuple(
        Example(
            each["situation"],
            blueprint([ToolArguments(_tool(*tool)) for tool in each["tools"].items()]).model_validate(
                each["answer"]
            ),
        )
        for each in _read(name)
    )


def _tool(name: str, schema: dict[str, Any]) -> BaseTool:
    return StructuredTool(name=name, description=name, args_schema=schema, func=lambda **_: None)


@cache
def reviser_examples() -> tuple[Example, ...]:
    """A reply that offers what nothing in the prompt offers, and the revision without it."""
    return tuple(
        Example(each["situation"], MessageBlueprint.model_validate(each["answer"]))
        for each in _read("message_reviser.yaml")
    )
