"""One planned conversation, from its fresh world to what it was measured as."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from arq_graph.milestones.evaluation.app import Operator
from arq_graph.milestones.evaluation.arms import Arms, Made
from arq_graph.milestones.evaluation.budget import Budget
from arq_graph.milestones.evaluation.conversation import Conversation
from arq_graph.milestones.evaluation.dialogue import aconverse
from arq_graph.milestones.evaluation.failures import is_out_of_reach, told
from arq_graph.milestones.evaluation.results import Held, written
from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.milestones.judging.judge import AnyJudge
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    Ended,
    conversation_record,
)
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.tool_schemas import argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.milestones.users.simulated import make_user

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent


@dataclass(frozen=True)
class Hold:
    """How conversations are held and measured.

    Args:
        arms: The apps.
        graphs: By what name reports have the graph of each scenario.
        budget: What all calls are held against.
        user_model: Who plays the users; None: agendas, which need no model.
        judge: Decides what code cannot; None: nobody.
        operator: Decides on calls that wait for an operator.
    """

    arms: Arms
    graphs: dict[str, str]
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
        self,
        one: Planned,
        made: Made,
        held: Conversation,
        messages: Sequence[Mapping[str, Any]],
    ) -> tuple[ConversationRecord | BrokenConversation, BaseException | None]:
        """What it was measured as, or why it was not, and what was raised in the end."""
        if held.ended == "budget":
            turns = len(held.turn_seconds)
            why = f"stopped after {turns} turn{'' if turns == 1 else 's'} by {self.budget.reached}"
            return _broken(one, why, "budget"), None
        if held.failure is not None and (held.by_user or is_out_of_reach(held.failure, held.usage.failures)):
            who = "the simulated user failed" if held.by_user else "the model is out of reach"
            return _broken(one, f"{who}: {told(held.failure)}", "error"), held.failure
        if not held.messages:
            return _broken(one, "nothing was said", held.ended), None
        scenario = one.scenario
        try:
            transcript = transcript_of(one, messages, made.agent)
            measured = await ascore(
                scenario.milestones, transcript, tools=transcript.tools or None, judge=self.judge
            )
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
    """The conversation as it is measured: as it is written down, with what the agent was told and its tools.

    Args:
        one: What was planned.
        messages: What was said, as it is written down.
        agent: The agent; None where there is none.

    Raises:
        InputError: A message is none that can be read.
    """
    record: dict[str, Any] = {
        "id": one.id,
        "task_id": one.scenario.task or one.scenario.name,
        "use_case": one.scenario.use_case,
        "messages": list(messages),
    }
    transcript = read_transcript(record)
    if agent is None:
        return transcript
    return replace(
        transcript,
        instructions=transcript.instructions or instructions_of(agent),
        tools=argument_schemas(list(agent.toolbox.values())),
    )


def instructions_of(agent: Agent) -> str:
    """What an agent is told, in words."""
    rules = [
        f"- {'always' if each.condition is None else f'when {_words(each.condition)}'}: {each.action}"
        for each in agent.guidelines
    ]
    return "\n".join([agent.profile.strip(), "", *rules]).strip()


def _words(condition: str | Callable[..., Any]) -> str:
    return condition if isinstance(condition, str) else getattr(condition, "__name__", "a condition holds")


def _broken(one: Planned, error: str, ended: Ended | None) -> BrokenConversation:
    return BrokenConversation(
        error=f"{one.id}: {error}", arm=one.arm, scenario=one.scenario.name, run=one.run, ended=ended
    )
