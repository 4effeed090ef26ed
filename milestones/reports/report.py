"""A report over many conversations: their records, the graphs they were measured on, and the summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from arq_graph.milestones.reports.compared import Comparison
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    Ended,
    GraphRecord,
    Record,
)
from arq_graph.reasoning.sections import clean

SCHEMA: Literal[1] = 1


class Rate(Record):
    """A share of conversations, with its 95% Wilson interval.

    Args:
        count: Of how many it is true.
        n: Of how many it is known.
        unknown: Of how many it is not known; they are in neither number.
        rate: count / n; None where n is 0.
        low: The interval's lower end, 0 to 1; None where n is 0.
        high: Its upper end.
    """

    count: int
    n: int
    unknown: int = 0
    rate: float | None
    low: float | None
    high: float | None


class Mean(Record):
    """A mean over conversations, with its 95% bootstrap interval.

    Args:
        n: Over how many; those without a value are left out.
        mean: The mean; None where n is 0.
        low: The interval's lower end; None where n is below 2, and for plain counts (turns, calls).
        high: Its upper end.
    """

    n: int
    mean: float | None
    low: float | None = None
    high: float | None = None


class RewardAgreement(Record):
    """How goal completion goes with the outcome that the records themselves hold.

    Args:
        both: Goal completed, and rewarded.
        only_goal: Goal completed, and not rewarded.
        only_reward: Rewarded, and goal not completed.
        neither: Neither.
    """

    both: int
    only_goal: int
    only_reward: int
    neither: int

    @property
    def n(self) -> int:
        """How many conversations have both."""
        return self.both + self.only_goal + self.only_reward + self.neither

    @property
    def rate(self) -> float | None:
        """The share in which the two agree."""
        return (self.both + self.neither) / self.n if self.n else None


class Summary(Record):
    """The figures over a group of conversations.

    Args:
        conversations: How many.
        goal_completion: GC over the conversations where it is decided; `unknown` are the undecided and those
            with nothing to complete. The decided alone need not be like the rest: where some are undecided, the
            two that follow hold the truth between them.
        goal_at_least: GC over all that have something to complete, none of the undecided completed.
        goal_at_most: The same with all of the undecided completed.
        nothing_to_complete: Conversations whose graph gives nothing to complete (an empty gold list).
        progress_rate: PR, over the conversations where it is decided.
        progress_at_least: The mean of the lower ends, over all that have a way to go.
        progress_at_most: The mean of the upper ends.
        pass_hat_k: pass^k by k, where tasks were run several times: the mean over tasks of C(c, k) / C(n, k).
            Only tasks count of which every run is decided: the decided runs of the others need not be like the rest.
        pass_hat_k_tasks: Over how many tasks it is, by k: those that were run k times or more.
        pass_hat_k_undecided: How many tasks were left out of pass^k, because the GC of a run is undecided.
        goal_reached: The share that reached the milestone which serves the user's goal, over the conversations whose
            scenario names one; None where none does. End alone may also be reached by a hand-over.
        turns: Messages of the user, a conversation.
        calls: Tool calls, a conversation.
        wasted_calls: Those that served no milestone.
        repeated_calls: Those that repeat an earlier one.
        forbidden: Conversations in which something forbidden happened.
        stops: Where the conversations stopped whose GC is false: how many, by milestone, most first. At End
            stopped those in which something forbidden happened on the way.
        agreement: The share of a judge's votes that agree with its verdict, over all its verdicts.
        reward: How GC goes with the recorded reward; None where no record has one.
        model_calls: Requests of the app to its models, a conversation; None where none was counted. So are those
            that follow.
        input_tokens: Tokens that they read.
        output_tokens: Tokens that they wrote.
        turn_seconds: How long the app took for a turn, over all turns.
        ended: Why the conversations ended: how many, by reason.
    """

    conversations: int
    goal_completion: Rate
    goal_at_least: Rate
    goal_at_most: Rate
    nothing_to_complete: int = 0
    progress_rate: Mean
    progress_at_least: Mean
    progress_at_most: Mean
    pass_hat_k: Mapping[int, float] = {}
    pass_hat_k_tasks: Mapping[int, int] = {}
    pass_hat_k_undecided: int = 0
    goal_reached: Rate | None = None
    turns: Mean
    calls: Mean
    wasted_calls: Mean
    repeated_calls: Mean
    forbidden: Rate
    stops: Mapping[str, int] = {}
    agreement: Mean
    reward: RewardAgreement | None = None
    model_calls: Mean | None = None
    input_tokens: Mean | None = None
    output_tokens: Mean | None = None
    turn_seconds: Mean | None = None
    ended: Mapping[Ended, int] = {}


class ArmComparison(Record):
    """Two arms of an evaluation, compared over the runs of scenarios that both finished.

    Args:
        a: The one.
        b: The other.
        comparison: How they differ; p is corrected for how many comparisons there are.
    """

    a: str
    b: str
    comparison: Comparison


class ReportSummary(Record):
    """The figures over all conversations, and over each use case.

    Args:
        overall: Over all.
        use_cases: By use case, in alphabetical order; empty where no record names one.
        arms: By arm, in an evaluation, in the order of the conversations; so are those that follow.
        users: By the user's kind.
        arms_by_user: By arm, and within it by the user's kind.
        comparisons: Each arm with each one after it.
    """

    overall: Summary
    use_cases: Mapping[str, Summary] = {}
    arms: Mapping[str, Summary] = {}
    users: Mapping[str, Summary] = {}
    arms_by_user: Mapping[str, Mapping[str, Summary]] = {}
    comparisons: tuple[ArmComparison, ...] = ()


class Report(Record):
    """What was measured over many conversations; `schema` 1 of the JSON that `arq-graph score --json` writes.

    Args:
        schema_version: The version of this form, written as `schema`.
        conversations: One record a conversation, in the order of the source.
        broken: The records that could not be scored.
        graphs: The graphs that were measured on, by name.
        summary: The figures.
        missing: How many conversations of an evaluation were not finished, because its ceiling was reached.
        stopped: What was reached, where they are missing.
    """

    model_config = ConfigDict(populate_by_name=True)

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    conversations: tuple[ConversationRecord, ...]
    broken: tuple[BrokenConversation, ...] = ()
    graphs: Mapping[str, GraphRecord] = {}
    summary: ReportSummary
    missing: int = 0
    stopped: str | None = None

    @property
    def failed(self) -> tuple[BrokenConversation, ...]:
        """The records that could not be scored; what a ceiling cut off is missing, and none of them."""
        return tuple(one for one in self.broken if one.ended != "budget")

    def to_json(self) -> str:
        """The report as JSON; `read_report` reads it again."""
        # Pydantic's own way ends at a lone surrogate, which a transcript's names may hold.
        return clean(json.dumps(self.model_dump(mode="json", by_alias=True), ensure_ascii=False, indent=1))
