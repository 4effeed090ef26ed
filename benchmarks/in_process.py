"""An in-process model at zero latency, and an agent of any size, to measure the library's own share of a turn."""

from __future__ import annotations

from functools import lru_cache
from json import dumps, loads
from typing import Any

from langchain_core.tools import StructuredTool

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.models.scripted import ScriptedCall

# Not `could_a_tool_change_that`: what the agent's conditions speak of, the customer asks about.
YES = frozenset({"given", "should_run", "should_apply"})
TEXTS = {"content": "Your order is on its way.", "source": "T1", "value": "ORD-1001"}


def get_order(order_id: str) -> dict[str, str]:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return {"order_id": order_id, "status": "in transit"}


def agent_of(guidelines: int, tools: int = 1) -> Agent:
    """An agent with so many guidelines, of which the first ones grant a tool each."""
    others = [StructuredTool.from_function(get_order, name=f"get_order_{n}") for n in range(2, tools + 1)]
    granted: list[Any] = [get_order, *others]
    return Agent(
        "Order desk",
        "You are the order desk of a small shop. You are friendly and brief.",
        [
            Guideline(
                f"the customer asks about topic number {number} of the shop's handbook",
                f"explain topic number {number} in one or two sentences and offer further help",
                tools=granted[number - 1 : number],
                always_judge=number == 1,
            )
            for number in range(1, guidelines + 1)
        ],
    )


def model() -> ScriptedChatModel:
    """A model that activates the first guideline, calls its tool once and writes a reply without a violation."""
    return ScriptedChatModel(answer)


def answer(call: ScriptedCall, *, calls: bool = True, changes: bool = False) -> str:
    """What that model says; unless it `calls` a tool, none, and if its result `changes` things, G2 applies then."""
    is_later = changes and '"from": "tool"' in call.text
    said = _instance(dumps(call.schema), calls, changes, is_later)
    return said if calls else said.replace('"T1"', '"P"')  # a source that there is


@lru_cache(maxsize=256)
def _instance(schema: str, calls: bool, changes: bool, is_later: bool) -> str:
    root = loads(schema)
    answer = _of(root, root, "")
    for name, said in answer.items():
        if isinstance(said, dict) and not calls and "tool_calls_for_candidate_tool" in said:
            said["tool_calls_for_candidate_tool"] = []
        if name == "G2" and changes:
            said["could_a_tool_change_that"] = True
        if name.startswith("G") and name not in ("G1", "G2" if is_later else "G1"):
            said.update(score=1, should_apply=False)
    return dumps(answer)


def _of(schema: dict[str, Any], root: dict[str, Any], name: str) -> Any:
    if "$ref" in schema:
        return _of(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, name)
    if "anyOf" in schema:
        known = name in TEXTS or name.startswith("G") or len(schema["anyOf"]) == 1
        return _of(schema["anyOf"][0], root, name) if known else None
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {key: _of(value, root, key) for key, value in schema["properties"].items()}
        case "array":
            return [] if name in {"instructions_broken", "insights"} else [_of(schema["items"], root, name)]
        case "boolean":
            return name in YES
        case "integer" | "number":
            return 9
        case _:
            return TEXTS.get(name, "A short sentence of about this length stands here.")
