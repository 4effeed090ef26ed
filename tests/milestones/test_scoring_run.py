"""Scoring many conversations: a broken one does not stop the rest, and an error that concerns all ends the run."""

import asyncio
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from arq_graph import ScriptedChatModel, errors
from arq_graph.milestones import (
    LLMJudge,
    MilestoneGraph,
    Transcript,
    Verdict,
    gold_graph,
    parse_milestones,
    score_transcripts,
)
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.reported import make_chain


def make_thanks_graph() -> MilestoneGraph:
    return parse_milestones("""
- {name: Start, type: NFC}
- {name: thanked, type: NFC}
- {name: End, type: NFC, dependencies: [thanked]}
""")


def make_purchase(number: int, **fields: object) -> Transcript:
    return conversation(user("a mug"), called("buy"), id=f"c{number}", **fields)


def make_thanks(count: int) -> Iterator[Transcript]:
    return (conversation(agent("thank you"), id=str(number)) for number in range(count))


def find_thanks(graph, transcript, observations):
    yield Verdict("thanked", True, 1, transcript.events[0].text)


def test_a_stored_score_of_another_conversation_is_not_used(tmp_path):
    file = tmp_path / "scores.jsonl"
    first = [make_purchase(1), make_purchase(2)]
    second = [make_purchase(1), conversation(user("no mug"), id="c3")]
    for transcripts in (first, second):
        report = score_transcripts(make_chain("buy"), transcripts, results=file).report()
        assert [record.id for record in report.conversations] == [talk.id for talk in transcripts]
    # The header, two scores of the first run, and the new one.
    assert len(file.read_bytes().splitlines()) == 4


def test_memory_holds_one_conversation():
    def iterate_long_talks():
        for number in range(60):
            yield conversation(user(f"{number} " * 100_000), called("buy"), id=str(number))

    tracemalloc.start()
    try:
        assert len(score_transcripts(make_chain("buy"), iterate_long_talks()).report().conversations) == 60
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One has about 300,000 characters, and all of them have eighteen million.
    assert peak < 5_000_000


def test_an_unmeasurable_graph_is_an_error_before_anything_is_read():
    transcripts = map(pytest.fail, ["a transcript was read"])
    unsound = parse_milestones("[{name: Start, type: NFC}, {name: End, type: NFC, dependencies: [gone]}]")
    for graphs, problem in (
        (unsound, "'gone', which isn't a milestone"),
        ({"fine": make_chain("buy"), "unsound": unsound}, "'gone', which isn't a milestone"),
        ({}, "no milestone graph"),
    ):
        with pytest.raises(errors.SpecError, match=problem):
            score_transcripts(graphs, transcripts)


def test_each_distinct_gold_graph_has_a_name_of_its_own():
    buy, pay = {"name": "buy", "kwargs": {}}, {"name": "pay", "kwargs": {}}
    transcripts = [
        make_purchase(0, task="7", extra={"actions": [buy]}),
        make_purchase(1, task="7", extra={"actions": [buy]}),
        make_purchase(2, task="8", extra={"actions": [buy, pay]}),
        make_purchase(3, task="7", extra={"actions": [pay]}),
        conversation(called("buy", "Error: sold out"), task="9", extra={"actions": [buy]}),
        make_purchase(5),
    ]
    report = score_transcripts(gold_graph, transcripts).report()
    assert [(record.graph, record.goal_completed) for record in report.conversations] == [
        ("task 7", True),
        ("task 7", True),
        ("task 8", False),
        ("task 7 (2)", False),
        ("task 9", False),
    ]
    assert "no list of gold actions" in report.broken[0].error
    names = [milestone.name for milestone in report.graphs["task 8"].milestones]
    assert names == ["Start", "buy", "pay", "End"]


