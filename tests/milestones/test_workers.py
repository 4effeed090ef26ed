"""Conversations in worker processes: reported and stored as if one process had run them."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
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
from tests.milestones.evaluated import Answers, buyer, no_way_there, shop_agent, suite, talker

CALLS: Counter[str] = Counter()
USAGE = UsageMetadata(input_tokens=1_000, output_tokens=0, total_tokens=1_000)


class Asks:
    """An app that makes two calls a turn, which are counted here: what is sent to a worker is a copy."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        thread = config["configurable"]["thread_id"].rpartition(" / ")[0]
        model = ScriptedChatModel(lambda call: AIMessage("hi", usage_metadata=USAGE), model_name="m")
        for _ in range(2):
            CALLS[thread] += 1
            await model.ainvoke(input["messages"])
        return "hi"


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    CALLS.clear()
    with ThreadPoolExecutor(2) as executor:
        yield executor


def told(report: Report) -> list[Any]:
    """What a report says of each conversation, apart from how long it took."""
    times = {"turn_seconds"}
    return [one.model_dump(exclude=times) for one in (*report.conversations, *report.broken)]


class Mortal(Executor):
    """Two workers who do what they are given at once, one after the other; some die at it, and some do it later."""

    _max_workers = 2

    def __init__(
        self, dies: Callable[[int], bool] = lambda _: False, late: Callable[[int], bool] = lambda _: False
    ) -> None:
        self.dies, self.late = dies, late
        self.given: list[int] = []
        self.later: list[Callable[[], None]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        work: Future[Any] = Future()
        self.given.append(len(args[1]))

        def hold() -> None:
            try:
                work.set_result(fn(*args, **kwargs))
            except InputError as error:
                work.set_exception(error)

        number = len(self.given)
        if self.dies(number):
            work.set_exception(BrokenExecutor("a worker was killed"))
        elif self.late(number):
            self.later.append(hold)
        else:
            hold()
        return work


# --- workers ---------------------------------------------------------------------------------------------------------


def test_workers_hold_what_one_process_would_and_it_is_kept_in_one_file(pool: Executor, tmp_path: Path):
    tried = suite("red", "blue", agent=shop_agent(guidelines=[Guideline("they ask", "sell")]))
    apps = {
        "buys": Answers(buyer),
        "made": lambda scenario, agent, model: Answers(buyer),
    }
    settings: dict[str, Any] = {"model": "offline", "runs": 3, "concurrency": 2}
    here = evaluate(tried, apps, **settings)
    kept, seen = tmp_path / "results.jsonl", []
    there = evaluate(
        tried,
        apps,
        executor=pool,
        results=kept,
        on_conversation=lambda one, _: seen.append(one.id),
        **settings,
    )
    assert told(there) == told(here)
    assert sorted(seen) == sorted(one.id for one in here.conversations)
    assert told(evaluate(tried, apps, results=kept, resume=True, **settings)) == told(here)


def test_work_is_handed_out_so_that_none_waits_for_one_worker():
    with Mortal() as executor:
        evaluate(suite(), {"app": Answers(talker)}, runs=13, concurrency=4, executor=executor)
    assert executor.given[:3] == [4, 4, 3]
    assert executor.given[-2:] == [1, 1]


def test_a_worker_that_dies_costs_its_conversations_alone(tmp_path: Path):
    kept: dict[str, Any] = {"runs": 12, "concurrency": 1, "results": tmp_path / "results.jsonl"}
    with Mortal(lambda number: number in (2, 6, 10)) as executor:
        report = evaluate(suite(), {"app": Answers(buyer)}, executor=executor, **kept)
    assert [one.run for one in report.broken] == [2, 6, 10]
    assert "lamp / app / 2: its worker died: BrokenExecutor: a worker was killed" in report.broken[0].error
    assert (len(report.conversations), report.missing, report.stopped) == (9, 0, None)
    again = evaluate(suite(), {"app": Answers(buyer)}, resume=True, **kept)
    assert [one.run for one in again.conversations] == list(range(1, 13))


def test_workers_that_all_die_end_the_run_with_what_there_is():
    with Mortal(lambda number: number > 2) as executor:
        report = evaluate(suite(), {"app": Answers(talker)}, runs=20, concurrency=2, executor=executor)
    died = len(executor.given) - 2
    assert 3 <= died <= 4, "each of two workers was at something"
    assert (len(report.conversations), len(report.broken), report.missing) == (4, 2 * died, 16 - 2 * died)
    assert f"workers died {died} times in a row, the last with BrokenExecutor" in str(report.stopped)


def test_models_out_of_reach_end_a_run_of_workers_too(pool: Executor):
    def lost(messages: Any) -> Any:
        return no_way_there()

    with pytest.raises(ModelUnavailableError, match="3 conversations in a row"):
        evaluate(suite(), {"app": Answers(lost)}, runs=9, executor=pool)


CHAT = ChatOpenAI(model="gpt-4o", api_key="none", temperature=0.25)  # type: ignore[arg-type]


def test_a_model_whose_connections_cannot_be_sent_is_made_again_of_its_settings(pool: Executor):
    def make(scenario: Any, agent: Any, model: Any) -> Any:
        raise RuntimeError(f"{type(model).__name__} {model.model_name} {model.temperature}")

    report = evaluate(suite(), {"arm": make}, model=CHAT, judge=LLMJudge("offline"), executor=pool)
    assert "RuntimeError: ChatOpenAI gpt-4o 0.25" in report.broken[0].error


def test_an_arm_in_a_module_beside_the_suite_is_loaded_by_its_name(tmp_path: Path):
    (tmp_path / "beside.py").write_text("def hi():\n    return 'hi'\n")
    (tmp_path / "mine.py").write_text(
        "import sqlite3, beside\nclass App:\n    shop = sqlite3.connect(':memory:', check_same_thread=False)\n"
        "    def __init__(self):\n        self.here = self.shop\n"
        "    def invoke(self, given, config=None):\n        return beside.hi()\napp = App()\n"
        "class Plain(App):\n    def __init__(self):\n        pass\nplain = Plain()\n"
    )
    found = load_arms(["mine:app", "mine:plain"], folder=tmp_path)

    def forget(_: int) -> bool:
        package = type(found["mine:plain"]).__module__.partition(".")[0]
        for name in [name for name in sys.modules if name.startswith(package)]:
            del sys.modules[name]  # a worker has not imported it yet
        return False

    with Mortal(forget) as executor:
        report = evaluate(suite(), {"a copy": copy(found["mine:plain"]), **found}, executor=executor)
    assert [one.error for one in report.conversations] == [None] * 3


def test_a_model_string_is_made_a_model_with_the_key_of_where_the_worker_is(monkeypatch: pytest.MonkeyPatch):
    def make(scenario: Any, agent: Any, model: Any) -> Any:
        raise RuntimeError(model.openai_api_key.get_secret_value())

    monkeypatch.setenv("OPENAI_API_KEY", "the key of here")
    with Mortal(lambda _: bool(monkeypatch.setenv("OPENAI_API_KEY", "the key of there"))) as executor:
        report = evaluate(suite(), {"arm": make}, model="openai:gpt-4o", executor=executor)
    assert "RuntimeError: the key of there" in report.broken[0].error


class Connected(Answers):
    def __init__(self) -> None:
        super().__init__(talker)
        self.shop = sqlite3.connect(":memory:")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"arms": {"fine": Answers(talker), "bad": Connected()}},
            "^the arm 'bad' cannot be sent to other processes",
        ),
        (
            {"user_model": ScriptedChatModel([sqlite3.connect(":memory:")])},
            "^the users' model cannot be sent",
        ),
        ({"executor": "a cluster"}, r"executor is a str: give a concurrent.futures.Executor"),
        ({"executor": Executor()}, "does not say how many workers it has: give workers="),
        ({"workers": 0}, "workers"),
    ],
)
def test_what_no_worker_could_do_is_told_before_anything_is_held(
    pool: Executor, settings: dict[str, Any], said: str, tmp_path: Path
):
    given: dict[str, Any] = {"arms": {"app": Answers(talker)}, "executor": pool, **settings}
    with pytest.raises(InputError, match=said):
        evaluate(suite(), results=tmp_path / "results.jsonl", **given)
    assert not (tmp_path / "results.jsonl").exists()


