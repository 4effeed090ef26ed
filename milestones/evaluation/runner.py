"""Runs × scenarios × arms: many conversations at once, each kept as it ends, and the report of their milestones."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, nullcontext
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError, ModelUnavailableError, SpecError
from arq_graph.milestones.at_once import at_once
from arq_graph.milestones.evaluation.app import Operator
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.holding import Budget, Ceilings, Hold, Prices
from arq_graph.milestones.evaluation.results import Held, Outcome, entry_of, kept_in
from arq_graph.milestones.evaluation.suite import Planned, Suite
from arq_graph.milestones.judging.judge import AnyJudge, AsyncJudge
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.users.simulated import make_user
from arq_graph.models.offline.model import is_stand_in

CONCURRENCY = 8
MOST_OUT_OF_REACH = 3
"""So many conversations in a row whose model is out of reach end a run: the others would fare no better."""

Done = Callable[[Planned, Outcome], None]

_kept = threading.local()


def evaluate(suite: Suite, arms: Mapping[str, Arm], **settings: Any) -> Report:
    """Hold every conversation of a suite with every arm, and measure it; see `aevaluate`.

    Args:
        suite: The scenarios.
        arms: The apps by name.
        **settings: Those of `aevaluate`.

    Raises:
        InputError: An event loop runs already: await `aevaluate` there; or as `aevaluate` does.
        SpecError: As `aevaluate` does.
        ReasoningError: As `aevaluate` does.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise InputError(
            "an event loop runs already, as in a notebook: `await aevaluate(…)` in place of evaluate"
        )
    runner = _runner()
    try:
        report: Report = runner.run(aevaluate(suite, arms, **settings))
    except (KeyboardInterrupt, SystemExit):
        runner.close()  # what is under way would otherwise go on in the next run
        del _kept.runner
        raise
    return report


def _runner() -> asyncio.Runner:
    """The thread's runner, which is kept: clients keep connections that belong to the loop they were made in."""
    if not hasattr(_kept, "runner"):
        _kept.runner = asyncio.Runner()
        loop = _kept.runner.get_loop()
        loop.set_default_executor(_DaemonThreads())
        atexit.register(loop.close)  # the runner's own close would begin a thread, too late for Python 3.12
    runner: asyncio.Runner = _kept.runner
    return runner


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call, which the interpreter does not wait for when it ends: the call may hang.

    An event loop takes no other executor than a `ThreadPoolExecutor`.
    """

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        call: Future[Any] = Future()

        def run() -> None:
            try:
                call.set_result(fn(*args, **kwargs))
            except (StopIteration, GeneratorExit) as error:  # who awaits a future could not be told of these
                call.set_exception(RuntimeError(f"{type(error).__name__} was raised: {error}"))
            except BaseException as error:
                call.set_exception(error)

        call.set_running_or_notify_cancel()
        threading.Thread(target=run, name="arq_graph", daemon=True).start()
        return call


class _Settings(Ceilings):
    """The settings of a run; see `aevaluate`."""

    runs: Annotated[int, Field(ge=1, strict=True)]
    concurrency: Annotated[int, Field(ge=1, strict=True)]
    operator: Operator
    judge: AsyncJudge | Callable[..., Any] | None


async def aevaluate(
    suite: Suite,
    arms: Mapping[str, Arm],
    *,
    model: Any = None,
    user_model: Any = None,
    judge: AnyJudge | None = None,
    runs: int = 1,
    concurrency: int = CONCURRENCY,
    results: str | Path | None = None,
    resume: bool = False,
    max_calls: int | None = None,
    max_cost: float | None = None,
    prices: Prices | None = None,
    operator: Operator = "approve",
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

    A LangGraph app with a checkpointer is run with `durability="exit"`, for speed: its state is written once, when a
    turn ends, waits or raises. A conversation that was cut off is held again from its beginning, in a new thread.

    An app or tool that hangs is left behind at the limit of `seconds`. In a loop of your own, tools that are not async
    wait in that loop's threads, which Python waits for when it ends; `evaluate` has threads of its own.

    Args:
        suite: The scenarios; those that are broken are told in the report.
        arms: By name: an app (anything that is invoked or awaited with `{"messages": […]}`), or a function that makes
            one of a scenario, its agent, and the model.
        model: Handed to those functions: a chat model or a model string.
        user_model: Who plays the users: a chat model, a model string or a `Reasoner`; None: agendas without a model.
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
        operator: Decides on calls that wait for an operator: "approve", "reject", or a function of the calls.
        depends_on: What else the results depend on, by a name that a message can show: the endpoint, for example.
        arms_depend_on: What single arms depend on beside the code of their functions, by their names.
        done: Called with each conversation as it ends, and with those that ended in an earlier part of the run.

    Raises:
        InputError: A setting cannot be used, a model's key is missing, the file holds other results, or a cost cannot
            be known.
        SpecError: No scenario can be used.
        ModelUnavailableError: Models were out of reach in several conversations in a row; what ended is kept.
    """
    try:
        settings = _Settings(
            runs=runs,
            concurrency=concurrency,
            max_calls=max_calls,
            max_cost=max_cost,
            prices=prices or {},
            operator=operator,
            judge=judge,
        )
    except SpecError as error:
        raise InputError(str(error)) from None
    if not suite.scenarios:
        raise suite.broken[0].error
    # A user's model that is none, or lacks its key, is told at once.
    make_user(suite.scenarios[0].user, seed=suite.seed, model=user_model)
    known = Arms(arms, model)
    of = {
        "the suite": suite.name,
        "the seed": str(suite.seed),
        "the model": _named(model),
        "the user's model": _named(user_model),
        "the judge": _named(judge),
        "the operator": _named(operator),
        **(depends_on or {}),
    }
    parts = {name: digest for one in suite.scenarios for name, digest in one.fingerprints().items()}
    parts |= known.fingerprints()
    for name, digest in (arms_depend_on or {}).items():
        parts[f"the code of the arm {name!r}"] = fingerprint(digest)
    names, graphs = suite.graphs()
    budget = Budget(settings)
    planned = list(suite.planned(known.names, runs))
    store = None if results is None else RunStore(results, "evaluation", of, parts=parts, resume=resume)
    run = _Run(Hold(known, names, budget, user_model, judge, operator), store, done)
    with store or nullcontext():
        await run.through(planned, concurrency)
    outcomes = [run.outcomes[one.key] for one in planned if one.key in run.outcomes]
    missing = len(planned) - sum(one.ended != "budget" for one in outcomes)
    unusable = [
        BrokenConversation(scenario=one.name, error=f"{one.name}: {one.error}") for one in suite.broken
    ]
    asked = {
        "the agent's model": model,
        "the users' model": user_model,
        "the judge": getattr(judge, "reasoner", judge),
    }
    return Report(
        stand_ins=tuple(name for name, model in asked.items() if is_stand_in(model)),
        conversations=tuple(one for one in outcomes if isinstance(one, ConversationRecord)),
        broken=(*unusable, *(one for one in outcomes if isinstance(one, BrokenConversation))),
        graphs=graphs,
        missing=missing,
        stopped=budget.reached if missing else None,
    )


