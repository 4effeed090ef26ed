"""Make an in-process model at zero latency, and an agent of any size, to measure the library's own share of a turn."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import count
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


def make_agent(guideline_count: int, tool_count: int = 1) -> Agent:
    """Return an agent with so many guidelines, of which the first ones grant a tool each."""
    tools: list[Any] = [get_order]
    for number in range(2, tool_count + 1):
        tools.append(StructuredTool.from_function(get_order, name=f"get_order_{number}"))
    guidelines: list[Guideline] = []
    for number in range(1, guideline_count + 1):
        guideline = Guideline(
            f"the customer asks about topic number {number} of the shop's handbook",
            f"explain topic number {number} in one or two sentences and offer further help",
            tools=tools[number - 1 : number],
            always_judge=number == 1,
        )
        guidelines.append(guideline)
    profile = "You are the order desk of a small shop. You are friendly and brief."
    return Agent("Order desk", profile, guidelines)


def make_model() -> ScriptedChatModel:
    """Return a model that activates the first guideline, calls its tool once and writes a reply without a violation.

    No two replies are the same: a reply that repeats an earlier one would be asked for again.
    """
    numbers = count(1)

    def answer(call: ScriptedCall) -> str:
        return answer_call(call).replace(TEXTS["content"], f"{TEXTS['content']} ({next(numbers)})")

    return ScriptedChatModel(answer)


def make_worst_case_model() -> ScriptedChatModel:
    """Return a model that does the same, and says that a tool's result could make any other guideline apply."""
    return ScriptedChatModel(partial(answer_call, any_could_change=True))


def answer_call(
    call: ScriptedCall,
    *,
    calls_tool: bool = True,
    result_matters: bool = False,
    any_could_change: bool = False,
) -> str:
    """Return that model's answer.

    Args:
        call: The call of the model.
        calls_tool: Whether it calls a tool.
        result_matters: Whether the tool's result makes G2 apply.
        any_could_change: Whether a tool's result could make any guideline apply.
    """
    has_result = '"from": "tool"' in call.text
    active_ids = frozenset({"G1", "G2"} if result_matters and has_result else {"G1"})
    changeable_ids = frozenset({"G2"} if result_matters else ())
    answer = _make_answer(dumps(call.schema), calls_tool, active_ids, changeable_ids, any_could_change)
    if not calls_tool:
        answer = answer.replace('"T1"', '"P"')  # without a result, the profile is the source
    return answer


@lru_cache(maxsize=256)
def _make_answer(
    schema: str,
    calls_tool: bool,
    active_ids: frozenset[str],
    changeable_ids: frozenset[str],
    any_could_change: bool,
) -> str:
    root = loads(schema)
    answer = _fill(root, root, "")
    for name, value in answer.items():
        if isinstance(value, dict) and not calls_tool and "tool_calls_for_candidate_tool" in value:
            value["tool_calls_for_candidate_tool"] = []
        if name in changeable_ids or (any_could_change and name.startswith("G")):
            value["could_a_tool_change_that"] = True
        if name.startswith("G") and name not in active_ids:
            value.update(score=1, should_apply=False)
    return dumps(answer)


def _fill(schema: dict[str, Any], root: dict[str, Any], name: str) -> Any:
    """Return a value that fits a schema; `name` is its property's."""
    if "$ref" in schema:
        return _fill(root["$defs"][schema["$ref"].rsplit("/", 1)[-1]], root, name)
    if "anyOf" in schema:
        has_value = name in TEXTS or name.startswith("G") or len(schema["anyOf"]) == 1
        return _fill(schema["anyOf"][0], root, name) if has_value else None
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {key: _fill(value, root, key) for key, value in schema["properties"].items()}
        case "array":
            if name in {"instructions_broken", "insights"}:
                return []
            return [_fill(schema["items"], root, name)]
        case "boolean":
            return name in YES
        case "integer" | "number":
            return 9
        case _:
            return TEXTS.get(name, "A short sentence of about this length stands here.")
