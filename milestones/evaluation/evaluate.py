"""Plan, run and measure the conversations of a suite, and return a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arq_graph.errors import InputError, require_count, require_type
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.budget import Budget, Prices
from arq_graph.milestones.evaluation.conversation_runner import ConversationRunner
from arq_graph.milestones.evaluation.evaluation_run import EvaluationRun, OnConversation
from arq_graph.milestones.evaluation.results import parse_stored_conversations
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.evaluation.workers import WorkerPool, pickle_job, prepare_executors
from arq_graph.milestones.event_loop import make_sync
from arq_graph.milestones.judge import Judge, require_judge
from arq_graph.milestones.reports.graph_registry import GraphRegistry
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.store import ChangedRunError, RunStore, read_json_lines
from arq_graph.milestones.transcript import MODEL_ROLES
from arq_graph.models.resolve import ChatModelLike, get_model_name, is_offline

if TYPE_CHECKING:
    from arq_graph.reasoning.reasoner import ModelLike


async def aevaluate(
    suite: Suite,
    arms: Mapping[str, Arm],
    *,
    model: ChatModelLike | None = None,
    user_model: ModelLike | None = None,
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
    on_conversation: OnConversation = lambda _planned, _conversation: None,
) -> Report:
    """Run every conversation of a suite with every arm, `runs` times each, and measure it.

    Each conversation has its own thread, user and world; its seed is the same for every arm, so that the runs of two
    arms are pairs. An error in one conversation is in the report and does not affect the others. If an app raises an
    exception, the conversation is measured up to that point. If its model is unavailable, or the user fails, the
    conversation is not measured, and is run again when the run is resumed. Model errors are recognized by LangChain's
    callbacks. Any other lost connection counts as an error of the app.

    A LangGraph app with a checkpointer is run with `durability="exit"`, for speed. A conversation that was cut off is
    run again from its beginning, in a new thread. A sync app that hangs can't be stopped at the limit of `seconds`.
    With `aevaluate`, Python waits for its thread at exit; with `evaluate` it doesn't (the threads are daemons).

    Args:
        suite: The scenarios. Those that test only the matcher are skipped, with a warning, unless every arm has one.
        arms: By name: an app (anything that is invoked or awaited with `{"messages": […]}`), or a function that makes
            one from a scenario, its agent, and the model.
        model: The model for those functions: a chat model or a model string.
        user_model: The model that plays the users: a chat model, a model string or a `Reasoner`; None or offline: users
            follow their agendas.
        judge: Judges milestones that code can't check. Without one they stay undecided.
        runs: The number of conversations of each scenario with each arm, 1 or more.
        concurrency: The number of conversations at the same time, 1 or more; with workers, in each of them.
        results: A JSON Lines file to which each finished conversation is appended at once; None: nowhere. Workers
            return up to `concurrency` conversations together, when the last of them has finished.
        resume: Continue the run in that file, and run no conversation twice. Everything that shapes a conversation (the
            agent's whole specification, milestones, user, world, models, seed, and the code of arms that are functions
            or were loaded as "module:app") must be as it was. Changes in any other app aren't noticed.
        max_calls: The number of model calls after which no conversation and no turn begins. Earlier parts of the run,
            users and the judge count, too. The turns that are running, at most `concurrency`, are finished. A
            conversation that ends with its turn is judged and stored; the others are run again when the run is resumed.
            Workers finish the conversations that they have begun.
        max_cost: The cost of these calls after which nothing begins, in the same way; needs `prices`.
        prices: The price of a million input tokens and of a million output tokens, by the model's name or a prefix.
        executor: A `concurrent.futures.Executor` that runs the conversations elsewhere: a pool of processes, or that of
            a cluster. The suite, arms, models and judge are sent with cloudpickle. This process writes the results and
            calls `on_conversation`.
        workers: The number of the executor's workers, 1 or more; not needed for pools of `concurrent.futures`. Without
            an executor: the number of processes to start for the conversations.
        spent_in: Results files of other suites, whose calls and cost count towards the limits, too.
        depends_on: Further settings that a resumed run must not change, such as the endpoint, by the name that errors
            show. They override entries of the run with the same name, such as "the agent's model".
        on_conversation: Called with each conversation as it ends, first with those of an earlier part of the run.

    Raises:
        InputError: A setting cannot be used, or a model's key is missing; the file holds other results, or runs or arms
            that this run leaves out; something cannot be sent to workers or read there; or a model has no price or
            reports no tokens although there is a `max_cost`.
        ModelUnavailableError: Models were unreachable in several conversations in a row; finished conversations are
            stored.
    """
    require_type("suite", suite, Suite, "read one with Suite.from_yaml(path)")
    require_count("runs", runs)
    require_count("concurrency", concurrency)
    if judge is not None:
        require_judge(judge)
    budget = _make_budget(max_calls, max_cost, prices or {}, spent_in)
    workers = _count_workers(executor, workers)
    _require_usable_user_model(suite, user_model)
    prepared_arms = Arms(arms, model)
    suite = prepared_arms.select_comparable(suite)
    graphs = GraphRegistry()
    graph_names = {}
    for scenario in suite.scenarios:
        graph_names[scenario.name] = graphs.register(scenario.measured_graph, scenario.name)
    scenarios = {scenario.name: scenario for scenario in suite.scenarios}
    runner = ConversationRunner(suite.name, scenarios, graph_names, prepared_arms, user_model, judge, budget)
    plan = list(suite.plan_conversations(prepared_arms.names, runs))
    models: dict[str, object] = {
        MODEL_ROLES["model"]: model,
        MODEL_ROLES["user_model"]: user_model,
        MODEL_ROLES["judge"]: judge,
    }
    with ExitStack() as stack:
        pool = None
        if workers is not None:
            sent_arms: dict[str, object] = {f"the arm {name!r}": arm for name, arm in arms.items()}
            parts: dict[str, object] = {"the suite": suite} | sent_arms | models
            job = pickle_job(runner.run_in_worker, parts)
            make_executor = stack.enter_context(prepare_executors(executor))
            pool = WorkerPool(make_executor, workers, job)
        store = None
        if results is not None:
            header = _describe_run(suite, models, depends_on)
            store = _open_store(results, header, suite, prepared_arms, resume=resume)
            stack.enter_context(store)
        run = EvaluationRun(runner, plan, concurrency, store, pool, on_conversation)
        await run.execute()
    offline_roles = tuple(role for role, role_model in models.items() if is_offline(role_model))
    return run.make_report(graphs.records, offline_roles)


evaluate = make_sync(aevaluate, "evaluate")


def _make_budget(
    max_calls: int | None, max_cost: float | None, prices: Prices, spent_in: Sequence[str | Path]
) -> Budget:
    """Return the budget of a run, less what other runs have spent."""
    _check_limits(max_calls, max_cost, prices)
    budget = Budget(max_calls, max_cost, prices, is_shared=bool(spent_in))
    for file in spent_in:
        for stored in parse_stored_conversations(read_json_lines(Path(file))):
            budget.add(stored.calls, stored.cost)
    return budget


def _check_limits(max_calls: int | None, max_cost: float | None, prices: Prices) -> None:
    if max_calls is not None:
        require_count("max_calls", max_calls)
    if max_cost is not None:
        if not _is_amount(max_cost) or max_cost == 0:
            raise InputError(f"max_cost must be a number above 0, not {max_cost!r}")
        if not prices:
            raise InputError(
                "max_cost needs prices, such as {'gpt-4o': (2.5, 10)}: the price of a million input and output tokens"
            )
    for model, price in prices.items():
        is_pair = isinstance(price, tuple | list) and len(price) == 2
        if not is_pair or not all(map(_is_amount, price)):
            raise InputError(
                f"prices[{model!r}] is {price!r}: it must be two numbers from 0 on, the price of a million input and "
                "output tokens"
            )


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and isfinite(value) and value >= 0


def _require_usable_user_model(suite: Suite, user_model: Any) -> None:
    """Raise at once if the users' model can't be made, for example because its key is missing."""
    for scenario in suite.scenarios:
        if scenario.user:
            scenario.make_user(suite.seed, user_model)
            return


def _count_workers(executor: Executor | None, workers: int | None) -> int | None:
    """Return the number of workers; None if this process runs the conversations."""
    if workers is not None:
        require_count("workers", workers)
    if executor is None:
        return workers
    advice = (
        "pass a concurrent.futures.Executor, such as ProcessPoolExecutor(4) or Dask's client.get_executor()"
    )
    require_type("executor", executor, Executor, advice)
    workers = workers or getattr(executor, "_max_workers", None)
    if workers is None:
        raise InputError("the executor doesn't say how many workers it has: pass workers=…")
    return workers


def _open_store(
    results: str | Path, header: Mapping[str, str], suite: Suite, arms: Arms, *, resume: bool
) -> RunStore:
    """Lock and read the results file.

    Raises:
        InputError: It can't be used, or holds another run.
    """
    scenario_fingerprints = {scenario.name: scenario.compute_fingerprints() for scenario in suite.scenarios}
    components = {"scenario": scenario_fingerprints, "arm": arms.compute_fingerprints()}
    try:
        return RunStore(results, "evaluation", header, components=components, resume=resume)
    except ChangedRunError as error:
        if error.changes or error.component_changes.keys() != {"the milestones"}:
            raise
        raise InputError(
            f"{error}. To score recorded answers by what is expected now, without a model: `arq-graph experiment SUITE "
            "--replay DIR --record DIR2`"
        ) from None


def _describe_run(
    suite: Suite, models: Mapping[str, object], depends_on: Mapping[str, str] | None
) -> dict[str, str]:
    """Return what all results depend on, by the name that errors show."""
    header = {"the suite": suite.name, "the seed": str(suite.seed)}
    for role, model in models.items():
        header[role] = get_model_name(model or "none")
    header.update(depends_on or {})
    return header
