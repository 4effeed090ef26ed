"""Runs × scenarios × arms: many conversations at once, each kept as it ends, and the report of their milestones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

from pydantic import Field

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.parts import Part
from arq_graph.errors import InputError, ModelUnavailableError, SpecError, checked_type
from arq_graph.milestones.evaluation.arms import Arm, Arms, Made
from arq_graph.milestones.evaluation.conversation import Conversation, aconverse, is_out_of_reach, told
from arq_graph.milestones.evaluation.results import Outcome, entry_of, kept_in, transcript_of, written
from arq_graph.milestones.evaluation.suite import Planned, Suite
from arq_graph.milestones.event_loop import at_once, run_in_loop
from arq_graph.milestones.judging.judge import Judge
from arq_graph.milestones.reports.graph_choice import GraphNames
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    Ended,
    conversation_record,
)
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.users.simulated import make_user
from arq_graph.models.offline.model import is_stand_in
from arq_graph.models.resolve import model_name
from arq_graph.reasoning.usage import UsageTracker, track_usage

_AtLeastOne = Annotated[int, Field(ge=1, strict=True)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
MOST_OUT_OF_REACH = 3
"""So many conversations in a row whose model is out of reach end a run: the others would fare no better."""

Done = Callable[[Planned, Outcome], None]
Prices = Mapping[str, tuple[_Amount, _Amount]]
"""What a million tokens cost, read and written, by the model's name or the beginning of it."""


def evaluate(suite: Suite, arms: Mapping[str, Arm], **settings: Any) -> Report:
    """Hold every conversation of a suite with every arm, and measure it; the settings are those of `aevaluate`.

    Raises:
        InputError: An event loop runs already: await `aevaluate` there. All else is as `aevaluate` raises.
    """
    return run_in_loop(aevaluate(suite, arms, **settings), "aevaluate")


class _Settings(Part):
    """The settings of a run; see `aevaluate`."""

    runs: _AtLeastOne
    concurrency: _AtLeastOne
    max_calls: _AtLeastOne | None
    max_cost: Annotated[_Amount, Field(gt=0)] | None
    prices: Prices
    judge: Callable[..., Any] | None


