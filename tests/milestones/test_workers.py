"""Conversations in worker processes: reported and stored as if one process had run them."""

import asyncio
import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import copy
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_openai import ChatOpenAI

from arq_graph import Guideline, ScriptedChatModel
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import LLMJudge, Report, evaluate
from arq_graph.milestones.evaluation.workers import JobFailedError
from tests.milestones.evaluated import Answers, buyer, fail_to_connect, shop_agent, suite, talker

CALLS: Counter[str] = Counter()
USAGE = UsageMetadata(input_tokens=1_000, output_tokens=0, total_tokens=1_000)


class Asks:
    """An app that makes two calls a turn, which are counted here: a worker gets a copy of it."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        conversation = config["configurable"]["thread_id"].rpartition(" / ")[0]
        model = ScriptedChatModel(lambda call: AIMessage("hi", usage_metadata=USAGE), model_name="m")
        for _ in range(2):
            CALLS[conversation] += 1
            await model.ainvoke(input["messages"])
        return "hi"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    CALLS.clear()
    with ThreadPoolExecutor(2) as executor:
        yield executor


def dump(report: Report) -> list[Any]:
    """Return what a report says of each conversation, apart from its duration."""
    conversations = (*report.conversations, *report.broken)
    return [conversation.model_dump(exclude={"turn_seconds"}) for conversation in conversations]


class KilledWorkerError(Exception):
    """What a cluster raises if a worker is gone."""


class MortalWorkers(Executor):
    """Two workers who do what they get at once, one after the other, and die at some of it."""

    _max_workers = 2

    def __init__(
        self, dies: Callable[[int], object] = lambda _: False, error: Exception | None = None
    ) -> None:
        self.dies = dies
        self.error = error or KilledWorkerError("a worker was killed")
        self.batch_sizes: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.batch_sizes.append(len(args[1]))
        if self.dies(len(self.batch_sizes)):
            future.set_exception(self.error)
            return future
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


# --- running ---------------------------------------------------------------------------------------------------------


def test_workers_run_what_one_process_would_and_one_file_has_it(pool: Executor, tmp_path: Path):
    lamps = suite("red", "blue", agent=shop_agent(guidelines=[Guideline("they ask", "sell")]))
    arms = {"buys": Answers(buyer), "made": lambda scenario, agent, model: Answers(buyer)}
    settings: dict[str, Any] = {"model": "offline", "runs": 3, "concurrency": 2}
    here = evaluate(lamps, arms, **settings)
    file, seen = tmp_path / "results.jsonl", []
    settings["results"] = file
    there = evaluate(
        lamps, arms, executor=pool, on_conversation=lambda planned, _: seen.append(planned.id), **settings
    )
    assert dump(there) == dump(here)
    assert sorted(seen) == sorted(one.id for one in here.conversations)
    assert dump(evaluate(lamps, arms, resume=True, **settings)) == dump(here)


def test_the_last_batches_are_small_so_that_no_worker_waits_for_another():
    with MortalWorkers() as executor:
        evaluate(suite(), {"app": Answers(talker)}, runs=13, concurrency=4, executor=executor)
    assert executor.batch_sizes[:3] == [4, 4, 3]
    assert executor.batch_sizes[-2:] == [1, 1]


def test_a_worker_that_dies_loses_its_own_conversations_which_are_run_again(tmp_path: Path):
    settings: dict[str, Any] = {"runs": 12, "concurrency": 1, "results": tmp_path / "results.jsonl"}
    with MortalWorkers(lambda number: number in (2, 6, 10)) as executor:
        report = evaluate(suite(), {"app": Answers(buyer)}, executor=executor, **settings)
    assert [one.run for one in report.broken] == [2, 6, 10]
    assert "lamp / app / 2: its worker died: KilledWorkerError: a worker was killed" in report.broken[0].error
    assert (len(report.conversations), report.missing, report.stopped) == (9, 0, None)
    again = evaluate(suite(), {"app": Answers(buyer)}, resume=True, **settings)
    assert [one.run for one in again.conversations] == list(range(1, 13))


def test_workers_that_all_die_end_the_run_with_what_there_is():
    with MortalWorkers(lambda number: number > 2) as executor:
        report = evaluate(suite(), {"app": Answers(talker)}, runs=20, concurrency=2, executor=executor)
    died = len(executor.batch_sizes) - 2
    assert 3 <= died <= 4, "each of two workers had begun something"
    assert (len(report.conversations), len(report.broken), report.missing) == (4, 2 * died, 16 - 2 * died)
    assert f"workers died {died} times in a row, the last with KilledWorkerError" in str(report.stopped)


def test_a_broken_executor_ends_the_run_at_once_and_the_report_says_what_to_do():
    broken = BrokenProcessPool("a process was terminated abruptly")
    with MortalWorkers(lambda number: number > 1, broken) as executor:
        report = evaluate(suite(), {"app": Answers(talker)}, runs=20, executor=executor, concurrency=1)
    assert len(executor.batch_sizes) <= 1 + 2, "only what had begun is lost"
    assert report.stopped == (
        "the executor is broken, so pass another one, and resume: "
        "BrokenProcessPool: a process was terminated abruptly"
    )


def test_a_result_that_cannot_be_sent_back_is_reported_and_is_not_the_death_of_a_worker():
    def answer(messages: Any) -> Any:
        return [AIMessage([{"type": "text", "text": "hi"}, {"type": "lock", "lock": threading.Lock()}])]

    with MortalWorkers() as executor, pytest.raises(JobFailedError, match="a worker failed with TypeError"):
        evaluate(suite(), {"app": Answers(answer)}, executor=executor)


CANCELLED: list[str] = []


class Waits:
    """An app whose model has no price, or that waits for good."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        thread = config["configurable"]["thread_id"]
        if thread.startswith("unpriced"):
            return await Asks().ainvoke(input, config)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            CANCELLED.append(thread)
            raise


