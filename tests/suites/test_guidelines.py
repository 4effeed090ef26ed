"""The guideline suite tells agents apart: those that do what is expected succeed, and those that don't fail."""

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import find
from hypothesis import strategies as st
from langchain_core.messages import AIMessage

from arq_graph.milestones import Report, Scenario, Suite, Verdict, evaluate
from tests.milestones.evaluated import Answers, deed
from tests.suites.scripted_runs import load_suite


@cache  # reading the suite takes a second, which should not be part of collecting tests
def read_suite() -> Suite:
    return load_suite("guidelines")


def matching_scenarios() -> list[Any]:
    """Return the scenarios that expect guidelines to be active."""
    scenarios = read_suite().scenarios
    return [scenario for scenario in scenarios if scenario.expect.active is not None]


def turn_scenarios() -> list[Any]:
    """Return the scenarios that expect calls and a reply."""
    return [scenario for scenario in read_suite().scenarios if scenario.expect.active is None]


def run_scenarios(scenarios: list[Scenario], reply: Callable[[Any], str], *, calls: bool = True) -> Report:
    """Run scenarios with an agent that makes the expected calls, unless they are left out, and sends this reply."""

    def arm(scenario: Scenario, agent: Any, model: Any, matcher_only: bool) -> Answers:
        expected = make_expected_calls(scenario) if calls else []
        return Answers(lambda _: [*expected, AIMessage(reply(scenario))])

    return evaluate(Suite(scenarios), {"arm": arm}, judge=judge)


