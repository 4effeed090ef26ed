"""One planned conversation, from its fresh world to what it was measured as and what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self
from uuid import uuid4

from pydantic import Field, model_validator

from arq_graph.agent.parts import Part
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.app import Operator
from arq_graph.milestones.evaluation.arms import Arms, Made
from arq_graph.milestones.evaluation.conversation import Conversation, is_out_of_reach, told
from arq_graph.milestones.evaluation.dialogue import aconverse
from arq_graph.milestones.evaluation.results import Held, Outcome, written
from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.judging.judge import AnyJudge
from arq_graph.milestones.reports.records import BrokenConversation, Ended, conversation_record
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.tool_schemas import argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.milestones.users.simulated import make_user
from arq_graph.reasoning.usage import UsageTracker, track_usage

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent


Prices = Mapping[str, tuple[float, float]]
"""What a million tokens cost, read and written, by the model's name or the beginning of it."""

_MILLION = 1_000_000

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


class Ceilings(Part):
    """What a run may cost; see `aevaluate`."""

    max_calls: Annotated[int, Field(ge=1, strict=True)] | None = None
    max_cost: Annotated[Amount, Field(gt=0)] | None = None
    prices: Mapping[str, tuple[Amount, Amount]] = {}

    @model_validator(mode="after")
    def _cost_can_be_known(self) -> Self:
        if self.max_cost is not None and not self.prices:
            raise ValueError(
                "has `max_cost` and no price: give `prices`, such as {'gpt-4o': (2.5, 10)}, what a million tokens "
                "cost, read and written"
            )
        return self


class Budget:
    """What a run has spent of its ceilings."""

    def __init__(self, ceilings: Ceilings) -> None:
        self._ceilings = ceilings
        self._calls = 0
        self._cost = 0.0
        self._under_way: list[UsageTracker] = []

    def add(self, calls: int, cost: float) -> None:
        """Count what is over."""
        self._calls += calls
        self._cost += cost

    @contextmanager
    def tracking(self) -> Iterator[UsageTracker]:
        """Count all calls that one conversation makes inside the block, those of its user and judge included."""
        with track_usage() as used:
            self._under_way.append(used)
            try:
                yield used
            finally:
                self._under_way.remove(used)
                self.add(used.calls, self.cost_of(used))

    @property
    def reached(self) -> str | None:
        """Which ceiling is reached, in words; None while none is."""
        most, most_cost = self._ceilings.max_calls, self._ceilings.max_cost
        calls = self._calls + sum(used.calls for used in self._under_way)
        if most is not None and calls >= most:
            return f"max_calls: {calls:,} of {most:,} model calls are made"
        cost = self._cost + sum(map(self.cost_of, self._under_way))
        if most_cost is not None and cost >= most_cost:
            return f"max_cost: {cost:g} of {most_cost:g} is spent"
        return None

    def cost_of(self, used: UsageTracker) -> float:
        """What calls cost by the prices; a model without a price, and one that reports no tokens, cost nothing."""
        cost = 0.0
        for model, spent in used.by_model.items() if self._ceilings.prices else ():
            price = self._price(model)
            if spent.usage is not None and price is not None:
                read, written = spent.usage["input_tokens"], spent.usage["output_tokens"]
                cost += (read * price[0] + written * price[1]) / _MILLION
        return cost

    def require_known_cost(self, used: UsageTracker) -> None:
        """Refuse to go on where a model has no price, or reports no tokens: a ceiling for cost would not hold."""
        if self._ceilings.max_cost is None:
            return
        for model, spent in used.by_model.items():
            is_priced = self._price(model) is not None
            if spent.usage is None or not is_priced:
                what = "reports no tokens" if is_priced else "has no price in `prices`"
                raise InputError(
                    f"max_cost cannot hold: {model or 'a model'} {what}; give its price, or max_calls instead"
                )

    def _price(self, model: str) -> tuple[float, float] | None:
        known = [name for name in self._ceilings.prices if model.startswith(name)]
        return self._ceilings.prices[max(known, key=len)] if known else None


