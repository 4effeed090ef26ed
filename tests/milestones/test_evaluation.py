"""Runs × scenarios × arms: what is held, kept and gone on with, what it may cost, and what is said of failures."""

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

from arq_graph import Guideline, ScriptedChatModel, Term, Variable
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones import (
    Limits,
    MilestoneGraph,
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
    lamp,
    no_way_there,
    shop_agent,
    shopper,
    speaking,
    suite,
    talker,
)

USAGE = UsageMetadata(input_tokens=1_000, output_tokens=100, total_tokens=1_100)


def test_every_scenario_is_run_so_often_with_every_arm_and_arms_are_compared_in_pairs():
    def fails_once(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len(apps["fails once"].threads) == 1:
            no_way_there()
        return talker(messages)

    apps = {"buys": Answers(buyer), "fails once": Answers(fails_once)}
    report = evaluate(suite("red", "blue"), apps, runs=4, concurrency=1)
    every = [(run, scenario, arm) for run in (1, 2, 3, 4) for scenario in ("red", "blue") for arm in apps]
    seeds = {(one.run, one.scenario, one.arm): one.seed for one in report.conversations}
    assert list(seeds) == [key for key in every if key != (1, "red", "fails once")]
    both = [key[:2] for key in seeds if key[2] == "fails once"]
    assert all(seeds[*key, "buys"] == seeds[*key, "fails once"] for key in both)
    assert len({seeds[*key, "buys"] for key in both}) == len(both) == 7
    assert [one.goal_completion.rate for one in report.summary.arms.values()] == [1, 0]
    assert (report.summary.comparisons[0].overall.pairs, report.missing, report.stopped) == (7, 0, None)
    assert len(set(apps["buys"].threads)) == 8


def test_threads_that_an_arm_keeps_in_memory_are_forgotten_and_the_users_own_are_kept():
    def app() -> Any:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage("hi")]})
        builder.set_entry_point("answer")
        return builder.compile(InMemorySaver())

    made, own = app(), app()
    evaluate(suite(), {"made": lambda scenario, agent, model: made, "own": own}, runs=3)
    assert (len(made.checkpointer.storage), len(own.checkpointer.storage)) == (0, 3)


class Counting(MessagesState):
    turns: Annotated[int, operator.add]


def test_a_graph_without_a_checkpointer_keeps_its_state_between_turns_and_one_with_false_does_not():
    builder = StateGraph(Counting)
    builder.add_node(
        "answer", lambda state: {"turns": 1, "messages": buyer([HumanMessage("?")] * (state["turns"] + 1))}
    )
    builder.set_entry_point("answer")
    keeps, forgets = builder.compile(), builder.compile(checkpointer=False)
    report = evaluate(suite(), {"made": lambda *_: keeps, "app": keeps, "forgets": lambda *_: forgets})
    assert [one.goal_completed for one in report.conversations] == [True, True, False]
    assert keeps.checkpointer is None


