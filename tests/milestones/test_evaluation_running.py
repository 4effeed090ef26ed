"""Runs × scenarios × arms: what is held, what is kept, what is gone on with, and what is said of what went wrong."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from arq_graph import Agent, ScriptedChatModel, create_guided_agent
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones import MilestoneGraph, Transcript, read_transcripts, score
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.running import aevaluate, evaluate
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.suite import BrokenScenario, Suite, seed_of
from arq_graph.milestones.reports.report import read_report, write_report
from tests.milestones.evaluated import (
    FIND_AND_BUY,
    Answers,
    buyer,
    deed,
    lamp,
    no_way_there,
    shop_agent,
    shopper,
    suite,
    talker,
)


def test_every_scenario_is_run_so_often_with_every_arm():
    apps = {"buys": Answers(buyer), "talks": Answers(talker)}
    report = evaluate(suite("red lamp", "blue lamp"), apps, runs=3)
    keys = [(one.run, one.scenario, one.arm) for one in report.conversations]
    assert keys == [
        (run, scenario, arm) for run in (1, 2, 3) for scenario in ("red lamp", "blue lamp") for arm in apps
    ]
    assert {arm: one.goal_completion.rate for arm, one in report.summary.arms.items()} == {
        "buys": 1,
        "talks": 0,
    }
    assert report.missing == 0
    assert report.stopped is None


def test_every_conversation_has_a_thread_of_its_own():
    app = Answers(talker)
    evaluate(suite("red", "blue"), {"app": app}, runs=4)
    assert len(set(app.threads)) == 8


def test_arms_of_one_run_have_the_same_seed_and_runs_have_others():
    report = evaluate(suite(), {"a": Answers(talker), "b": Answers(talker)}, runs=3)
    seeds = {(one.arm, one.run): one.seed for one in report.conversations}
    assert [seeds["a", run] for run in (1, 2, 3)] == [seeds["b", run] for run in (1, 2, 3)]
    assert len({seeds["a", run] for run in (1, 2, 3)}) == 3
    assert seeds["a", 2] == seed_of(1, "lamp", 2)


def test_arms_are_compared_over_the_runs_that_both_have():
    turns = Counter[str]()

    def sometimes(messages: list[BaseMessage]) -> list[BaseMessage]:
        turns["all"] += 1
        if turns["all"] == 1:
            no_way_there()
        return talker(messages)

    report = evaluate(
        suite("red", "blue"),
        {"buys": Answers(buyer), "fails once": Answers(sometimes)},
        runs=4,
        concurrency=1,
    )
    assert len(report.broken) == 1
    (compared,) = report.summary.comparisons
    overall = compared.comparison.overall
    assert (compared.a, compared.b, overall.pairs) == ("buys", "fails once", 7)
    assert (overall.split.only_a, overall.split.both) == (7, 0)
    assert overall.goal_completion.difference == -1


class Shop:
    """A world whose lamp can be bought once."""

    def __init__(self, seed: int) -> None:
        self.lamps = 1
        self.seed = seed

    def buy(self) -> str:
        """Buy a lamp."""
        if not self.lamps:
            raise ValueError("sold out")
        self.lamps -= 1
        return f"bought with seed {self.seed}"


def test_every_conversation_has_a_fresh_world_however_many_are_held_at_once():
    class Buys:
        def __init__(self, agent: Agent) -> None:
            self.tool = agent.toolbox["buy"]

        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            await asyncio.sleep(0)
            return {"messages": [*deed("buy", result=str(self.tool.invoke({}))), AIMessage("Bought.")]}

    scenarios = Suite([lamp(agent=shop_agent(), world=Shop, limits=Limits(turns=1))], seed=4)
    told: list[str] = []
    evaluate(
        scenarios,
        {"arm": lambda scenario, agent, model: Buys(agent)},
        runs=12,
        concurrency=6,
        done=lambda planned, outcome: told.append(str(outcome.error)),
    )
    assert told == ["None"] * 12


def test_without_a_world_an_arm_is_made_once_for_a_scenario():
    made = []

    def make(scenario: Scenario, agent: Any, model: Any) -> Answers:
        made.append((scenario.name, model))
        return Answers(talker)

    evaluate(suite("red", "blue"), {"arm": make}, runs=5, model="m")
    assert made == [("red", "m"), ("blue", "m")]


def test_results_are_kept_as_they_come_and_nothing_is_held_twice(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    app = Answers(talker)
    first = evaluate(suite("red", "blue"), {"app": app}, runs=2, results=file)
    held = len(app.threads)
    again = evaluate(suite("red", "blue"), {"app": app}, runs=2, results=file, resume=True)
    assert len(app.threads) == held
    assert again.to_json() == first.to_json()
    more = evaluate(
        suite("red", "blue"), {"app": app, "buys": Answers(buyer)}, runs=3, results=file, resume=True
    )
    assert len(file.read_text().splitlines()) == len(more.conversations) == 12


def test_a_line_that_was_cut_off_is_held_again(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    app = Answers(talker)
    first = evaluate(suite(), {"app": app}, runs=3, results=file, concurrency=1)
    file.write_bytes(file.read_bytes()[:-20])
    app.threads.clear()
    again = evaluate(suite(), {"app": app}, runs=3, results=file, resume=True)
    assert len(set(app.threads)) == 1
    assert [one.run for one in again.conversations] == [1, 2, 3] == [one.run for one in first.conversations]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["arq_graph"]["run"] for line in lines] == [1, 2, 3]


def test_results_of_an_earlier_run_are_not_touched_unless_asked_for(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    evaluate(suite(), {"app": Answers(talker)}, results=file)
    before = file.read_bytes()
    with pytest.raises(InputError, match="holds results already"):
        evaluate(suite(), {"app": Answers(talker)}, results=file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("content", ["my notes", '{"a": 1}\n', "[1, 2]\n"])
def test_a_file_that_holds_something_else_is_left_alone(tmp_path: Path, content: str):
    file = tmp_path / "notes.txt"
    file.write_text(content)
    for resume in (False, True):
        with pytest.raises(InputError, match=r"notes\.txt"):
            evaluate(suite(), {"app": Answers(talker)}, results=file, resume=resume)
    assert file.read_text() == content


def test_a_scenario_that_changed_is_not_gone_on_with(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    evaluate(suite(), {"app": Answers(talker)}, results=file)
    changed = Suite([Scenario("lamp", shopper(patience=9), FIND_AND_BUY, limits=Limits(turns=3))], seed=1)
    with pytest.raises(InputError, match=r"results.jsonl:1: the user, the limits of scenario 'lamp' changed"):
        evaluate(changed, {"app": Answers(talker)}, results=file, resume=True)
    with pytest.raises(InputError, match="the model of scenario"):
        evaluate(suite(), {"app": Answers(talker)}, results=file, resume=True, depends_on={"the model": "x"})
    with pytest.raises(InputError, match="the seed of scenario"):
        evaluate(Suite([lamp()], seed=2), {"app": Answers(talker)}, results=file, resume=True)


def test_the_file_of_results_can_be_scored_again(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    report = evaluate(suite(), {"buys": Answers(buyer), "talks": Answers(talker)}, runs=2, results=file)
    again = [one for one in read_transcripts(file) if isinstance(one, Transcript)]
    assert len(again) == 4
    for transcript in again:
        record = next(one for one in report.conversations if one.id == transcript.id)
        assert score(FIND_AND_BUY, transcript).progress_rate == record.progress_rate
    assert [record for record, _ in read_results(file)] == sorted(
        report.conversations, key=lambda one: [t.id for t in again].index(one.id)
    )


def test_a_report_with_arms_is_written_and_read_again(tmp_path: Path):
    report = evaluate(suite(), {"buys": Answers(buyer), "talks": Answers(talker)}, runs=2)
    write_report(tmp_path / "report.json", report)
    assert read_report(tmp_path / "report.json") == report


def test_an_arm_that_raises_in_the_third_conversation_is_named_and_the_others_are_unharmed():
    threads: dict[str, None] = {}

    class Fails(Answers):
        def _take(self, input: Any, config: Any) -> Any:
            threads[config["configurable"]["thread_id"]] = None
            if len(threads) == 3:
                raise RuntimeError("kaputt")
            return super()._take(input, config)

    report = evaluate(suite("a", "b", "c", "d", "e"), {"arm": Fails(buyer)}, concurrency=1)
    assert [one.error for one in report.conversations] == [None, None, "RuntimeError: kaputt", None, None]
    assert [one.goal_completed for one in report.conversations] == [True, True, False, True, True]
    assert report.summary.arms["arm"].ended == {"user": 4, "error": 1}


def test_a_model_that_answers_with_another_schema_is_named_and_the_other_arm_is_unharmed():
    model = ScriptedChatModel(lambda call: {"surprise": 1})

    def guided(scenario: Scenario, agent: Any, model: Any) -> Any:
        return create_guided_agent(model, agent, checkpointer=InMemorySaver())

    scenarios = Suite([lamp(agent=shop_agent())])
    report = evaluate(scenarios, {"guided": guided, "buys": Answers(buyer)}, model=model)
    guided_one, buys = report.conversations
    assert guided_one.ended == "error"
    assert "BlueprintError" in str(guided_one.error)
    assert buys.goal_completed


def test_an_arm_that_cannot_be_made_is_named_and_does_not_end_the_run():
    def broken(scenario: Scenario, agent: Any, model: Any) -> Any:
        raise KeyError("no such thing")

    report = evaluate(suite("a", "b", "c", "d"), {"broken": broken, "buys": Answers(buyer)}, concurrency=1)
    assert len(report.broken) == 4
    assert "a / broken / 1: the arm could not be made: KeyError: 'no such thing'" in report.broken[0].error
    assert report.summary.arms["buys"].goal_completion.count == 4


def test_a_world_that_has_none_of_the_tools_is_named():
    class Empty:
        pass

    scenarios = Suite([lamp(agent=shop_agent(), world=Empty), lamp("other")])
    report = evaluate(scenarios, {"arm": lambda scenario, agent, model: Answers(buyer)})
    assert "none of the agent's tools" in report.broken[0].error
    assert [one.scenario for one in report.conversations] == ["other"]


def test_a_scenario_that_cannot_be_used_is_named_and_the_others_are_run():
    odd = BrokenScenario("odd", SpecError("no tools", file="suite.yaml", line=3))
    report = evaluate(Suite([lamp()], broken=[odd]), {"buys": Answers(buyer)})
    assert [(one.scenario, one.error) for one in report.broken] == [("odd", "odd: suite.yaml:3: no tools")]
    assert len(report.conversations) == 1
    with pytest.raises(SpecError, match="no tools"):
        evaluate(Suite([], broken=[odd]), {"buys": Answers(buyer)})


def test_a_model_for_users_that_is_none_is_told_before_anything_is_held():
    app = Answers(talker)
    with pytest.raises(InputError):
        evaluate(suite(), {"app": app}, user_model=7)
    assert not app.threads


def test_a_loop_that_runs_already_is_told_apart():
    async def inside() -> None:
        evaluate(suite(), {"app": Answers(talker)})

    with pytest.raises(InputError, match="aevaluate"):
        asyncio.run(inside())


async def test_it_can_be_awaited():
    report = await aevaluate(suite(), {"app": Answers(buyer)}, runs=2)
    assert report.summary.overall.goal_completion.count == 2


def test_it_can_be_run_twice_with_an_app_that_keeps_connections_of_its_loop():
    class Keeps:
        loop: Any = None

        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            self.loop = self.loop or asyncio.get_running_loop()
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop))
            return "hi"

    app = Keeps()
    for _ in range(2):
        (one,) = evaluate(suite(), {"app": app}).conversations
        assert one.error is None


def test_so_many_conversations_are_under_way_at_once_and_no_more():
    now, most = 0, 0

    class Slow:
        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            nonlocal now, most
            now += 1
            most = max(most, now)
            for _ in range(5):
                await asyncio.sleep(0)
            now -= 1
            return "hi"

    evaluate(suite(), {"app": Slow()}, runs=30, concurrency=7)
    assert most == 7


@pytest.mark.parametrize(
    "settings",
    [
        *({"runs": 0}, {"runs": "2"}, {"concurrency": 0}, {"concurrency": "8"}, {"concurrency": True}),
        *({"max_calls": 0}, {"max_calls": "9"}, {"max_calls": 1.5}, {"max_calls": True}),
        *({"max_cost": bad, "prices": {"m": (1, 1)}} for bad in (0, "2", float("nan"), float("inf"))),
        *({"operator": bad} for bad in ("maybe", None, 5, ["approve"])),
        *({"judge": bad} for bad in (5, "openai:gpt-4o")),
    ],
)
def test_a_setting_out_of_its_range_is_refused(settings):
    app = Answers(talker)
    with pytest.raises(InputError, match=next(iter(settings))):
        evaluate(suite(), {"app": app}, **settings)
    assert not app.threads, "before anything is held"


@pytest.mark.parametrize(
    "price", [1, "ab", (1,), (1, 2, 3), ("a", "b"), (1, -1), (float("nan"), 1), {"in": 1, "out": 2}, None]
)
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(InputError, match=r"the price of 'x' must be two numbers"):
        evaluate(suite(), {"app": Answers(talker)}, prices={"x": price})


@pytest.mark.parametrize("prices", [5, [("x", 1, 2)], {3: (1, 2)}])
def test_prices_are_a_mapping_of_names(prices):
    with pytest.raises(InputError, match="prices"):
        evaluate(suite(), {"app": Answers(talker)}, prices=prices)


def test_an_arm_that_is_no_app_is_refused():
    with pytest.raises(InputError, match="the arm 'x' is a int"):
        evaluate(suite(), {"x": 3})
    with pytest.raises(InputError, match="the arms are a list"):
        evaluate(suite(), ["x"])
    with pytest.raises(InputError, match="no arm"):
        evaluate(suite(), {})


def test_threads_that_an_arm_keeps_in_memory_are_forgotten_and_the_users_own_are_kept():
    def app() -> Any:
        builder = StateGraph(MessagesState)
        builder.add_node("answer", lambda state: {"messages": [AIMessage("hi")]})
        builder.set_entry_point("answer")
        return builder.compile(InMemorySaver())

    made, own = app(), app()
    evaluate(suite(), {"made": lambda scenario, agent, model: made, "own": own}, runs=3)
    assert len(made.checkpointer.storage) == 0
    assert len(own.checkpointer.storage) == 3


def test_what_is_undecided_is_decided_by_a_judge_that_sees_tools_and_instructions():
    graph = MilestoneGraph.from_yaml(_nfc_file())
    seen: list[Transcript] = []

    def judge(graph: Any, transcript: Transcript, observations: Any) -> Any:
        from arq_graph.milestones import Verdict

        seen.append(transcript)
        return [Verdict("polite", True, 2, "I see.")]

    report = evaluate(
        Suite([lamp(milestones=graph, agent=shop_agent(), limits=Limits(turns=1))]),
        {"app": Answers(talker)},
        judge=judge,
    )
    assert [one.goal_completed for one in report.conversations] == [True]
    assert "A shop." in seen[0].instructions
    assert set(seen[0].tools) == {"find", "buy"}


def test_a_judge_that_raises_is_named_and_does_not_end_the_run():
    def judge(graph: Any, transcript: Transcript, observations: Any) -> Any:
        if "/ 2" in transcript.id:
            raise RuntimeError("no opinion")
        return []

    graph = MilestoneGraph.from_yaml(_nfc_file())
    report = evaluate(suite(milestones=graph), {"app": Answers(talker)}, judge=judge, runs=3)
    assert [one.run for one in report.conversations] == [1, 3]
    assert "lamp / app / 2: it could not be measured: RuntimeError: no opinion" in report.broken[0].error


def _nfc_file() -> str:
    import tempfile

    file = Path(tempfile.mkdtemp()) / "polite.yaml"
    file.write_text(
        "milestones:\n- {name: Start, type: NFC}\n"
        "- {name: polite, type: NFC, description: The agent is polite., dependencies: [Start]}\n"
        "- {name: End, type: NFC, dependencies: [polite]}\n"
    )
    return str(file)


def test_how_many_reached_the_milestone_of_the_users_goal_is_told_apart_from_the_end(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    graph = _graph_with_a_hand_over(tmp_path)
    scenarios = [lamp("named", milestones=graph, goal="buy"), lamp("not named", milestones=graph)]
    apps = {
        "buys": Answers(buyer),
        "hands over": Answers(lambda messages: [*deed("hand_over"), AIMessage("A colleague takes over.")]),
    }
    report = evaluate(Suite(scenarios), apps, runs=2, results=file)
    arms = report.summary.arms
    assert {name: one.goal_completion.rate for name, one in arms.items()} == {"buys": 1, "hands over": 1}
    reached = {name: one.goal_reached for name, one in arms.items()}
    assert {name: (one.count, one.n) for name, one in reached.items() if one} == {
        "buys": (2, 2),
        "hands over": (0, 2),
    }
    write_report(tmp_path / "report.json", report)
    assert read_report(tmp_path / "report.json") == report
    later = [lamp(each.name, milestones=graph, goal="hand_over") for each in scenarios]
    again = evaluate(Suite(later), apps, runs=2, results=file, resume=True).summary.arms["hands over"]
    assert again.goal_reached is not None
    assert (again.goal_reached.count, again.goal_reached.n) == (4, 4), "a goal that was named since counts"
    assert evaluate(suite(), {"buys": Answers(buyer)}).summary.arms["buys"].goal_reached is None


def test_a_goal_that_is_undecided_is_counted_as_neither():
    graph = MilestoneGraph.from_yaml(_nfc_file())
    report = evaluate(suite(milestones=graph, goal="polite"), {"app": Answers(talker)})
    reached = report.summary.arms["app"].goal_reached
    assert reached is not None
    assert (reached.count, reached.n, reached.unknown) == (0, 0, 1)


def _graph_with_a_hand_over(folder: Path) -> MilestoneGraph:
    file = folder / "goals.yaml"
    file.write_text(
        "milestones:\n- {name: Start, type: NFC}\n- {name: buy, type: FC, dependencies: [Start]}\n"
        "- {name: hand_over, type: FC, dependencies: [Start]}\n"
        "- {name: End, type: NFC, dependencies: [buy, hand_over]}\n"
    )
    return MilestoneGraph.from_yaml(file)


def test_who_is_answered_asks_on_before_another_answer_is_looked_at():
    # Otherwise all conversations ask again only once the last of them has been seen to, and wait longer than they need.
    class Together:
        def __init__(self) -> None:
            self.log: list[tuple[str, str]] = []
            self.all_are_there = asyncio.Barrier(3)

        async def ainvoke(self, input: Any, config: Any = None) -> Any:
            thread = config["configurable"]["thread_id"]
            if len(input["messages"]) == 1:
                await self.all_are_there.wait()
                self.log.append((thread, "is answered"))
            else:
                self.log.append((thread, "asks on"))
            return {"messages": [AIMessage("I see.")]}

    app = Together()
    report = evaluate(suite(), {"app": app}, runs=3, concurrency=3)
    assert [one.ended for one in report.conversations] == ["user"] * 3
    threads = [thread for thread, _ in app.log[::2]]
    assert len(set(threads)) == 3
    assert app.log == [(thread, does) for thread in threads for does in ("is answered", "asks on")]


def test_lines_hold_what_a_person_can_read(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    evaluate(suite(), {"buys": Answers(buyer)}, results=file)
    line = json.loads(file.read_text())
    assert [message["type"] for message in line["messages"]][:4] == ["human", "ai", "tool", "ai"]
    assert line["arq_graph"]["record"]["turn_seconds"]
