"""Doubts about rules: a `before` that can't come first, and results that no tool of the file returns."""

from itertools import product
from random import Random

import pytest

from arq_graph.milestones import check_milestones, parse_milestones, score
from tests.milestones.conversations import called, conversation

CHAIN = """
- {name: Start, type: NFC}
- {name: identify, type: FC}
- {name: find, type: FC, dependencies: [identify]}
- {name: pay, type: FC, arguments: {card: 7}, dependencies: [find]}
- {name: lend, type: FC, dependencies: [identify]}
- {name: Settled, type: Aggregator, requires: any, dependencies: [pay, lend]}
- {name: Right, type: NFC, state: "shop:is_right", dependencies: [Settled]}
- {name: End, type: NFC, dependencies: [Right]}
"""


def find_warnings(*rules: str, milestones: str = CHAIN) -> list[str]:
    lines = "".join(f"- {{{rule}}}\n" for rule in rules)
    findings = check_milestones(parse_milestones(f"forbidden:\n{lines}milestones:{milestones}"))
    for finding in findings:
        assert finding.severity == "warning" and finding.line is not None
    return [finding.message for finding in findings]


@pytest.mark.parametrize(
    "rules",
    [
        ["tool: identify, before: pay"],
        ["tool: pay, before: lend", "tool: lend, before: pay", "tool: identify, before: Settled"],
        ["tool: pay, arguments: {card: 7}, before: lend", "tool: lend, before: pay"],
        ["tool: find, before: lend", "tool: lend, before: find"],
        ["tool: identify, failed: ignore, before: find"],
    ],
)
def test_a_milestone_that_needs_the_call_forbidden_before_it_is_doubtful(rules):
    warnings = find_warnings(*rules)
    assert warnings
    for warning in warnings:
        assert "can't be reached without a forbidden call, so every" in warning


def test_a_rule_about_some_calls_is_not_said_to_forbid_all():
    warnings = find_warnings(*["tool: pay, arguments: {card: 7}, before: lend", "tool: lend, before: pay"])
    assert [warning.partition(", so ")[2] for warning in warnings] == [
        "every such call of 'pay' is forbidden",
        "every call of 'lend' is forbidden",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "tool: pay, before: identify",
        "tool: pay, before: pay",
        "tool: pay, before: Settled",  # its own event reaches it
        "tool: find, before: Settled",  # there is a road over `lend`
        "tool: find, before: lend",
        "tool: identify, arguments: {name: x}, before: find",
        "tool: identify, unless: [{name: x}], before: find",
        "pattern: sold, before: pay",
    ],
)
def test_a_milestone_that_can_come_first_is_not(rule):
    assert find_warnings(rule) == []


def test_what_is_seen_after_the_last_event_comes_before_nothing():
    for rule in ("tool: gift, before: Right", "tool: gift, before: End"):
        [warning] = find_warnings(rule)
        assert "is reached after the last event, so every call of 'gift' is forbidden: leave out" in warning
    without_state = CHAIN.replace(', state: "shop:is_right"', "")
    [warning] = find_warnings("pattern: sold, before: End", milestones=without_state)
    assert "such words are forbidden before End, on the whole way: name the milestone" in warning


def test_a_result_of_a_tool_that_the_file_does_not_name_is_doubtful_unless_the_tools_are_known():
    text = CHAIN.replace("{card: 7}", "{card: {equals_result_of: fnd.cards.id}}")
    [warning] = find_warnings("tool: gift", milestones=text)
    assert "begins with no tool that the file names elsewhere; did you mean `find`?" in warning
    tools = ["identify", "find", "pay", "lend", "fnd"]
    assert not check_milestones(parse_milestones(f"milestones:{text}"), tools)
    assert not find_warnings("tool: fnd", milestones=text)


CALLS = [tools for length in range(1, 5) for tools in product("abc", repeat=length)]


def make_random_rules(chance: Random) -> str:
    """Return the text of a small graph of calls of a, b and c, with one to three rules."""
    names = ["Start"]
    milestones = "- {name: Start, type: NFC}\n"
    for name in ("first", "second", "third", "fourth"):
        fields = [f"name: {name}", f"requires: {chance.choice(('any', 'all'))}"]
        fields.append(f"dependencies: [{', '.join(chance.sample(names, min(2, len(names))))}]")
        if chance.random() < 0.25:
            fields.append("type: Aggregator")
        else:
            fields += ["type: FC", f"tool: {chance.choice('abc')}"]
            fields.append(f"optional: {chance.choice(('true', 'false', 'false', 'false'))}")
        milestones += f"- {{{', '.join(fields)}}}\n"
        names.append(name)
    rules = ""
    for _ in range(chance.randint(1, 3)):
        rules += f"- {{tool: {chance.choice('abc')}, before: {chance.choice(names[1:])}}}\n"
    end = f"- {{name: End, type: NFC, dependencies: [{names[-1]}]}}\n"
    return f"forbidden:\n{rules}milestones:\n{milestones}{end}"


def test_what_is_called_impossible_happens_in_no_conversation():
    warned = 0
    for seed in range(60):
        graph = parse_milestones(make_random_rules(Random(seed)))
        lines = [finding.line for finding in check_milestones(graph) if "can't be reached" in finding.message]
        impossible = {rule.before for rule in graph.forbidden if rule.line in lines}
        warned += bool(impossible)
        for tools in CALLS:
            result = score(graph, conversation(*map(called, tools)))
            assert result.forbidden or not impossible & result.reached.keys()
    assert warned >= 5