def test_a_judge_is_told_what_the_agent_was_told():
    seen = []

    def judge(graph: Any, transcript: Transcript, observations: Any) -> Any:
        seen.append((transcript.instructions, sorted(transcript.tools or ())))
        return []

    agent = shop_agent(guidelines=[Guideline("they are sad", "cheer them up"), Guideline("they ask", None)])
    evaluate(suite(agent=agent), {"app": Answers(buyer)}, judge=judge)
    assert seen == [("A shop.\n\n- when they are sad: cheer them up", ["buy", "find"])]


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError("kaputt"), ConnectionError("of the app's own database")])
def test_an_app_that_raises_is_measured_and_the_others_are_unharmed(error: Exception):
    def answer(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len({*app.threads}) == 3:
            raise error
        return buyer(messages)

    app = Answers(answer)
    report = evaluate(suite(*"abcde"), {"arm": app}, concurrency=1)
    told = f"{type(error).__name__}: {error} (line {answer.__code__.co_firstlineno + 2} of {__file__})"
    assert [one.error for one in report.conversations] == [None, None, told, None, None]
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


def test_models_out_of_reach_three_times_in_a_row_end_the_run_and_what_ended_is_kept(tmp_path: Path):
    file = tmp_path / "results.jsonl"

    def answer(messages: list[BaseMessage]) -> list[BaseMessage]:
        if len({*app.threads}) in (2, 4):
            return talker(messages)
        if len({*app.threads}) == 6:
            raise ModelUnavailableError("busy")
        return no_way_there()

    app = Answers(answer)
    with pytest.raises(ModelUnavailableError, match="3 conversations in a row"):
        evaluate(suite(), {"app": app}, runs=20, concurrency=1, results=file)
    assert len({*app.threads}) == 7
    report = evaluate(suite(), {"app": Answers(talker)}, runs=20, results=file, resume=True)
    assert [one.run for one in report.conversations] == list(range(1, 21))


UNUSED = Answers(talker)


@pytest.mark.parametrize(
    ("tried", "arms", "settings", "told"),
    [
        (suite(), {"x": 3}, {}, "neither an app"),
        (suite(), {"x": lambda messages: messages}, {}, r"nor a function of \(scenario, agent, model\)"),
        (suite(), ["x"], {}, "give a mapping"),
        (suite(), {}, {}, "give a mapping"),
        ("suite.yaml", {"app": UNUSED}, {}, r"suite is a str: .*Suite.from_yaml"),
        (suite(), {"arm": lambda *_: UNUSED}, {"model": "openai:gpt-4o"}, "OPENAI_API_KEY"),
        (suite(), {"app": UNUSED}, {"user_model": "openai:gpt-4o"}, "OPENAI_API_KEY"),
        *(
            (suite(), {"app": UNUSED}, settings, next(iter(settings)))
            for settings in (
                *({"runs": 0}, {"runs": "2"}, {"concurrency": 0}, {"max_calls": 0}, {"judge": 5}),
                *({"max_cost": 0, "prices": {"m": (1, 1)}}, {"prices": {"m": (1, -1)}}, {"max_cost": 5}),
            )
        ),
    ],
)
def test_what_cannot_be_tried_or_set_is_refused_before_anything_is_held(
    monkeypatch: pytest.MonkeyPatch, tried: Any, arms: Any, settings: dict[str, Any], told: str
):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match=told):
        evaluate(tried, arms, **settings)
    assert not UNUSED.threads


class Keeps:
    """An app that keeps connections of its loop."""

    loop: Any = None

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        self.loop = self.loop or asyncio.get_running_loop()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop))
        return "hi"


async def test_it_can_be_awaited_and_a_loop_that_runs_already_is_told_apart():
    assert (await aevaluate(suite(), {"app": Keeps()})).conversations[0].error is None
    with pytest.raises(InputError, match="await aevaluate"):
        evaluate(suite(), {"app": Keeps()})
    with pytest.raises(InputError, match="await aconverse"):
        converse(Keeps(), Says("one"))


def test_it_can_be_run_twice_in_one_loop():
    app = Keeps()
    assert [evaluate(suite(), {"app": app}).conversations[0].error for _ in range(2)] == [None, None]


# --- what is kept, and gone on with ----------------------------------------------------------------------------------


