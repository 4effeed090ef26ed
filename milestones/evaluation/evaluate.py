"""Evaluating arms on a suite: the conversations are planned, run and measured, and make a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from arq_graph.errors import InputError, require_count, require_type
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.conversation_runner import ConversationRunner
from arq_graph.milestones.evaluation.evaluation_run import EvaluationRun, OnConversation
from arq_graph.milestones.evaluation.results import read_stored_conversation
from arq_graph.milestones.evaluation.spending import Budget, Prices
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.evaluation.workers import WorkerPool, pickle_job, start_processes
from arq_graph.milestones.event_loop import make_sync
from arq_graph.milestones.judge import Judge
from arq_graph.milestones.reports.graph_registry import GraphRegistry
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.store import MODEL_ROLES, RunStore, read_records
from arq_graph.models.resolve import get_model_name, is_offline

_MAX_COST = TypeAdapter[float](Annotated[float, Field(gt=0, allow_inf_nan=False)])
_PRICES = TypeAdapter[Prices](Prices)


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
    arms are pairs. What goes wrong in one conversation is in the report and does not affect the others. If an app
    raises an exception, the conversation is measured up to that point. If its model is unavailable, or the user fails,
    the conversation is not measured, and is run again when the run is resumed. Exceptions of models are known from
    LangChain's callbacks: a lost connection of the app's own, or of a client without callbacks, is the app's error.

    A LangGraph app with a checkpointer is run with `durability="exit"`, for speed. A conversation that was cut off is
    run again from its beginning, in a new thread. An app or tool that hangs is left behind at the limit of `seconds`;
    in a loop of your own, Python waits for its thread when it ends, and `evaluate` has threads of its own.

    Args:
        suite: The scenarios. Those for the matcher alone are left out for all arms, with a warning, if an arm has none.
        arms: By name: an app (anything that is invoked or awaited with `{"messages": […]}`), or a function that makes
            one from a scenario, its agent, and the model.
        model: The model for those functions: a chat model or a model string.
        user_model: The model that plays the users: a chat model, a model string or a `Reasoner`; None or offline: users
            follow their agendas.
        judge: Decides what code cannot; None: such milestones stay undecided.
        runs: The number of conversations of each scenario with each arm, 1 or more.
        concurrency: The number of conversations at the same time, 1 or more; with workers, in each of them.
        results: A JSON Lines file to which each finished conversation is appended at once; None: nowhere.
        resume: Continue the run in that file, and run no conversation twice. Everything that shapes a conversation (the
            agent's whole specification, milestones, user, world, arms, models, seed) must be as it was.
        max_calls: The number of model calls that the run may make, including earlier parts, users and judge. Once it is
            reached nothing new begins; turns under way, at most `concurrency`, are finished. A conversation that ends
            with its turn is judged and stored; the others are run again when the run is resumed. Workers finish the
            conversations that they have begun.
        max_cost: The maximal cost of these calls, in the same way; needs `prices`.
        prices: The price of a million input tokens and of a million output tokens, by the model's name or a prefix.
        executor: A `concurrent.futures.Executor` that runs the conversations elsewhere: a pool of processes, or a
            cluster's. The suite, arms, models and judge are sent with cloudpickle. This process writes the results and
            calls `on_conversation`.
        workers: The number of the executor's workers, 1 or more; a pool of `concurrent.futures` says so itself. Without
            an executor: the number of processes to start for the conversations.
        spent_in: Results files of other suites, whose calls and cost count towards the limits too.
        depends_on: The values that the results depend on, by their names in messages, such as the endpoint. A name
            that the run uses itself, such as "the agent's model", replaces its value.
        on_conversation: Called with each conversation as it ends, first with those of an earlier part of the run.

    Raises:
        InputError: A setting cannot be used, or a model's key is missing; the file holds other results, or runs or arms
            that are not given again; something cannot be sent to workers or read there; or a model has no price or
            reports no tokens although there is a `max_cost`.
        ModelUnavailableError: Models were out of reach in several conversations in a row; finished conversations are
            stored.
    """
    require_type("suite", suite, Suite, "read one with Suite.from_yaml(path)")
    require_count("runs", runs)
    require_count("concurrency", concurrency)
    if judge is not None and not callable(judge):
        raise InputError(f"judge is a {type(judge).__name__}: pass an LLMJudge, or a function")
    _check_limits(max_calls, max_cost, prices)
    workers = _count_workers(executor, workers)
    # Fail at once if the users' model can't be made, for example because its key is missing.
    scenario_with_user = next((scenario for scenario in suite.scenarios if scenario.user), None)
    if scenario_with_user is not None:
        scenario_with_user.make_user(suite.seed, user_model)
    prepared_arms = Arms(arms, model)
    suite = prepared_arms.select_comparable(suite)
    graphs = GraphRegistry()
    budget = Budget(max_calls, max_cost, prices or {}, scope=" for all suites together" if spent_in else "")
    _add_spent(budget, spent_in)
    runner = ConversationRunner(
        suite_name=suite.name,
        scenarios={scenario.name: scenario for scenario in suite.scenarios},
        graph_names={
            scenario.name: graphs.register(scenario.measured_graph, scenario.name)
            for scenario in suite.scenarios
        },
        arms=prepared_arms,
        user_model=user_model,
        judge=judge,
        budget=budget,
    )
    planned = list(suite.plan_conversations(prepared_arms.names, runs))
    models = {
        MODEL_ROLES["model"]: model,
        MODEL_ROLES["user_model"]: user_model,
        MODEL_ROLES["judge"]: judge,
    }
    with ExitStack() as stack:
        pool = None
        if workers is not None:
            sent_arms = {f"the arm {name!r}": arm for name, arm in arms.items()}
            job = pickle_job(runner.run_in_worker, {"the suite": suite, **sent_arms, **models})
            start_worker = (lambda: executor) if executor else stack.enter_context(start_processes())
            pool = WorkerPool(start_worker, workers, job)
        store = None
        if results is not None:
            header = _describe_run(suite, models, depends_on)
            parts = _fingerprint_parts(suite, prepared_arms)
            store = RunStore(results, "evaluation", header, parts=parts, resume=resume)
            stack.enter_context(store)
        run = EvaluationRun(runner, planned, concurrency, store, pool, on_conversation)
        await run.execute()
    outcomes = [run.outcomes[conversation.id] for conversation in planned if conversation.id in run.outcomes]
    missing = len(planned) - sum(outcome.ended != "limit" for outcome in outcomes)
    return Report(
        stand_ins=tuple(role for role, asked_model in models.items() if is_offline(asked_model)),
        conversations=tuple(outcome for outcome in outcomes if isinstance(outcome, ConversationRecord)),
        broken=tuple(outcome for outcome in outcomes if isinstance(outcome, BrokenConversation)),
        graphs=graphs.records,
        missing=missing,
        stopped=run.stop_reason if missing else None,
    )


