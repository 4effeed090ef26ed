"""300 milestone files with a conversation each, the same at every run, and their scores.

`python -m tests.milestones.golden_cases` writes `golden_scores.json` anew: only when the measure is meant to change.
"""

import json
import random
from pathlib import Path
from typing import Any

from arq_graph.errors import SpecError
from arq_graph.milestones import Score, Verdict, parse_milestones, read_transcript, score

GOLDEN = Path(__file__).with_name("golden_scores.json")
CASES = 300
WORDS = ("apple", "pear", "plum", "A-1")
TOOLS = ("find", "book", "pay")
CONSTRAINTS = ("A-1", 1, {"regex": r"A-\d"}, {"min": 1, "max": 2}, {"one_of": ["A-1", 2]}, {"absent": True})
FORBIDDEN = ({"tool": "pay", "arguments": {"id": {"absent": True}}}, {"said_by": "agent", "pattern": "plum"})


def make_case(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]], list[Verdict]]:
    """Return a milestone file as data, a conversation as OpenAI chat messages, and a judge's verdicts."""
    chance = random.Random(seed)
    graph = _make_graph(chance)
    return graph, _make_messages(chance), _make_verdicts(chance, graph)


def summarize(result: Score | None) -> list[Any] | None:
    """Return the values of a score that must not change; None if nothing can be measured on the graph."""
    if result is None:
        return None
    most = result.possibly_reached
    return [
        result.goal_completed,
        result.progress_range,
        list(result.reached.items()),
        list(most.items()) if most != result.reached else None,
        result.frontier,
        result.path_taken,
        result.undecided,
        [event.event for event in result.forbidden],
        result.wasted_calls,
        result.coverage,
    ]


def _make_graph(chance: random.Random) -> dict[str, Any]:
    names = [f"m{number}" for number in range(chance.randint(2, 9))]
    milestones: list[dict[str, Any]] = [{"name": "Start", "type": "NFC"}]
    for number, name in enumerate(names):
        dependencies = [chance.choice(["Start", *names[max(0, number - 3) : number]])]
        others = chance.sample(names, chance.choice((0, 0, 1, 2)))
        dependencies += [other for other in others if other not in dependencies]
        milestone: dict[str, Any] = {"name": name, "dependencies": dependencies}
        kind = chance.choice(("FC", "FC", "FC", "said", "said", "join", "judged"))
        milestone["type"] = {"FC": "FC", "join": "Aggregator"}.get(kind, "NFC")
        if kind == "FC":
            milestone["tool"] = chance.choice(TOOLS)
            if chance.random() < 0.5:
                milestone["arguments"] = {"id": chance.choice(CONSTRAINTS)}
        elif kind == "said":
            milestone["check"] = {"pattern": chance.choice(WORDS)}
            if chance.random() < 0.7:
                milestone["check"]["said_by"] = chance.choice(("user", "agent", "tool"))
        if kind in ("said", "judged"):
            milestone["holds"] = chance.random() < 0.5
        if kind != "join":
            milestone["requires"] = chance.choice(("any", "any", "all"))
            milestone["weight"] = chance.choice((1, 1, 1, 2, 0.5, 0.1, 3))
        milestones.append(milestone)
    last = chance.sample(names, min(len(names), chance.randint(1, 3)))
    requires = chance.choice(("any", "all"))
    milestones.append({"name": "End", "type": "NFC", "dependencies": last, "requires": requires})
    graph: dict[str, Any] = {"milestones": milestones}
    if chance.random() < 0.5:
        graph["failed_if"] = "(?i)^error"
    if chance.random() < 0.3:
        graph["grounded"] = "strict"
    if chance.random() < 0.3:
        graph["forbidden"] = list(FORBIDDEN)
    return graph


def _make_messages(chance: random.Random) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be kind."}]
    for turn in range(chance.randint(2, 10)):
        messages.append({"role": "user", "content": " and ".join(chance.sample(WORDS, chance.randint(1, 2)))})
        calls = []
        for number in range(chance.choice((0, 1, 1, 2))):
            arguments = chance.choice(
                ({"id": "A-1"}, {"id": 1.0}, {"id": 2}, {"id": "B-7"}, {}, {"id": None})
            )
            text = json.dumps(arguments) if chance.random() < 0.95 else '{"id": '
            function = {"name": chance.choice(TOOLS), "arguments": text}
            calls.append({"id": f"c{turn}{number}", "type": "function", "function": function})
        if calls:
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        answered = [call for call in calls if chance.random() < 0.9]
        chance.shuffle(answered)
        for call in answered:
            text = chance.choice(("ok", "ok", "Error: no", *WORDS))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        if chance.random() < 0.7:
            messages.append({"role": "assistant", "content": chance.choice(WORDS)})
    return messages


def _make_verdicts(chance: random.Random, graph: dict[str, Any]) -> list[Verdict]:
    verdicts = []
    for milestone in graph["milestones"][1:-1]:
        if chance.random() < 0.3:
            event = chance.choice((None, *range(1, 12)))
            achieved = chance.choice((True, False, None))
            verdicts.append(Verdict(milestone["name"], achieved, event, chance.choice(WORDS)))
    return verdicts


def score_case(
    graph: dict[str, Any], messages: list[dict[str, Any]], verdicts: list[Verdict]
) -> Score | None:
    """Return the score of a case; None if nothing can be measured on the graph."""
    try:
        milestones = parse_milestones(json.dumps(graph))
        return score(milestones, read_transcript(messages), judge=lambda *_: verdicts)
    except SpecError:
        return None


if __name__ == "__main__":
    lines = [
        json.dumps(summarize(score_case(*make_case(seed))), separators=(",", ":")) for seed in range(CASES)
    ]
    GOLDEN.write_text("[\n" + ",\n".join(lines) + "\n]\n")