def judge(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
    """Find every criterion met by the replies that a scenario lists as good ones, and by no others."""
    (scenario,) = [scenario for scenario in turn_scenarios() if scenario.graph is graph]
    reply = transcript.events[-1].text
    is_met = reply in scenario.expect.reply
    return [Verdict(name, is_met, len(transcript), reply) for name in observations.undecided]


def make_expected_calls(scenario: Any) -> list[Any]:
    messages = []
    for number, call in enumerate(scenario.expect.calls):
        parameters = scenario.agent.toolbox[call.tool].args
        arguments = {}
        for name, schema in parameters.items():
            if "default" not in schema:
                arguments[name] = make_sample(schema)
        for name, constraint in call.arguments.items():
            if constraint.absent is not True:
                arguments[name] = make_fitting_value(constraint, parameters.get(name, {}))
        messages += deed(call.tool, number, **arguments)
    return messages


def make_sample(schema: Any) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    samples = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    return samples.get(schema.get("type"), "something")


def make_fitting_value(constraint: Any, schema: Any) -> Any:
    if constraint.regex is not None:
        return find(st.from_regex(constraint.regex.text, fullmatch=True), lambda _: True)
    if constraint.one_of is not None:
        return constraint.one_of[0]
    for value in (constraint.min, constraint.max, constraint.equals):
        if value is not None:
            return value
    return make_sample(schema)


def format_active(ids: Any) -> str:
    """Return the report of active guidelines as the arm that runs only the matcher writes it."""
    return f"active: {', '.join(sorted(ids)) or 'none'}"


def get_success_rate(report: Report) -> float:
    assert not report.failed
    rate = report.summary.overall.goal_completion.rate
    assert rate is not None
    return rate


def find_examples(kind: str, *, succeeding: bool) -> list[tuple[str, str]]:
    """Return the scenarios and their example replies, good or wrong ones, with this outcome."""
    examples = []
    most = max(len(getattr(scenario.expect, kind)) for scenario in turn_scenarios())
    for number in range(most):
        replies = {}
        scenarios = []
        for scenario in turn_scenarios():
            texts = getattr(scenario.expect, kind)
            if number < len(texts):
                replies[scenario.name] = texts[number]
                scenarios.append(scenario)
        report = run_scenarios(scenarios, lambda scenario, replies=replies: replies[scenario.name])  # type: ignore[misc]
        for record in report.conversations:
            if bool(record.goal_completed) is succeeding:
                examples.append((record.scenario, replies[record.scenario]))
    return examples


def test_the_suite_is_large_enough_and_code_alone_decides_half_of_the_turns():
    turns = turn_scenarios()
    assert len(matching_scenarios()) >= 50
    assert len(turns) >= 70
    decided_by_code = []
    for scenario in turns:
        if not any(expectation.criterion for expectation in scenario.expect.says):
            decided_by_code.append(scenario)
    assert len(decided_by_code) >= len(turns) / 2


@pytest.mark.slow
def test_an_agent_that_does_what_is_expected_always_succeeds():
    report = run_scenarios(matching_scenarios(), lambda scenario: format_active(scenario.expect.active))
    assert get_success_rate(report) == 1
    assert find_examples("reply", succeeding=False) == []


@pytest.mark.slow
def test_a_matcher_that_activates_all_guidelines_or_none_fails_often():
    def activate_all(scenario: Any) -> str:
        return format_active(guideline.id for guideline in scenario.agent.guidelines)

    assert get_success_rate(run_scenarios(matching_scenarios(), activate_all)) < 0.6
    assert get_success_rate(run_scenarios(matching_scenarios(), lambda scenario: format_active([]))) < 0.6


@pytest.mark.slow
def test_an_agent_that_sends_a_wrong_reply_fails():
    assert all(scenario.expect.reply and scenario.expect.wrong for scenario in turn_scenarios())
    assert find_examples("wrong", succeeding=True) == []


@pytest.mark.slow
def test_an_agent_that_calls_no_tool_fails_where_one_is_needed():
    scenarios = [scenario for scenario in turn_scenarios() if scenario.expect.calls]
    report = run_scenarios(scenarios, lambda scenario: scenario.expect.reply[0], calls=False)
    assert get_success_rate(report) == 0


def test_every_scenario_is_unlike_the_others_and_says_what_it_probes():
    seen = Counter()
    for scenario in read_suite().scenarios:
        assert scenario.probes, scenario.name
        history = [str(message.content) for message in scenario.history_messages]
        seen[scenario.agent.file, *history, scenario.says, str(dict(scenario.variables))] += 1
    assert set(seen.values()) == {1}


def test_every_category_has_twins_that_expect_different_things():
    by_name = {scenario.name: scenario for scenario in read_suite().scenarios}
    twins: Counter[str] = Counter()
    for scenario in by_name.values():
        twins[scenario.use_case] += 0
        if scenario.twin is not None:
            twin = by_name[scenario.twin]
            assert twin.expect != scenario.expect, scenario.name
            assert twin.agent.file == scenario.agent.file or twin.variables != scenario.variables
            twins[scenario.use_case] += 1 if twin.twin else 2
    assert [category for category, count in twins.items() if count < 2] == []


def test_the_expected_arguments_are_known_from_the_conversation():
    """A date may be given by its day, and a single digit by a word."""

    def normalize(*texts: object) -> str:
        return "".join(filter(str.isalnum, str(texts))).lower()

    for scenario in turn_scenarios():
        numbers = {int(digits) for digits in re.findall(r"\d+", f"{scenario.says} {scenario.history}")}
        known = normalize(
            scenario.says, scenario.history, dict(scenario.variables), scenario.agent.file.read_text()
        )
        for call in scenario.expect.calls:
            arguments = {}
            for name, constraint in call.arguments.items():
                if constraint.equals is not None:
                    arguments[name] = constraint.equals
            for value in map(str, arguments.values()):
                if date := re.fullmatch(r"\d{4}-\d\d-(\d\d)", value):
                    assert int(date[1]) in numbers, (scenario.name, value)
                else:
                    assert len(value) == 1 or normalize(value) in known, (scenario.name, value)
            known += normalize(scenario.agent.toolbox[call.tool].invoke(arguments))


def test_each_forbidden_pattern_is_in_a_wrong_reply():
    for scenario in turn_scenarios():
        for pattern in scenario.expect.never:
            assert any(map(pattern.search, scenario.expect.wrong)), (scenario.name, pattern.text)
