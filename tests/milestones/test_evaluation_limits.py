"""Limits of an evaluation: the model calls and the money that it may spend."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from arq_graph import ScriptedChatModel
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones import (
    Limits,
    Scenario,
    Transcript,
    evaluate,
    read_transcripts,
)
from tests.milestones.evaluated import (
    Answers,
    fail_to_connect,
    shopper,
    suite,
)
from tests.milestones.user_talks import make_user_answer

USAGE = UsageMetadata(input_tokens=1_000, output_tokens=100, total_tokens=1_100)


class Asks:
    """An app that makes so many calls a turn, perhaps of a model that has a fallback."""

    def __init__(
        self,
        calls: int,
        name: str = "gpt-4o-2024",
        usage: UsageMetadata | None = USAGE,
        fallback_of: Any = None,
    ) -> None:
        self.calls = calls
        self.model = ScriptedChatModel(lambda _: AIMessage("hi", usage_metadata=usage), model_name=name)
        self.asked = fallback_of.with_fallbacks([self.model]) if fallback_of else self.model

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        for _ in range(self.calls):
            await self.asked.ainvoke(input["messages"])
        return "hi"


def test_a_limit_of_calls_finishes_turns_under_way_and_the_run_can_be_resumed(tmp_path: Path):
    file, app = tmp_path / "results.jsonl", Asks(2)
    report = evaluate(suite(), {"app": app}, runs=20, concurrency=4, max_calls=41, results=file)
    assert "max_calls" in str(report.stopped)
    assert report.missing == 20 - len(report.conversations)
    assert 41 <= len(app.model.calls) <= 41 + 2 * 4
    assert all(one.ended == "budget" for one in report.broken)
    stored = [one for one in read_transcripts(file) if isinstance(one, Transcript)]
    assert len(stored) == len(report.conversations), "an unfinished conversation is no transcript"
    again = Asks(2)
    evaluate(suite(), {"app": again}, runs=20, max_calls=41, resume=True, results=file)
    assert not again.model.calls, "earlier calls count"
    report = evaluate(suite(), {"app": Asks(2)}, runs=20, resume=True, results=file)
    assert (len(report.conversations), report.missing) == (20, 0)


@pytest.mark.parametrize(
    ("concurrency", "calls", "fields"),
    [(1, 22, {"user": None, "says": "A lamp?"}), (4, 24, {"user": shopper(intents=["A lamp?"])})],
)
def test_a_conversation_that_ends_with_its_turn_is_stored_at_the_limit(
    tmp_path: Path, concurrency: int, calls: int, fields: dict[str, Any]
):
    lamps, file = suite(**fields), tmp_path / "results.jsonl"
    first, rest = Asks(2), Asks(2)
    settings: dict[str, Any] = {"runs": 20, "results": file}
    report = evaluate(lamps, {"app": first}, concurrency=concurrency, max_calls=21, **settings)
    assert [one.ended for one in report.conversations] == ["user"] * (calls // 2), "none is cut off"
    assert (len(first.model.calls), report.missing) == (calls, 20 - calls // 2), "and none begins"
    assert report.stopped == f"max_calls: the limit of 21 is reached (model calls so far: {calls})"
    report = evaluate(lamps, {"app": rest}, resume=True, **settings)
    assert (report.missing, len(rest.model.calls)) == (0, 40 - calls), "nothing is paid for twice"


def test_a_limit_of_cost_uses_the_price_of_the_longest_prefix(tmp_path: Path):
    prices = {"gpt-4o": (2.5, 10.0), "gpt-4": (30.0, 60.0)}
    cost_of_a_call = (1_000 * 2.5 + 100 * 10) / 1_000_000
    settings = {"runs": 20, "concurrency": 1, "prices": prices, "results": tmp_path / "results.jsonl"}
    for limit, resume in ((10, False), (15, True)):
        app = Asks(2)
        max_cost = limit * cost_of_a_call
        report = evaluate(suite(), {"app": app}, max_cost=max_cost, resume=resume, **settings)
        assert "max_cost" in str(report.stopped)
        assert limit <= len(app.model.calls) + 10 * resume <= limit + 3


@pytest.mark.parametrize(
    ("app", "message"),
    [
        (Asks(2, "other"), "other has no price: give --prices other=IN/OUT"),
        (Asks(2, usage=None), "reports no tokens"),
    ],
)
def test_a_cost_that_cannot_be_known_ends_the_run_and_is_not_stored(app: Any, message: str, tmp_path: Path):
    file = tmp_path / "results"
    settings: dict[str, Any] = {"max_cost": 5, "prices": {"gpt-4o": (2.5, 10)}, "results": file}
    with pytest.raises(InputError, match=message):
        evaluate(suite(), {"app": app}, runs=20, concurrency=1, **settings)
    assert len(app.model.calls) == 2
    assert len(file.read_text().splitlines()) == 1


def test_a_cost_that_cannot_be_known_does_not_count_as_an_error_of_other_conversations(tmp_path: Path):
    file, stored = tmp_path / "results.jsonl", asyncio.Event()
    priced, unpriced = Asks(1), Asks(1, "other")

    class WaitsForTheOther:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            answer = await unpriced.ainvoke(input)
            await stored.wait()
            return answer

    def make_app(scenario: Scenario, agent: Any, model: Any) -> Any:
        return WaitsForTheOther() if scenario.name == "unpriced" else priced

    settings: dict[str, Any] = {"max_cost": 5, "prices": {"gpt-4o": (2.5, 10)}, "results": file}
    with pytest.raises(InputError, match="other has no price"):
        evaluate(
            suite("unpriced", "priced"),
            {"made": make_app},
            concurrency=2,
            on_conversation=lambda planned, _: stored.set(),
            **settings,
        )
    assert stored.is_set()
    transcripts = [record for record in read_transcripts(file) if isinstance(record, Transcript)]
    assert not transcripts, "the conversation is run again when the run is resumed"


def test_a_call_that_failed_costs_nothing_whatever_its_model():
    failing = ScriptedChatModel(lambda call: fail_to_connect(), model_name="other")
    app = Asks(1, fallback_of=failing)
    report = evaluate(suite(), {"app": app}, max_cost=5, prices={"gpt-4o": (2.5, 10)})
    assert [one.error for one in report.conversations] == [None]
    assert len(failing.calls) == len(app.model.calls) > 0


def test_calls_of_a_model_that_completes_texts_count():
    app = Answers(lambda messages: [AIMessage(FakeListLLM(responses=["hi"]).invoke("hello"))])
    report = evaluate(suite(), {"app": app}, runs=9, concurrency=1, max_calls=5)
    assert [one.model_calls for one in report.conversations] == [2, 2]
    assert report.stopped == "max_calls: the limit of 5 is reached (model calls so far: 5)"


@pytest.mark.parametrize("max_calls", [11, 12])
def test_calls_of_users_count_towards_the_limit_and_not_for_the_arm(max_calls: int):
    user_model, app = ScriptedChatModel(lambda call: make_user_answer("Hello.")), Asks(1)
    settings: dict[str, Any] = {"runs": 9, "concurrency": 1, "user_model": user_model}
    report = evaluate(suite(limits=Limits(turns=2)), {"app": app}, max_calls=max_calls, **settings)
    assert [one.model_calls for one in report.conversations] == [2, 2]
    assert report.stopped
    assert len(user_model.calls) + len(app.model.calls) == max_calls, "no user is asked beyond it"


def test_beyond_a_limit_an_arm_that_fails_is_reported_and_not_run_again():
    class Retries:
        def __call__(self, scenario: Scenario, agent: Any, model: Any) -> Any:
            return Asks(2)

        async def again(self, model: Any, messages: list[Any], read_outcome: Any) -> Any:
            if messages[0].text == "A lamp?":
                raise KeyError("no reflection")
            await Asks(1).ainvoke({"messages": messages})

    def run(says: str) -> Any:
        lamps = suite(user=None, says=says)
        return evaluate(lamps, {"fails": Retries()}, max_calls=2)

    (conversation,) = run("A lamp?").conversations
    assert conversation.ended == "error"
    assert "KeyError: 'no reflection'" in str(conversation.error)
    report = run("Both lamps?")
    assert [broken.ended for broken in report.broken] == ["budget"]


def test_conversations_that_end_together_are_all_stored_before_the_run_ends(tmp_path: Path):
    file, ended = tmp_path / "results.jsonl", []
    with pytest.raises(ModelUnavailableError, match="in 3 conversations in a row"):
        evaluate(
            suite(),
            {"app": Answers(lambda _: fail_to_connect())},
            runs=4,
            concurrency=4,
            results=file,
            on_conversation=lambda planned, _: ended.append(planned.run),
        )
    assert ended == [1, 2, 3, 4]
    assert len(file.read_text().splitlines()) == 1 + 4


def test_a_callback_that_fails_loses_no_conversation_that_has_ended(tmp_path: Path):
    file = tmp_path / "results.jsonl"

    def fail(planned: Any, conversation: Any) -> None:
        raise OSError("the terminal is gone")

    with pytest.raises(OSError, match="the terminal is gone"):
        evaluate(suite(), {"app": Asks(1)}, runs=4, concurrency=4, results=file, on_conversation=fail)
    assert len(file.read_text().splitlines()) == 1 + 4


def test_a_thread_that_has_evaluated_leaves_no_event_loop_behind():
    loops: list[asyncio.AbstractEventLoop] = []

    class Knows:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            loops.append(asyncio.get_running_loop())
            return "hi"

    thread = threading.Thread(target=evaluate, args=(suite(), {"app": Knows()}))
    thread.start()
    thread.join()
    assert loops
    assert loops[0].is_closed()
