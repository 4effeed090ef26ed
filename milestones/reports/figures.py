"""The figures of a report: shares and means over a group of conversations, and how two groups differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from arq_graph.milestones.reports.records import Ended, Record

Decision = Literal["a better", "b better", "no difference shown"]


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
        both: Goal completed, and rewarded; so are the others.
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
        goal_reached: The share in which the customer's own goal was reached, over the conversations whose scenario
            names one; None where none does. It is the first figure: End may be reached by another road, too.
        goal_completion: GC over the conversations where it is decided; `unknown` are the undecided and those with
            nothing to complete. The decided alone need not be like the rest: where some are undecided, the two that
            follow hold the truth between them.
        goal_at_least: GC over all that have something to complete, none of the undecided completed.
        goal_at_most: The same with all of the undecided completed.
        nothing_to_complete: Conversations whose graph gives nothing to complete (an empty gold list).
        progress_rate: PR, over the conversations where it is decided.
        progress_at_least: The mean of the lower ends, over all that have a way to go; `progress_at_most` of the upper.
        pass_hat_k: pass^k by k, where tasks were run several times: the mean over tasks of C(c, k) / C(n, k). Only
            tasks count of which every run is decided: the decided runs of the others need not be like the rest.
        pass_hat_k_tasks: Over how many tasks it is, by k: those that were run k times or more.
        pass_hat_k_undecided: How many tasks were left out of pass^k, because the GC of a run is undecided.
        turns: Messages of the user, a conversation.
        calls: Tool calls; `wasted_calls` served no milestone, and `repeated_calls` repeat an earlier one.
        forbidden: Conversations in which something forbidden happened.
        stops: Where the conversations stopped whose GC is false: how many, by milestone, most first. At End stopped
            those in which something forbidden happened on the way.
        agreement: The share of a judge's votes that agree with its verdict, over all its verdicts.
        reward: How GC goes with the outcome that the records hold; None where they hold none.
        model_calls: Requests of the app to its models, a conversation; None where not known, as for those below.
        input_tokens: Tokens that they read; `output_tokens` are those that they wrote.
        turn_seconds: How long the app took for a turn, over all turns.
        ended: Why the conversations ended: how many, by reason.
    """

    conversations: int
    goal_reached: Rate | None = None
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


class Difference(Record):
    """How one figure differs between A and B, over the pairs in which both know it.

    Args:
        pairs: Over how many pairs.
        left_out: Pairs in which it is undecided in A or in B, or where there is nothing to complete.
        tasks: How many independent groups the pairs make: tasks, or the pairs where each task was run once.
        a: The mean over A's side of the pairs, 0 to 1; None where there is no pair.
        b: The mean over B's side.
        difference: b - a, -1 to 1.
        low: Of its 95% bootstrap interval to `high`; None where there are fewer than two tasks.
        p: How likely so large a difference is by chance alone, two-sided; among use cases, corrected for how many
            there are. None where there is no pair.
        test: Where p comes from.
        verdict: `a better` or `b better` where p is below 0.05 and the interval leaves 0 out.
    """

    pairs: int
    left_out: int
    tasks: int
    a: float | None
    b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    test: Literal["McNemar", "sign flip"]
    verdict: Decision


class SplitPairs(Record):
    """In how many pairs the goal was completed by both, by one of the two alone, or by neither."""

    both: int
    only_a: int
    only_b: int
    neither: int


class ComparedGroup(Record):
    """A group of pairs compared.

    Args:
        pairs: How many.
        goal_reached: How reaching the customer's own goal differs; None where no scenario names one.
        goal_completion: How GC differs.
        split: In how many pairs which of the two completed the goal.
        progress_rate: How PR differs.
    """

    pairs: int
    goal_reached: Difference | None = None
    goal_completion: Difference
    split: SplitPairs
    progress_rate: Difference


class Comparison(Record):
    """Two reports, compared over the conversations that both hold.

    Args:
        conversations_a: How many conversations A has; the same of B.
        only_a: What names those of A that B has no counterpart of; the same of B.
        broken_a: How many records of A could not be scored; the same of B.
        runs: How many runs the most often run task has among the pairs.
        different_graphs: Graphs that are not the same in A and in B: those conversations were measured differently.
        overall: All pairs.
        use_cases: By use case, in alphabetical order.
        stand_ins: What a stand-in did in one of the two, as in `Report.stand_ins`.
    """

    conversations_a: int
    conversations_b: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    broken_a: int
    broken_b: int
    runs: int
    different_graphs: tuple[str, ...]
    overall: ComparedGroup
    use_cases: Mapping[str, ComparedGroup]
    stand_ins: tuple[str, ...] = ()


class ArmComparison(Record):
    """Two arms of an evaluation over the runs of scenarios that both finished; p is corrected for their number."""

    a: str
    b: str
    comparison: Comparison
