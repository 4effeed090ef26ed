"""Scoring many conversations: one that is broken does not stop the rest, and what is wrong with all is said first."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from arq_graph.errors import (
    InputError,
    ModelRequestError,
    ModelUnavailableError,
    PromptError,
    RefusalError,
    SpecError,
)
from arq_graph.milestones import (
    Milestone,
    MilestoneGraph,
    Transcript,
    Verdict,
    parse_yaml,
    read_transcripts,
    score,
)
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.running import (
    ConversationScorer,
    ascore_transcripts,
    in_parallel,
    score_transcripts,
)
from arq_graph.milestones.reports.running_files import located, read_files
from arq_graph.milestones.reports.running_graphs import gold_graph
from tests.milestones.conversations import agent, called, conversation, user


def graph(*tools: str) -> MilestoneGraph:
    """Start, the tools one after the other, End."""
    milestones = [Milestone(name="Start", type="NFC")]
    for tool in tools:
        milestones.append(Milestone(name=tool, type="FC", dependencies=(milestones[-1].name,)))
    return MilestoneGraph(
        [*milestones, Milestone(name="End", type="NFC", dependencies=(milestones[-1].name,))]
    )


def judged() -> MilestoneGraph:
    return MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            Milestone(name="thanked", type="NFC"),
            Milestone(name="End", type="NFC", dependencies=("thanked",)),
        ]
    )


def bought(number: int, **fields: object) -> Transcript:
    return conversation(user("one please"), called("buy"), id=f"c{number}", **fields)


def test_a_broken_record_does_not_stop_the_rest_and_is_named():
    records = [
        {"messages": [{"role": "user", "content": "one please"}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "buy"}}]}]},
        {"what": "is this"},
        {"messages": [{"role": "user", "content": "two please"}]},
    ]
    first, second, third, last = score_transcripts(
        read_transcripts(records), graph("buy"), source="chats.json"
    )
    assert isinstance(first, ConversationRecord)
    assert first.goal_completed is False
    assert isinstance(second, BrokenConversation)
    assert "no arguments" in second.error
    assert isinstance(third, BrokenConversation)
    assert (third.source, third.record) == ("chats.json", 2)
    assert "no known format" in third.error
    assert isinstance(last, ConversationRecord)
    assert last.record == 3


def test_results_say_what_scoring_one_conversation_says():
    one = bought(1)
    [record] = score_transcripts([one], graph("buy", "pay"), source="chats.json")
    alone = score(graph("buy", "pay"), one)
    assert isinstance(record, ConversationRecord)
    assert record.progress_rate == alone.progress_rate == 1 / 3
    assert [each.name for each in record.reached] == ["Start", "buy"]
    assert (record.id, record.source, record.record) == ("c1", "chats.json", 0)


def test_conversations_are_read_one_at_a_time():
    read = 0

    def endless() -> Iterator[Transcript]:
        nonlocal read
        while True:
            read += 1
            yield bought(read)

    results = score_transcripts(endless(), graph("buy"))
    assert [next(results).record for _ in range(3)] == [0, 1, 2]
    assert read == 3


def test_memory_holds_one_conversation():
    def many() -> Iterator[Transcript]:
        for number in range(60):
            yield conversation(user(f"{number} " * 100_000), called("buy"), id=str(number))

    tracemalloc.start()
    try:
        assert sum(1 for _ in score_transcripts(many(), graph("buy"))) == 60
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One is about 300,000 characters; all of them together would be eighteen millions.
    assert peak < 5_000_000


def test_each_use_case_is_measured_on_its_own_graph():
    graphs = {"buying": graph("buy"), "paying": graph("pay")}
    results = list(
        score_transcripts(
            [
                bought(1, use_case="buying"),
                bought(2, use_case="paying"),
                bought(3, use_case="flying"),
                bought(4),
            ],
            graphs,
        )
    )
    assert [(one.graph, one.goal_completed) for one in results[:2]] == [("buying", True), ("paying", False)]
    assert "no milestone graph for its use case 'flying'" in results[2].error
    assert results[2].error.startswith("record 2: ")
    assert "names no use case" in results[3].error


def test_a_graph_that_cannot_be_measured_on_is_said_before_anything_is_read():
    def never() -> Iterator[Transcript]:
        raise AssertionError("nothing is read")
        yield

    unsound = MilestoneGraph(
        [Milestone(name="Start", type="NFC"), Milestone(name="End", type="NFC", dependencies=("gone",))]
    )
    with pytest.raises(SpecError, match="'gone', which is no milestone"):
        score_transcripts(never(), unsound)
    with pytest.raises(SpecError, match="'gone', which is no milestone"):
        score_transcripts(never(), {"fine": graph("buy"), "unsound": unsound})
    with pytest.raises(SpecError, match="no milestone graph"):
        score_transcripts(never(), {})
    missing = parse_yaml(
        "milestones:\n- {name: Start, type: NFC}\n- {name: x, type: NFC, check: 'no_such_module:f'}\n"
        "- {name: End, type: NFC, dependencies: [x]}\n"
    )
    with pytest.raises(SpecError, match="no_such_module"):
        score_transcripts(never(), missing)


def test_a_pattern_that_backtracks_for_ever_breaks_one_conversation_and_not_the_next():
    slow = parse_yaml(
        "milestones:\n- {name: Start, type: NFC}\n"
        "- {name: x, type: NFC, check: {said_by: agent, pattern: '^(a|aa)+$'}}\n"
        "- {name: End, type: NFC, dependencies: [x]}\n",
        file="slow.yaml",
    )
    results = list(
        score_transcripts(
            [conversation(agent("a" * 80 + "b"), id="bad"), conversation(agent("aaa"), id="good")],
            slow,
            source="chats.jsonl",
        )
    )
    assert isinstance(results[0], BrokenConversation)
    assert results[0].error.startswith("chats.jsonl: record 0: slow.yaml:3: milestone 'x'")
    assert "still searching after 1 s" in results[0].error
    assert results[1].goal_completed is True


def test_a_function_gives_each_conversation_its_graph_and_each_distinct_graph_has_one_name():
    gold = [{"name": "buy", "kwargs": {}}]
    transcripts = [
        bought(1, task="7", extra={"actions": gold}),
        bought(2, task="7", extra={"actions": gold}),
        bought(3, task="8", extra={"actions": [*gold, {"name": "pay", "kwargs": {}}]}),
        bought(4, task="7", extra={"actions": [{"name": "pay", "kwargs": {}}]}),
        bought(5),
    ]
    scorer = ConversationScorer(gold_graph)
    results = [scorer.score(one) for one in located(transcripts)]
    assert [one.graph for one in results[:4]] == ["task 7", "task 7", "task 8", "task 7 (2)"]
    assert [one.goal_completed for one in results[:4]] == [True, True, False, False]
    assert "no list of gold actions" in results[4].error
    assert list(scorer.graphs) == ["task 7", "task 8", "task 7 (2)"]
    assert [each.name for each in scorer.graphs["task 8"].milestones] == ["Start", "buy", "pay", "End"]


def test_gold_actions_may_be_asked_for_in_order():
    swapped = conversation(
        called("pay"),
        called("buy"),
        extra={"actions": [{"name": "buy", "kwargs": {}}, {"name": "pay", "kwargs": {}}]},
    )
    assert score(gold_graph(swapped), swapped).goal_completed is True
    assert score(gold_graph(swapped, ordered=True), swapped).goal_completed is False


def test_a_call_that_failed_is_no_gold_action():
    failed = conversation(
        called("buy", "Error: sold out"), extra={"actions": [{"name": "buy", "kwargs": {}}]}
    )
    assert score(gold_graph(failed), failed).goal_completed is False


def says_thanks(graph, transcript, observations):
    yield Verdict("thanked", True, 1, transcript.event(1).text)


def test_a_judge_that_has_no_answer_about_one_conversation_does_not_stop_the_rest():
    def refuses_the_second(graph, transcript, observations):
        if transcript.id == "1":
            raise RefusalError("the judge refused", "no")
        return says_thanks(graph, transcript, observations)

    transcripts = [conversation(agent("thank you"), id=str(number)) for number in range(3)]
    results = list(score_transcripts(transcripts, judged(), judge=refuses_the_second))
    assert [isinstance(one, ConversationRecord) for one in results] == [True, False, True]
    assert results[1].error == "record 1: the judge refused"
    assert results[2].goal_completed is True


@pytest.mark.parametrize("error", [ModelRequestError("wrong key"), ModelUnavailableError("nobody there")])
def test_a_model_that_is_out_of_reach_ends_the_run_instead_of_breaking_thousands(error):
    asked = []

    def unreachable(graph, transcript, observations):
        asked.append(transcript.id)
        raise error

    results = score_transcripts(
        (conversation(agent("hi"), id=str(n)) for n in range(1000)), judged(), judge=unreachable
    )
    with pytest.raises(type(error), match=str(error)):
        list(results)
    assert len(asked) == 3


def test_a_model_that_is_out_of_reach_now_and_then_does_not_end_the_run():
    def sometimes(graph, transcript, observations):
        if int(transcript.id) % 3:
            raise ModelUnavailableError("busy")
        return says_thanks(graph, transcript, observations)

    results = list(
        score_transcripts(
            (conversation(agent("hi"), id=str(n)) for n in range(30)), judged(), judge=sometimes
        )
    )
    assert sum(isinstance(one, ConversationRecord) for one in results) == 10


def test_any_exception_about_one_conversation_breaks_it_alone():
    def judge(graph, transcript, observations):
        if transcript.id == "1":
            raise KeyError("price")
        if transcript.id == "2":
            raise InputError("of two minds")
        yield from says_thanks(graph, transcript, observations)

    def own_graph(transcript):
        return {}["gone"] if transcript.id == "3" else judged()

    transcripts = [conversation(agent("thank you"), id=str(number)) for number in range(5)]
    results = list(score_transcripts(transcripts, own_graph, judge=judge, source="chats.json"))
    assert [one.error for one in results if isinstance(one, BrokenConversation)] == [
        "chats.json: record 1: KeyError: 'price'",
        "chats.json: record 2: of two minds",
        "chats.json: record 3: KeyError: 'gone'",
    ]
    assert [one.record for one in results if isinstance(one, ConversationRecord)] == [0, 4]


def test_arguments_nested_too_deep_for_a_record_break_one_conversation():
    deep: object = 1
    for _ in range(3_000):
        deep = [deep]
    broken, fine = score_transcripts([conversation(called("buy", it=deep)), bought(2)], graph("buy"))
    assert isinstance(broken, BrokenConversation)
    assert broken.error.startswith("record 0: RecursionError: ")
    assert isinstance(fine, ConversationRecord)


@pytest.mark.parametrize("said", [5, None, "yes"])
async def test_a_judge_that_gives_no_verdicts_ends_the_run(said):
    def judge(graph, transcript, observations):
        asked.append(transcript.id)
        return said

    class Panel:
        async def __call__(self, graph, transcript, observations):
            return []

    asked: list[str] = []
    transcripts = [conversation(agent("hi"), id=str(number)) for number in range(9)]
    with pytest.raises(InputError, match=r"judge is no judge or gave no verdicts"):
        list(score_transcripts(transcripts, judged(), judge=judge))
    assert asked == ["0"]
    with pytest.raises(InputError, match=r"judge is no judge or gave no verdicts"):
        [one async for one in ascore_transcripts(transcripts, judged(), judge=judge, concurrency=1)]
    with pytest.raises(InputError, match="Panel is an async judge"):
        list(score_transcripts(transcripts, judged(), judge=Panel()))


async def test_a_function_is_asked_once_for_each_graph_and_graphs_are_named_in_order():
    asked = []

    def own_graph(transcript):
        asked.append(transcript.id)
        if transcript.id == "c3":
            raise OSError("no such file")
        made = graph("buy", *(["pay"] * int(transcript.id == "c1")))
        made.name = "shop"
        return made

    scorer = ConversationScorer(own_graph)

    def still_to_do():
        for one in located([bought(number) for number in range(5)]):
            if one.record == 1:
                scorer.pass_over(one)
            else:
                yield one

    outcomes = {one.record: outcome async for one, outcome in in_parallel(scorer, still_to_do(), 2)}
    assert asked == ["c0", "c1", "c2", "c3", "c4"]
    assert [outcomes[number].graph for number in (0, 2, 4)] == ["shop"] * 3
    assert list(scorer.graphs) == ["shop", "shop (2)"]
    assert outcomes[3].error == "record 3: OSError: no such file"


@pytest.mark.parametrize("between", [RefusalError("no", "no"), ValueError("odd")])
def test_a_model_that_answers_in_between_is_within_reach(between):
    def sometimes(graph, transcript, observations):
        raise ModelUnavailableError("busy") if int(transcript.id) % 3 else between

    transcripts = [conversation(agent("hi"), id=str(number)) for number in range(30)]
    assert len(list(score_transcripts(transcripts, judged(), judge=sometimes))) == 30


def test_what_concerns_every_conversation_is_no_broken_record():
    def wrong_template(graph, transcript, observations):
        raise PromptError("the template lacks a block")

    with pytest.raises(PromptError):
        list(score_transcripts([conversation(agent("hi"))], judged(), judge=wrong_template))

    async def is_async(graph, transcript, observations):
        return []

    with pytest.raises(InputError, match="ascore_transcripts"):
        score_transcripts([conversation(agent("hi"))], judged(), judge=is_async)


async def test_several_conversations_wait_for_their_judge_at_once_and_no_more_than_asked_for():
    waiting = 0
    most = 0
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

    read = 0

    def many() -> Iterator[Transcript]:
        nonlocal read
        for number in range(20):
            read += 1
            yield conversation(agent("thank you"), id=str(number))

    results = ascore_transcripts(many(), judged(), judge=judge, concurrency=4)
    first = await anext(results)
    assert read == 4
    rest = [one async for one in results]
    assert most == 4
    assert sorted(one.record for one in [first, *rest]) == list(range(20))
    assert all(one.goal_completed for one in rest)


async def test_sync_and_async_give_the_same():
    transcripts = [
        bought(1, use_case="buying"),
        bought(2, use_case="other"),
        conversation(called("pay"), use_case="buying"),
    ]
    graphs = {"buying": graph("buy")}
    together = [one async for one in ascore_transcripts(transcripts, graphs)]
    assert sorted(together, key=lambda one: one.record) == list(score_transcripts(transcripts, graphs))


async def test_what_was_scored_is_handed_on_before_an_error_ends_the_run():
    async def judge(graph, transcript, observations):
        if transcript.id != "0":
            raise ModelRequestError("wrong key")
        return []

    scorer = ConversationScorer(judged(), judge=judge)
    transcripts = [conversation(agent("hi"), id=str(number)) for number in range(4)]
    seen = []
    with pytest.raises(ModelRequestError):
        async for one, _ in in_parallel(scorer, located(transcripts), 4):
            seen.append(one.record)
    assert 0 in seen


async def test_leaving_early_leaves_no_task_behind():
    async def judge(graph, transcript, observations):
        if transcript.id != "0":
            await asyncio.Event().wait()
        return []

    results = ascore_transcripts(
        (conversation(agent("hi"), id=str(n)) for n in range(10)), judged(), judge=judge, concurrency=3
    )
    await anext(results)
    await results.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_concurrency_is_at_least_one():
    with pytest.raises(InputError, match="concurrency is 0"):
        ascore_transcripts([], judged(), concurrency=0)


def test_a_file_that_cannot_be_read_on_in_its_middle_keeps_what_came_before(tmp_path):
    chat = json.dumps({"messages": [{"role": "user", "content": "hi"}]})
    first = tmp_path / "first.jsonl"
    first.write_bytes(f"{chat}\n".encode() * 3 + b'{"messages": "\xff\xfe' + b"x" * 3_000_000)
    second = tmp_path / "second.jsonl"
    second.write_text(f"{chat}\n")
    scorer = ConversationScorer(graph("buy"))
    results = [scorer.score(one) for one in read_files([first, tmp_path / "gone.json", second])]
    scored = [one for one in results if isinstance(one, ConversationRecord)]
    broken = [one for one in results if isinstance(one, BrokenConversation)]
    assert scored[-1].source == str(second)
    assert any("first.jsonl" in one.error and "UTF-8" in one.error for one in broken)
    assert any("gone.json cannot be read" in one.error for one in broken)
    assert all(one.source for one in broken)


def test_a_limit_counts_conversations_over_all_files_and_a_use_case_selects(tmp_path):
    files = []
    for name in "ab":
        file = tmp_path / f"{name}.json"
        file.write_text(
            json.dumps(
                [
                    {"messages": [{"role": "user", "content": "hi"}], "use_case": use_case}
                    for use_case in ("x", "y", "x")
                ]
            )
        )
        files.append(file)
    places = [one.place for one in read_files(files, use_case="x", limit=3)]
    assert places == [(0, 0), (0, 2), (1, 0)]
    assert len(list(read_files(files, limit=5))) == 5
    assert len(list(read_files(files))) == 6


def test_a_record_cannot_be_changed():
    [record] = score_transcripts([bought(1)], graph("buy"))
    with pytest.raises(ValidationError):
        record.goal_completed = False
