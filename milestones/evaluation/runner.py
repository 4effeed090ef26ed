"""Runs × scenarios × arms: many conversations at once, each kept as it ends, and the report of their milestones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from arq_graph.agent.part import Part
from arq_graph.errors import InputError, SpecError, require_type
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.harness import Begin, Crew, OnConversation, Run
from arq_graph.milestones.evaluation.results import read_stored_conversation
from arq_graph.milestones.evaluation.spending import Amount, Prices, SpendingLimit
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.evaluation.workers import packed, processes
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.reports.graph_choice import GraphNames
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.store import MODEL_ROLES, RunStore, read_records
from arq_graph.models.offline.model import is_offline
from arq_graph.models.resolve import model_name

_AtLeastOne = Annotated[int, Field(ge=1, strict=True)]


def evaluate(suite: Suite, arms: Mapping[str, Arm], **settings: Any) -> Report:
    """Run every conversation of a suite with every arm, and measure it; the settings are those of `aevaluate`.

    Raises:
        InputError: An event loop runs already: await `aevaluate` there. All else is as `aevaluate` raises.
    """
    return run_in_loop(aevaluate(suite, arms, **settings), "aevaluate")


class _Settings(Part):
    runs: _AtLeastOne
    concurrency: _AtLeastOne
    max_calls: _AtLeastOne | None
    max_cost: Annotated[Amount, Field(gt=0)] | None
    prices: Prices | None
    judge: Callable[..., Any] | None
    workers: _AtLeastOne | None


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
    executor: Executor | None = None,
    workers: int | None = None,
    spent_in: Sequence[str | Path] = (),
    depends_on: Mapping[str, str] | None = None,
    on_conversation: OnConversation = lambda _planned, _outcome: None,
) -> Report:
    """Run every conversation of a suite with every arm, `runs` times each, and measure it.

    Each conversation has its own thread, user and world; its seed is the same for every arm, so that the runs of two
    arms are pairs. What goes wrong in one conversation is in the report and does not touch the others. If an app
    raises, the conversation is measured up to that point, with the `error`. If its model is unavailable, or the user
    fails, the conversation is not measured, and is run again when the run is resumed. Only LangChain's callbacks say
    what a model raised: a lost connection of the app's own, or of a client without callbacks, is the app's error.

    A LangGraph app with a checkpointer is run with `durability="exit"`, for speed. A conversation that was cut off is
    run again from its beginning, in a new thread. An app or tool that hangs is left behind at the limit of `seconds`;
    in a loop of your own, Python waits for its thread when it ends, and `evaluate` has threads of its own.

    Args:
        suite: The scenarios; those for the matcher alone are left out for all arms, with a warning, if an arm has none.
        arms: By name: an app (anything that is invoked or awaited with `{"messages": […]}`), or a function that makes
            one of a scenario, its agent, and the model.
        model: Handed to those functions: a chat model or a model string.
        user_model: Who plays the users: a chat model, a model string or a `Reasoner`; None or offline: agendas.
        judge: Decides what code cannot; None: such milestones stay undecided.
        runs: How often each scenario is run, from 1.
        concurrency: How many conversations are under way at once, from 1; with workers, in each of them.
        results: A JSON Lines file to which each finished conversation is appended at once; None: nowhere.
        resume: Continue what that file holds, and run no conversation twice. Whatever shapes a conversation (the
            agent's whole specification, milestones, user, world, arms, models, seed) must be what it was.
        max_calls: How many model calls the run may make, earlier parts and users and judge included. Once it is
            reached nothing is begun; turns under way are finished, up to `concurrency` of them. A conversation that
            is over with its turn is judged and kept; any other is run again another time.
        max_cost: What the calls may cost, in the same way; needs `prices`.
        prices: What a million tokens cost, read and written, by the model's name or the beginning of it.
        executor: Any `concurrent.futures.Executor` that runs the conversations elsewhere: a pool of processes, or a
            cluster's. The suite, arms, models and judge are sent with cloudpickle. Results are written,
            and `on_conversation` is called, in this process.
        workers: How many workers the executor has, from 1; a pool of `concurrent.futures` says so itself. Without an
            executor: how many processes to start for the conversations.
        spent_in: Results files of other suites, whose calls and cost count towards the limits too.
        depends_on: What else the results depend on, by a name that a message can show: the endpoint, for example.
        on_conversation: Called with each conversation as it ends, first with those of an earlier part of the run.

    Raises:
        InputError: A setting cannot be used, a model's key is missing, a file holds other results, or runs or arms
            that are not given again, something cannot be sent to workers or read there, or a model that is called has
            no price or reports no tokens although there is a `max_cost`.
        ModelUnavailableError: Models were out of reach in several conversations in a row; what ended is kept.
    """
    given = locals()
    require_type("suite", suite, Suite, "read one with Suite.from_yaml(path)")
    try:
        settings = _Settings(**{name: given[name] for name in _Settings.model_fields})
    except SpecError as error:
        raise InputError(str(error)) from None
    if max_cost is not None and not prices:
        raise InputError(
            "max_cost needs prices, such as {'gpt-4o': (2.5, 10)}: a million tokens, read and written"
        )
    # Fail at once if the user's model cannot be made, for example because it lacks its key.
    suite.scenarios[0].make_user(suite.seed, user_model)
    if executor is not None:
        way = "give a concurrent.futures.Executor, such as ProcessPoolExecutor(4) or Dask's client.get_executor()"
        require_type("executor", executor, Executor, way)
        workers = workers or getattr(executor, "_max_workers", None)
        if workers is None:
            raise InputError("the executor does not say how many workers it has: give workers=…")
    known = Arms(arms, model)
    suite = known.select_comparable(suite)
    graphs = GraphNames()
    names = {one.name: graphs.of(one.measured_graph, one.name) for one in suite.scenarios}
    limit = SpendingLimit(
        max_calls, max_cost, settings.prices or {}, " for all suites together" if spent_in else ""
    )
    for entry in filter(
        None,
        map(read_stored_conversation, chain.from_iterable(read_records(Path(file)) for file in spent_in)),
    ):
        limit.add(entry.calls, entry.cost)
    run = Run(
        known,
        {one.name: one for one in suite.scenarios},
        names,
        user_model,
        judge,
        limit,
        suite.name,
    )
    planned = list(suite.plan_conversations(known.names, runs))
    asked = {what: given[name] for name, what in MODEL_ROLES.items()}
    of = {"the suite": suite.name, "the seed": str(suite.seed)}
    of |= {what: model_name(each or "none") for what, each in asked.items()} | dict(depends_on or {})
    parts = {name: digest for one in suite.scenarios for name, digest in one.compute_fingerprints().items()}
    parts |= known.compute_fingerprints()
    with ExitStack() as stack:
        crew = None
        if workers is not None:
            arms_sent = {f"the arm {name!r}": arm for name, arm in arms.items()}
            job = packed(run.in_worker, {"the suite": suite, **arms_sent, **asked})
            begin: Begin = (lambda: executor) if executor else stack.enter_context(processes())
            crew = Crew(begin, workers, concurrency, job, idle=[begin() for _ in range(workers)])
        kept = None
        if results is not None:
            kept = stack.enter_context(RunStore(results, "evaluation", of, parts=parts, resume=resume))
        outcomes = await run.through(planned, concurrency, kept, crew, on_conversation)
    found = [outcomes[one.id] for one in planned if one.id in outcomes]
    missing = len(planned) - sum(one.ended != "limit" for one in found)
    return Report(
        stand_ins=tuple(what for what, each in asked.items() if is_offline(each)),
        conversations=tuple(one for one in found if isinstance(one, ConversationRecord)),
        broken=tuple(one for one in found if isinstance(one, BrokenConversation)),
        graphs=graphs.used,
        missing=missing,
        stopped=run.stop_reason if missing else None,
    )
