"""A small report on measured conversations, to show as a page."""

from dataclasses import replace
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
    parse_milestones,
    read_transcripts,
    score_transcripts,
)
from tests.milestones.conversations import agent, called, conversation, user

HOSTILE = "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed=1'>&amp;\u2028\u202e\ud800\x00"
NAME = HOSTILE.replace("\ud800", "")  # half a character is no name


def refund_graph() -> MilestoneGraph:
    """Return a graph in which an order is found by number or mail; End needs a refund and a word of comfort."""
    return parse_milestones("""
forbidden: [{pattern: guarantee, said_by: agent}]
milestones:
- {name: Start, type: NFC}
- {name: find_by_number, type: FC, description: The order is found by its number.}
- {name: find_by_mail, type: FC}
- {name: refund, type: FC, dependencies: [find_by_number, find_by_mail]}
- {name: Comforted, type: NFC, check: {pattern: sorry, said_by: agent}}
- {name: Pleased, type: NFC, dependencies: [refund]}
- {name: Both, type: Aggregator, dependencies: [refund, Comforted]}
- {name: End, type: NFC, dependencies: [Both]}
""")


def refund_talks() -> list[Transcript]:
    """Return talks that complete the goal, stop after the lookup, say something forbidden, and only ask."""
    one_task = {"use_case": "refunds", "task": "1", "instructions": "Be kind."}
    mug = [
        user("My mug broke, order 17"),
        called("find_by_number", '{"order": 17, "status": "delivered"}', number=17),
        agent("I am sorry to hear that."),
        called("refund", "done", number=17),
    ]
    by_mail = called("find_by_mail", "order 18", mail="a@b.example")
    by_number = called("find_by_number", "order 18", number=181)
    lamp = [user("My lamp, my mail is a@b.example"), by_mail, by_mail, by_number, agent("Goodbye.")]
    kettle = [
        user("order 19"),
        called("find_by_number", "x" * 900, number=19),
        called("refund", "done", number=19),
        agent("So sorry, I guarantee it is on its way."),
    ]
    return [
        conversation(*mug, id="mug", **one_task),
        conversation(*lamp, id="lamp", **one_task),
        conversation(*kettle, id="kettle", use_case="others", task="2"),
        conversation(user("Are you there?"), id="lamp"),
    ]


def make_sample_report(talks: list[Transcript], **changes: Any) -> Report:
    """Return a report on these conversations, measured on the graph of refunds, and on a broken record."""
    broken = read_transcripts([{"messages": []}])
    graph = refund_graph()
    graph.name = "refunds"
    sourced = [replace(talk, source="talks.jsonl") for talk in talks]
    run = score_transcripts(graph, [*sourced, *broken])
    return run.report().model_copy(update=changes)


def hostile_report() -> tuple[Report, list[Transcript]]:
    """Return a report whose names, texts, arguments and reasons contain markup."""
    events = (
        Message("user", HOSTILE),
        Call(HOSTILE, {HOSTILE: HOSTILE, "nested": {"a": [HOSTILE, float("nan")]}}),
        Result(2, HOSTILE, HOSTILE),
        Call("broken", {}, malformed=HOSTILE),
        Message("agent", HOSTILE * 100),
    )
    talk = Transcript(
        events, id=HOSTILE, task=HOSTILE, use_case=HOSTILE, instructions=HOSTILE, source=HOSTILE
    )
    milestones = [
        Milestone(name="Start", type="NFC"),
        Milestone(name=NAME, type="FC", tool=NAME, description=NAME),
        Milestone(name="Judged", type="NFC", description=NAME, dependencies=(NAME,)),
        Milestone(name="End", type="NFC", dependencies=("Judged",)),
    ]
    graph = MilestoneGraph(milestones, file=HOSTILE)
    graph.name = NAME
    report = score_transcripts(graph, [talk, BrokenRecord(0, InputError(HOSTILE))]).report()
    judged = {"reasons": {"Judged": HOSTILE}, "agreement": {"Judged": 0.5}, "goal": NAME, "arm": HOSTILE}
    [record] = report.conversations
    changed = {"conversations": (record.model_copy(update=judged),), "stand_ins": (HOSTILE,)}
    return report.model_copy(update=changed), [talk]
