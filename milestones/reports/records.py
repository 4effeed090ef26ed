"""What a report says of one conversation and of one graph; what is written to files and read again."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from math import isfinite
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.scoring import Score
from arq_graph.milestones.transcript import Call, Message, Transcript

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

Ended = Literal["user", "turns", "calls", "seconds", "limit", "error"]
"""Why a conversation with a simulated user ended: the user left, a limit of its own or of the run, or a failure."""

_MEASURED = (
    *("goal_completed", "progress_rate", "progress_range", "undecided", "frontier", "path_taken", "coverage"),
    *("wasted_calls", "repeated_calls", "invented_arguments"),
)
_EVALUATED = {"arm": str, "scenario": str, "user": str, "goal": str, "run": int, "seed": int}


class Record(BaseModel):
    """A part of a report."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StepUsage(Record):
    """What the calls of one step to its model cost, such as the matcher's: how many there were, and their tokens."""

    calls: int
    input_tokens: int = 0
    output_tokens: int = 0


class ReachedMilestone(Record):
    """A milestone that was reached for certain, at the event of this number, from 1; 0 is before anything happened."""

    name: str
    step: int


class ForbiddenRecord(Record):
    """Something that must not happen, and did, at the event of this number, from 1."""

    step: int
    rule: str


class ConversationRecord(Record):
    """How far one conversation got, as numbers and names.

    Args:
        source: The file that it was read from; `record` is its position there, from 0.
        task: The task it was a run of, where one task was run several times.
        goal_completed: Goal completion; None where it is undecided, or where there is nothing to complete. False where
            the world tells that it was no `success`.
        progress_rate: The progress rate, 0 to 1; None where it is a range, or where there is no way to go.
        progress_range: The progress rate at least and at most; None where there is no way to go.
        reached: The milestones that were reached for certain, in order; `possibly_reached` those at most.
        undecided: Milestones of which nothing says whether they were observed.
        path_taken: The reached milestones on the road that the progress rate is about.
        coverage: The share of all milestones that were reached.
        events: How many events there were; `turns` of them are the user's messages, and `calls` tool calls.
        wasted_calls: The calls, by event number, that served no milestone.
        repeated_calls: Those of a tool called before with the same arguments.
        invented_arguments: Paths of the possibly invented arguments, by the call's event number.
        unanswered_calls: The calls that have no result.
        agreement: The share of a judge's votes that agree with its verdict, by milestone; `reasons` are its words.
        reward: What the record itself says of its outcome (tau-bench's `reward`).
        arm: The app that held it, in an evaluation; so are those that follow.
        goal: The milestone that serves the user's goal, where the scenario names one.
        probes: What the scenario is for, where it says so; `twin` is the one that differs in one thing.
        expected: What its answer must be, where it says so: guidelines, calls, and what is said or never said.
        run: Which of the scenario's runs, from 1.
        seed: What the user's and the world's chance depended on.
        outcome: What the world itself says of how it ended, by name: shares from 0 to 1, counts, or whether.
        trials: How often the task was tried, by an arm that tries again where it failed; told is the last time, and
            model calls and tokens are those of all.
        moves: How often the agent did what: `think` (of speakers alone, as others do not tell), `speak`, `act`, and
            `invalid`, the acts that were refused or failed.
        speech: What a speaker said, by category (ReSpAct, Table 5); `dialogue_acts` is the same by act, where it is
            limited to some.
        ended: Why it ended; one that the run's limit stopped is not scored, and a `BrokenConversation`.
        model_calls: Requests of the app to its models, failed and repeated ones included.
        input_tokens: Tokens that they read, as far as they report them; `output_tokens` are those that they wrote.
        steps: The same by step, as far as the app's steps say who they are.
        turn_seconds: How long the app took for each turn.
    """

    id: str
    source: str | None = None
    record: int | None = None
    use_case: str | None = None
    task: str | None = None
    graph: str = ""
    goal_completed: bool | None
    progress_rate: float | None
    progress_range: tuple[float, float] | None
    reached: tuple[ReachedMilestone, ...]
    possibly_reached: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    forbidden: tuple[ForbiddenRecord, ...] = ()
    frontier: tuple[str, ...] = ()
    path_taken: tuple[str, ...] = ()
    coverage: float | None = None
    events: int
    turns: int
    calls: int
    wasted_calls: tuple[int, ...] = ()
    repeated_calls: tuple[int, ...] = ()
    invented_arguments: Mapping[int, tuple[str, ...]] = {}
    unanswered_calls: tuple[int, ...] = ()
    agreement: Mapping[str, float] = {}
    reasons: Mapping[str, str] = {}
    reward: float | None = None
    arm: str | None = None
    scenario: str | None = None
    goal: str | None = None
    probes: str | None = None
    twin: str | None = None
    expected: Mapping[str, JsonValue] = {}
    user: str | None = None
    run: int | None = None
    seed: int | None = None
    outcome: Mapping[str, bool | int | float] = {}
    trials: int = 1
    moves: Mapping[str, int] = {}
    speech: Mapping[str, int] = {}
    dialogue_acts: Mapping[str, int] = {}
    ended: Ended | None = None
    error: str | None = None
    model_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    steps: Mapping[str, StepUsage] = {}
    turn_seconds: tuple[float, ...] = ()

    @property
    def independent_task(self) -> tuple[str | None, str] | None:
        """Its use case, and its task without the kind of user: those that share it depend on each other; or None."""
        return None if self.task is None else (self.use_case, self.task.removesuffix(f" ({self.user})"))

    @property
    def stopped_at(self) -> str | None:
        """The last milestone on the road that was taken; None unless it is certain that the goal was missed."""
        return self.path_taken[-1] if self.goal_completed is False and self.path_taken else None

    @property
    def goal_reached(self) -> bool | None:
        """Whether the milestone of the user's goal was reached; None where undecided, or where none is named."""
        if self.goal is None:
            return None
        if any(each.name == self.goal for each in self.reached):
            return True
        return None if self.goal in self.possibly_reached else False


