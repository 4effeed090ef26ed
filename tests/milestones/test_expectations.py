"""One answer and what it must be: scenarios with a history, a message, and an expectation."""

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from arq_graph import Agent, Guideline, Variable, create_guided_agent
from arq_graph.errors import InputError, SpecError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import (
    Scenario,
    Suite,
    Verdict,
    evaluate,
    parse_milestones,
)
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


def scenario(**fields: Any) -> Scenario:
    return Scenario(**{"name": "one", "agent": FLORIST, "says": "I would like to order tulips.", **fields})


def is_success(expect: dict[str, Any], *answer: Any) -> bool | None:
    """Return whether an answer is the expected one."""
    app = Answers(lambda _: [*answer])
    report = evaluate(Suite([scenario(history=HISTORY, expect=expect)]), {"app": app})
    (conversation,) = report.conversations
    return conversation.goal_completed


def fail(deed: list[Any]) -> list[Any]:
    call, result = deed
    return [call, result.model_copy(update={"status": "error"})]


ORDERED = deed("order", flower="rose", count=4)


@pytest.mark.parametrize(
    ("calls", "reply", "is_right"),
    [
        ([], "Four roses, ordered.", False),
        (ORDERED, "Four roses, ordered.", True),
        (deed("order", flower="rose", count=3), "Four roses, ordered.", False),
        (fail(ORDERED), "Four roses, ordered.", False),
        (ORDERED, "Ordered.", False),
        (ORDERED, "Four roses, I guarantee.", False),
        ([*ORDERED, *deed("order", flower="tulip", count=4)], "Four roses.", False),
        ([*deed("get_stock", flower="rose"), *ORDERED], "Four roses.", False),
    ],
    ids=["no call", "right", "argument", "failed", "says too little", "says it", "one more", "other tool"],
)
def test_a_turn_is_right_if_its_calls_and_its_words_are(calls: list[Any], reply: str, is_right: bool):
    expect = {
        "calls": [{"tool": "order", "arguments": {"flower": "rose", "count": {"min": 4}}}],
        "says": [{"pattern": "(?i)four"}],
        "never": ["guarantee"],
    }
    assert is_success(expect, *calls, AIMessage(reply)) is is_right


def test_a_tool_that_may_be_called_may_be_called_with_anything():
    answer = [*deed("get_stock", flower="rose"), *deed("get_stock", flower="tulip"), AIMessage("Yes.")]
    assert is_success({"may_call": ["get_stock"]}, *answer)
    assert not is_success({"says": [{"pattern": "Yes"}]}, *answer)


def test_nothing_in_the_history_counts():
    expect = {"calls": [{"tool": "get_stock"}], "never": ["guarantee"], "says": [{"pattern": "four"}]}
    assert is_success(expect, AIMessage("No.")) is False
    assert is_success({"never": ["guarantee"]}, AIMessage("No.")) is True


def test_an_expected_call_is_made_once():
    expected_call = {"tool": "order", "arguments": {"flower": "rose"}}

    def order_times(number: int) -> list[Any]:
        calls = [message for at in range(number) for message in deed("order", at, flower="rose")]
        return [*calls, AIMessage("Done.")]

    assert is_success({"calls": [expected_call]}, *order_times(1)) is True
    assert is_success({"calls": [expected_call]}, *order_times(2)) is False
    assert is_success({"calls": [expected_call] * 2}, *order_times(2)) is True
    assert is_success({"calls": [expected_call] * 2}, *order_times(3)) is False


