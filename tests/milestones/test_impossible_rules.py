"""Doubts about rules: a `before` that can't come first, and results that no tool of the file returns."""

import pytest

from arq_graph.milestones import check_milestones, parse_milestones

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
        assert "can't be reached without a forbidden call, so every call of" in warning


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
