"""Conversations that are held by an executor's workers, and shards: all is told and kept as if one had held it."""

from __future__ import annotations

import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_openai import ChatOpenAI

from arq_graph import Guideline, ScriptedChatModel
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import LLMJudge, Report, Suite, evaluate
from tests.milestones.evaluated import Answers, buyer, lamp, no_way_there, shop_agent, shopper, suite, talker

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
        tried, apps, executor=pool, results=kept, done=lambda one, _: seen.append(one.id), **settings
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
        ({"shard": "3/2"}, "shard.*write 2/5 for the second of five parts"),
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
def test_workers_together_stay_within_a_limit(pool: Executor, tmp_path: Path, limit: dict[str, Any]):
    settings: dict[str, Any] = {"runs": 40, "concurrency": 2, "results": tmp_path / "results.jsonl"}
    report = evaluate(suite(), {"app": Asks()}, executor=pool, **settings, **limit)
    assert str(report.stopped).startswith(next(iter(limit)))
    assert report.missing == 40 - len(report.conversations) > 0
    assert 60 <= CALLS.total() <= 60 + 2 * 2 * 2, "turns under way are finished, and no other is begun"
    spent = CALLS.total()
    report = evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings, **limit)
    assert (CALLS.total(), bool(report.missing)) == (spent, True), "what was spent before counts"
    assert not evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings).missing


@pytest.mark.parametrize("limit", [{"max_calls": 120}, {"max_cost": 120.0, "prices": {"m": (1_000, 0)}}])
def test_what_a_worker_did_not_spend_is_lent_again(limit: dict[str, Any]):
    CALLS.clear()
    with Mortal() as executor:
        report = evaluate(suite(), {"app": Asks()}, runs=30, concurrency=1, executor=executor, **limit)
    assert (len(report.conversations), CALLS.total(), report.stopped) == (30, 120, None)


def lamps(requests: int, name: str = "lamp", **fields: Any) -> Any:
    return lamp(
        name, user=shopper(intents=[f"Lamp {number}, please." for number in range(requests)]), **fields
    )


def test_no_worker_can_spend_what_another_has_been_lent_and_what_it_cuts_off_is_told(tmp_path: Path):
    CALLS.clear()
    tried = Suite(scenarios=(lamps(10, "long"), lamps(1, "short")))
    settings: dict[str, Any] = {"concurrency": 1, "results": tmp_path / "results.jsonl"}
    with Mortal() as executor:
        report = evaluate(tried, {"app": Asks()}, executor=executor, max_calls=24, **settings)
        assert (CALLS["long / app / 1"], CALLS["short / app / 1"], report.missing) == (12, 2, 1)
        assert "the limit of 12 for this part is reached (model calls so far: 12)" in str(report.stopped)
        report = evaluate(tried, {"app": Asks()}, executor=executor, max_calls=34, resume=True, **settings)
    assert (CALLS.total(), report.missing) == (34, 0), "the last one has all that is left"


def test_what_turns_under_way_spent_beyond_a_part_counts():
    CALLS.clear()
    tried = Suite(scenarios=(lamps(10, "one"), lamps(10, "two"), lamps(1, "three")))
    with Mortal() as executor:
        report = evaluate(tried, {"app": Asks()}, executor=executor, concurrency=1, max_calls=22)
    assert CALLS.total() == 24
    assert str(report.stopped) == "max_calls: the limit of 22 is reached (model calls so far: 24)"


def test_a_worker_without_a_part_waits_for_what_another_gives_back():
    def done(one: Any, outcome: Any) -> None:
        held.append(one.run)
        if len(held) == 5:  # a half of the limit is spent, and the late one has the other
            executor.later.pop()()

    CALLS.clear()
    held: list[int] = []
    settings: dict[str, Any] = {"runs": 10, "concurrency": 1, "max_calls": 40, "done": done}
    with Mortal(late=lambda number: number == 1) as executor:
        report = evaluate(suite(), {"app": Asks()}, executor=executor, **settings)
    assert (held[:5], len(report.conversations), CALLS.total()) == ([2, 3, 4, 5, 6], 10, 40)


def test_what_a_dead_worker_was_lent_counts_as_spent(tmp_path: Path):
    CALLS.clear()
    kept: dict[str, Any] = {"runs": 40, "concurrency": 2, "results": tmp_path / "results.jsonl"}
    with Mortal(lambda number: number == 1) as executor:
        evaluate(suite(), {"app": Asks()}, executor=executor, max_calls=80, **kept)
    assert 40 <= CALLS.total() <= 40 + 2 * 2 * 2
    spent = CALLS.total()
    assert evaluate(suite(), {"app": Asks()}, max_calls=80, resume=True, **kept).stopped
    assert CALLS.total() == spent


# --- shards ----------------------------------------------------------------------------------------------------------


def test_each_conversation_is_in_one_shard_of_equal_size_however_many_runs_there_are():
    def held(tried: Suite, runs: int = 4, **settings: Any) -> list[tuple[Any, ...]]:
        found = evaluate(tried, {"a": Answers(talker), "b": Answers(talker)}, runs=runs, **settings)
        return [(one.scenario, one.run, one.arm) for one in found.conversations]

    two = suite("red", "blue")
    shards = [held(two, shard=f"{number}/3") for number in (1, 2, 3)]
    assert sorted(chain.from_iterable(shards)) == sorted(held(two))
    assert [len(each) for each in shards] == [6, 6, 4]
    more = [held(two, runs=6, shard=f"{number}/3") for number in (1, 2, 3)]
    for before, after in zip(shards, more, strict=True):
        assert set(before) < set(after)
        assert {one[:2] for one in before if one[2] == "a"} == {one[:2] for one in before if one[2] == "b"}


def test_shards_share_a_limit_and_are_gone_on_with_as_themselves(tmp_path: Path):
    CALLS.clear()
    file, tried = tmp_path / "results.jsonl", Suite(scenarios=tuple(lamp(name) for name in "abcdefgh"))
    settings: dict[str, Any] = {"runs": 5, "concurrency": 1, "max_calls": 90}
    report = evaluate(tried, {"app": Asks()}, shard="2/3", results=file, **settings)
    assert "the limit of 30 for this part is reached (model calls so far: 30)" in str(report.stopped)
    assert CALLS.total() == 30
    with pytest.raises(InputError, match=r"the shard \(was '2/3', now '1/3'\)"):
        evaluate(tried, {"app": Asks()}, shard="1/3", results=file, resume=True)


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        ({"max_calls": 50}, [17, 17, 16]),
        ({"max_calls": 2}, [1, 1, 0]),
        ({"max_cost": 48, "prices": {"m": (1_000, 0)}}, [16, 16, 16]),
    ],
)
def test_the_parts_of_all_shards_are_the_limit(limit: dict[str, Any], parts: list[int]):
    tried = Suite(scenarios=tuple(lamp(name) for name in "abcdefgh"))
    for number, part in enumerate(parts, start=1):
        CALLS.clear()
        report = evaluate(tried, {"app": Asks()}, runs=5, concurrency=1, shard=f"{number}/3", **limit)
        assert f" of {part} " in str(report.stopped)
        assert part <= CALLS.total() <= part + 1
