"""The records of a report: one conversation, one graph; they are written to files and read again."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from arq_graph.milestones.milestone import END, Milestone
from arq_graph.milestones.scoring import Score
from arq_graph.milestones.transcript import Call, Message, Transcript
from arq_graph.milestones.turn_note import GuidelineUse, TurnNote, count_guideline_uses

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

Ended = Literal["user", "turns", "calls", "seconds", "takeover", "budget", "error"]
"""The reason why a conversation with a simulated user ended.

The user left; one of its `Limits` was reached (turns, calls, seconds); the agent handed over to a person; the run had
to stop, mostly because its budget is used up; or there was an error.
"""

_FIELDS_OF_SCORE = (
    "goal_completed",
    "progress_rate",
    "progress_range",
    "undecided",
    "frontier",
    "path_taken",
    "coverage",
    "wasted_calls",
    "too_early",
    "repeated_calls",
    "invented_arguments",
)
_FIELDS_OF_EVALUATION = {"arm": str, "scenario": str, "user": str, "goal": str, "run": int, "seed": int}


class Record(BaseModel):
    """A part of a report."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StepUsage(Record):
    """The number and the tokens of the calls of one step, such as the matcher, to its model."""

    calls: int
    input_tokens: int = 0
    output_tokens: int = 0


class ReachedMilestone(Record):
    """A milestone that was certainly reached, at the event of this number, from 1; 0 is before the first."""

    name: str
    step: int


class ForbiddenRecord(Record):
    """A forbidden event that happened, by its number, from 1."""

    step: int
    rule: str


class ConversationRecord(Record):
    """The measured progress of one conversation, as numbers and names.

    Args:
        source: The file that it was read from; `record` is its position there, from 0.
        task: The task that it is a run of, if one task was run several times.
        content: A digest of all that was said and done, if the record has neither an id nor a task.
        opening: A digest of the user's first message, then.
        goal_completed: Goal completion; None if it is undecided, or if there is nothing to measure: End needs no
            milestone and nothing is forbidden. False if the world says that it was not a `success`.
        progress_rate: The progress rate, 0 to 1; None if it is a range, or if there is nothing to measure.
        progress_range: The progress rate at least and at most; None if there is nothing to measure.
        reached: The milestones that were certainly reached, in order.
        possibly_reached: Further ones that would be reached if all undecided milestones were observed.
        undecided: Milestones of which nothing says whether they were observed.
        path_taken: The reached milestones on the road that the progress rate is about.
        coverage: The share of all milestones that were reached.
        events: The number of events; `turns` of them are the user's messages, and `calls` tool calls.
        wasted_calls: The calls, by event number, that served no milestone.
        too_early: By wasted call, the milestones that had to be reached before it could serve one, and were not.
        repeated_calls: Those of a tool called before with the same arguments.
        invented_arguments: Paths of the possibly invented arguments, by the call's event number.
        unanswered_calls: The calls that have no result.
        agreement: The share of a judge's votes that agree with its verdict, by milestone; `reasons` are its words.
        reward: The outcome that the record itself states (tau-bench's `reward`).
        arm: The arm of an evaluation that ran it; the following fields are those of evaluations, too.
        goal: The milestone that serves the user's goal, if the scenario names one.
        probes: The purpose of the scenario, if it states one; `twin` is the scenario that differs in one thing.
        expected: The expected answer, if the scenario states it: guidelines, calls, patterns.
        run: The number of the run of its scenario, from 1.
        seed: The seed of the user's and the world's chance.
        outcome: The end of the conversation as the world reports it, by name: shares from 0 to 1, counts, or flags.
        trials: The number of times that the task was tried, by an arm that tries again after a failure; the record is
            of the last trial, but model calls and tokens are those of all.
        moves: The number of moves of each kind: `think` (of speakers alone, as others do not tell), `speak`, `act`, and
            `invalid`, the acts that were refused or failed.
        speech: The utterances of a speaker by category (ReSpAct, Table 5); `dialogue_acts` is the same by act, if it
            is limited to some.
        ended: The reason why it ended; one that the run's budget stopped is not scored, and a `BrokenConversation`.
        model_calls: Requests of the app to its models, failed and repeated ones included.
        input_tokens: Tokens that they read, as far as they report them; `output_tokens` are those that they wrote.
        steps: The same by step, as far as the app's steps say who they are.
        turn_seconds: The seconds that the app took for each turn.
        guidelines: How often each guideline of an agent of this library was active, followed and broken; empty if no
            agent noted it.
    """

    id: str
    source: str | None = None
    record: int | None = None
    use_case: str | None = None
    task: str | None = None
    content: str | None = None
    opening: str | None = None
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
    too_early: Mapping[int, tuple[str, ...]] = Field(default_factory=dict)
    repeated_calls: tuple[int, ...] = ()
    invented_arguments: Mapping[int, tuple[str, ...]] = Field(default_factory=dict)
    unanswered_calls: tuple[int, ...] = ()
    agreement: Mapping[str, float] = Field(default_factory=dict)
    reasons: Mapping[str, str] = Field(default_factory=dict)
    reward: float | None = None
    arm: str | None = None
    scenario: str | None = None
    goal: str | None = None
    probes: str | None = None
    twin: str | None = None
    expected: Mapping[str, JsonValue] = Field(default_factory=dict)
    user: str | None = None
    run: int | None = None
    seed: int | None = None
    outcome: Mapping[str, bool | int | float] = Field(default_factory=dict)
    trials: int = 1
    moves: Mapping[str, int] = Field(default_factory=dict)
    speech: Mapping[str, int] = Field(default_factory=dict)
    dialogue_acts: Mapping[str, int] = Field(default_factory=dict)
    ended: Ended | None = None
    error: str | None = None
    model_calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    steps: Mapping[str, StepUsage] = Field(default_factory=dict)
    turn_seconds: tuple[float, ...] = ()
    guidelines: tuple[GuidelineUse, ...] = ()

    @property
    def broken_guidelines(self) -> Mapping[str, int] | None:
        """In how many turns the reply broke each guideline that it broke; None if no reply was checked for that."""
        if not any(use.checked for use in self.guidelines):
            return None
        broken: Counter[str] = Counter()
        for use in self.guidelines:
            broken[use.guideline] += use.broken
        return +broken

    @property
    def independent_task(self) -> tuple[str | None, str] | None:
        """The use case, and the task without the kind of user; conversations that share them are not independent."""
        if self.task is None:
            return None
        return self.use_case, self.task.removesuffix(f" ({self.user})")

    @property
    def stopped_at(self) -> str | None:
        """The last milestone on the road that was taken; None unless the goal was certainly missed.

        End states, which are seen after the last event, don't say where the conversation stopped.
        """
        if self.goal_completed is not False or not self.path_taken:
            return None
        if self.path_taken[-1] == END:
            return END
        steps = {milestone.name: milestone.step for milestone in self.reached}
        on_the_way = [name for name in self.path_taken if steps.get(name, 0) <= self.events]
        return on_the_way[-1] if on_the_way else None

    @property
    def tested_part(self) -> Literal["matcher alone", "whole turn"]:
        """The part of the agent that its scenario tests."""
        return "matcher alone" if "active" in self.expected else "whole turn"

    @property
    def goal_reached(self) -> bool | None:
        """True if the milestone of the user's goal was reached; None if undecided, or if no goal is named."""
        if any(milestone.name == self.goal for milestone in self.reached):
            return True
        if self.goal is None or self.goal in self.possibly_reached:
            return None
        return False

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        for name in ("id", "goal_completed", "progress_range", "stopped_at"):
            yield name, getattr(self, name)