@pytest.mark.parametrize(
    ("step", "quote", "is_right"),
    [(8, "Would you like a card?", True), (4, "I guarantee they are fresh", None)],
)
def test_a_criterion_is_decided_by_a_judge_who_quotes_the_reply(step: int, quote: str, is_right: bool | None):
    def judge(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
        return [Verdict(name, True, step, quote) for name in observations.undecided]

    expect = {"calls": [{"tool": "order"}], "says": [{"criterion": "offers a card"}]}
    app = Answers(lambda _: [*deed("order", flower="tulip"), AIMessage("Would you like a card?")])
    suite = Suite([scenario(history=HISTORY, expect=expect)])
    assert evaluate(suite, {"app": app}).conversations[0].goal_completed is None
    conversation = evaluate(suite, {"app": app}, judge=judge).conversations[0]
    assert conversation.goal_completed is is_right
    if not is_right:
        reason = conversation.reasons["Says 1: offers a card"]
        assert "came before the part that is judged" in reason


def test_a_user_may_say_several_messages_whatever_the_agent_answers():
    says = ["Do you have roses?", "Then I take two."]
    expect = {"calls": [{"tool": "order", "arguments": {"count": 2}}]}

    def answer(messages: Any) -> list[Any]:
        is_second = messages[-1].text == says[-1]
        return [*deed("order", flower="rose", count=2), AIMessage("Done.")] if is_second else [AIMessage("?")]

    report = evaluate(Suite([scenario(says=says, expect=expect)]), {"app": Answers(answer)})
    (conversation,) = report.conversations
    assert (conversation.goal_completed, conversation.turns) == (True, 2)
    with pytest.raises(SpecError, match="must be one message, since `expect` has `active`"):
        scenario(says=says, expect={"active": ["card"]})


def test_the_matcher_alone_is_right_if_exactly_the_expected_guidelines_are_active():
    suite = Suite(
        [
            scenario(name="card", expect={"active": ["card"]}),
            scenario(name="both", expect={"active": ["card", "stock"]}),
            scenario(name="neither", says="Good morning.", expect={"active": []}),
        ]
    )
    report = evaluate(suite, load_arms(["guided", "cot", "direct"]), model="offline")
    assert [one.goal_completed for one in report.conversations] == [True] * 3 + [False] * 3 + [True] * 3
    assert all(one.model_calls == 1 for one in report.conversations)


def test_cases_for_the_matcher_are_left_out_for_all_arms_if_one_has_no_matcher():
    case_of_matcher = scenario(name="card", expect={"active": ["card"]})
    suite = Suite([case_of_matcher, scenario(name="turn", expect={"says": [{"pattern": "."}]})])

    def able(scenario: Any, agent: Any, model: Any, *, matcher_only: bool) -> Any:
        return Answers(lambda _: [AIMessage("active: card" if matcher_only else "Hello.")])

    def unable(scenario: Any, agent: Any, model: Any) -> Any:
        return Answers(lambda _: [AIMessage("Hello.")])

    arms = {**load_arms(["guided"]), "able": able}
    conversations = evaluate(suite, arms, model="offline").conversations
    assert [(one.scenario, one.goal_completed) for one in conversations] == [
        *[("card", True)] * 2,
        *[("turn", True)] * 2,
    ]
    for other in ({"unable": unable}, {"app": unable(None, None, None)}, load_arms(["react"])):
        message = f"skipped 1 matcher-only scenario of suite for all arms.*{next(iter(other))} cannot"
        with pytest.warns(UserWarning, match=message):
            report = evaluate(suite, arms | other, model="offline")
        assert [one.scenario for one in report.conversations] == ["turn"] * 3
    with pytest.raises(InputError, match="compare arms with a matcher"):
        evaluate(Suite([case_of_matcher]), other, model="offline")


def test_a_call_that_failed_may_have_been_wrong():
    failed = {**CALL, "arguments": {"flower": 3}, "error": "no such flower"}
    assert scenario(history=[failed, CALL | {"error": "which?"}], expect={"active": []}).history


def test_history_and_variables_reach_the_app_once():
    seen: list[Any] = []

    class Watching(Answers):
        async def ainvoke(self, input: Any, config: Any = None, **_: Any) -> Any:
            seen.append(input)
            return await super().ainvoke(input, config)

    case = scenario(history=HISTORY, variables={"tier": "gold"}, expect={"says": [{"pattern": "."}]})
    evaluate(Suite([case]), {"app": Watching(lambda _: [AIMessage("Hello.")])})
    (app_input,) = seen
    assert [message.type for message in app_input["messages"]] == ["human", "ai", "tool", "ai", "human"]
    assert app_input["variables"] == {"tier": "gold"}
    state = create_guided_agent("offline", FLORIST).invoke(app_input)
    assert state["variables"] == {"tier": "gold"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"expect": {"active": ["cart"]}}, "did you mean `card`?"),
        ({"expect": {"calls": [{"tool": "order", "arguments": {"cuont": 1}}]}}, "did you mean `count`?"),
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
        ({"expect": {"active": [], "never": ["cheap"]}}, "for the matcher alone"),
        (
            {"expect": {"active": []}, "milestones": parse_milestones("- {name: Start, type: NFC}")},
            "has `milestones` and `expect`",
        ),
        ({"expect": {"reply": "Hello."}}, "expects nothing"),
        ({"expect": {"active": []}, "history": [{"user": "Hi", "agent": "Hi"}]}, "one of `user`, `agent`"),
        ({"expect": {"active": []}, "says": None}, "`expect` needs `says`"),
        ({"expect": {"active": []}, "agent": None}, "names no `agent`"),
        (
            {"expect": {"active": []}, "variables": {"teir": "gold"}},
            "the agent has no settable variable 'teir'; did you mean",
        ),
        ({}, "give `milestones`, a `journey`, or what to `expect`"),
        (
            {"milestones": parse_milestones("- {name: Start, type: NFC}"), "says": None},
            "must have either a `user`",
        ),
    ],
)
def test_what_cannot_be_expected_is_an_error(fields: dict[str, Any], message: str):
    with pytest.raises(SpecError, match=re.escape(message)):
        scenario(**fields)


def test_a_scenario_with_another_expectation_is_measured_on_that_one():
    card = scenario(history=HISTORY, expect={"active": ["card"]})
    stock = card.replace(expect=card.expect.replace(active=["stock"]))
    report = evaluate(Suite([stock]), load_arms(["guided"]), model="offline")
    assert report.conversations[0].goal_completed is False, "the card is still expected"
    assert card.history[0].replace(user="Hello?").user == "Hello?"
    fewer = scenario(expect={"calls": []}).replace(agent=FLORIST.replace(guidelines=[]))
    assert not fewer.graph.forbidden, "the tools of the former agent are forbidden"


def test_an_expectation_and_a_history_can_be_written_and_read_again():
    whole = scenario(history=HISTORY, expect={"active": ["card"]})
    again = type(whole.expect).model_validate(whole.expect.model_dump())
    entries = [type(entry).model_validate(entry.model_dump()) for entry in whole.history]
    assert scenario(history=entries, expect=again).graph.milestones == whole.graph.milestones


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


@pytest.mark.parametrize("outcome", [True, {"note": "well"}, ZeroDivisionError("oops")])
def test_an_outcome_that_cannot_be_read_ends_its_own_conversation(outcome: Any):
    class Broken:
        def order(self, flower: str, count: int = 1) -> str:
            """Order flowers.

            Args:
                flower: Which flower.
                count: How many.
            """
            return "ordered"

        def outcome(self) -> Any:
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

    broken = scenario(name="broken", world=Broken, expect={"says": [{"pattern": "."}]})
    fine = scenario(name="fine", expect={"says": [{"pattern": "."}]})
    report = evaluate(Suite([broken, fine]), {"arm": lambda *_: Answers(lambda _: [AIMessage("Hello.")])})
    assert [one.scenario for one in report.conversations] == ["fine"]
    assert "outcome()" in report.broken[0].error or "oops" in report.broken[0].error
