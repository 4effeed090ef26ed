"""Conversations whose goal completion is known in advance, and reports on them."""

from collections.abc import Iterator
from typing import Any

from arq_graph.milestones import (
    BrokenRecord,
    MilestoneGraph,
    Report,
    Transcript,
    Verdict,
    parse_milestones,
    score_transcripts,
)
from arq_graph.milestones.reports.tables import build_tables
from tests.milestones.conversations import called, conversation, user

USER_KINDS = ("helpful", "perturbed", "unhelpful")


def make_chain(*tools: str) -> MilestoneGraph:
    """Return a graph of Start, the tools one after the other, and End."""
    return MilestoneGraph.from_actions([{"name": tool} for tool in tools])


def make_shop_graph() -> MilestoneGraph:
    """Return a graph in which an order is found, and then paid for or, if a judge says so, given up."""
    return parse_milestones("""
- {name: Start, type: NFC}
- {name: find, type: FC, dependencies: [Start]}
- {name: pay, type: FC, dependencies: [find]}
- {name: Given up, type: NFC, dependencies: [find]}
- {name: End, type: NFC, dependencies: [pay, Given up]}
""")


def make_talk(
    id: str, goal: bool | None = True, *, about: dict[str, Any] | None = None, **fields: Any
) -> Transcript:
    """Return a conversation that completes the goal, misses it, or in which that is undecided.

    Args:
        id: Its id.
        goal: True if it completes the goal; None: undecided.
        about: The fields of an evaluation's record: arm, goal, …
        **fields: Fields of `Transcript`; `reward` is the outcome that the record states.
    """
    extra = {"goal": goal, "reward": fields.pop("reward", None), "arq_graph": {"record": about or {}}}
    last = called("pay") if goal else user("hm")
    return conversation(user("please"), called("find"), last, id=id, extra=extra, **fields)


def repeat_task(task: str, *goals: bool | None, **fields: Any) -> list[Transcript]:
    """Return several runs of one task."""
    return [make_talk(f"{task}-{number}", goal, task=task, **fields) for number, goal in enumerate(goals)]


def repeat_with_each_user(task: str, *goals: bool | None, **fields: Any) -> list[Transcript]:
    """Return one task as a suite has it with several kinds of users: a scenario for each."""
    talks = []
    for kind, goal in zip(USER_KINDS, goals, strict=True):
        scenario = f"{task} ({kind})"
        about = {"user": kind, "scenario": scenario, **fields}
        talks.append(make_talk(f"{scenario}-{fields}", goal, task=scenario, about=about))
    return talks


def judge_by_label(graph: Any, transcript: Transcript, observations: Any) -> Iterator[Verdict]:
    """Judge the conversations of `make_talk` by the goal that they were made with."""
    if transcript.extra.get("goal") is not None:
        yield Verdict("Given up", False)


def report_on(*talks: Transcript | BrokenRecord) -> Report:
    """Return a report on these conversations."""
    return score_transcripts(make_shop_graph(), talks, judge=judge_by_label).report()


def report_goals(*goals: bool | None, **fields: Any) -> Report:
    """Return a report on conversations 0, 1, … that complete the goal or not."""
    return report_on(*(make_talk(str(number), goal, **fields) for number, goal in enumerate(goals)))


def report_progress(*lengths: int) -> Report:
    """Return a report on conversations that took so many of ten steps; none completes the goal."""
    tools = [f"step {number}" for number in range(10)]
    talks = []
    for number, length in enumerate(lengths):
        talks.append(conversation(user("go"), *map(called, tools[:length]), id=str(number)))
    return score_transcripts(make_chain(*tools), talks).report()


def read_pair_table(report: Report) -> dict[str, dict[str, str]]:
    """Return the cells of a report's table of arms in pairs, by row and column."""
    [table] = [table for table in build_tables(report) if table.title == "arms in pairs"]
    return {row.name: dict(zip(table.columns, row.cells, strict=True)) for row in table.rows}
