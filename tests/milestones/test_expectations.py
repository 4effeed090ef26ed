"""One answer and what it must be: scenarios with a history, a message, and an expectation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from arq_graph import Agent, Guideline, Variable, create_guided_agent
from arq_graph.errors import InputError, SpecError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Scenario, Suite, Verdict, evaluate
from tests.milestones.conversations import graph_of
from tests.milestones.evaluated import Answers, deed


def get_stock(flower: str) -> dict[str, int]:
    """Look up how many there are.

    Args:
        flower: Which flower.
    """
    return {"red": 4}


def order(flower: str, count: int = 1) -> str:
    """Order flowers.

    Args:
        flower: Which flower.
        count: How many.
    """
    return "ordered"


FLORIST = Agent(
    "Florist",
    "You are a florist.",
    guidelines=[
        Guideline("the customer orders tulips", 'say "I recommend a card."', id="card"),
        Guideline("the customer asks about roses", "look up the stock", id="stock", tools=[get_stock, order]),
    ],
    variables=[Variable(name="tier", description="loyalty", value="none", settable=True)],
)
HISTORY = [
    {"user": "Do you have roses?"},
    {"call": "get_stock", "arguments": {"flower": "rose"}, "result": {"red": 4}},
    {"agent": "Yes, four red ones, and I guarantee they are fresh."},
]

CALL = {"call": "get_stock"}


def scenario(**given: Any) -> Scenario:
    return Scenario(**{"name": "one", "agent": FLORIST, "says": "I would like to order tulips.", **given})


def success(expect: dict[str, Any], *answer: Any, **given: Any) -> bool | None:
    """Whether an answer is what is expected."""
    app = Answers(lambda _: [*answer])
    held = scenario(history=HISTORY, expect=expect, **given)
    report = evaluate(Suite([held]), {"app": app})
    (conversation,) = report.conversations
    return conversation.goal_completed


def _failed(deed: list[Any]) -> list[Any]:
    return [deed[0], deed[1].model_copy(update={"status": "error"})]


@pytest.mark.parametrize(
    ("answer", "is_right"),
    [
        ([AIMessage("Four roses, ordered.")], False),
        ([*deed("order", flower="rose", count=4), AIMessage("Four roses, ordered.")], True),
        ([*deed("order", flower="rose", count=3), AIMessage("Four roses, ordered.")], False),
        ([*_failed(deed("order", flower="rose", count=4)), AIMessage("Four roses, ordered.")], False),
        ([*deed("order", flower="rose", count=4), AIMessage("Ordered.")], False),
        ([*deed("order", flower="rose", count=4), AIMessage("Four roses, I guarantee.")], False),
        (
            [
                *deed("order", flower="rose", count=4),
                *deed("order", flower="tulip", count=4),
                AIMessage("Four roses."),
            ],
            False,
        ),
        (
            [
                *deed("get_stock", flower="rose"),
                *deed("order", flower="rose", count=4),
                AIMessage("Four roses."),
            ],
            False,
        ),
    ],
    ids=[
        "no call",
        "right",
        "wrong argument",
        "failed",
        "says too little",
        "says it",
        "one more",
        "other tool",
    ],
)
def test_a_turn_is_right_if_its_calls_and_its_words_are(answer: list[Any], is_right: bool):
    expect = {
        "calls": [{"tool": "order", "arguments": {"flower": "rose", "count": {"min": 4}}}],
        "says": [{"pattern": "(?i)four"}],
        "never": ["guarantee"],
    }
    assert success(expect, *answer) is is_right


def test_a_tool_that_may_be_called_may_be_called_with_anything():
    answer = [*deed("get_stock", flower="rose"), *deed("get_stock", flower="tulip"), AIMessage("Yes.")]
    assert success({"may_call": ["get_stock"]}, *answer)
    assert not success({"says": [{"pattern": "Yes"}]}, *answer)


def test_nothing_that_came_before_counts():
    expect = {"calls": [{"tool": "get_stock"}], "never": ["guarantee"], "says": [{"pattern": "four"}]}
    assert success(expect, AIMessage("No.")) is False
    assert success({"never": ["guarantee"]}, AIMessage("No.")) is True


@pytest.mark.parametrize(
    ("at", "quote", "is_right"),
    [(8, "Would you like a card?", True), (4, "I guarantee they are fresh", None)],
)
def test_what_only_words_tell_is_left_to_a_judge(at: int, quote: str, is_right: bool | None):
    def judge(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
        return [Verdict(name, True, at, quote) for name in observations.undecided]

    expect = {"calls": [{"tool": "order"}], "says": [{"criterion": "offers a card"}]}
    app = Answers(lambda _: [*deed("order", flower="tulip"), AIMessage("Would you like a card?")])
    suite = Suite([scenario(history=HISTORY, expect=expect)])
    assert evaluate(suite, {"app": app}).conversations[0].goal_completed is None
    found = evaluate(suite, {"app": app}, judge=judge).conversations[0]
    assert found.goal_completed is is_right
    assert is_right or "came before the part that is judged" in found.reasons["Says 1: offers a card"]


@pytest.mark.parametrize("mode", ["guided", "cot", "direct"])
def test_the_matcher_alone_is_right_if_exactly_the_expected_guidelines_are_active(mode: str):
    suite = Suite(
        [
            scenario(name="card", expect={"active": ["card"]}),
            scenario(name="both", expect={"active": ["card", "stock"]}),
            scenario(name="neither", says="Good morning.", expect={"active": []}),
        ]
    )
    report = evaluate(suite, load_arms([mode]), model="offline")
    assert [one.goal_completed for one in report.conversations] == [True, False, True]
    assert all(one.model_calls == 1 for one in report.conversations)


def test_where_an_arm_has_no_matcher_cases_for_it_alone_are_left_out_for_all_arms():
    of_matcher = scenario(name="card", expect={"active": ["card"]})
    mixed = Suite([of_matcher, scenario(name="turn", expect={"says": [{"pattern": "."}]})])

    def able(scenario: Any, agent: Any, model: Any, *, matches_only: bool) -> Any:
        return Answers(lambda _: [AIMessage("active: card" if matches_only else "Hello.")])

    def unable(scenario: Any, agent: Any, model: Any) -> Any:
        return Answers(lambda _: [AIMessage("Hello.")])

    tried = {**load_arms(["guided"]), "able": able}
    found = evaluate(mixed, tried, model="offline").conversations
    assert [(one.scenario, one.goal_completed) for one in found] == [
        *[("card", True)] * 2,
        *[("turn", True)] * 2,
    ]
    for other in ({"unable": unable}, {"app": unable(None, None, None)}, load_arms(["react"])):
        with pytest.warns(
            UserWarning, match=f"1 scenario of suite left out for all arms.*{next(iter(other))} cannot"
        ):
            report = evaluate(mixed, tried | other, model="offline")
        assert ({one.scenario for one in report.conversations}, len(report.conversations)) == ({"turn"}, 3)
        with pytest.raises(InputError, match="compare arms with a matcher"):
            evaluate(Suite([of_matcher]), other, model="offline")


def test_a_call_that_failed_may_have_been_wrong():
    failed = {**CALL, "arguments": {"flower": 3}, "error": "no such flower"}
    assert scenario(history=[failed, CALL | {"error": "which?"}], expect={"active": []}).history


def test_history_and_variables_reach_the_app_once():
    seen: list[Any] = []

    class Watching(Answers):
        async def ainvoke(self, given: Any, config: Any = None, **_: Any) -> Any:
            seen.append(given)
            return await super().ainvoke(given, config)

    held = scenario(history=HISTORY, variables={"tier": "gold"}, expect={"says": [{"pattern": "."}]})
    evaluate(Suite([held]), {"app": Watching(lambda _: [AIMessage("Hello.")])})
    (given,) = seen
    assert [message.type for message in given["messages"]] == ["human", "ai", "tool", "ai", "human"]
    assert given["variables"] == {"tier": "gold"}
    state = create_guided_agent("offline", FLORIST).invoke(given)
    assert state["variables"] == {"tier": "gold"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"expect": {"active": ["cart"]}}, "did you mean `card`?"),
        ({"expect": {"may_call": ["get_stok"]}}, "did you mean `get_stock`?"),
        ({"expect": {"calls": [{"tool": "order", "arguments": {"cuont": 1}}]}}, "did you mean `count`?"),
        (
            {"expect": {"calls": [{"tool": "order", "arguments": {"flower": {"regexp": "r"}}}]}},
            "did you mean `regex`?",
        ),
        (
            {"expect": {"active": []}, "history": [{"call": "get_stok", "result": 1}]},
            "history[0]`: the agent has no tool 'get_stok'; did you mean `get_stock`?",
        ),
        (
            {
                "expect": {"active": []},
                "history": [{"call": "order", "arguments": {"when": 1}, "error": "no"}],
            },
            "history[0].arguments.when`: the tool 'order' has no argument 'when'; it takes flower, count",
        ),
        (
            {"expect": {"active": []}, "history": [{**CALL, "arguments": {"flower": 3}, "result": 1}]},
            "history[0].arguments.flower`: the tool 'get_stock' cannot take the argument 'flower': 3 is not of type",
        ),
        (
            {"expect": {"active": []}, "history": [{**CALL, "result": 1}]},
            "the tool 'get_stock' cannot take the argument 'flower': it is required",
        ),
        ({"expect": {"active": []}, "history": [CALL]}, "either the call's `result` or its `error`"),
        (
            {"expect": {"active": []}, "history": [{**CALL, "result": 1, "error": "no"}]},
            "either the call's `result` or its `error`",
        ),
        ({"expect": {"active": [], "says": []}}, "for the matcher alone"),
        ({"expect": {"reply": "Hello."}}, "expects nothing"),
        ({"expect": {"says": [{}]}}, "either a `pattern` or a `criterion`"),
        ({"expect": {"active": []}, "history": [{"user": "Hi", "agent": "Hi"}]}, "one of `user`, `agent`"),
        ({"expect": {"active": []}, "history": [{"user": "Hi", "result": 1}]}, "no `call`"),
        ({"expect": {"active": []}, "says": None}, "has `expect`, and no `says`"),
        ({"expect": {"active": []}, "agent": None}, "names no `agent`"),
        (
            {"expect": {"active": []}, "variables": {"teir": "gold"}},
            "the agent has no settable variable 'teir'; did you mean",
        ),
        ({}, "give `milestones`, or `says` and what to `expect`"),
        ({"milestones": graph_of("- {name: Start, type: NFC}"), "says": None}, "must have either a `user`"),
    ],
)
def test_what_cannot_be_expected_is_told(given: dict[str, Any], said: str):
    with pytest.raises(SpecError, match=re.escape(said)):
        scenario(**given)


def test_a_suite_file_holds_answers_and_includes_others(tmp_path: Path):
    (tmp_path / "agent.yaml").write_text(
        "name: A\nprofile: A.\nguidelines: [{id: one, condition: it rains, action: say so}]\n"
    )
    entry = "says: It rains.\n  expect: {active: [one]}\n"
    (tmp_path / "suite.yaml").write_text(
        f"defaults: {{agent: agent.yaml, kinds: [helpful], milestones: no.yaml}}\n"
        f"scenarios:\n- name: own\n  {entry}include: [other.yaml]\n"
    )
    (tmp_path / "other.yaml").write_text(
        f"defaults: {{agent: agent.yaml}}\nscenarios:\n- name: other\n  {entry}"
    )
    suite = Suite.from_yaml(tmp_path / "suite.yaml")
    assert [one.name for one in suite.scenarios] == ["own", "other"]
    assert evaluate(suite, load_arms(["guided"]), model="offline").summary.overall.goal_completion.count == 2
    (tmp_path / "other.yaml").write_text("scenarios:\n- name: other\n  says: Hi\n")
    with pytest.raises(SpecError, match=r"suite.yaml:\d.*other.yaml"):
        Suite.from_yaml(tmp_path / "suite.yaml")


def test_a_world_takes_arguments_and_tells_its_outcome(tmp_path: Path):
    (tmp_path / "world.py").write_text(
        "class Shop:\n"
        "    def __init__(self, wanted: str, seed: int = 0) -> None:\n"
        "        self.wanted, self.seed, self.bought = wanted, seed, None\n"
        "    def buy(self, colour: str) -> str:\n"
        '        """Buy one.\n\n        Args:\n            colour: Which.\n        """\n'
        "        self.bought = colour\n        return 'bought'\n"
        "    def outcome(self) -> dict[str, bool]:\n        return {'success': self.bought == self.wanted}\n"
        "def buy(colour: str) -> str:\n"
        '    """Buy one.\n\n    Args:\n        colour: Which.\n    """\n    return "nothing"\n'
    )
    (tmp_path / "agent.yaml").write_text("name: A\nprofile: A.\ntools: [world:buy]\n")
    suite = (
        "defaults: {agent: agent.yaml}\nscenarios:\n- name: blue\n  says: Blue, please.\n"
        "  world: {of: world:Shop, wanted: blue}\n  expect: {calls: [{tool: buy}]}\n"
    )
    (tmp_path / "suite.yaml").write_text(suite)
    worlds: list[Any] = []

    def arm(scenario: Any, agent: Any, model: Any, world: Any) -> Any:
        worlds.append(world)
        agent.toolbox["buy"].invoke({"colour": "blue"})
        return Answers(lambda _: [*deed("buy", colour="blue"), AIMessage("Done.")])

    report = evaluate(Suite.from_yaml(tmp_path / "suite.yaml"), {"arm": arm})
    assert report.conversations[0].outcome == {"success": True}
    assert worlds[0].seed == report.conversations[0].seed
    (tmp_path / "suite.yaml").write_text(suite.replace("wanted:", "wonted:"))
    with pytest.raises(SpecError, match="takes the given arguments: missing a required argument: 'wanted'"):
        Suite.from_yaml(tmp_path / "suite.yaml")


def test_an_expected_call_is_made_once():
    expect = {"calls": [{"tool": "order", "arguments": {"flower": "rose"}}] * 2}
    once, twice, again = (
        [each for number in range(many) for each in deed("order", number, flower="rose")]
        for many in (1, 2, 3)
    )
    assert success({"calls": expect["calls"][:1]}, *once, AIMessage("Done.")) is True
    assert success({"calls": expect["calls"][:1]}, *twice, AIMessage("Done.")) is False
    assert success(expect, *twice, AIMessage("Done.")) is True
    assert success(expect, *again, AIMessage("Done.")) is False


@pytest.mark.parametrize("said", [True, {"note": "well"}, ZeroDivisionError("oops")])
def test_an_outcome_that_cannot_be_told_ends_its_conversation_alone(said: Any):
    class Broken:
        def order(self, flower: str, count: int = 1) -> str:
            """Order flowers.

            Args:
                flower: Which flower.
                count: How many.
            """
            return "ordered"

        def outcome(self) -> Any:
            if isinstance(said, Exception):
                raise said
            return said

    broken = scenario(name="broken", world=Broken, expect={"says": [{"pattern": "."}]})
    fine = scenario(name="fine", expect={"says": [{"pattern": "."}]})
    report = evaluate(Suite([broken, fine]), {"arm": lambda *_: Answers(lambda _: [AIMessage("Hello.")])})
    assert [one.scenario for one in report.conversations] == ["fine"]
    assert "outcome()" in report.broken[0].error or "oops" in report.broken[0].error
