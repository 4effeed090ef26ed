"""The report of an evaluation: the figures of each arm and each kind of user, and the arms compared in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from arq_graph.milestones.reports.comparison import compare, corrected
from arq_graph.milestones.reports.figures import ArmComparison
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report, ReportSummary
from arq_graph.milestones.reports.summary import report, summarize


def evaluation_report(
    records: Iterable[ConversationRecord],
    broken: Iterable[BrokenConversation] = (),
    graphs: Mapping[str, GraphRecord] | None = None,
    *,
    missing: int = 0,
    stopped: str | None = None,
    stand_ins: Sequence[str] = (),
) -> Report:
    """A report that tells arms and kinds of users apart.

    Two arms are compared over the runs of scenarios that both have: those alone are pairs. Cost: one comparison
    (`compare`) for each two arms.

    Args:
        records: One a conversation.
        broken: Conversations and scenarios that could not be measured.
        graphs: The graphs that were measured on, by name.
        missing: How many conversations were not finished, because a ceiling was reached.
        stopped: What was reached.
        stand_ins: What a stand-in did; see `Report`.
    """
    conversations = tuple(records)
    whole = report(conversations, broken, graphs, stand_ins=stand_ins)
    arms = _grouped(conversations, "arm")
    users = _grouped(conversations, "user")
    summary = whole.summary.model_copy(
        update={
            "arms": {name: summarize(group) for name, group in arms.items()},
            "users": {name: summarize(group) for name, group in users.items()},
            "arms_by_user": {
                name: {kind: summarize(cell) for kind, cell in _grouped(group, "user").items()}
                for name, group in arms.items()
            },
            "comparisons": _comparisons(arms),
        }
    )
    return whole.model_copy(update={"summary": summary, "missing": missing, "stopped": stopped})


def _grouped(records: Sequence[ConversationRecord], what: str) -> dict[str, list[ConversationRecord]]:
    groups: dict[str, list[ConversationRecord]] = {}
    for record in records:
        name = getattr(record, what)
        if name is not None:
            groups.setdefault(name, []).append(record)
    return groups


def _comparisons(arms: Mapping[str, Sequence[ConversationRecord]]) -> tuple[ArmComparison, ...]:
    compared = {
        f"{number}": (a, b, compare(*_paired(arms[a], arms[b])))
        for number, (a, b) in enumerate(combinations(arms, 2))
    }
    overall = corrected({number: each.overall for number, (_, _, each) in compared.items()})
    return tuple(
        ArmComparison(a=a, b=b, comparison=each.model_copy(update={"overall": overall[number]}))
        for number, (a, b, each) in compared.items()
    )


def _paired(a: Sequence[ConversationRecord], b: Sequence[ConversationRecord]) -> tuple[Report, Report]:
    """The runs that both have, in one order: the nth of a scenario is then the same run in both."""
    of_a, of_b = ({(one.scenario, one.run): one for one in group} for group in (a, b))
    both = sorted((key for key in of_a if key in of_b), key=str)
    return _alone([of_a[key] for key in both]), _alone([of_b[key] for key in both])


def _alone(records: Sequence[ConversationRecord]) -> Report:
    return Report(conversations=tuple(records), summary=ReportSummary(overall=summarize(()), use_cases={}))