evaluate = make_sync(aevaluate, "evaluate")


def _check_limits(max_calls: int | None, max_cost: float | None, prices: Prices | None) -> None:
    if max_calls is not None:
        require_count("max_calls", max_calls)
    if max_cost is not None:
        _require_valid("max_cost", max_cost, _MAX_COST)
        if not prices:
            raise InputError(
                "max_cost needs prices, such as {'gpt-4o': (2.5, 10)}: the price of a million input and output tokens"
            )
    if prices is not None:
        _require_valid("prices", prices, _PRICES)


def _require_valid(setting: str, value: object, adapter: TypeAdapter[Any]) -> None:
    try:
        adapter.validate_python(value)
    except ValidationError as error:
        detail = error.errors()[0]
        place = "".join(f"[{key!r}]" for key in detail["loc"])
        raise InputError(f"{setting}{place}: {detail['msg']}, not {detail['input']!r:.80}") from None


def _count_workers(executor: Executor | None, workers: int | None) -> int | None:
    """Return the number of workers; None if this process runs the conversations."""
    if workers is not None:
        require_count("workers", workers)
    if executor is None:
        return workers
    advice = (
        "give a concurrent.futures.Executor, such as ProcessPoolExecutor(4) or Dask's client.get_executor()"
    )
    require_type("executor", executor, Executor, advice)
    workers = workers or getattr(executor, "_max_workers", None)
    if workers is None:
        raise InputError("the executor does not say how many workers it has: give workers=…")
    return workers


def _add_spent(budget: Budget, results_files: Iterable[str | Path]) -> None:
    """Add what the conversations in results files of other suites spent."""
    for file in results_files:
        for entry in read_records(Path(file)):
            stored = read_stored_conversation(entry)
            if stored is not None:
                budget.add(stored.calls, stored.cost)


def _describe_run(
    suite: Suite, models: Mapping[str, object], depends_on: Mapping[str, str] | None
) -> dict[str, str]:
    """Return what all results depend on, by its name in messages."""
    header = {"the suite": suite.name, "the seed": str(suite.seed)}
    for role, model in models.items():
        header[role] = get_model_name(model or "none")
    header.update(depends_on or {})
    return header


def _fingerprint_parts(suite: Suite, arms: Arms) -> dict[str, str]:
    """Return the fingerprints of what only some results depend on."""
    parts: dict[str, str] = {}
    for scenario in suite.scenarios:
        parts.update(scenario.compute_fingerprints())
    parts.update(arms.compute_fingerprints())
    return parts