def test_a_run_that_ends_with_an_error_leaves_no_conversation_running_in_a_worker(pool: Executor):
    CANCELLED.clear()
    settings: dict[str, Any] = {"workers": 1, "concurrency": 2, "max_cost": 9, "prices": {"gpt": (1, 1)}}
    with pytest.raises(InputError, match="m has no price"):
        evaluate(suite("waits", "unpriced"), {"app": Waits()}, executor=pool, **settings)
    assert [thread.partition(" / ")[0] for thread in CANCELLED] == ["waits"]


def test_models_out_of_reach_end_a_run_of_workers_too(pool: Executor):
    with pytest.raises(ModelUnavailableError, match="3 conversations in a row"):
        evaluate(suite(), {"app": Answers(lambda _: fail_to_connect())}, runs=9, executor=pool)


# --- what is sent to workers -----------------------------------------------------------------------------------------


def test_a_model_with_connections_is_made_again_from_its_settings(pool: Executor):
    def make_app(scenario: Any, agent: Any, model: Any) -> Any:
        raise RuntimeError(f"{type(model).__name__} {model.model_name} {model.temperature}")

    model = ChatOpenAI(model="gpt-4o", api_key="none", temperature=0.25)  # type: ignore[arg-type]
    report = evaluate(suite(), {"arm": make_app}, model=model, judge=LLMJudge("offline"), executor=pool)
    assert "RuntimeError: ChatOpenAI gpt-4o 0.25" in report.broken[0].error


def test_an_arm_in_a_module_beside_the_suite_is_loaded_by_its_name(tmp_path: Path):
    (tmp_path / "beside.py").write_text("def hi():\n    return 'hi'\n")
    (tmp_path / "mine.py").write_text(
        "import sqlite3, beside\nclass App:\n    shop = sqlite3.connect(':memory:', check_same_thread=False)\n"
        "    def __init__(self):\n        self.here = self.shop\n"
        "    def invoke(self, given, config=None):\n        return beside.hi()\napp = App()\n"
        "class Plain(App):\n    def __init__(self):\n        pass\nplain = Plain()\n"
    )
    arms = load_arms(["mine:app", "mine:plain"], folder=tmp_path)

    def forget_modules(_: int) -> None:
        package = type(arms["mine:plain"]).__module__.partition(".")[0]
        for name in [name for name in sys.modules if name.startswith(package)]:
            del sys.modules[name]  # a worker has not imported it yet

    with MortalWorkers(forget_modules) as executor:
        report = evaluate(suite(), {"a copy": copy(arms["mine:plain"]), **arms}, executor=executor)
    assert [one.error for one in report.conversations] == [None] * 3