def _named(thing: Any) -> str:
    """What a model, a judge or an operator is called, where a run that goes on should have the same."""
    if thing is None or isinstance(thing, str):
        return thing or "none"
    model = getattr(thing, "model", None)
    names = (getattr(thing, "model_name", None), model, getattr(thing, "__qualname__", None))
    return next((each for each in names if isinstance(each, str)), type(thing).__name__)


class _Run:
    """The conversations under way, and what became of those that ended."""

    def __init__(self, hold: Hold, store: RunStore | None, done: Done) -> None:
        self.outcomes: dict[tuple[str, str, int], Outcome] = {}
        self._hold = hold
        self._store = store
        self._done = done
        self._out_of_reach = 0
        self._before: dict[tuple[str, str, int], ConversationRecord] = {}
        for kept in map(kept_in, store.entries() if store else ()):
            if kept is not None:
                hold.budget.add(kept.calls, kept.cost)
                if kept.record is not None:
                    self._before.setdefault(kept.key, kept.record)

    async def through(self, planned: Sequence[Planned], concurrency: int) -> None:
        """Hold what is still to be held, so many at once; an error ends them all."""
        for one in planned:
            if before := self._before.get(one.key):
                # A goal decides nothing of what was said; it may have been named since.
                self._end(one, before.model_copy(update={"goal": one.scenario.goal}))
        still = [one for one in planned if one.key not in self.outcomes]
        works = ((one, self._hold(one)) for one in still if self._hold.budget.reached is None)
        async with aclosing(at_once(works, concurrency)) as finished:
            async for one, held in finished:
                if self._store is not None:
                    self._store.append(entry_of(one, held))
                self._end(one, held.outcome)
                self._require_models(held)
                self._hold.budget.require_known_cost(held.used)

    def _end(self, one: Planned, outcome: Outcome) -> None:
        self.outcomes[one.key] = outcome
        self._done(one, outcome)

    def _require_models(self, held: Held) -> None:
        if held.out_of_reach:
            self._out_of_reach += 1
        elif held.outcome.ended != "budget":
            self._out_of_reach = 0
        if self._out_of_reach >= MOST_OUT_OF_REACH:
            raise ModelUnavailableError(
                f"a model was out of reach in {MOST_OUT_OF_REACH} conversations in a row, so the run ends here; the "
                f"last: {getattr(held.outcome, 'error', '')}"
            )
