"""What can be set of a compiled agent, and that a mistake says what to do."""

from __future__ import annotations

import pytest

from arq_graph import (
    Agent,
    PreAct,
    ReAct,
    ReSpAct,
    ToolCalling,
    create_guided_agent,
    create_preact_agent,
    create_respact_agent,
    errors,
)
from arq_graph.nodes import GuidelineMatcher, MessageReviser
from tests.apps.desk import A1, desk, get_order, says
from tests.brain import act, asked_by, brain, say

ALONE = Agent("Desk", "You help.", tools=[get_order])


@pytest.mark.parametrize(
    ("create", "options", "problem"),
    [
        (create_guided_agent, {"strategy": "pre_act"}, "did you mean .*pre-act"),
        (create_guided_agent, {"model": None}, "openai:gpt-4o"),
        (create_guided_agent, {"model": {"matcher": brain()}}, "one for each of matcher, strategy, message"),
        (create_guided_agent, {"strategy": ToolCalling(max_rounds=0)}, "max_rounds must be a whole number"),
        (create_guided_agent, {"strategy": ReSpAct(setting="task")}, "create_respact_agent"),
        (create_preact_agent, {}, "use create_guided_agent"),
        (create_respact_agent, {}, "use create_guided_agent"),
        (create_preact_agent, {"agent": ALONE, "strategy": "tools"}, "use create_guided_agent"),
        (create_preact_agent, {"agent": "Desk"}, "`tools` must be a list"),
        (create_guided_agent, {"judge": lambda *_: []}, "give milestones="),
    ],
)
def test_a_setting_that_cannot_be_says_what_to_do(create, options, problem):
    with pytest.raises((errors.InputError, errors.SpecError), match=problem):
        create(**{"model": brain(), "agent": desk(), **options})


def test_each_module_may_have_a_model_of_its_own():
    matcher, strategy, message = brain(judge={"G1": 9}), brain(call={"get_order": A1}), brain(reply="Late.")
    models = {"matcher": matcher, "strategy": strategy, "message": message}
    state = create_guided_agent(models, desk()).invoke(says("Where is A-1?"))
    assert state["messages"][-1].text == "Late."
    asked = [{call.module for call in model.calls} for model in models.values()]
    assert asked == [{"matcher"}, {"tools"}, {"message"}]


def test_nodes_with_settings_of_your_own_are_taken():
    own = brain(reply="Mine.")
    matcher, reviser = GuidelineMatcher(own, desk(), batch_size=1), MessageReviser(own, desk())
    app = create_guided_agent(brain(), desk(), matcher=matcher, reviser=reviser)
    assert app.invoke(says("Hi"))["messages"][-1].text == "Mine."
    assert len(asked_by(own, "matcher")) == 3


@pytest.mark.parametrize("strategy", ["tools", PreAct(), ReAct(), ReSpAct()])
def test_every_strategy_works_in_every_mode(strategy):
    for mode in ("arq", "cot", "direct"):
        model = brain(judge={"G1": 9}, moves=[act("get_order", A1), say()], reply="It is late.")
        state = create_guided_agent(model, desk(), strategy=strategy, mode=mode).invoke(says("Where is A-1?"))
        assert [m.text for m in state["messages"][-2:]] == ["A-1 is late", "It is late."]


def test_an_agent_may_be_made_of_tools_alone():
    model = brain(moves=[act("get_order", A1), say("It is late.")])
    state = create_preact_agent(model, [get_order], name="Ada").invoke(says("Where is A-1?"))
    assert (state["messages"][-1].text, state["messages"][-1].name) == ("It is late.", "Ada")
