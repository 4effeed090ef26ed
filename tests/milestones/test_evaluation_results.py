"""What is kept of an evaluation, what is read of it again, and what does not end it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.errors import InputError
from arq_graph.milestones import MilestoneGraph, Transcript
from arq_graph.milestones.evaluation.holding import instructions_of
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.running import evaluate
from arq_graph.milestones.evaluation.scenario import Limits
from arq_graph.milestones.evaluation.suite import Suite
from tests.milestones.evaluated import Answers, buyer, lamp, no_way_there, suite, talker


def test_only_finished_conversations_are_read_and_each_of_them_once(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    begun: list[Any] = []

    def sometimes(messages: list[Any]) -> Any:
        begun.append(messages)
        if len(begun) == 1:
            no_way_there()
        return buyer(messages)

    report = evaluate(suite(), {"app": Answers(sometimes)}, runs=3, concurrency=1, results=file)
    assert (len(report.conversations), len(report.broken)) == (2, 1)
    text = file.read_text(encoding="utf-8")
    file.write_text(text + text, encoding="utf-8")
    assert [(record.run, transcript.id) for record, transcript in read_results(file)] == [
        (one.run, one.id) for one in report.conversations
    ]


def test_transcripts_that_are_no_results_are_no_finished_conversations(tmp_path: Path):
    file = tmp_path / "other.jsonl"
    file.write_text('{"id": "x", "messages": [{"role": "user", "content": "Hi"}]}\n', encoding="utf-8")
    assert list(read_results(file)) == []


POLITE = """milestones:
- {name: Start, type: NFC}
- {name: polite, type: NFC, description: The agent is polite., dependencies: [Start]}
- {name: End, type: NFC, dependencies: [polite]}
"""


def test_many_conversations_that_cannot_be_measured_do_not_end_the_run(tmp_path: Path):
    def judge(graph: MilestoneGraph, transcript: Transcript, observations: Any) -> Any:
        raise ValueError("no verdict")

    file = tmp_path / "polite.yaml"
    file.write_text(POLITE, encoding="utf-8")
    scenario = lamp(milestones=MilestoneGraph.from_yaml(file), limits=Limits(turns=1))
    report = evaluate(Suite([scenario]), {"app": Answers(talker)}, judge=judge, runs=5, concurrency=1)
    assert len(report.broken) == 5
    assert all("no verdict" in one.error for one in report.broken)


def is_late(state: Any) -> bool:
    return True


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Guideline("they ask for a price", "tell it"), "- when they ask for a price: tell it"),
        (Guideline(None, "be kind"), "- always: be kind"),
        (Guideline(is_late, "say sorry"), "- when is_late: say sorry"),
    ],
)
def test_a_judge_reads_the_rules_of_an_agent_in_words(rule, said):
    assert instructions_of(Agent("Shop", "A shop.", [rule])) == f"A shop.\n\n{said}"


def test_a_graph_is_called_by_its_file_or_by_its_scenario_and_another_by_a_number(tmp_path: Path):
    graphs = []
    for folder, text in (("a", POLITE), ("b", POLITE.replace("is polite", "is kind"))):
        file = tmp_path / folder / "polite.yaml"
        file.parent.mkdir()
        file.write_text(text, encoding="utf-8")
        graphs.append(MilestoneGraph.from_yaml(file))
    scenarios = [
        lamp("one", milestones=graphs[0]),
        lamp("two", milestones=graphs[1]),
        lamp("three"),
        lamp("four", milestones=graphs[0]),
    ]
    names, records = Suite(scenarios).graphs()
    assert names == {"one": "polite", "two": "polite (2)", "three": "three", "four": "polite"}
    assert set(records) == {"polite", "polite (2)", "three"}


def test_what_arms_are_made_of_counts_where_it_is_known(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    arms = {"one": Answers(buyer), "two": Answers(buyer)}
    made = {"one": "first", "two": "first"}
    evaluate(suite(), arms, results=file, arms_depend_on=made)
    with pytest.raises(
        InputError, match=r"results\.jsonl:2: the code of the arm 'two' of scenario 'lamp' changed"
    ):
        evaluate(suite(), arms, results=file, resume=True, arms_depend_on={**made, "two": "second"})
    for known in (made, {"one": "first"}, None):
        report = evaluate(suite(), arms, results=file, resume=True, arms_depend_on=known)
        assert len(report.conversations) == 2
    assert len(file.read_text().splitlines()) == 2


def test_results_without_a_scenario_of_the_suite_are_of_another(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    evaluate(suite("a", "b"), {"app": Answers(buyer)}, results=file)
    before = file.read_bytes()
    with pytest.raises(
        InputError, match=r"results\.jsonl holds the results of another suite: it has 2 lines"
    ):
        evaluate(suite("c"), {"app": Answers(buyer)}, results=file, resume=True)
    assert file.read_bytes() == before
    assert (
        len(evaluate(suite("b", "c"), {"app": Answers(buyer)}, results=file, resume=True).conversations) == 2
    )


def test_calls_of_scenarios_that_are_gone_are_not_counted(tmp_path: Path):
    file = tmp_path / "results.jsonl"

    def asking(messages: list[Any]) -> Any:
        ScriptedChatModel(lambda call: "hello").invoke("hello")
        return talker(messages)

    evaluate(suite("a", "b"), {"app": Answers(asking)}, results=file)
    made = sum(json.loads(line)["arq_graph"]["calls"] for line in file.read_text().splitlines())
    assert made > 1
    for names, reached in ((("a", "b"), True), (("b", "c"), False)):
        report = evaluate(
            suite(*names), {"app": Answers(talker)}, runs=2, results=file, resume=True, max_calls=made
        )
        assert (report.stopped is not None) is reached