def test_what_workers_need_and_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(
        InputError, match=r'^evaluating in other processes needs cloudpickle: pip install "arq'
    ):
        evaluate(suite(), {"app": Answers(talker)}, executor=ThreadPoolExecutor(1))


def test_a_worker_that_has_not_the_modules_says_so(pool: Executor, tmp_path: Path):
    (tmp_path / "gone.py").write_text(
        "class App:\n    def invoke(self, given, config=None):\n        return 'hi'\napp = App()\n"
    )
    found = load_arms(["gone:app"], folder=tmp_path)
    (tmp_path / "gone.py").unlink()
    for name in [name for name in sys.modules if name.endswith("gone")]:
        del sys.modules[name]
    with pytest.raises(InputError, match=r"a worker cannot read what it was sent .*modules beside a file"):
        evaluate(suite(), found, executor=pool)


# --- limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [{"max_calls": 60}, {"max_cost": 60.0, "prices": {"m": (1_000, 0)}}])
def test_a_limit_begins_no_conversation_once_workers_have_spent_it(
    pool: Executor, tmp_path: Path, limit: dict[str, Any]
):
    settings: dict[str, Any] = {"runs": 40, "concurrency": 2, "results": tmp_path / "results.jsonl"}
    report = evaluate(suite(), {"app": Asks()}, executor=pool, **settings, **limit)
    assert str(report.stopped).startswith(next(iter(limit)))
    assert report.missing == 40 - len(report.conversations) > 0
    assert not report.broken, "conversations that workers have begun are finished"
    calls_of_a_conversation, concurrent = 4, 2 * 2
    assert 60 <= CALLS.total() < 60 + calls_of_a_conversation * concurrent
    spent = CALLS.total()
    report = evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings, **limit)
    assert (CALLS.total(), bool(report.missing)) == (spent, True), "what was spent before counts"
    assert not evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings).missing


def test_a_worker_refuses_a_model_whose_cost_is_unknown_while_the_cost_is_limited(pool: Executor):
    with pytest.raises(InputError, match="m has no price"):
        evaluate(suite(), {"app": Asks()}, executor=pool, max_cost=9.0, prices={"gpt": (1, 1)})