class BrokenConversation(Record):
    """A record that could not be scored, or a conversation that could not be held or measured, and why.

    Its fields are those of a `ConversationRecord`.
    """

    source: str | None = None
    record: int | None = None
    error: str
    arm: str | None = None
    scenario: str | None = None
    run: int | None = None
    ended: Ended | None = None


class GraphRecord(Record):
    """A milestone graph without its rules; `reviewed` is None where nothing says that it was generated."""

    file: str | None = None
    reviewed: bool | None = None
    milestones: tuple[Milestone, ...]


def grouped(things: Iterable[T], name_of: Callable[[T], K | None]) -> dict[K, list[T]]:
    """Things by the names of their groups, in order; what has none is left out."""
    groups: dict[K, list[T]] = {}
    for one in things:
        if (name := name_of(one)) is not None:
            groups.setdefault(name, []).append(one)
    return groups


def conversation_record(transcript: Transcript, score: Score, **about: Any) -> ConversationRecord:
    """What a report says of one scored conversation; `about` are other fields, such as its graph's name."""
    known = transcript.extra.get("arq_graph")  # in a file of an evaluation's results: whose run this is
    told = known.get("record", {}) if isinstance(known, Mapping) else {}
    fields = {name: told[name] for name, kind in _EVALUATED.items() if isinstance(told.get(name), kind)}
    fields |= {name: getattr(score, name) for name in _MEASURED} | about
    if fields.get("outcome", {}).get("success") is False:  # the world sees what milestones cannot
        fields["goal_completed"] = False
    reward = transcript.extra.get("reward")
    return ConversationRecord(
        id=transcript.id,
        use_case=transcript.use_case,
        task=transcript.task,
        reached=tuple(ReachedMilestone(name=name, step=step) for name, step in score.reached.items()),
        possibly_reached=tuple(name for name in score.possibly_reached if name not in score.reached),
        forbidden=tuple(ForbiddenRecord(step=each.event, rule=str(each.rule)) for each in score.forbidden),
        events=len(transcript),
        turns=sum(
            isinstance(event, Message) and event.speaker == "user" for event in transcript.measured_events
        ),
        calls=sum(isinstance(event, Call) for event in transcript.measured_events),
        unanswered_calls=score.observations.unanswered,
        agreement=score.judgement.agreement,
        reasons=score.judgement.reasons,
        reward=reward if isinstance(reward, int | float) and isfinite(reward) else None,
        **fields,
    )
