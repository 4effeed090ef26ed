"""The guideline suite is fit to tell agents apart: who knows what is expected succeeds, and who does not fails."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import find
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from rapidfuzz import fuzz

from arq_graph import milestones
from arq_graph.milestones import Report, Scenario, Suite, Verdict, evaluate
from tests.milestones.evaluated import Answers, deed


@cache  # not while tests are collected: it takes a second to read
def suite() -> Suite:
    return Suite.from_yaml(Path(milestones.__file__).parent / "suites/guidelines/suite.yaml")


@cache
def matching() -> list[Scenario]:
    return [one for one in suite().scenarios if one.expect and one.expect.active is not None]


@cache
def turns() -> list[Scenario]:
    return [one for one in suite().scenarios if one.expect and one.expect.active is None]


Speaks = Callable[[Scenario], str]


def held(scenarios: list[Scenario], speaks: Speaks) -> Report:
    """The scenarios held with an app that makes the expected calls, and then says this."""

    def arm(scenario: Scenario, agent: Any, model: Any, matches_only: bool) -> Answers:
        return Answers(lambda _: [*expected_calls(scenario), AIMessage(speaks(scenario))])

    return evaluate(Suite(scenarios), {"arm": arm}, judge=judge)


def examples(kind: str, *, succeeding: bool) -> list[tuple[str, str]]:
    """The cases whose examples of replies, fair or wrong ones, come out like this, and these examples."""
    found = []
    for number in range(max(len(getattr(one.expect, kind)) for one in turns())):
        given = {one.name: getattr(one.expect, kind)[number:] for one in turns()}
        report = held(
            [one for one in turns() if given[one.name]], lambda one, given=given: given[one.name][0]
        )
        is_so = [one.scenario for one in report.conversations if bool(one.goal_completed) is succeeding]
        found += [(name, given[name][0]) for name in is_so]
    return found


def judge(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
    """Finds every criterion met by the replies that the case gives as fair ones, and by no other."""
    (scenario,) = (one for one in turns() if one.milestones is graph)
    reply = transcript.events[-1].text
    is_met = reply in scenario.expect.reply
    return [Verdict(name, is_met, len(transcript), reply) for name in observations.undecided]


def expected_calls(scenario: Scenario) -> list[Any]:
    expect, toolbox = scenario.expect, scenario.agent.toolbox
    made = []
    for number, call in enumerate(expect.calls):
        takes = toolbox[call.tool].args
        given = {name: sample(schema) for name, schema in takes.items() if "default" not in schema}
        given |= {
            name: fitting(rule, takes.get(name, {}))
            for name, rule in call.arguments.items()
            if rule.absent is not True
        }
        made += deed(call.tool, number, **given)
    return made


def sample(schema: Any) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kinds = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    return kinds.get(schema.get("type"), "something")


def fitting(rule: Any, schema: Any) -> Any:
    """A value that fits a constraint."""
    if rule.regex is not None:
        return find(st.from_regex(rule.regex.text, fullmatch=True), lambda _: True)
    if rule.one_of is not None:
        return rule.one_of[0]
    if rule.min is not None or rule.max is not None:
        return rule.min if rule.min is not None else rule.max
    return rule.equals if rule.equals is not None else sample(schema)


def exactly(ids: Any) -> str:
    """How the arm that runs the matcher alone says which guidelines are active."""
    return f"active: {', '.join(sorted(ids)) or 'none'}"


def rate(report: Report) -> float:
    assert not report.failed
    rate = report.summary.overall.goal_completion.rate
    assert rate is not None
    return rate


def test_the_suite_is_large_enough():
    assert len(matching()) >= 50
    assert len(turns()) >= 70


@pytest.mark.slow
def test_who_knows_what_is_expected_succeeds_always():
    assert rate(held(matching(), lambda one: exactly(one.expect.active))) == 1
    assert examples("reply", succeeding=False) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["always", "never"])
def test_who_finds_all_guidelines_active_or_none_fails_often(name: str):
    every = {"always": lambda one: [each.id for each in one.agent.guidelines], "never": lambda one: []}[name]
    assert rate(held(matching(), lambda one: exactly(every(one)))) < 0.6


@pytest.mark.slow
def test_who_makes_the_mistake_at_stake_fails():
    assert all(one.expect.reply and one.expect.wrong for one in turns())
    assert examples("wrong", succeeding=True) == []


def test_code_alone_decides_at_least_half_of_the_turns():
    by_code = [one for one in turns() if not any(each.criterion for each in one.expect.says)]
    assert len(by_code) >= len(turns()) / 2


@pytest.mark.slow
def test_who_calls_no_tool_fails_wherever_one_is_needed():
    def arm(scenario: Scenario, agent: Any, model: Any) -> Answers:
        return Answers(lambda _: [AIMessage(scenario.expect.reply[0])])

    needed = [one for one in turns() if one.expect.calls]
    assert rate(evaluate(Suite(needed), {"arm": arm}, judge=judge)) == 0


def test_no_two_cases_say_the_same():
    told = [
        "\n".join(
            [*(str(message.content) for message in one.messages_before), one.says, str(dict(one.variables))]
        )
        for one in suite().scenarios
    ]
    assert len(set(zip(told, (one.agent.file for one in suite().scenarios), strict=True))) == len(told)
    names = {one.name: text for one, text in zip(suite().scenarios, told, strict=True)}
    alike = [
        (one.name, other.name)
        for at, one in enumerate(suite().scenarios)
        for other in suite().scenarios[at + 1 :]
        if other.name != one.twin
        and one.name != other.twin
        and fuzz.ratio(names[one.name], names[other.name], score_cutoff=97)
    ]
    assert alike == []
    assert all(one.probes for one in suite().scenarios)


def test_every_category_has_cases_of_both_kinds():
    twins: Counter[str] = Counter()
    by_name = {one.name: one for one in suite().scenarios}
    categories = defaultdict(list)
    for one in suite().scenarios:
        categories[one.use_case].append(one)
        if one.twin is None:
            continue
        other = by_name[one.twin]
        assert other.twin in (one.name, None), (
            one.name
        )  # a case of the recorded first run is not told of a new one
        assert other.expect != one.expect, one.name
        assert other.agent.file == one.agent.file or one.variables != other.variables, one.name
        twins[one.use_case] += 1 if other.twin else 2
    assert {name for name in categories if twins[name] < 2} == set()
    named = {one.twin for one in suite().scenarios}
    assert [
        one.name
        for one in suite().scenarios
        if len(one.history) > 40 and not one.twin and one.name not in named
    ] == []


def test_whatever_is_expected_of_a_call_was_told_before():
    """Of a date the day is looked for, and a single digit may have been a word."""

    def bare(*texts: object) -> str:
        return "".join(filter(str.isalnum, str(texts))).lower()

    untold = []
    for one in turns():
        numbers = {int(each) for each in re.findall(r"\d+", f"{one.says} {one.history}")}
        told = bare(one.says, one.history, dict(one.variables), one.agent.file.read_text())
        for call in one.expect.calls:
            given = {name: rule.equals for name, rule in call.arguments.items() if rule.equals is not None}
            for value in map(str, given.values()):
                date = re.fullmatch(r"\d{4}-\d\d-(\d\d)", value)
                is_told = int(date[1]) in numbers if date else bare(value) in told or len(value) == 1
                untold += [] if is_told else [(one.name, value)]
            told += bare(one.agent.toolbox[call.tool].invoke(given))
    assert untold == []


def test_each_pattern_that_must_not_be_said_is_in_a_wrong_reply():
    useless = [
        (one.name, each.text)
        for one in turns()
        for each in one.expect.never
        if not any(map(each.search, one.expect.wrong))
    ]
    assert useless == []


def test_every_pattern_can_be_read():
    said = {
        one.name: [*(each.pattern for each in one.expect.says if each.pattern), *one.expect.never]
        for one in turns()
    }
    assert [name for name, patterns in said.items() if any(len(each.text) > 120 for each in patterns)] == []
