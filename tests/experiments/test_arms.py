"""Arms by name: each has a conversation that is measured, and an unknown name is an error."""

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from arq_graph import Agent, Guideline, Reasoner, ScriptedChatModel, errors
from arq_graph.experiments.ablations import list_ablations
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Limits, MilestoneGraph, Scenario, Suite, UserSpec, evaluate
from tests.brain import Brain, act, brain, get_prompts, say

ORDER = {"order_id": "ORD-1002"}
LOOK_UP = Guideline("the customer asks about an order", "look the order up and tell its status")
GRAPH = MilestoneGraph.from_actions([{"name": "get_order", "kwargs": ORDER}])


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return {"ORD-1002": "at the warehouse"}[order_id]


GUIDED, ALONE = (Agent("Desk", "An order desk.", rules, tools=[get_order]) for rules in ([LOOK_UP], []))


def run_arms(
    *names: str, agent: Agent | None = GUIDED, model: Any = "offline", folder: Any = None
) -> list[Any]:
    """Run a conversation about one order with each arm; return the records."""
    user = UserSpec.model_validate({"intents": [{"request": "Where is my order ORD-1002?"}]})
    suite = Suite([Scenario("order", user, GRAPH, agent, limits=Limits(turns=3))])
    return list(evaluate(suite, load_arms(list(names), folder=folder), model=model).conversations)


@pytest.mark.parametrize("agent", [GUIDED, ALONE], ids=["guided", "alone"])
def test_an_arm_of_ours_gets_to_the_goal_with_the_offline_model(agent):
    names = ["react", "pre-act", "respact"]
    if agent is GUIDED:
        names.append("guided")
    for conversation in run_arms(*names, agent=agent):
        assert (conversation.error, conversation.goal_completed) == (None, True), conversation.arm
        # Without guidelines, nothing is matched and no reply is revised.
        assert (conversation.model_calls == 3) is (agent is ALONE)


EXAMPLES = re.compile(r'("answer": ?).*?(</example>)', re.DOTALL)
SENT = {"content": "It is at the warehouse.", "followed": ["G1"]}
DOUBTS = {
    # What only mode `arq` tells, and what code would object to there: the action was done, and should be taken; a fact,
    # a service and an insight have no source.
    "condition_applies": "not_known_yet",
    "application": {
        "action": "-",
        "guideline_is_continuous": False,
        "guideline_previously_applied_rationale": [],
        "new_or_subtly_different_context": None,
        "guideline_previously_applied": "fully",
        "is_missing_part_cosmetic_or_functional": None,
        "guideline_should_reapply": None,
    },
    "insights": [{"insight": "Be quick.", "source": "M99"}],
    "factual_information_provided": [{"fact": "It is at the warehouse.", "source": None}],
    "is_repeat_message": True,
}
DESK = Agent(
    "Desk",
    "An order desk.",
    [
        Guideline("the customer asks about an order", "look it up", id="G1", tools=[get_order]),
        Guideline("the order is late", "say sorry", id="G2"),
        Guideline(None, "be kind", id="G3", continuous=True),
    ],
)


@pytest.mark.parametrize("should_apply", [True, False])
def test_the_arms_of_the_three_modes_differ_in_what_the_model_writes_and_in_nothing_else(should_apply):
    outcomes = {}
    for name in ("arq", "cot", "direct"):
        judge = {
            id: {**DOUBTS, "score": score, "should_apply": should_apply}
            for id, score in (("G1", 9), ("G2", 3))
        }
        judge["G3"] = {"score": 8, "should_apply": should_apply}
        model = brain(judge=judge, call={"get_order": ORDER}, reply={**DOUBTS, **SENT})
        [conversation] = run_arms(name, agent=DESK, model=model)
        assert conversation.error is None
        prompts = []
        for call in model.calls:
            # The model's own answers, which a retry repeats, differ between the modes.
            texts = [message.text for message in call.messages if message.type != "ai"]
            prompts.extend(EXAMPLES.sub(r"\1\2", text) for text in texts)
        schemas = [str(call.schema) for call in model.calls]
        outcomes[name] = (
            sorted(prompts),
            conversation.model_calls,
            conversation.reached,
            conversation.ended,
            sorted(schemas),
        )
    assert outcomes["arq"][:4] == outcomes["cot"][:4] == outcomes["direct"][:4]
    assert len({str(outcome[4]) for outcome in outcomes.values()}) == 3
    # As the agent ships, code does hold such answers against each other.
    [conversation] = run_arms("guided", agent=DESK, model=brain(judge=judge))
    assert "guideline_should_reapply" in conversation.error


def test_the_three_modes_are_asked_equally_often_of_a_model_that_never_gets_it_right():
    def count_calls(mode: str, answer: Any) -> int:
        model = ScriptedChatModel(answer, model_name=f"hopeless-{mode}")
        run_arms(mode, agent=DESK, model=model)
        return len(model.calls)

    for answer in (lambda _: "no JSON at all", Brain({"G1": 9}, reply="")):
        assert len({count_calls(mode, answer) for mode in ("arq", "cot", "direct")}) == 1


