"""Scoring many conversations: one that is broken does not stop the rest, and what is wrong with all is said first."""

from __future__ import annotations

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
from tests.milestones.reported import steps


def judged() -> MilestoneGraph:
    return parse_milestones("""
- {name: Start, type: NFC}
- {name: thanked, type: NFC}
- {name: End, type: NFC, dependencies: [thanked]}
""")


def bought(number: int, **fields: object) -> Transcript:
    return conversation(user("a mug"), called("buy"), id=f"c{number}", **fields)


def talks(count: int) -> Iterator[Transcript]:
    return (conversation(agent("thank you"), id=str(number)) for number in range(count))


def says_thanks(graph, transcript, observations):
    yield Verdict("thanked", True, 1, transcript.events[0].text)


def test_what_was_kept_of_another_conversation_is_not_taken_for_this_one(tmp_path):
    for said in ([bought(1), bought(2)], [bought(1), conversation(user("no mug"), id="c3")]):
        report = score_transcripts(steps("buy"), said, results=tmp_path / "kept.jsonl").report()
        assert [one.id for one in report.conversations] == [one.id for one in said]
    # The head, two of the first run, and the one that was new.
    assert len((tmp_path / "kept.jsonl").read_bytes().splitlines()) == 4


def test_memory_holds_one_conversation():
    many = (conversation(user(f"{number} " * 100_000), called("buy"), id=str(number)) for number in range(60))
    tracemalloc.start()
    try:
        assert len(score_transcripts(steps("buy"), many).report().conversations) == 60
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One is about 300,000 characters; all of them together would be eighteen millions.
    assert peak < 5_000_000


def test_a_graph_that_cannot_be_measured_on_is_said_before_anything_is_read():
    never = map(pytest.fail, ["it is read"])
    unsound = parse_milestones("[{name: Start, type: NFC}, {name: End, type: NFC, dependencies: [gone]}]")
    for graphs, said in (
        (unsound, "'gone', which isn't a milestone"),
        ({"fine": steps("buy"), "unsound": unsound}, "'gone', which isn't a milestone"),
        ({}, "no milestone graph"),
    ):
        with pytest.raises(errors.SpecError, match=said):
            score_transcripts(graphs, never)


def test_each_distinct_graph_that_a_function_gives_has_one_name():
    buy, pay = {"name": "buy", "kwargs": {}}, {"name": "pay", "kwargs": {}}
    golds = [("7", [buy]), ("7", [buy]), ("8", [buy, pay]), ("7", [pay])]
    said = [bought(n, task=task, extra={"actions": gold}) for n, (task, gold) in enumerate(golds)]
    failed = conversation(called("buy", "Error: sold out"), task="9", extra={"actions": [buy]})
    report = score_transcripts(gold_graph, [*said, failed, bought(5)]).report()
    assert [(one.graph, one.goal_completed) for one in report.conversations] == [
        ("task 7", True),
        ("task 7", True),
        ("task 8", False),
        ("task 7 (2)", False),
        ("task 9", False),
    ]
    assert "no list of gold actions" in report.broken[0].error
    assert [one.name for one in report.graphs["task 8"].milestones] == ["Start", "buy", "pay", "End"]


def test_any_exception_about_one_conversation_breaks_it_alone():
    failing = {"1": errors.SpecError("too slow"), "2": errors.RefusalError("the judge refused")}

    def judge(graph, transcript, observations):
        if transcript.id in failing:
            raise failing[transcript.id]
        yield from says_thanks(graph, transcript, observations)

    def own_graph(transcript):
        return {}["gone"] if transcript.id == "3" else judged()

    said = [replace(talk, source="chats.json") for talk in talks(5)]
    report = score_transcripts(own_graph, said, judge=judge).report()
    assert [one.id for one in report.conversations] == ["0", "4"]
    assert [one.error for one in report.broken] == [
        "chats.json: record 1: too slow",
        "chats.json: record 2: the judge refused",
        "chats.json: record 3: KeyError: 'gone'",
    ]


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (errors.ModelRequestError("wrong key"), 3),
        (errors.ModelUnavailableError("nobody there"), 3),
        (errors.PromptError("no block"), 1),
    ],
)
def test_what_concerns_every_conversation_ends_the_run_instead_of_breaking_thousands(error, times):
    asked = []

    def unreachable(graph, transcript, observations):
        asked.append(transcript.id)
        raise error

    with pytest.raises(type(error), match=str(error)):
        score_transcripts(judged(), talks(1000), judge=unreachable).report()
    assert len(asked) == times


def test_a_model_that_answers_now_and_then_is_within_reach():
    def sometimes(graph, transcript, observations):
        if int(transcript.id) % 3:
            raise errors.ModelUnavailableError("busy")
        if int(transcript.id) % 2:
            raise errors.RefusalError("no", "no")
        return says_thanks(graph, transcript, observations)

    report = score_transcripts(judged(), talks(30), judge=sometimes).report()
    assert (len(report.conversations), len(report.broken)) == (5, 25)


def test_what_is_wrong_with_the_judge_itself_is_no_broken_record():
    with pytest.raises(errors.InputError, match="gave no verdicts"):
        score_transcripts(judged(), talks(3), judge=lambda *_: "yes").report()


async def test_several_conversations_wait_for_their_judge_at_once_and_no_more_than_asked_for():
    waiting, most, read, seen = 0, 0, 0, []
    go = asyncio.Event()

    async def judge(graph, transcript, observations):
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        if waiting == 4:
            go.set()
        await go.wait()
        waiting -= 1
        return list(says_thanks(graph, transcript, observations))

    def many() -> Iterator[Transcript]:
        nonlocal read
        for one in talks(20):
            read += 1
            yield one

    run = score_transcripts(judged(), many(), judge=judge, concurrency=4)
    report = await run.areport(on_outcome=lambda _: seen.append(read))
    assert (most, seen[0]) == (4, 4)
    assert [one.id for one in report.conversations] == [str(number) for number in range(20)]
    with pytest.raises(errors.InputError, match=r"await areport"):
        score_transcripts(judged(), talks(1), judge=LLMJudge(ScriptedChatModel([]))).report()
    assert len(score_transcripts(judged(), talks(20)).report().conversations) == 20
    with pytest.raises(errors.InputError, match="concurrency must be a whole number"):
        score_transcripts(judged(), talks(1), concurrency=0)


async def test_what_was_scored_is_handed_on_before_an_error_ends_the_run_and_no_task_is_left_behind():
    async def judge(graph, transcript, observations):
        if transcript.id == "3":
            await asyncio.Event().wait()
        if transcript.id != "0":
            raise errors.ModelRequestError("wrong key")
        return []

    seen = []
    with pytest.raises(errors.ModelRequestError):
        await score_transcripts(judged(), talks(9), judge=judge, concurrency=4).areport(
            on_outcome=seen.append
        )
    assert 0 in [one.record for one in seen]
    assert asyncio.all_tasks() == {asyncio.current_task()}