def test_a_model_string_becomes_a_model_with_the_key_of_the_workers_machine(
    monkeypatch: pytest.MonkeyPatch,
):
    def make_app(scenario: Any, agent: Any, model: Any) -> Any:
        raise RuntimeError(model.openai_api_key.get_secret_value())

    monkeypatch.setenv("OPENAI_API_KEY", "the key of here")
    with MortalWorkers(lambda _: monkeypatch.setenv("OPENAI_API_KEY", "the key of there")) as executor:
        report = evaluate(suite(), {"arm": make_app}, model="openai:gpt-4o", executor=executor)
    assert "RuntimeError: the key of there" in report.broken[0].error


class Connected(Answers):
    def __init__(self) -> None:
        super().__init__(talker)
        self.shop = sqlite3.connect(":memory:")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": {"bad": Connected()}}, "^the arm 'bad' cannot be sent to other processes"),
        (
            {"user_model": ScriptedChatModel([sqlite3.connect(":memory:")])},
            "^the users' model cannot be sent",
        ),
        ({"executor": "a cluster"}, r"executor is a str: pass a concurrent.futures.Executor"),
        ({"executor": Executor()}, "doesn.t say how many workers it has: pass workers="),
        ({"workers": 0}, "workers"),
    ],
)
def test_what_workers_cannot_run_is_reported_before_any_conversation(
    pool: Executor, settings: dict[str, Any], message: str, tmp_path: Path
):
    settings = {"arms": {"app": Answers(talker)}, "executor": pool, **settings}
    with pytest.raises(InputError, match=message):
        evaluate(suite(), results=tmp_path / "results.jsonl", **settings)
    assert not (tmp_path / "results.jsonl").exists()


def test_a_missing_package_is_named(pool: Executor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(InputError, match=r'^evaluating in other processes needs cloudpickle: pip install "a'):
        evaluate(suite(), {"app": Answers(talker)}, executor=pool)


def test_a_worker_without_the_modules_says_so(pool: Executor, tmp_path: Path):
    (tmp_path / "gone.py").write_text(
        "class App:\n    def invoke(self, given, config=None):\n        return 'hi'\napp = App()\n"
    )
    arms = load_arms(["gone:app"], folder=tmp_path)
    (tmp_path / "gone.py").unlink()
    for name in [name for name in sys.modules if name.endswith("gone")]:
        del sys.modules[name]
    with pytest.raises(
        InputError, match=r"a worker cannot unpickle what it was sent .*modules beside a file"
    ):
        evaluate(suite(), arms, executor=pool)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"max_calls": 30}, {"max_cost": 30.0, "prices": {"m": (1_000, 0)}}])
def test_no_conversation_begins_once_workers_have_reached_a_limit(
    pool: Executor, tmp_path: Path, limit: dict[str, Any]
):
    settings: dict[str, Any] = {"runs": 20, "concurrency": 2, "results": tmp_path / "results.jsonl"}
    report = evaluate(suite(), {"app": Asks()}, executor=pool, **settings, **limit)
    assert str(report.stopped).startswith(next(iter(limit)))
    assert report.missing == 20 - len(report.conversations) > 0
    assert not report.broken, "conversations that have begun are finished"
    calls_of_a_conversation, conversations_at_once = 4, 2 * 2
    calls = CALLS.total()
    assert 30 <= calls < 30 + calls_of_a_conversation * conversations_at_once
    report = evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings, **limit)
    assert (CALLS.total(), bool(report.missing)) == (calls, True), "earlier calls count"
    assert not evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings).missing


def test_a_worker_refuses_a_model_whose_cost_is_unknown_while_the_cost_is_limited(pool: Executor):
    with pytest.raises(InputError, match="m has no price"):
        evaluate(suite(), {"app": Asks()}, executor=pool, max_cost=9.0, prices={"gpt": (1, 1)})