async def aevaluate(
    suite: Suite,
    arms: Mapping[str, Arm],
    *,
    model: Any = None,
    user_model: Any = None,
    judge: Judge | None = None,
    runs: int = 1,
    concurrency: int = 8,
    results: str | Path | None = None,
    resume: bool = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
    prices: Prices | None = None,
    depends_on: Mapping[str, str] | None = None,
    arms_depend_on: Mapping[str, str] | None = None,
    done: Done = lambda _planned, _outcome: None,
) -> Report:
    """Hold every conversation of a suite with every arm, `runs` times each, and measure it.

    Each conversation has its own thread, user and world; its seed is the same for every arm, so that the runs of two
    arms are pairs. What goes wrong in one conversation is told in the report and does not touch the others: an app
    that raises is measured on what happened until then, with the `error`; where its model is out of reach, or the user
    fails, the conversation is not measured, and held again when the run is gone on with. What a model raised is known
    from LangChain's callbacks: a lost connection of the app's own, or of a client that has none, is the app's error.

    A LangGraph app with a checkpointer is run with `durability="exit"`, for speed. A conversation that was cut off is
    held again from its beginning, in a new thread. An app or tool that hangs is left behind at the limit of `seconds`;
    in a loop of your own, Python waits for its thread when it ends, and `evaluate` has threads of its own.

    Args:
        suite: The scenarios.
        arms: By name: an app (anything that is invoked or awaited with `{"messages": […]}`), or a function that makes
            one of a scenario, its agent, and the model.
        model: Handed to those functions: a chat model or a model string.
        user_model: Who plays the users: a chat model, a model string or a `Reasoner`; None or offline: agendas.
        judge: Decides what code cannot; None: such milestones stay undecided.
        runs: How often each scenario is run, from 1.
        concurrency: How many conversations are under way at once, from 1.
        results: A JSON Lines file to which each finished conversation is appended at once; None: nowhere.
        resume: Go on with what that file holds, and hold no conversation twice. Whatever shapes a conversation (the
            agent's whole specification, milestones, user, world, arms, models, seed) must be what it was.
        max_calls: How many model calls the run may make, earlier parts and users and judge included. Once it is
            reached nothing is begun; conversations under way finish their turn, and are held again another time.
        max_cost: What the calls may cost, in the same way; needs `prices`.
        prices: What a million tokens cost, read and written, by the model's name or the beginning of it.
        depends_on: What else the results depend on, by a name that a message can show: the endpoint, for example.
        arms_depend_on: What single arms depend on beside the code of their functions, by their names.
        done: Called with each conversation as it ends, and with those that ended in an earlier part of the run.

    Raises:
        InputError: A setting cannot be used, a model's key is missing, the file holds other results, or a
            model that is called has no price or reports no tokens while `max_cost` is to hold.
        ModelUnavailableError: Models were out of reach in several conversations in a row; what ended is kept.
    """
    checked_type("suite", suite, Suite, "read one with Suite.from_yaml(path)")
    try:
        settings = _Settings(
            runs=runs,
            concurrency=concurrency,
            max_calls=max_calls,
            max_cost=max_cost,
            prices=prices or {},
            judge=judge,
        )
    except SpecError as error:
        raise InputError(str(error)) from None
    if max_cost is not None and not prices:
        raise InputError(
            "max_cost needs prices, such as {'gpt-4o': (2.5, 10)}: a million tokens, read and written"
        )
    # A user's model that is none, or lacks its key, is told at once.
    make_user(suite.scenarios[0].user, seed=suite.seed, model=user_model)
    known = Arms(arms, model)
    graphs = GraphNames()
    names = {one.name: graphs.of(one.milestones, one.name) for one in suite.scenarios}
    run = _Run(known, names, user_model, settings)
    planned = list(suite.planned(known.names, runs))
    asked = {"the agent's model": model, "the users' model": user_model, "the judge": judge}
    of = {"the suite": suite.name, "the seed": str(suite.seed)}
    of |= {what: model_name(each or "none") for what, each in asked.items()} | dict(depends_on or {})
    parts = {name: digest for one in suite.scenarios for name, digest in one.fingerprints().items()}
    parts |= known.fingerprints()
    for name, digest in (arms_depend_on or {}).items():
        parts[f"the code of the arm {name!r}"] = fingerprint(digest)
    store = None if results is None else RunStore(results, "evaluation", of, parts=parts, resume=resume)
    with store or nullcontext():
        outcomes = await run.through(planned, concurrency, store, done)
    found = [outcomes[one.id] for one in planned if one.id in outcomes]
    missing = len(planned) - sum(one.ended != "budget" for one in found)
    return Report(
        stand_ins=tuple(what for what, each in asked.items() if is_stand_in(getattr(each, "reasoner", each))),
        conversations=tuple(one for one in found if isinstance(one, ConversationRecord)),
        broken=tuple(one for one in found if isinstance(one, BrokenConversation)),
        graphs=graphs.used,
        missing=missing,
        stopped=run.reached if missing else None,
    )


class _Held(NamedTuple):
    """What became of a conversation, what was said in it, and what it used, its user and judge included."""

    outcome: Outcome
    used: UsageTracker
    messages: Sequence[Mapping[str, Any]] = ()
    failure: BaseException | None = None