@pytest.mark.parametrize(
    ("name", "module", "query"),
    [
        ("arq -condition_applies -insights", "matcher", "condition_applies"),
        ("arq -value_in_context", "tools", "value_in_context"),
        ("arq-pre-act -values_at_hand", "planner", "values_at_hand"),
        ("arq-respact -uncertain", "speaker", "uncertain"),
    ],
)
def test_an_arm_without_a_query_gets_there_and_is_never_asked_it(name, module, query):
    def get_schemas(arm: str) -> str:
        reply = say("It is at the warehouse.")
        model = brain(
            judge={"G1": 9},
            moves=lambda asked: reply if asked.results("get_order") else act("get_order", ORDER),
            reply="It is at the warehouse.",
        )
        [conversation] = run_arms(arm, agent=DESK, model=model)
        assert (conversation.error, conversation.goal_completed) == (None, True)
        return str([asked.schema for asked in get_prompts(model, module)])

    assert f"'{query}'" in get_schemas(name.partition(" ")[0])
    assert f"'{query}'" not in get_schemas(name)


def test_each_query_of_a_step_can_be_ablated():
    queries = [
        "condition",
        "condition_application_rationale",
        "condition_applies",
        "application",
        "action",
        "guideline_is_continuous",
        "guideline_previously_applied_rationale",
        "new_or_subtly_different_context",
        "guideline_previously_applied",
        "is_missing_part_cosmetic_or_functional",
    ]
    arms = list_ablations("matcher")
    assert arms[0] == "arq"
    assert set(arms[1:]) == {f"arq -{query}" for query in queries}
    assert list_ablations("planner:request") == ["arq-pre-act", "arq-pre-act -request"]


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ("machter", "there is no step 'machter'; there are matcher, tools, message, planner, speaker"),
        ("matcher:score", "'score', which is part of its response"),
        ("message:insigt", "'insigt', which is not one of its queries: .*insights"),
    ],
)
def test_an_ablation_of_something_else_is_an_error(selection, problem):
    with pytest.raises(errors.InputError, match=problem):
        list_ablations(selection)


def test_an_arm_can_be_without_queries_of_its_own_steps_alone():
    with pytest.raises(errors.InputError, match="'condition_aplies', which isn't one of their queries"):
        load_arms(["arq -condition_aplies"])
    with pytest.raises(errors.InputError, match="isn't one of their queries"):
        load_arms(["arq -values_at_hand"])
    with pytest.raises(errors.InputError, match="there is no arm 'direct -condition'"):
        load_arms(["direct -condition"])


def test_langchains_agent_is_an_arm_with_the_same_instructions_and_tools():
    def answer(call: Any) -> Any:
        if any(message.type == "tool" for message in call.messages):
            return "It is at the warehouse."
        return AIMessage("", tool_calls=[{"name": "get_order", "args": ORDER, "id": "1"}])

    model = ScriptedChatModel(answer)
    for chat_model in (model, Reasoner(model)):
        [conversation] = run_arms("create_agent", model=chat_model)
        assert (conversation.error, conversation.goal_completed) == (None, True)
    assert "look the order up" in model.calls[0].text
    assert "An order desk." in model.calls[0].text


def test_an_arm_continues_when_a_tool_fails():
    def answer(call: Any) -> Any:
        if call.messages[-1].type == "tool":
            return "I do not find it."
        return AIMessage("", tool_calls=[{"name": "get_order", "args": {"order_id": "ORD-9"}, "id": "1"}])

    model = ScriptedChatModel(answer)
    [conversation] = run_arms("create_agent", model=model)
    assert (conversation.error, conversation.goal_completed) == (None, False)
    assert "KeyError: 'ORD-9'" in model.calls[1].text


MINE = """\
class App:
    def invoke(self, input, config=None):
        return 'hi'

def make(scenario, agent, model):
    assert (scenario.name, agent.name, model.model_name) == ('order', 'Desk', 'm')
    return App()

app = App()
"""


def test_an_arm_of_your_own_is_a_function_or_an_app_in_a_module(tmp_path: Path):
    (tmp_path / "mine.py").write_text(MINE)
    records = run_arms("mine:make", "mine:app", model=ScriptedChatModel([], model_name="m"), folder=tmp_path)
    assert [(record.arm, record.error) for record in records] == [("mine:make", None), ("mine:app", None)]


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["guidde"], "did you mean `guided`"),
        (["guided:slow"], "there is no arm 'guided:slow'"),
        (["nope:make"], "names the module 'nope'"),
        (["os:sep"], "is neither an app"),
        (["react+reflexion:x"], r"after `\+reflexion:` in .* must be a whole number from 1 on, not 'x'"),
        ([], "pass a mapping of names to apps"),
    ],
)
def test_an_unknown_arm_is_an_error_before_any_conversation(names, problem):
    with pytest.raises(errors.InputError, match=problem):
        run_arms(*names)


def test_an_arm_that_is_made_of_an_agent_needs_one():
    for conversation in run_arms("guided", "create_agent", agent=None):
        assert "names no `agent`" in conversation.error
