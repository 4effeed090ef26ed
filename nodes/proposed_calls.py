"""Calls that a planner or a speaker proposes, one at a time: how they are read, put, refused and kept.

The tool caller, which decides on every tool at once, reads its calls by itself; the gate is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.confirmation import Settled
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.tool_arguments import Problem, ToolArguments
from arq_graph.reasoning.sections import as_json

_DOUBTFUL = {"another_request": "was stated for another request", "inferred": "is inferred"}


def read_call(tool: ToolArguments, said: Any) -> tuple[dict[str, Any], list[Problem], dict[str, str]]:
    """A call's arguments, what is wrong with them, and by argument what the customer is to confirm."""
    arguments, problems = tool.read(getattr(said, "arguments", None))
    doubts: dict[str, str] = {}
    for argument in tool.arguments:
        if argument.name not in arguments:
            continue
        value, basis = arguments[argument.name], getattr(said.arguments, argument.key).basis
        if why := _DOUBTFUL.get(basis):
            doubts[argument.name] = f"{as_json(value)} {why}"
        is_blank = isinstance(value, str) and not value.strip()
        if basis == "nobody" or (is_blank and argument.required):
            del arguments[argument.name]
            problems = [each for each in problems if each.argument != argument]
            if argument.required:
                problems.append(Problem(argument, "missing", "nobody gave it"))
    return arguments, problems, doubts


def refusals(tool: ToolArguments, verdict: Sequence[ToolInsight], answer: str) -> Iterator[tuple[str, str]]:
    """Why a call is not made, as the model is told, each with its place below the call's property."""
    keys = {argument.name: f".arguments.{argument.key}" for argument in tool.arguments}
    for each in verdict:
        if each.kind == "confirm":
            yield (
                "",
                f"{each.problem}; the call is taken up as it is, and code puts it to the customer below {answer}. Now "
                f"give {answer} that stands above it: what they should know before agreeing, and what else there is to "
                "say, without a question; it may be empty",
            )
        elif each.kind == "declined":
            yield "", f"{each.problem}: take another way, or say in {answer} what is not possible"
        elif each.kind != "run":
            why = f" ({each.problem})" if each.problem else ""
            place = keys.get(each.argument or "", ".arguments")
            yield place, f"it is {each.kind}{why}: ask the customer for it in {answer}"


def asked_for(asked: Iterable[Any], gate: Gate) -> list[ToolInsight]:
    """The arguments that an answer asks the customer for, of tools that can be called."""
    return [
        insight
        for each in asked
        if each.tool in gate.granted
        for argument in gate.tools[each.tool].arguments
        if each.argument in (argument.name, argument.key)
        for insight in gate.lacking(gate.tools[each.tool], {}, [Problem(argument, "missing")])
    ]


def calls_to_put(
    gate: Gate,
    settled: Settled,
    still_wanted: Sequence[str] | None,
    proposed: Iterable[ToolInsight],
) -> list[ToolInsight]:
    """The calls that code puts to the customer below the answer: the newest version of each tool's."""
    again = [*settled.insights, *settled.still_wanted(gate, still_wanted or ())]
    newest = {each.tool: each for each in proposed if each.kind == "confirm"}
    return [*(each for each in again if each.kind == "confirm"), *newest.values()]


def kept_insights(
    settled: Settled,
    proposed: Iterable[ToolInsight],
    made: Sequence[ToolInsight],
    waiting: Sequence[ToolInsight],
    *,
    asks: bool,
) -> list[ToolInsight]:
    """What is kept about calls: of the one that is made, of those refused before it, and of what waits.

    Where a call is made after all, what was wrong with another one is no question to the customer.
    """
    found = [each for each in settled.insights if each.kind != "confirm"]
    for insight in proposed:
        if insight in waiting:
            continue
        is_open = insight in made or (asks and insight.kind in ("missing", "invalid"))
        found.append(
            insight if is_open else insight.model_copy(update={"kind": "declined", "argument": None})
        )
    return [*found, *waiting]
