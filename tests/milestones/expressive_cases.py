"""Random milestone files that use every rule of the format, each with a conversation, the same at every run."""

import json
import random
from typing import Any

from arq_graph.milestones import (
    MilestoneGraph,
    Transcript,
    check_milestones,
    parse_milestones,
    read_transcript,
)
from tests.milestones.golden_cases import TOOLS, WORDS, make_case

RESULTS = (
    '{"id": "A-1"}',
    '{"id": 2, "ids": ["A-1", 1]}',
    '[{"id": "B-7"}, {"id": 1}]',
    '"A-1"',
    "A-1",
    "[2]",
)
PATHS = ("", ".id", ".ids", ".none")


def make_expressive_case(seed: int) -> tuple[MilestoneGraph, Transcript] | None:
    """Return a graph and a conversation; None if nothing can be measured on the graph."""
    data, messages, _ = make_case(seed)
    chance = random.Random(f"expressive {seed}")
    steps = random.Random(f"steps {seed}")
    data.pop("grounded", None)
    calls = [milestone for milestone in data["milestones"] if milestone["type"] == "FC"]
    for number, milestone in enumerate(calls):
        if chance.random() < 0.5:
            milestone["arguments"] = {"id": _make_reference(chance, calls[:number])}
        if chance.random() < 0.3:
            milestone["by"] = "user"
    for milestone in data["milestones"][1:-1]:
        if milestone["type"] != "Aggregator":
            milestone["optional"] = chance.random() < 0.3
        if "check" in milestone and chance.random() < 0.5:
            milestone["check"] |= {"said_by": "tool", "tool": chance.choice(TOOLS)}
        is_judged = milestone["type"] == "NFC" and "check" not in milestone
        if is_judged and chance.random() < 0.5:
            milestone["holds"] = False
            milestone["state"] = (
                f"tests.milestones.end_states:{chance.choice(('was_paid', 'has_even_length'))}"
            )
        elif is_judged and steps.random() < 0.7:
            milestone["step"] = "journey-step"
        if milestone["type"] == "FC":
            milestone["holds"] = steps.random() < 0.3
    data["forbidden"] = [_make_rule(chance, data["milestones"], calls) for _ in range(chance.randint(1, 4))]
    for message in messages:
        if "tool_calls" in message and chance.random() < 0.3:
            message["role"] = "user"
        if message["role"] == "tool" and chance.random() < 0.7:
            message["content"] = chance.choice(RESULTS)
    graph = parse_milestones(json.dumps(data))
    return None if check_milestones(graph).errors else (graph, read_transcript(messages))


def _make_reference(chance: random.Random, calls: list[dict[str, Any]]) -> dict[str, str]:
    if calls and chance.random() < 0.5:
        return {"equals_argument_of": f"{chance.choice(calls)['name']}.id"}
    return {"equals_result_of": chance.choice(TOOLS) + chance.choice(PATHS)}


def _make_rule(
    chance: random.Random, milestones: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> dict[str, Any]:
    rule: dict[str, Any] = {"tool": chance.choice(TOOLS)}
    if chance.random() < 0.3:
        rule = {"pattern": chance.choice(WORDS), "said_by": chance.choice(("agent", "tool"))}
    else:
        rule["failed"] = chance.choice(("count", "ignore"))
        if chance.random() < 0.5:
            rule["arguments"] = {"id": chance.choice(("A-1", _make_reference(chance, calls)))}
        if chance.random() < 0.5:
            rule["unless"] = [{"id": chance.choice(("A-1", 2, _make_reference(chance, calls)))}]
    if chance.random() < 0.8:
        rule["before"] = chance.choice(milestones[1:])["name"]
    return rule
