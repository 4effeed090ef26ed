"""Evaluations: which conversations run, what is stored, and how failures are reported."""

import asyncio
import operator
import weakref
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from arq_graph import Guideline
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones import (
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
    deed,
    fail_to_connect,
    lamp,
    shop_agent,
    suite,
    talker,
)
from tests.milestones.reported import read_pair_table


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


def test_what_is_measured_is_what_is_stored_with_the_history(tmp_path: Path):
    measured = []

    def judge(graph: Any, transcript: Transcript, observations: Any) -> Any:
        measured.append(transcript)
        return []

    def answer(messages: list[BaseMessage]) -> list[BaseMessage]:
        return [*deed("find", 1), ChatMessage("It is red.", role="assistant"), AIMessage("Anything else?")]

    history = [{"user": "Hello."}, {"call": "find", "result": {"lamps": 2}}, {"agent": "There are two."}]
    settings: dict[str, Any] = {"user": None, "says": "Which?", "history": history, "agent": shop_agent()}
    evaluate(suite(**settings), {"app": Answers(answer)}, judge=judge, results=tmp_path / "results.jsonl")
    (stored,) = read_transcripts(tmp_path / "results.jsonl")
    assert isinstance(stored, Transcript)
    assert (
        (stored.events, stored.history_length) == (measured[0].events, measured[0].history_length) != ((), 0)
    )
    assert (stored.id, stored.task, stored.use_case) == (
        measured[0].id,
        measured[0].task,
        measured[0].use_case,
    )


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


def test_an_arm_with_options_gets_its_world():
    class Shop:
        def buy(self) -> str:
            """Buy it."""
            return "bought"

    options: list[dict[str, Any]] = []

    def arm(scenario: Any, agent: Any, model: Any, **more: Any) -> Answers:
        options.append(more)
        return Answers(buyer)

    evaluate(suite(agent=shop_agent(), world=Shop), {"arm": arm})
    (more,) = options
    assert (type(more["world"]), more["matcher_only"]) == (Shop, False)


def test_each_trial_has_an_app_of_its_own_in_a_scenario_without_a_world():
    report = evaluate(suite(user=None, says="A lamp?"), {"retries": TriesAgain("no", "perhaps", "yes")})
    (conversation,) = report.conversations
    assert (conversation.trials, conversation.error) == (3, None)


def test_an_evaluation_does_not_keep_the_apps_of_all_its_scenarios():
    apps: list[weakref.ref[Answers]] = []
    alive_counts: list[int] = []

    def make_app(scenario: Scenario, agent: Any, model: Any) -> Answers:
        alive_counts.append(sum(app() is not None for app in apps))
        app = Answers(talker)
        apps.append(weakref.ref(app))
        return app

    report = evaluate(suite(*(f"lamp {number}" for number in range(60))), {"made": make_app}, concurrency=2)
    assert len(report.conversations) == len(apps) == 60
    assert max(alive_counts) < 30


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
        ({"lamp / app": UNUSED}, {}, "the arm 'lamp / app' has `/` as a word of its name"),
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
