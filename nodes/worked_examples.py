"""Worked examples for the prompts, the same in all three modes (ARQ paper, 6.1.1).

An example is a situation and an answer, in a data file beside the prompt. In `arq` mode the prompt shows the filled
queries, in `cot` and `direct` the response alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.tools import StructuredTool

from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.blueprint import ARQ, Mode, response_fields

PROMPTS = Path(__file__).parent / "prompts"


@cache
def worked_examples(name: str, blueprint_of: Callable[..., type[ARQ]], mode: Mode) -> list[dict[str, Any]]:
    """The worked examples of a data file as a mode's prompt shows them; their tools make the answers' blueprint."""
    import yaml  # when it is used: importing is quicker

    found = yaml.safe_load((PROMPTS / f"{name}.yaml").read_text(encoding="utf-8"))
    return [
        {"situation": each["situation"], "answer": in_mode(blueprint.model_validate(each["answer"]), mode)}
        for each in found
        for blueprint in [blueprint_of([_tool(*tool) for tool in each.get("tools", {}).items()])]
    ]


def in_mode(value: Any, mode: Mode) -> Any:
    """An answer as a mode has it: all of it, or the response alone."""
    if isinstance(value, ARQ):
        if mode == "arq":
            return value.model_dump(mode="json")
        return {name: in_mode(getattr(value, name), mode) for name in response_fields(type(value))}
    if isinstance(value, Mapping):
        return {name: in_mode(item, mode) for name, item in value.items()}
    return [in_mode(item, mode) for item in value] if isinstance(value, list | tuple) else value


def _tool(name: str, schema: dict[str, Any]) -> ToolArguments:
    return ToolArguments(
        StructuredTool(name=name, description=name, args_schema=schema, func=lambda **_: None)
    )
