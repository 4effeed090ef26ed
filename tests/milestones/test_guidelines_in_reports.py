"""Guidelines in a report: which were active in each turn, which the replies followed or broke, and why."""

from pathlib import Path
from typing import Any

from arq_graph import Agent, Guideline, create_guided_agent
from arq_graph.milestones import (
    MilestoneGraph,
    Report,
    Scenario,
    Suite,
    evaluate,
    read_transcript,
    read_transcripts,
)
from arq_graph.milestones.reports.tables import build_tables
from tests.brain import brain
from tests.milestones.evaluated import Answers, shopper, talker
from tests.order_tools import get_order

FIND = MilestoneGraph.from_actions([{"name": "get_order", "kwargs": {"order_id": "A-1"}}])
PROMISE = {
    "content": "It arrives tomorrow.",
    "followed": ["look-up"],
    "instructions_broken": [
        {"instruction": "no-promises", "forbids": True, "reason": "none", "rationale": "named a day"}
    ],
}


def make_desk() -> Agent:
    guidelines = [
        Guideline("they ask about an order", "look it up", id="look-up", tools=[get_order]),
        Guideline("they ask when it comes", "don't promise a day", id="no-promises"),
        Guideline("they are angry", "calm them down", id="calm"),
    ]
    return Agent("Desk", "You help with orders.", guidelines=guidelines)


def make_suite(**fields: Any) -> Suite:
    user = shopper(intents=["Where is A-1?", "When does it come?"])
    return Suite(scenarios=(Scenario(name="late", milestones=FIND, user=user, **fields),))


def run_desk(results: Path | None = None, reply: Any = PROMISE, **settings: Any) -> Report:
    """Evaluate a desk that looks an order up in its first turn, and then gives this reply in each turn."""
    model = brain(
        judge={"look-up": 9, "no-promises": 8}, call={"get_order": {"order_id": "A-1"}}, reply=reply
    )

    def desk(scenario: Any, agent: Any, model: Any) -> Any:
        return create_guided_agent(model, agent, **settings)

    suite = make_suite(agent=make_desk())
    return evaluate(suite, {"desk": desk}, model=model, results=results)


def test_a_record_says_how_often_each_guideline_was_followed_and_broken_and_why():
    [record] = run_desk().conversations
    no_promises, look_up = record.guidelines  # what is broken comes first
    assert (look_up.guideline, look_up.turns, look_up.followed, look_up.broken) == ("look-up", 2, 2, 0)
    assert (no_promises.turns, no_promises.checked, no_promises.broken) == (2, 2, 2)
    assert no_promises.reasons == {"named a day": 2}
    assert record.broken_guidelines == {"no-promises": 2}


def test_a_guideline_that_is_not_followed_for_a_reason_that_counts_is_not_broken():
    excuse = {**PROMISE["instructions_broken"][0], "reason": "missing_data"}
    [record] = run_desk(reply={**PROMISE, "instructions_broken": [excuse]}).conversations
    assert (record.guidelines[0].checked, record.broken_guidelines) == (2, {})


def test_nobody_knows_what_is_broken_in_a_mode_without_queries_or_by_another_agent():
    [record] = run_desk(reply={"content": "It comes."}, mode="direct").conversations
    assert [use.followed for use in record.guidelines] == [2, 2]
    assert record.broken_guidelines is None
    report = evaluate(make_suite(), {"talker": Answers(talker)})
    assert report.conversations[0].guidelines == ()


def test_the_results_file_keeps_what_was_concluded_in_each_turn(tmp_path: Path):
    run_desk(tmp_path / "results.jsonl")
    [transcript] = read_transcripts(tmp_path / "results.jsonl")
    [first], [second] = (event.turn_notes for event in transcript.events if getattr(event, "turn_notes", ()))
    assert [(note.id, note.outcome, note.reason) for note in first.guidelines] == [
        ("no-promises", "broken", "named a day"),
        ("look-up", "followed", ""),
    ]
    assert (first.agent, first.inactive, first.unlocked) == ("Desk", 1, ("get_order",))
    assert [(verdict.tool, verdict.kind) for verdict in first.verdicts][:1] == [("get_order", "run")]
    assert "is not followed, without a reason" in first.violations[0]
    assert (first.revisions, second.revisions) == (2, 2)


def test_a_table_shows_each_guideline_with_why_it_was_broken():
    report = run_desk()
    [table] = [table for table in build_tables(report) if table.title == "guidelines"]
    assert table.columns == ("conversations", "turns", "followed", "broken", "score")
    assert {row.name: row.cells for row in table.rows} == {
        "no-promises": ("1", "2", "0", "2", "8.0"),
        "look-up": ("1", "2", "2", "0", "9.0"),
    }
    assert table.notes[1] == "no-promises was broken in 2: named a day"
    [figures, _] = report.summary.arms["desk"].guidelines
    assert (figures.broken, figures.broken_conversations, figures.reasons) == (2, 1, {"named a day": 2})


def test_without_notes_there_is_no_table_of_guidelines():
    report = evaluate(make_suite(), {"talker": Answers(talker)})
    assert not any("guidelines" in table.title for table in build_tables(report))


def test_notes_are_bounded(tmp_path: Path):
    wordy = {**PROMISE["instructions_broken"][0], "rationale": "word " * 1_000}
    run_desk(tmp_path / "results.jsonl", reply={**PROMISE, "instructions_broken": [wordy]})
    assert (tmp_path / "results.jsonl").stat().st_size < 10_000


class Foreign(Answers):
    """An app whose channels have names of this library's, with other things in them."""

    def invoke(self, given: Any, config: Any = None, **settings: Any) -> Any:
        others = {"guideline_matches": [{"guideline": 1}], "revisions": "none"}
        return super().invoke(given, config) | others


def test_channels_of_the_same_names_and_damaged_notes_are_no_error():
    [record] = evaluate(make_suite(), {"other": Foreign(talker)}).conversations
    assert (record.error, record.guidelines) == (None, ())
    message = {"role": "assistant", "content": "hi", "response_metadata": {"turn_notes": [{"agent": 1}]}}
    assert read_transcript([{"role": "user", "content": "hi"}, message]).events[1].turn_notes == ()