@dataclass
class _Run:
    """The conversations of a run, each held and measured; the settings are those of `aevaluate`."""

    arms: Arms
    graphs: Mapping[str, str]
    user_model: Any
    settings: _Settings
    calls_before: int = 0
    cost: float = 0.0  # of what is over; adding up every call at each turn would take longer and longer
    under_way: list[UsageTracker] = field(default_factory=list)
    used: UsageTracker = field(default_factory=UsageTracker)

    @property
    def reached(self) -> str | None:
        """The ceiling in words, once it is reached."""
        calls = self.calls_before + self.used.calls
        if (most := self.settings.max_calls) is not None and calls >= most:
            return f"max_calls: {calls:,} of {most:,} model calls are made"
        if (ceiling := self.settings.max_cost) is None:
            return None
        cost = self.cost + sum(map(self._cost, self.under_way))
        if cost < ceiling:
            return None
        return f"max_cost: {cost:g} of {ceiling:g} is spent"

    def _cost(self, used: UsageTracker, *, known: bool = False) -> float:
        """What calls cost by the prices; with `known`, a model without a price or without tokens is an error."""
        cost = 0.0
        prices = self.settings.prices
        for model, spent in used.by_model.items() if prices else ():
            name = max((each for each in prices if model.startswith(each)), key=len, default=None)
            if name is not None and spent.usage is not None:
                read, written = prices[name]
                cost += (
                    spent.usage["input_tokens"] * read + spent.usage["output_tokens"] * written
                ) / 1_000_000
            elif known and self.settings.max_cost is not None:
                what = "has no price" if name is None else "reports no tokens"
                raise InputError(f"max_cost cannot hold: {model or 'a model'} {what}; use max_calls instead")
        return cost

    async def through(
        self, planned: Sequence[Planned], concurrency: int, store: RunStore | None, done: Done
    ) -> dict[str, Outcome]:
        """Hold what is still to be held, so many at once; an error ends them all."""
        outcomes: dict[str, Outcome] = {}
        before: dict[str, ConversationRecord] = {}
        for kept in map(kept_in, store.entries() if store else ()):
            if kept is not None:
                self.calls_before += kept.calls
                self.cost += kept.cost
                if kept.record is not None:
                    before.setdefault(kept.record.id, kept.record)
        for one in planned:
            if record := before.get(one.id):
                # A goal decides nothing of what was said; it may have been named since.
                outcomes[one.id] = record.model_copy(update={"goal": one.scenario.goal})
                done(one, outcomes[one.id])
        still = [one for one in planned if one.id not in outcomes]
        works = ((one, self._hold(one)) for one in still if self.reached is None)
        lost = 0
        with self.used.listening():
            async with aclosing(at_once(works, concurrency)) as finished:
                async for one, held in finished:
                    cost = self._cost(held.used)
                    if store is not None:
                        store.append(entry_of(one, held.outcome, held.messages, held.used.calls, cost))
                    self.under_way.remove(held.used)
                    self.cost += cost
                    self._cost(held.used, known=True)
                    outcomes[one.id] = held.outcome
                    done(one, held.outcome)
                    is_broken = isinstance(held.outcome, BrokenConversation)
                    is_lost = is_broken and is_out_of_reach(held.failure, held.used.failures)
                    lost = lost + 1 if is_lost else 0
                    if lost >= MOST_OUT_OF_REACH:
                        raise ModelUnavailableError(
                            f"a model was out of reach in {lost} conversations in a row, so the run ends here; the "
                            f"last: {held.outcome.error}"
                        )
        return outcomes

    async def _hold(self, one: Planned) -> _Held:
        """Hold one conversation; whatever goes wrong in it is told in what it gives."""
        with track_usage() as used:
            self.under_way.append(used)
            try:
                made = self.arms.make(one)
                user = make_user(one.scenario.user, seed=one.seed, model=self.user_model)
            except (Exception, SystemExit) as error:
                return _Held(_broken(one, f"the arm could not be made: {told(error)}"), used)
            thread = f"{one.id} / {uuid4().hex[:8]}"  # one that is kept for good must not be gone on with
            held = await aconverse(
                made.app,
                user,
                limits=one.scenario.limits,
                thread_id=thread,
                stopped=lambda: self.reached is not None,
            )
            await made.forget(thread)
            messages = written(held.messages)
            try:
                return _Held(await self._outcome(one, made, held, messages), used, messages, held.failure)
            except Exception as error:  # a judge or a check of the user's own may raise anything
                outcome = _broken(one, f"it could not be measured: {told(error)}")
                return _Held(outcome, used, messages, error)

    async def _outcome(
        self, one: Planned, made: Made, held: Conversation, messages: Sequence[Mapping[str, Any]]
    ) -> Outcome:
        """What it was measured as, or why it was not."""
        if held.ended == "budget":
            turns = f"{held.turns} turn{'' if held.turns == 1 else 's'}"
            return _broken(one, f"stopped after {turns} by {self.reached}", "budget")
        if held.failure is not None and (held.by_user or is_out_of_reach(held.failure, held.usage.failures)):
            who = "the simulated user failed" if held.by_user else "the model is out of reach"
            return _broken(one, f"{who}: {told(held.failure)}")
        if not held.messages:
            return _broken(one, "nothing was said", held.ended)
        scenario = one.scenario
        transcript = transcript_of(one, messages, made.agent)
        tools = transcript.tools or None
        return conversation_record(
            transcript,
            await ascore(scenario.milestones, transcript, tools=tools, judge=self.settings.judge),
            graph=self.graphs[scenario.name],
            arm=one.arm,
            scenario=scenario.name,
            goal=scenario.goal,
            user=scenario.user.kind,
            run=one.run,
            seed=one.seed,
            ended=held.ended,
            error=held.error,
            model_calls=held.usage.calls,
            input_tokens=held.usage.total["input_tokens"],
            output_tokens=held.usage.total["output_tokens"],
            seconds=round(held.seconds, 4),
            turn_seconds=tuple(round(each, 4) for each in held.turn_seconds),
        )


def _broken(one: Planned, error: str, ended: Ended | None = "error") -> BrokenConversation:
    return BrokenConversation(
        error=f"{one.id}: {error}", arm=one.arm, scenario=one.scenario.name, run=one.run, ended=ended
    )
