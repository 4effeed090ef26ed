"""Runs × scenarios × arms: many conversations at once, each kept as it ends, and the report of their milestones."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones.evaluation.app import Operator, require_operator
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.holding import Hold
from arq_graph.milestones.evaluation.report import evaluation_report
from arq_graph.milestones.evaluation.results import EvaluationResults, Held, Outcome
from arq_graph.milestones.evaluation.spending import Budget, Prices
from arq_graph.milestones.evaluation.suite import Planned, Suite
from arq_graph.milestones.evaluation.threads import DaemonThreads
from arq_graph.milestones.judging.judge import AnyJudge
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.users.simulated import make_user

CONCURRENCY = 8
MOST_FAILED = 3
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
    concurrency = settings.get("concurrency", CONCURRENCY)
    runner = _runner()
    # Apps and tools that are not async wait in threads: one for each conversation, made as they are needed.
    threads = DaemonThreads(max(32, concurrency if isinstance(concurrency, int) else 0))
    runner.get_loop().set_default_executor(threads)
    made: list[Report] = []

    async def run() -> None:
        # Not returned: a runner spells out what its task returns, which takes long for a long report.
        made.append(await aevaluate(suite, arms, **settings))

    try:
        runner.run(run())
        return made[0]
    except (KeyboardInterrupt, SystemExit):
        runner.close()  # what is under way would otherwise go on in the next run
        del _kept.runner
        raise
    finally:
        threads.shutdown()


def _runner() -> asyncio.Runner:
    """The thread's runner, which is kept: clients keep connections that belong to the loop they were made in."""
    if not hasattr(_kept, "runner"):
        _kept.runner = asyncio.Runner()
        atexit.register(_kept.runner.close)
    runner: asyncio.Runner = _kept.runner
    return runner


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
    turn ends, waits or raises. A process that is killed leaves nothing of the turn under way there, and nothing is
    lost by it: a conversation that was cut off is held again from its beginning, in a new thread.

    An app or tool that hangs is left behind in its thread at the limit of `seconds`. In a loop of your own, tools that
    are not async wait in that loop's threads, which Python waits for when it ends; `evaluate` has threads of its own.

    Args:
        suite: The scenarios; those that are broken are told in the report.
        arms: By name: an app (anything that is invoked or awaited with `{"messages": […]}`), or a function that makes
            one of a scenario, its agent, and the model.
        model: Handed to those functions.
        user_model: Who plays the users: a chat model, a model string or a `Reasoner`; None: agendas without a model.
        judge: Decides what code cannot; None: such milestones stay undecided.
        runs: How often each scenario is run, from 1.
        concurrency: How many conversations are under way at once, from 1.
        results: A JSON Lines file to which each finished conversation is appended at once; None: nowhere.
        resume: Go on with what that file holds, and hold no conversation twice.
        max_calls: How many model calls the run may make, earlier parts and users and judge included. Once it is
            reached nothing is begun; conversations under way finish their turn, and are held again another time.
        max_cost: What the calls may cost, in the same way; needs `prices`.
        prices: What a million tokens cost, read and written, by the model's name or the beginning of it.
        operator: Decides on calls that wait for an operator: "approve", "reject", or a function of the calls.
        depends_on: What else the results depend on, by a name that a message can show: the model, the judge.
        arms_depend_on: A digest of what single arms are made of, by their names: the run is not gone on with where
            one of them is another. Nothing is known of an arm without one.
        done: Called with each conversation as it ends, and with those that ended in an earlier part of the run.

    Raises:
        InputError: A setting is out of its range, the file holds other results, or a cost cannot be known.
        SpecError: No scenario can be used.
        ModelUnavailableError: Models were out of reach in several conversations in a row; what ended is kept.
    """
    for name, value in (("runs", runs), ("concurrency", concurrency)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be a whole number from 1 on, not {value!r}")
    require_operator(operator)
    if judge is not None and not callable(judge) and not callable(getattr(judge, "ajudge", None)):
        raise InputError(
            f"the judge is a {type(judge).__name__}; give a function of (graph, transcript, observations), or an "
            "LLMJudge"
        )
    budget = Budget(max_calls=max_calls, max_cost=max_cost, prices=prices)
    if not suite.scenarios:
        raise suite.broken[0].error
    make_user(
        suite.scenarios[0].user, seed=suite.seed, model=user_model
    )  # a model that is none is told at once
    known = Arms(arms, model)
    names, graphs = suite.graphs()
    further = {"the seed": str(suite.seed), **(depends_on or {})}
    of = {one.name: {**one.depends_on(), **further} for one in suite.scenarios}
    hold = Hold(known, dict(names), budget, user_model, judge, operator)
    file = None if results is None else Path(results)
    planned = list(suite.planned(known.names, runs))
    outcomes: dict[tuple[str, str, int], Outcome] = {}
    kept_in = EvaluationResults(file, of, of_arms=arms_depend_on, is_of_suite=suite.names, resume=resume)
    with kept_in as kept:
        budget.add(kept.calls, kept.cost)
        still = []
        for one in planned:
            before = kept.get(one)
            if before is None:
                still.append(one)
            else:
                # A goal decides nothing of what was said; it may have been named since.
                outcomes[one.key] = before.model_copy(update={"goal": one.scenario.goal})
                done(one, outcomes[one.key])
        run = _Run(hold, kept, budget, outcomes, done)
        await run.through(iter(still), min(concurrency, len(still)))
    stopped = budget.reached if len(outcomes) < len(planned) or run.cut_off else None
    ordered = [outcomes[one.key] for one in planned if one.key in outcomes]
    return evaluation_report(
        [one for one in ordered if isinstance(one, ConversationRecord)],
        [
            *(
                BrokenConversation(scenario=one.name, error=f"{one.name}: {one.error}")
                for one in suite.broken
            ),
            *(one for one in ordered if isinstance(one, BrokenConversation)),
        ],
        graphs,
        missing=len(planned) - len(ordered) + run.cut_off,
        stopped=stopped,
    )


class _Run:
    """The conversations under way."""

    def __init__(
        self,
        hold: Hold,
        kept: EvaluationResults,
        budget: Budget,
        outcomes: dict[tuple[str, str, int], Outcome],
        done: Done,
    ) -> None:
        self._hold = hold
        self._kept = kept
        self._budget = budget
        self._outcomes = outcomes
        self._done = done
        self._failed = 0
        self.cut_off = 0

    async def through(self, still: Iterator[Planned], concurrency: int) -> None:
        """Hold what is still to be held, so many at once."""
        workers = [asyncio.create_task(self._work(still)) for _ in range(concurrency)]
        if not workers:
            return
        try:
            finished, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
            for worker in finished:
                worker.result()
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, still: Iterator[Planned]) -> None:
        while self._budget.reached is None and (one := next(still, None)) is not None:
            held = await self._hold(one)
            self._kept.keep(one, held)
            self._outcomes[one.key] = held.outcome
            self._done(one, held.outcome)
            self._count(held)
            self._budget.require_known_cost()

    def _count(self, held: Held) -> None:
        if held.outcome.ended == "budget":
            self.cut_off += 1
        elif held.out_of_reach:
            self._failed += 1
            if self._failed >= MOST_FAILED:
                raise ModelUnavailableError(
                    f"a model was out of reach in {MOST_FAILED} conversations in a row, so the run ends here; the "
                    f"last: {getattr(held.outcome, 'error', '')}"
                )
        else:
            self._failed = 0