def test_results_are_kept_as_they_come_and_nothing_is_held_twice(tmp_path: Path):
    kept, app = {"results": tmp_path / "results.jsonl"}, Answers(talker)
    first = evaluate(suite("red", "blue"), {"app": app}, runs=2, **kept)
    held = len(app.threads)
    again = evaluate(suite("red", "blue"), {"app": app}, runs=2, resume=True, **kept)
    assert (len(app.threads), again) == (held, first)
    arms = {"app": app, "buys": Answers(buyer)}
    assert len(evaluate(suite("red", "new"), arms, runs=3, resume=True, **kept).conversations) == 12


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"glossary": "a lantern"}, "the agent's glossary of scenario"),
        ({"variable": "silver"}, "the agent's variables of scenario"),
        ({"priority": 3}, "the agent's guidelines or their tools of scenario"),
        ({"user": shopper(patience=9)}, "the user of scenario 'lamp'"),
        ({"limits": Limits(turns=3)}, "the limits of scenario"),
        ({"milestones": MilestoneGraph.from_actions([{"name": "find", "kwargs": {}}])}, "the milestones of"),
        ({"world": Says}, "the world of scenario"),
        ({"model": ScriptedChatModel([], model_name="other")}, "the agent's model"),
        ({"user_model": ScriptedChatModel([], model_name="other")}, "the users' model"),
        ({"depends_on": {"the endpoint": "there"}}, "the endpoint"),
        ({"seed": 2}, "the seed"),
    ],
)
def test_a_run_that_changed_is_not_gone_on_with_and_told_what_changed(
    tmp_path: Path, change: dict[str, Any], told: str
):
    def run(
        resume: bool, seed: int = 1, glossary: str = "", variable: str = "", priority: int = 0, **more: Any
    ):
        settings = {name: more.pop(name) for name in ("model", "user_model", "depends_on") if name in more}
        agent = shop_agent(
            guidelines=[Guideline("they ask for a lamp", "sell one", priority=priority)],
            glossary=[Term("lamp", glossary or "a light")],
            variables=[Variable("tier", "their tier", variable or "gold")],
        )
        tried = suite(agent=agent, **more).replace(seed=seed)
        file = tmp_path / "results.jsonl"
        return evaluate(tried, {"app": Answers(talker)}, results=file, resume=resume, **settings)

    run(resume=False)
    assert run(resume=True).conversations
    with pytest.raises(InputError, match=f"the results of another run: {told}.* changed since") as error:
        run(resume=True, **change)
    assert str(error.value).count("of scenario") <= 1, "nothing else is said to have changed"


# --- what it costs ---------------------------------------------------------------------------------------------------


def asks(
    calls: int, name: str = "gpt-4o-2024", usage: UsageMetadata | None = USAGE, fallback_of: Any = None
) -> Any:
    """An app that makes so many calls a turn, perhaps of a model that takes the place of another."""
    model = ScriptedChatModel(lambda call: AIMessage("hi", usage_metadata=usage), model_name=name)

    class Asks:
        made = model

        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            for _ in range(calls):
                asked = fallback_of.with_fallbacks([model]) if fallback_of else model
                await asked.ainvoke(input["messages"])
            return "hi"

    return Asks()


def test_calls_tokens_and_times_are_told_for_each_conversation_and_arm():
    report = evaluate(suite(), {"one": asks(1), "three": asks(3)}, runs=2)
    for one in report.conversations:
        assert one.model_calls == one.turns * (1 if one.arm == "one" else 3)
        assert one.input_tokens == 1_000 * one.model_calls
        assert len(one.turn_seconds) == one.turns


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_limit_for_calls_stops_cleanly_and_is_gone_on_with(tmp_path: Path, concurrency: int):
    kept, app = {"results": tmp_path / "results.jsonl", "runs": 20}, asks(2)
    report = evaluate(suite(), {"app": app}, concurrency=concurrency, max_calls=41, **kept)
    assert "max_calls" in str(report.stopped)
    assert report.missing == 20 - len(report.conversations)
    assert 41 <= len(app.made.calls) <= 41 + 2 * concurrency, (
        "turns under way are finished, and none is begun"
    )
    assert all(one.ended == "limit" for one in report.broken)
    read = [one for one in read_transcripts(kept["results"]) if isinstance(one, Transcript)]
    assert len(read) == len(report.conversations), "none that is unfinished passes for a whole one"
    again = asks(2)
    evaluate(suite(), {"app": again}, max_calls=41, resume=True, **kept)
    assert not again.made.calls, "what was spent before counts"
    report = evaluate(suite(), {"app": asks(2)}, max_calls=1_000, resume=True, **kept)
    assert (len(report.conversations), report.missing) == (20, 0)