@dataclass(frozen=True)
class Hold:
    """How conversations are held and measured; the settings are those of `aevaluate`."""

    arms: Arms
    graphs: Mapping[str, str]
    budget: Budget
    user_model: Any = None
    judge: AnyJudge | None = None
    operator: Operator = "approve"

    async def __call__(self, one: Planned) -> Held:
        """Hold one conversation; whatever goes wrong in it is told in what it gives."""
        with self.budget.tracking() as used:
            try:
                made = self.arms.make(one)
                user = make_user(one.scenario.user, seed=one.seed, model=self.user_model)
            except (Exception, SystemExit) as error:
                return Held(_broken(one, f"the arm could not be made: {told(error)}", "error"))
            thread = f"{one.id} / {uuid4().hex[:8]}"  # one that is kept for good must not be gone on with
            held = await aconverse(
                made.app,
                user,
                limits=one.scenario.limits,
                thread_id=thread,
                operator=self.operator,
                stopped=lambda: self.budget.reached is not None,
            )
            await made.forget(thread)
            messages = written(held.messages)
            outcome, failure = await self._outcome(one, made, held, messages)
        is_lost = isinstance(outcome, BrokenConversation) and is_out_of_reach(failure, used.failures)
        return Held(outcome, messages, used, self.budget.cost_of(used), is_lost)

    async def _outcome(
        self, one: Planned, made: Made, held: Conversation, messages: Sequence[Mapping[str, Any]]
    ) -> tuple[Outcome, BaseException | None]:
        """What it was measured as, or why it was not, and what was raised in the end."""
        if held.ended == "budget":
            turns = f"{held.turns} turn{'' if held.turns == 1 else 's'}"
            return _broken(one, f"stopped after {turns} by {self.budget.reached}", "budget"), None
        if held.failure is not None and (held.by_user or is_out_of_reach(held.failure, held.usage.failures)):
            who = "the simulated user failed" if held.by_user else "the model is out of reach"
            return _broken(one, f"{who}: {told(held.failure)}", "error"), held.failure
        if not held.messages:
            return _broken(one, "nothing was said", held.ended), None
        scenario = one.scenario
        try:
            transcript = transcript_of(one, messages, made.agent)
            tools = transcript.tools or None
            measured = await ascore(scenario.milestones, transcript, tools=tools, judge=self.judge)
        except Exception as error:  # a judge or a check of the user's own may raise anything
            return _broken(one, f"it could not be measured: {told(error)}", "error"), error
        record = conversation_record(transcript, measured, graph=self.graphs[scenario.name])
        about = {
            "arm": one.arm,
            "scenario": scenario.name,
            "goal": scenario.goal,
            "user": scenario.user.kind,
            "run": one.run,
            "seed": one.seed,
            "ended": held.ended,
            "error": held.error,
            "model_calls": held.usage.calls,
            "input_tokens": held.usage.total["input_tokens"],
            "output_tokens": held.usage.total["output_tokens"],
            "seconds": round(held.seconds, 4),
            "turn_seconds": tuple(round(each, 4) for each in held.turn_seconds),
        }
        return record.model_copy(update=about), None


def transcript_of(one: Planned, messages: Sequence[Mapping[str, Any]], agent: Agent | None) -> Transcript:
    """The conversation as it is measured: as it is written down, with what the agent was told and its tools."""
    transcript = read_transcript(
        {
            "id": one.id,
            "task_id": one.scenario.task or one.scenario.name,
            "use_case": one.scenario.use_case,
            "messages": messages,
        }
    )
    if agent is None:
        return transcript
    return replace(
        transcript,
        instructions=transcript.instructions or instructions_of(agent),
        tools=argument_schemas(list(agent.toolbox.values())),
    )


def instructions_of(agent: Agent) -> str:
    """What an agent is told, in words."""
    rules = []
    for each in agent.guidelines:
        named = getattr(each.condition, "__name__", "a condition holds")
        condition = each.condition if isinstance(each.condition, str) else named
        rules.append(f"- {'always' if each.condition is None else f'when {condition}'}: {each.action}")
    return "\n".join([agent.profile.strip(), "", *rules]).strip()


def _broken(one: Planned, error: str, ended: Ended | None) -> BrokenConversation:
    return BrokenConversation(
        error=f"{one.id}: {error}", arm=one.arm, scenario=one.scenario.name, run=one.run, ended=ended
    )
