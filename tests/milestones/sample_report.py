"""A small report, made of conversations that were really measured, to look at as a page."""

from __future__ import annotations

from typing import Any

from arq_graph.milestones import (
    Call,
    Forbidden,
    Message,
    Milestone,
    MilestoneGraph,
    Result,
    Transcript,
    Verdict,
    score,
)
from arq_graph.milestones.reports.records import BrokenConversation, conversation_record, graph_record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.summary import report
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
            Milestone(
                name="Pleased", type="NFC", description="The customer is content.", dependencies=("refund",)
            ),
            Milestone(name="Both", type="Aggregator", dependencies=("refund", "Comforted")),
            Milestone(name="End", type="NFC", dependencies=("Both",)),
        ],
        forbidden=[Forbidden(pattern="guarantee", said_by="agent")],
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
    """A report on these conversations, each measured on the graph."""
    graph = graph or refund_graph()
    records = [
        conversation_record(talk, score(graph, talk), graph=name, source=f"{at % 2}.jsonl", record=at // 2)
        for at, talk in enumerate(talks)
    ]
    broken = [BrokenConversation(source="0.jsonl", record=9, error="record 9: the conversation is empty")]
    return report(records, broken, {name: graph_record(graph)}).model_copy(update=changes)


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
    verdict = Verdict("Judged", False, reason=HOSTILE)
    record = conversation_record(talk, score(graph, talk, verdicts=[verdict]), graph=HOSTILE, source=HOSTILE)
    record = record.model_copy(update={"reasons": {"Judged": HOSTILE}, "agreement": {"Judged": 0.5}})
    broken = [BrokenConversation(error=HOSTILE)]
    return report([record], broken, {HOSTILE: graph_record(graph)}), [talk]