class BrokenConversation(Record):
    """A record that could not be scored, or a conversation that could not be run or measured, and the error.

    Its fields are those of a `ConversationRecord`.
    """

    source: str | None = None
    record: int | None = None
    error: str
    arm: str | None = None
    scenario: str | None = None
    run: int | None = None
    ended: Ended | None = None


ReportedConversation = ConversationRecord | BrokenConversation


class GraphRecord(Record):
    """A milestone graph without its rules; `reviewed` is None if a person wrote it, and no review is noted."""

    file: str | None = None
    reviewed: bool | None = None
    milestones: tuple[Milestone, ...]


def group_by(items: Iterable[T], get_name: Callable[[T], K | None]) -> dict[K, list[T]]:
    """Return items by the names of their groups, in order; an item whose name is None is left out."""
    groups: dict[K, list[T]] = {}
    for item in items:
        name = get_name(item)
        if name is not None:
            groups.setdefault(name, []).append(item)
    return groups


def make_conversation_record(transcript: Transcript, score: Score, **fields: Any) -> ConversationRecord:
    """Return the record of one scored conversation; `fields` are other fields, such as its graph's name."""
    values = _read_evaluation_fields(transcript)
    for name in _FIELDS_OF_SCORE:
        values[name] = getattr(score, name)
    values |= fields
    if values.get("outcome", {}).get("success") is False:  # the world sees what milestones cannot
        values["goal_completed"] = False
    if transcript.task is None and not transcript.has_own_id:
        values["content"], values["opening"] = _digest_content(transcript)
    turns = calls = 0
    notes: list[TurnNote] = []
    for event in transcript.measured_events:
        notes += getattr(event, "turn_notes", ())
        turns += isinstance(event, Message) and event.speaker == "user"
        calls += isinstance(event, Call) and event.by == "agent"
    reward = transcript.extra.get("reward")
    if not isinstance(reward, int | float) or not isfinite(reward):
        reward = None
    return ConversationRecord(
        id=transcript.id,
        use_case=transcript.use_case,
        task=transcript.task,
        reached=[{"name": name, "step": step} for name, step in score.reached.items()],
        possibly_reached=tuple(name for name in score.possibly_reached if name not in score.reached),
        forbidden=tuple(ForbiddenRecord(step=event.event, rule=str(event.rule)) for event in score.forbidden),
        events=len(transcript),
        turns=turns,
        calls=calls,
        unanswered_calls=score.observations.unanswered,
        agreement=score.judgement.agreement,
        reasons=score.judgement.reasons,
        reward=reward,
        guidelines=count_guideline_uses(notes),
        **values,
    )


def _digest_content(transcript: Transcript) -> tuple[str, str | None]:
    """Return digests of all events, and of the first message of the user, if there is one."""
    parts: list[str] = []
    opening = None
    for event in transcript.events:
        if isinstance(event, Call):
            parts += ["call", event.tool, event.malformed or str(event.arguments)]
        elif isinstance(event, Message):
            parts += [event.speaker, event.text]
            if opening is None and event.speaker == "user":
                opening = _digest_text(event.text)
        else:
            parts += ["result", event.text]
    return _digest_text("\0".join(parts)), opening


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _read_evaluation_fields(transcript: Transcript) -> dict[str, Any]:
    """Return the arm, scenario and run of a transcript that was read from the results of an evaluation."""
    evaluation = transcript.extra.get("arq_graph")
    stored = evaluation.get("record", {}) if isinstance(evaluation, Mapping) else {}
    fields = {}
    for name, kind in _FIELDS_OF_EVALUATION.items():
        if isinstance(stored.get(name), kind):
            fields[name] = stored[name]
    return fields
