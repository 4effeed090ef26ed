"""Evaluations: which conversations run, what is stored, what they may cost, and how failures are reported."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from arq_graph import Guideline, ScriptedChatModel, Term
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones import (
    Limits,
    Scenario,
    Suite,
    Transcript,
    aevaluate,
    converse,
    evaluate,
    read_transcripts,
)
from tests.milestones.evaluated import (
    Answers,
    Says,
    buyer,
    fail_to_connect,
    lamp,
    shop_agent,
    shopper,
    suite,
    talker,
)
from tests.milestones.reported import read_pair_table
from tests.milestones.user_talks import make_user_answer

USAGE = UsageMetadata(input_tokens=1_000, output_tokens=100, total_tokens=1_100)


def test_every_arm_runs_every_scenario_and_runs_with_the_same_seed_are_compared_in_pairs():
    def fail_once(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len(arms["fails once"].threads) == 1:
            fail_to_connect()
        return talker(messages)

    arms = {"buys": Answers(buyer), "fails once": Answers(fail_once)}
    report = evaluate(suite("red", "blue"), arms, runs=4, concurrency=1)
    planned = [(run, scenario, arm) for run in (1, 2, 3, 4) for scenario in ("red", "blue") for arm in arms]
    seeds = {(one.run, one.scenario, one.arm): one.seed for one in report.conversations}
    assert list(seeds) == [key for key in planned if key != (1, "red", "fails once")]
    pairs = [key[:2] for key in seeds if key[2] == "fails once"]
    assert all(seeds[*pair, "buys"] == seeds[*pair, "fails once"] for pair in pairs)
    assert len({seeds[*pair, "buys"] for pair in pairs}) == len(pairs) == 7
    assert [arm.goal_completion.rate for arm in report.summary.arms.values()] == [1, 0]
    [comparison] = read_pair_table(report).values()
    assert (comparison["pairs"], report.missing, report.stopped) == ("7", 0, None)
    assert len(set(arms["buys"].threads)) == 8


def test_threads_in_the_memory_of_a_made_app_are_deleted_and_those_of_the_users_app_are_not():
    def make_app() -> Any:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage("hi")]})
        builder.set_entry_point("answer")
        return builder.compile(InMemorySaver())

    made, own = make_app(), make_app()
    evaluate(suite(), {"made": lambda scenario, agent, model: made, "own": own}, runs=3)
    assert (len(made.checkpointer.storage), len(own.checkpointer.storage)) == (0, 3)


class Counting(MessagesState):
    turns: Annotated[int, operator.add]


def test_a_graph_without_a_checkpointer_gets_one_unless_it_has_none_on_purpose():
    def answer(state: Any) -> Any:
        return {"turns": 1, "messages": buyer([HumanMessage("?")] * (state["turns"] + 1))}

    builder = StateGraph(Counting)
    builder.add_node("answer", answer)
    builder.set_entry_point("answer")
    plain, without = builder.compile(), builder.compile(checkpointer=False)
    report = evaluate(suite(), {"made": lambda *_: plain, "app": plain, "without": lambda *_: without})
    assert [one.goal_completed for one in report.conversations] == [True, True, False]
    assert plain.checkpointer is None


def test_a_judge_sees_the_agents_instructions_and_tools():
    seen = []

    def judge(graph: Any, transcript: Transcript, observations: Any) -> Any:
        seen.append((transcript.instructions, sorted(transcript.tools or ())))
        return []

    agent = shop_agent(guidelines=[Guideline("they are sad", "cheer them up"), Guideline("they ask", None)])
    evaluate(suite(agent=agent), {"app": Answers(buyer)}, judge=judge)
    assert seen == [("A shop.\n\n- when they are sad: cheer them up", ["buy", "find"])]


class TriesAgain:
    """An arm whose apps give these replies, one for each trial."""

    def __init__(self, *replies: str) -> None:
        self.replies = replies
        self.trials = 0

    def __call__(self, scenario: Scenario, agent: Any, model: Any) -> Any:
        return Answers(lambda _: [AIMessage(self.replies[0])])

    async def again(self, model: Any, messages: list[BaseMessage], outcome: Any) -> Any:
        self.trials += 1
        assert self.trials == 1, "the first app was used again"
        assert [message.text for message in messages if message.type == "ai"] == [self.replies[0]]
        return TriesAgain(*self.replies[1:]) if len(self.replies) > 1 else None


def test_each_trial_has_an_app_of_its_own_in_a_scenario_without_a_world():
    report = evaluate(suite(user=None, says="A lamp?"), {"retries": TriesAgain("no", "perhaps", "yes")})
    (conversation,) = report.conversations
    assert (conversation.trials, conversation.error) == (3, None)


def test_a_conversation_whose_next_trial_cannot_begin_is_measured_with_the_error():
    class Breaks(TriesAgain):
        async def again(self, model: Any, messages: list[BaseMessage], outcome: Any) -> Any:
            def fail(scenario: Scenario, agent: Any, model: Any) -> Any:
                raise KeyError("no second app")

            return fail

    report = evaluate(suite(user=None, says="A lamp?"), {"retries": Breaks("no")})
    (conversation,) = report.conversations
    assert (conversation.trials, conversation.ended) == (1, "error")
    assert "KeyError: 'no second app'" in str(conversation.error)


def test_a_judge_may_have_nothing_but_its_async_method():
    class Async:
        async def ajudge(self, graph: Any, transcript: Transcript, observations: Any) -> Any:
            return []

    assert evaluate(suite(), {"app": Answers(buyer)}, judge=Async()).conversations  # type: ignore[arg-type]


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_conversation_whose_app_raises_is_measured_and_the_others_are_not_affected():
    error = ConnectionError("of the app's own database")

    def answer(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len({*app.threads}) == 3:
            raise error
        return buyer(messages)

    app = Answers(answer)
    report = evaluate(suite(*"abcde"), {"arm": app}, concurrency=1)
    line = answer.__code__.co_firstlineno + 2
    message = f"ConnectionError: {error} (line {line} of {__file__})"
    assert [one.error for one in report.conversations] == [None, None, message, None, None]
    assert [one.goal_completed for one in report.conversations] == [True, True, False, True, True]


def test_an_arm_or_a_world_that_cannot_be_made_is_named_and_does_not_end_the_run():
    def broken(scenario: Scenario, agent: Any, model: Any) -> Any:
        raise KeyError("no such thing")

    class Empty:
        pass

    scenarios = Suite(scenarios=(lamp("a"), lamp("b", agent=shop_agent(), world=Empty)))
    arms = {"broken": broken, "buys": lambda scenario, agent, model: Answers(buyer)}
    report = evaluate(scenarios, arms, concurrency=1)
    assert "a / broken / 1: it could not begin: KeyError: 'no such thing' (line " in report.broken[0].error
    assert "none of the agent's tools" in report.broken[2].error
    assert [one.id for one in report.conversations] == ["a / buys / 1"]


def test_a_model_out_of_reach_three_times_in_a_row_ends_the_run_which_can_be_resumed(tmp_path: Path):
    file = tmp_path / "results.jsonl"

    def answer(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len({*app.threads}) in (2, 4):
            return talker(messages)
        if len({*app.threads}) == 6:
            raise ModelUnavailableError("busy")
        return fail_to_connect()

    app = Answers(answer)
    with pytest.raises(ModelUnavailableError, match="3 conversations in a row"):
        evaluate(suite(), {"app": app}, runs=20, concurrency=1, results=file)
    assert len({*app.threads}) == 7
    report = evaluate(suite(), {"app": Answers(talker)}, runs=20, results=file, resume=True)
    assert [one.run for one in report.conversations] == list(range(1, 21))


UNUSED = Answers(talker)


@pytest.mark.parametrize(
    ("arms", "settings", "message"),
    [
        ({"x": 3}, {}, "neither an app"),
        ({"x": lambda messages: messages}, {}, r"nor a function of \(scenario, agent, model\)"),
        ({"app": UNUSED}, {"suite": "suite.yaml"}, r"suite is a str: .*Suite.from_yaml"),
        ({"arm": lambda *_: UNUSED}, {"model": "openai:gpt-4o"}, "OPENAI_API_KEY"),
        ({"app": UNUSED}, {"user_model": "openai:gpt-4o"}, "OPENAI_API_KEY"),
        ({"app": UNUSED}, {"runs": 0}, "runs"),
        ({"app": UNUSED}, {"judge": 5}, "judge"),
        ({"app": UNUSED}, {"max_cost": 0, "prices": {"m": (1, 1)}}, "max_cost"),
        ({"app": UNUSED}, {"prices": {"m": (1, -1)}}, "prices"),
        ({"app": UNUSED}, {"max_cost": 5}, "max_cost needs prices"),
    ],
)
def test_arms_and_settings_that_cannot_be_used_are_refused_before_any_conversation(
    monkeypatch: pytest.MonkeyPatch, arms: Any, settings: dict[str, Any], message: str
):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=message):
        evaluate(**{"suite": suite(), "arms": arms, **settings})
    assert not UNUSED.threads


def test_a_users_model_without_a_key_is_refused_although_the_first_scenario_needs_none(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    scenarios = Suite(scenarios=(lamp("message", user=None, says="A lamp?"), lamp("conversation")))
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        evaluate(scenarios, {"app": UNUSED}, user_model="openai:gpt-4o")
    assert not UNUSED.threads


class LoopBound:
    """An app with connections that belong to the loop in which they were made."""

    loop: Any = None

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        self.loop = self.loop or asyncio.get_running_loop()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop))
        return "hi"


def test_two_evaluations_run_in_one_loop():
    app = LoopBound()
    errors = [evaluate(suite(), {"app": app}).conversations[0].error for _ in range(2)]
    assert errors == [None, None]


async def test_in_a_running_loop_the_async_functions_are_awaited():
    assert (await aevaluate(suite(), {"app": LoopBound()})).conversations[0].error is None
    with pytest.raises(InputError, match="await aevaluate"):
        evaluate(suite(), {"app": LoopBound()})
    with pytest.raises(InputError, match="await aconverse"):
        converse(LoopBound(), Says("one"))


# --- stored results --------------------------------------------------------------------------------------------------


def test_a_resumed_run_repeats_no_conversation_and_can_grow(tmp_path: Path):
    file, app = tmp_path / "results.jsonl", Answers(talker)
    first = evaluate(suite("red", "blue"), {"app": app}, runs=2, results=file)
    calls = len(app.threads)
    again = evaluate(suite("red", "blue"), {"app": app}, runs=2, resume=True, results=file)
    assert (len(app.threads), again) == (calls, first)
    arms = {"app": app, "buys": Answers(buyer)}
    report = evaluate(suite("red", "new"), arms, runs=3, resume=True, results=file)
    assert len(report.conversations) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"glossary": "a lantern"}, "the agent's glossary of scenario"),
        ({"priority": 3}, "the agent's guidelines or their tools of scenario"),
        ({"world": Says}, "the world of scenario"),
        ({"model": ScriptedChatModel([], model_name="other")}, "the agent's model"),
        ({"depends_on": {"the endpoint": "there"}}, "the endpoint"),
        ({"seed": 2}, "the seed"),
    ],
)
def test_a_run_that_changed_is_not_resumed_and_the_change_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
):
    def run(resume: bool, seed: int = 1, glossary: str = "a light", priority: int = 0, **more: Any):
        settings = {name: more.pop(name) for name in ("model", "depends_on") if name in more}
        agent = shop_agent(
            guidelines=[Guideline("they ask for a lamp", "sell one", priority=priority)],
            glossary=[Term("lamp", glossary)],
        )
        lamps = suite(agent=agent, **more).replace(seed=seed)
        file = tmp_path / "results.jsonl"
        return evaluate(lamps, {"app": Answers(talker)}, results=file, resume=resume, **settings)

    run(resume=False)
    assert run(resume=True).conversations
    with pytest.raises(InputError, match=f"the results of another run: {message}.* changed since") as error:
        run(resume=True, **change)
    assert str(error.value).count("of scenario") <= 1, "nothing else has changed"


# --- costs and limits ------------------------------------------------------------------------------------------------


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
    assert all(one.ended == "limit" for one in report.broken)
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
