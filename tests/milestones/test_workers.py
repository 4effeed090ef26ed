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
from threading import Event
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_openai import ChatOpenAI

from arq_graph import Guideline, ScriptedChatModel, arms
from arq_graph.errors import InputError, ModelUnavailableError
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
    times = {"seconds", "turn_seconds"}
    return [one.model_dump(exclude=times) for one in (*report.conversations, *report.broken)]


class Mortal(ThreadPoolExecutor):
    """Two workers, of whom some die at their work."""

    def __init__(self, dies: Callable[[int], bool]) -> None:
        super().__init__(2)
        self.dies = dies
        self.given: list[int] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append(len(args[1]))
        if self.dies(len(self.given)):
            raise BrokenExecutor("a worker was killed")
        return super().submit(fn, *args, **kwargs)


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
    with Mortal(lambda number: False) as executor:
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
    assert (len(report.conversations), report.missing) == (4, 16 - len(report.broken))
    assert 6 <= len(report.broken) <= 8, "each of two workers was at something"
    assert "times in a row, the last with BrokenExecutor" in str(report.stopped)


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
    found = arms(["mine:app", "mine:plain"], folder=tmp_path)

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
        ({"shard": "1/5", "max_calls": 4}, "less than one call for each shard"),
    ],
)
def test_what_no_worker_could_do_is_told_before_anything_is_held(
    pool: Executor, settings: dict[str, Any], said: str, tmp_path: Path
):
    given: dict[str, Any] = {"arms": {"app": Answers(talker)}, "executor": pool, **settings}
    with pytest.raises(InputError, match=said):
        evaluate(suite(), results=tmp_path / "results.jsonl", **given)
    assert not (tmp_path / "results.jsonl").exists()


def test_a_worker_that_has_not_the_modules_says_so(pool: Executor, tmp_path: Path):
    (tmp_path / "gone.py").write_text(
        "class App:\n    def invoke(self, given, config=None):\n        return 'hi'\napp = App()\n"
    )
    found = arms(["gone:app"], folder=tmp_path)
    (tmp_path / "gone.py").unlink()
    for name in [name for name in sys.modules if name.endswith("gone")]:
        del sys.modules[name]
    with pytest.raises(InputError, match=r"a worker cannot read what it was sent .*modules beside a file"):
        evaluate(suite(), found, executor=pool)


# --- ceilings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ceiling", [{"max_calls": 60}, {"max_cost": 60.0, "prices": {"m": (1_000, 0)}}])
def test_workers_together_stay_within_a_ceiling(pool: Executor, tmp_path: Path, ceiling: dict[str, Any]):
    settings: dict[str, Any] = {"runs": 40, "concurrency": 2, "results": tmp_path / "results.jsonl"}
    report = evaluate(suite(), {"app": Asks()}, executor=pool, **settings, **ceiling)
    assert str(report.stopped).startswith(next(iter(ceiling)))
    assert report.missing == 40 - len(report.conversations) > 0
    assert 40 <= CALLS.total() <= 60 + 2 * 2 * 2, "turns under way are finished, and no other is begun"
    spent = CALLS.total()
    report = evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings, **ceiling)
    assert CALLS.total() <= max(spent, 60) + 2 * 2 * 2, "what was spent before counts"
    assert not evaluate(suite(), {"app": Asks()}, executor=pool, resume=True, **settings).missing


def test_no_worker_can_spend_what_another_has_been_lent(pool: Executor):
    tried = suite(user=shopper(intents=[f"Lamp {number}, please." for number in range(10)]))
    evaluate(tried, {"app": Asks()}, runs=2, concurrency=1, max_calls=20, executor=pool)
    assert CALLS.total() <= 20 + 2 * 2, "one conversation alone would make 20 calls"


class OneLate(ThreadPoolExecutor):
    """Two workers, of whom one begins late."""

    def __init__(self) -> None:
        super().__init__(2)
        self.may_begin = Event()
        self.first = True

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        late, self.first = self.first, False
        return super().submit(lambda: (not late or self.may_begin.wait(20)) and fn(*args, **kwargs))


def test_a_ceiling_that_is_high_enough_cuts_nothing_off_though_a_worker_has_its_part_for_long():
    def done(one: Any, outcome: Any) -> None:
        held.append(one.id)
        if len(held) == 17:  # the other one has used up its part, but for less than a conversation may take
            executor.may_begin.set()

    CALLS.clear()
    held: list[str] = []
    settings: dict[str, Any] = {"runs": 30, "concurrency": 4, "max_calls": 150, "done": done}
    with OneLate() as executor:
        report = evaluate(suite(), {"app": Asks()}, executor=executor, **settings)
    assert (len(report.conversations), CALLS.total(), report.stopped) == (30, 120, None)


def test_what_a_dead_worker_was_lent_counts_as_spent(tmp_path: Path):
    kept: dict[str, Any] = {"runs": 20, "concurrency": 2, "results": tmp_path / "results.jsonl"}
    with Mortal(lambda number: number == 1) as executor:
        evaluate(suite(), {"app": Asks()}, executor=executor, max_calls=60, **kept)
    CALLS.clear()
    assert evaluate(suite(), {"app": Asks()}, max_calls=30, resume=True, **kept).stopped
    assert not CALLS


# --- shards ----------------------------------------------------------------------------------------------------------


def test_each_conversation_is_in_one_shard_whatever_else_there_is():
    def held(tried: Suite, runs: int = 4, **settings: Any) -> list[tuple[Any, ...]]:
        found = evaluate(tried, {"a": Answers(talker), "b": Answers(talker)}, runs=runs, **settings)
        return [(one.scenario, one.run, one.arm) for one in found.conversations]

    three = suite("red", "blue", "green")
    shards = [held(three, shard=f"{number}/3") for number in (1, 2, 3)]
    assert sorted(chain.from_iterable(shards)) == sorted(held(three))
    assert all(shards)
    more = [held(suite("new", "green", "red", "blue"), runs=5, shard=f"{number}/3") for number in (1, 2, 3)]
    for before, after in zip(shards, more, strict=True):
        assert set(before) < set(after)
        assert {one[:2] for one in before if one[2] == "a"} == {one[:2] for one in before if one[2] == "b"}


def test_shards_share_a_ceiling_and_are_gone_on_with_as_themselves(tmp_path: Path):
    CALLS.clear()
    file, tried = tmp_path / "results.jsonl", Suite(scenarios=tuple(lamp(name) for name in "abcdefgh"))
    settings: dict[str, Any] = {"runs": 5, "concurrency": 1, "max_calls": 90}
    report = evaluate(tried, {"app": Asks()}, shard="2/3", results=file, **settings)
    assert str(report.stopped) == "max_calls: 30 of 30 model calls are made"
    assert CALLS.total() == 30
    with pytest.raises(InputError, match=r"the shard \(was '2/3', now '1/3'\)"):
        evaluate(tried, {"app": Asks()}, shard="1/3", results=file, resume=True)