@pytest.mark.parametrize(
    "fields", [{"user": None, "says": "A lamp?"}, {"user": shopper(intents=["A lamp?"])}]
)
@pytest.mark.parametrize(("concurrency", "spent"), [(1, 22), (4, 24)])
def test_a_conversation_that_is_over_with_its_turn_is_kept_whatever_the_limit(
    tmp_path: Path, concurrency: int, spent: int, fields: dict[str, Any]
):
    tried, kept = suite(**fields), {"runs": 20, "results": tmp_path / "results.jsonl"}
    first, rest = asks(2), asks(2)
    report = evaluate(tried, {"app": first}, concurrency=concurrency, max_calls=21, **kept)
    assert [one.ended for one in report.conversations] == ["user"] * (spent // 2), "none is cut off"
    assert (len(first.made.calls), report.missing) == (spent, 20 - spent // 2), "and none is begun"
    assert report.stopped == f"max_calls: the limit of 21 is reached (model calls so far: {spent})"
    report = evaluate(tried, {"app": rest}, resume=True, **kept)
    assert (report.missing, len(rest.made.calls)) == (0, 40 - spent), "nothing is paid for twice"


def test_a_limit_for_cost_holds_by_the_price_of_the_longest_name_that_fits(tmp_path: Path):
    prices = {"gpt-4o": (2.5, 10.0), "gpt-4": (30.0, 60.0)}
    cost = (1_000 * 2.5 + 100 * 10) / 1_000_000  # one call
    paid = {"runs": 20, "concurrency": 1, "prices": prices, "results": tmp_path / "results.jsonl"}
    for limit, resume in ((10, False), (15, True)):
        app = asks(2)
        report = evaluate(suite(), {"app": app}, max_cost=limit * cost, resume=resume, **paid)
        assert "max_cost" in str(report.stopped)
        assert limit <= len(app.made.calls) + 10 * resume <= limit + 3


@pytest.mark.parametrize(
    ("app", "told"),
    [
        (asks(2, "other"), "other has no price: give --prices other=IN/OUT"),
        (asks(2, usage=None), "reports no tokens"),
    ],
)
def test_a_cost_that_cannot_be_known_ends_the_run_and_is_not_kept(app: Any, told: str, tmp_path: Path):
    settings: dict[str, Any] = {
        "max_cost": 5,
        "prices": {"gpt-4o": (2.5, 10)},
        "results": tmp_path / "results",
    }
    with pytest.raises(InputError, match=told):
        evaluate(suite(), {"app": app}, runs=20, concurrency=1, **settings)
    assert len(app.made.calls) == 2
    assert len(settings["results"].read_text().splitlines()) == 1


def test_a_call_that_failed_costs_nothing_whatever_its_model():
    other = ScriptedChatModel(lambda call: no_way_there(), model_name="other")
    app = asks(1, fallback_of=other)
    report = evaluate(suite(), {"app": app}, max_cost=5, prices={"gpt-4o": (2.5, 10)})
    assert [one.error for one in report.conversations] == [None]
    assert len(other.calls) == len(app.made.calls) > 0


def test_calls_of_a_model_that_completes_texts_count():
    app = Answers(lambda messages: [AIMessage(FakeListLLM(responses=["hi"]).invoke("hello"))])
    report = evaluate(suite(), {"app": app}, runs=9, concurrency=1, max_calls=5)
    assert [one.model_calls for one in report.conversations] == [2, 2]
    assert report.stopped == "max_calls: the limit of 5 is reached (model calls so far: 5)"


@pytest.mark.parametrize("most", [11, 12])
def test_what_users_ask_counts_against_the_limit_and_not_for_the_arm(most: int):
    speaks = ScriptedChatModel(lambda call: speaking("Hello."))
    two, app = suite(limits=Limits(turns=2)), asks(1)
    report = evaluate(two, {"app": app}, runs=9, concurrency=1, user_model=speaks, max_calls=most)
    assert [one.model_calls for one in report.conversations] == [2, 2]
    assert report.stopped
    assert len(speaks.calls) + len(app.made.calls) == most, "no user is asked beyond it"
