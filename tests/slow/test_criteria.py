"""The criteria of the guideline suite say what they mean: a judge finds them met by the fair replies alone.

The verdicts are recorded. Where a criterion or its case has changed, record them anew with a judge of your own:

    JUDGE=openai:gpt-4o pytest -m slow tests/slow/test_criteria.py
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from arq_graph.milestones import LLMJudge, ReplayChatModel, Report, Scenario, Suite, Verdict, evaluate
from tests.milestones.evaluated import Answers
from tests.suites.test_guidelines import expected_calls, turns

RECORDED = Path(__file__).parents[1] / "suites/criteria.results.jsonl.gz"
pytestmark = pytest.mark.slow

Case = tuple[Scenario, str]


def listed(kind: str) -> dict[str, Case]:
    """The fair or the wrong replies of the cases that a judge decides, each as a case of its own."""
    decided = [one for one in turns() if any(each.criterion for each in one.expect.says)]
    return {
        f"{one.name}, {kind} {number}": (one, text)
        for one in decided
        for number, text in enumerate(getattr(one.expect, kind), start=1)
    }


def judged(cases: dict[str, Case], judge: Any, **settings: Any) -> Report:
    """The cases held with an app that makes the expected calls, with the tools' own results, and then replies."""

    def arm(scenario: Scenario, agent: Any, model: Any) -> Answers:
        said: list[BaseMessage] = []
        for message in expected_calls(scenario):
            if isinstance(message, AIMessage):
                (call,) = message.tool_calls
                said += [message, agent.toolbox[call["name"]].invoke(call)]
        return Answers(lambda _: [*said, AIMessage(cases[scenario.name][1])])

    suite = Suite([one.replace(name=name) for name, (one, _) in cases.items()], name="criteria")
    return evaluate(suite, {"listed": arm}, judge=judge, **settings)


def asked() -> dict[str, Case]:
    """What a judge is asked about: the fair replies, and the wrong ones that code does not refuse."""
    wrong = listed("wrong")

    def agrees(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
        text = transcript.events[-1].text
        return [Verdict(name, True, len(transcript), text) for name in observations.undecided]

    passing = {one.scenario for one in judged(wrong, agrees).conversations if one.goal_completed}
    return listed("reply") | {name: case for name, case in wrong.items() if name in passing}


def test_a_judge_finds_the_criteria_met_by_the_fair_replies_alone(tmp_path: Path) -> None:
    cases = asked()
    if model := os.environ.get("JUDGE"):
        results = tmp_path / "criteria.results.jsonl"
        report = judged(cases, LLMJudge(model), results=results, record=True)
        RECORDED.write_bytes(gzip.compress(results.read_bytes(), mtime=0))
    else:
        report = judged(cases, LLMJudge(ReplayChatModel(RECORDED, role="judge")))
    assert not report.failed
    assert len(report.conversations) == len(cases)
    met = {one.scenario for one in report.conversations if one.goal_completed}
    assert met == set(listed("reply"))
