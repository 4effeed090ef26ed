"""A small report, made of conversations that were really measured, to look at as a page."""

from __future__ import annotations

from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones import (
    BrokenRecord,
    Call,
    Message,
    Milestone,
    MilestoneGraph,
    Report,
    Result,
    Transcript,
    read_transcripts,
    score_transcripts,
)
from tests.milestones.conversations import agent, called, conversation, user

GRAPH = "refunds"
HOSTILE = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed=1'>&amp;\u2028\u202e\ud800\x00"
NAME = HOSTILE.replace("\ud800", "")  # half a character is no name


def refund_graph() -> MilestoneGraph:
    """Start, then an order by its number or by its mail; a refund and a word of comfort, both of which End needs."""
    return MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            Milestone(name="find_by_number", type="FC", description="The order is found by its number."),
            Milestone(name="find_by_mail", type="FC"),
            Milestone(name="refund", type="FC", dependencies=("find_by_number", "find_by_mail")),
            Milestone(name="Comforted", type="NFC", check={"pattern": "sorry", "said_by": "agent"}),
            Milestone(name="Pleased", type="NFC", dependencies=("refund",)),
            Milestone(name="Both", type="Aggregator", dependencies=("refund", "Comforted")),
            Milestone(name="End", type="NFC", dependencies=("Both",)),
        ],
        forbidden=[{"pattern": "guarantee", "said_by": "agent"}],
    )


def refund_talks() -> list[Transcript]:
    """One that completes the goal, one that stops after the lookup, one with a forbidden word, one that asks only."""
    return [
        conversation(
            user("My mug broke, order 17"),
            called("find_by_number", '{"order": 17, "status": "delivered"}', number=17),
            agent("I am sorry to hear that."),
            called("refund", "done", number=17),
            id="mug",
            use_case="refunds",
            task="1",
            instructions="Be kind.",
        ),
        conversation(
            user("My lamp, my mail is a@b.example"),
            called("find_by_mail", "order 18", mail="a@b.example"),
            called("find_by_mail", "order 18", mail="a@b.example"),
            called("find_by_number", "order 18", number=181),
            agent("Goodbye."),
            id="lamp",
            use_case="refunds",
            task="1",
            instructions="Be kind.",
        ),
        conversation(
            user("order 19"),
            called("find_by_number", "x" * 900, number=19),
            called("refund", "done", number=19),
            agent("So sorry, I guarantee it is on its way."),
            id="kettle",
            use_case="others",
            task="2",
        ),
        conversation(user("Are you there?"), id="lamp"),
    ]


def made(
    talks: list[Transcript], graph: MilestoneGraph | None = None, *, name: str = GRAPH, **changes: Any
) -> Report:
    """A report on these conversations, each measured on the graph, and on a record that is broken."""
    graph = graph or refund_graph()
    graph.name = name
    broken = read_transcripts([{"messages": []}])
    run = score_transcripts([*talks, *broken], graph, source="talks.jsonl")
    return run.report().model_copy(update=changes)


def hostile_report() -> tuple[Report, list[Transcript]]:
    """Names, texts, arguments and reasons that would like to be markup."""
    talk = Transcript(
        (
            Message("user", HOSTILE),
            Call(HOSTILE, {HOSTILE: HOSTILE, "nested": {"a": [HOSTILE, float("nan")]}}),
            Result(2, HOSTILE, HOSTILE),
            Call("broken", {}, malformed=HOSTILE),
            Message("agent", HOSTILE * 100),
        ),
        id=HOSTILE,
        task=HOSTILE,
        use_case=HOSTILE,
        instructions=HOSTILE,
    )
    graph = MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            Milestone(name=NAME, type="FC", tool=NAME, description=NAME),
            Milestone(name="Judged", type="NFC", description=NAME, dependencies=(NAME,)),
            Milestone(name="End", type="NFC", dependencies=("Judged",)),
        ],
        file=HOSTILE,
    )
    graph.name = NAME
    broken = BrokenRecord(0, InputError(HOSTILE))
    run = score_transcripts([talk, broken], graph, source=HOSTILE)
    report = run.report()
    [record] = report.conversations
    judged = {"reasons": {"Judged": HOSTILE}, "agreement": {"Judged": 0.5}, "goal": NAME, "arm": HOSTILE}
    changed = {"conversations": (record.model_copy(update=judged),), "stand_ins": (HOSTILE,)}
    return report.model_copy(update=changed), [talk]