def test_an_exception_about_one_conversation_breaks_it_alone():
    failures = {"1": errors.SpecError("too slow"), "2": errors.RefusalError("the judge refused")}

    def judge(graph, transcript, observations):
        if transcript.id in failures:
            raise failures[transcript.id]
        yield from find_thanks(graph, transcript, observations)

    def get_graph(transcript):
        return {}["gone"] if transcript.id == "3" else make_thanks_graph()

    transcripts = [replace(talk, source="chats.json") for talk in make_thanks(5)]
    report = score_transcripts(get_graph, transcripts, judge=judge).report()
    assert [record.id for record in report.conversations] == ["0", "4"]
    assert [record.error for record in report.broken] == [
        "chats.json: record 1: too slow",
        "chats.json: record 2: the judge refused",
        "chats.json: record 3: KeyError: 'gone'",
    ]


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (errors.ModelRequestError("wrong key"), 3),
        (errors.ModelUnavailableError("nobody there"), 3),
        (errors.PromptError("no block"), 1),
    ],
)
def test_an_error_that_concerns_all_conversations_ends_the_run(error, attempts):
    judged_ids = []

    def judge(graph, transcript, observations):
        judged_ids.append(transcript.id)
        raise error

    with pytest.raises(type(error), match=str(error)):
        score_transcripts(make_thanks_graph(), make_thanks(1000), judge=judge).report()
    assert len(judged_ids) == attempts


def test_a_model_that_answers_now_and_then_does_not_end_the_run():
    def judge(graph, transcript, observations):
        number = int(transcript.id)
        if number % 3:
            raise errors.ModelUnavailableError("busy")
        if number % 2:
            raise errors.RefusalError("no", "no")
        return find_thanks(graph, transcript, observations)

    report = score_transcripts(make_thanks_graph(), make_thanks(30), judge=judge).report()
    assert (len(report.conversations), len(report.broken)) == (5, 25)


def test_a_judge_without_verdicts_is_an_error():
    with pytest.raises(errors.InputError, match="gave no verdicts"):
        score_transcripts(make_thanks_graph(), make_thanks(3), judge=lambda *_: "yes").report()


async def test_as_many_conversations_as_asked_for_are_judged_at_once():
    waiting, most_waiting, read_count, read_counts = 0, 0, 0, []
    go = asyncio.Event()

    async def judge(graph, transcript, observations):
        nonlocal waiting, most_waiting
        waiting += 1
        most_waiting = max(most_waiting, waiting)
        if waiting == 4:
            go.set()
        await go.wait()
        waiting -= 1
        return list(find_thanks(graph, transcript, observations))

    def iterate_talks() -> Iterator[Transcript]:
        nonlocal read_count
        for talk in make_thanks(20):
            read_count += 1
            yield talk

    run = score_transcripts(make_thanks_graph(), iterate_talks(), judge=judge, concurrency=4)
    report = await run.areport(on_outcome=lambda _: read_counts.append(read_count))
    assert (most_waiting, read_counts[0]) == (4, 4)
    assert [record.id for record in report.conversations] == [str(number) for number in range(20)]


async def test_report_refuses_to_ask_a_model_in_a_running_loop():
    judge = LLMJudge(ScriptedChatModel([]))
    with pytest.raises(errors.InputError, match=r"await areport"):
        score_transcripts(make_thanks_graph(), make_thanks(1), judge=judge).report()
    assert len(score_transcripts(make_thanks_graph(), make_thanks(20)).report().conversations) == 20


async def test_scores_are_reported_before_an_error_ends_the_run_and_no_task_remains():
    async def judge(graph, transcript, observations):
        if transcript.id == "3":
            await asyncio.Event().wait()
        if transcript.id != "0":
            raise errors.ModelRequestError("wrong key")
        return []

    outcomes = []
    run = score_transcripts(make_thanks_graph(), make_thanks(9), judge=judge, concurrency=4)
    with pytest.raises(errors.ModelRequestError):
        await run.areport(on_outcome=outcomes.append)
    assert 0 in [outcome.record for outcome in outcomes]
    assert asyncio.all_tasks() == {asyncio.current_task()}
