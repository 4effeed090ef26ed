"""Making a guided agent: models per module, presets, settings and their errors."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.graph import MessagesState
from langgraph.graph.state import CompiledStateGraph
from langgraph.managed import RemainingSteps

from arq_graph import (
    PAPER_MODELS,
    AgentState,
    BlueprintError,
    Guideline,
    InputError,
    PromptError,
    Reasoner,
    create_guided_agent,
    query,
)
from arq_graph.nodes import MessageBlueprint
from tests.apps.desk import active, desk, says
from tests.brain import brain


def test_it_is_a_compiled_graph_with_the_agent_s_name():
    model = brain()
    app = create_guided_agent(model, desk())
    assert isinstance(app, CompiledStateGraph)
    assert app.name == "Desk"
    assert create_guided_agent(model, desk(), name="mine").name == "mine"
    assert model.calls == []


def test_the_picture_shows_every_step():
    picture = create_guided_agent(brain(), desk(confirm={"get_order": "operator"})).get_graph().draw_mermaid()
    for step in ("match", "call_tools", "approve", "tools", "match_again", "call_tools_again", "message"):
        assert f"{step}(" in picture
    assert "approve(" not in create_guided_agent(brain(), desk()).get_graph().draw_mermaid()


def test_input_and_output_are_described():
    app = create_guided_agent(brain(), desk())
    assert "messages" in app.get_input_jsonschema()["properties"]
    assert "guideline_matches" in app.get_output_jsonschema()["properties"]


def test_each_module_may_have_a_model_of_its_own(runs):
    models = {
        "matcher": brain(judge={"G1": 9}),
        "tools": brain(call={"get_order": {"order_id": "A-1"}}),
        "message": Reasoner(brain(reply="Hello"), module="message"),
    }
    state = runs.invoke(create_guided_agent(models, desk()), says("Where is A-1?"))
    assert state["messages"][-1].content == "Hello"
    assert {call.module for call in models["matcher"].calls} == {"matcher"}
    assert {call.module for call in models["tools"].calls} == {"tools"}


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (None, "give a model"),
        ({"matcher": "offline"}, "no model is given for tools, message"),
        ({"matchr": "offline"}, "there is no module 'matchr': the modules are matcher, tools, message"),
        (3, "model is a int"),
        ("", "model"),
        ("nobody:gpt", "nobody"),
    ],
)
def test_a_model_that_cannot_be_used_is_a_clear_error(model, problem, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=problem):
        create_guided_agent(model, desk())


def test_the_paper_s_models_are_a_preset(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert set(PAPER_MODELS) == {"matcher", "tools", "message"}
    create_guided_agent(None, desk(), preset="paper")


def test_a_state_with_channels_of_one_s_own(runs):
    class Mine(AgentState, total=False):
        shop: str

    def in_the_east(state):
        """The customer is in the shop in the east."""
        return state.get("shop") == "east"

    agent = desk(guidelines=[Guideline(in_the_east, "mention the sale", continuous=True)])
    app = create_guided_agent(brain(), agent, state_schema=Mine)
    state = runs.invoke(app, {**says("Hi"), "shop": "east"})
    assert (state["shop"], active(state)) == ("east", ["G1"])
    assert active(runs.invoke(app, {**says("Hi"), "shop": "west"})) == []


def test_variables_of_the_thread_are_shown(runs):
    model = brain()
    runs.invoke(
        create_guided_agent(model, desk()), {**says("Hi"), "variables": {"tier": "gold", "<b>": None}}
    )
    assert all('"name": "tier", "value": "gold"' in call.text for call in model.calls)


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_a_whole_turn_in_every_mode(runs, mode):
    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply="It is late.")
    state = runs.invoke(create_guided_agent(model, desk(), mode=mode), says("Where is A-1?"))
    assert state["messages"][-1].content == "It is late."
    assert active(state) == ["G1", "G4"]
    assert {call.metadata["arq_mode"] for call in model.calls} == {mode}


def test_settings_reach_the_steps(runs):
    class Mine(MessageBlueprint):
        """Write the message."""

        tone: str = query("Which tone?")

    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply={"content": ""})
    app = create_guided_agent(
        model,
        desk(fallback="Sorry."),
        blueprint=Mine,
        batch_size=lambda count: 1,
        tools_per_call=2,
        on_unsatisfied="fallback",
    )
    state = runs.invoke(app, says("Where is A-1?"))
    assert state["messages"][-1].content == "Sorry."
    batches = {call.metadata["arq_batch"] for call in model.calls}
    assert {"batch-1", "batch-2", "batch-3", "get_order+give_discount"} <= batches
    assert any("tone" in call.schema["properties"] for call in model.calls if call.module == "message")


@pytest.mark.filterwarnings("ignore:guideline G2 is skipped")
def test_failures_of_the_matcher_are_handled_as_set(runs):
    model = brain(judge={"G1": BlueprintError("no answer")})
    with pytest.raises(BlueprintError):
        runs.invoke(create_guided_agent(model, desk()), says("Hi"))
    with pytest.warns(UserWarning, match="G1 is skipped"):
        state: dict[str, Any] = runs.invoke(create_guided_agent(model, desk(), on_failure="skip"), says("Hi"))
    assert "G1" not in active(state)


def test_a_prompt_for_a_module_that_does_not_exist_is_an_error():
    with pytest.raises(InputError, match="there is no module 'reply': the modules are"):
        create_guided_agent(brain(), desk(), prompts={"reply": "x"})
    with pytest.raises(PromptError, match="has no block 'head'"):
        create_guided_agent(brain(), desk(), prompts={"message": "x"})


def test_a_state_may_have_a_managed_value():
    class State(AgentState):
        remaining_steps: RemainingSteps

    app = create_guided_agent(brain(reply="Hello."), desk(), state_schema=State)
    assert app.invoke({"messages": [("user", "Hi")]})["messages"][-1].text == "Hello."


def test_a_reasoner_s_own_mode_is_kept():
    model = brain(reply="Hello.")
    reasoners = {
        name: Reasoner(model, module=name, mode="direct") for name in ("matcher", "tools", "message")
    }
    agent = desk(guidelines=[Guideline("they greet", "greet")])
    create_guided_agent(reasoners, agent).invoke({"messages": [("user", "Hi")]})
    assert {call.metadata["arq_mode"] for call in model.calls} == {"direct"}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"agent": {"name": "Desk"}}, "agent is a dict: make one with Agent"),
        ({"batch_size": 0}, "batch_size is 0: it must be a number from 1 on"),
        ({"max_rounds": "3"}, "max_rounds must be a whole number from 1 on, not '3'"),
        ({"max_rounds": 0}, "max_rounds must be a whole number from 1 on, not 0"),
        ({"blueprint": int}, "it must be MessageBlueprint or a subclass of it"),
        ({"preset": "papers"}, "there is no preset 'papers'"),
    ],
)
def test_a_wrong_setting_is_told_when_the_app_is_made(settings: dict[str, Any], problem: str):
    with pytest.raises(InputError, match=problem):
        create_guided_agent(brain(), **{"agent": desk(), **settings})


def test_a_batch_size_may_be_a_number():
    model = brain(reply="Hello.")
    agent = desk(guidelines=[Guideline(f"they ask {number}", "answer") for number in range(4)])
    create_guided_agent(model, agent, batch_size=2).invoke({"messages": [("user", "Hi")]})
    assert [call.blueprint for call in model.calls].count("GuidelineBatch") == 2


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("nofile.md", r"give Path\('nofile.md'\)"),
        (
            '{% extends "guideline_matcher.md" %}{% block tsk %}x{% endblock %}',
            "has no block 'tsk' to replace",
        ),
        (3, "a pathlib.Path or a text, not a int"),
    ],
)
def test_a_prompt_that_cannot_be_meant_is_told(template: Any, problem: str):
    with pytest.raises(PromptError, match=problem):
        create_guided_agent(brain(), desk(), prompts={"matcher": template})


def test_a_state_schema_with_messages_alone_loses_no_round():
    def look_up() -> str:
        """Look the order up."""
        return "the parcel is lost"

    def refund() -> str:
        """Open a refund."""
        return "refund opened"

    agent = desk(
        guidelines=[
            Guideline("they ask", "look it up", tools=[look_up]),
            Guideline("the parcel is lost", "open a refund", tools=[refund]),
        ]
    )
    model = brain(
        judge={"G1": 9, "G2": lambda asked: 9 if asked.results("look_up") else 1},
        call={
            "look_up": lambda asked: [] if asked.results("look_up") else {},
            "refund": lambda asked: [] if asked.results("refund") else {},
        },
    )
    app = create_guided_agent(model, agent, state_schema=MessagesState)  # type: ignore[arg-type]
    state = app.invoke({"messages": [("user", "Where is it?")]})
    assert [m.content for m in state["messages"] if m.type == "tool"] == [
        "the parcel is lost",
        "refund opened",
    ]
