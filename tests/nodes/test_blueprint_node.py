"""A step of one's own: a blueprint and a template as a node."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph import ARQ, BlueprintError, PromptError, query, respond, track_usage
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes import BlueprintNode


class Mood(ARQ):
    """How does the customer feel?"""

    signs: str = query("What shows it?")
    mood: str = respond("In one word.")


TEMPLATE = """\
{% block head %}Tell the mood in {{ language }}.{% endblock %}
{% block tail %}{{ orders | section("orders") }} Last: {{ conversation.last_customer_line.id }}{% endblock %}
"""
ASKED = {"messages": [HumanMessage("Great!", id="h1")]}


def node(model, **options):
    settings = {
        "write": {"mood": lambda answer: answer.value.mood, "calls": lambda answer: len(answer.attempts)},
        "reads": ["orders"],
        "values": {"language": "English"},
        **options,
    }
    return BlueprintNode(model, Mood, TEMPLATE, **settings)


def test_it_writes_what_it_is_told_to_make_of_the_answer(runs):
    model = ScriptedChatModel([{"signs": "!", "mood": "glad"}])
    update = runs.invoke(node(model), {**ASKED, "orders": ["A-1"]})
    assert update == {"mood": "glad", "calls": 1}
    head, tail = (message.text for message in model.calls[0].messages)
    assert head == "Tell the mood in English."
    assert tail.endswith('</conversation>\n<orders>["A-1"]</orders> Last: M1')


def test_a_channel_that_is_absent_is_none(runs):
    model = ScriptedChatModel([{"signs": "!", "mood": "glad"}])
    runs.invoke(node(model), ASKED)
    assert "<orders>null</orders>" in model.calls[0].text


def test_what_it_writes_is_in_a_graph_that_has_only_messages(runs):
    builder = StateGraph(MessagesState)
    builder.add_node("mood", node(ScriptedChatModel([{"signs": "!", "mood": "glad"}])))
    builder.add_edge(START, "mood")
    (update,) = runs.stream(builder.compile(), ASKED, stream_mode="updates")
    assert update == {"mood": {"mood": "glad", "calls": 1}}


def test_mode_temperature_and_module_are_its_own(runs):
    model = ScriptedChatModel([{"reasoning": "They cheer.", "mood": "glad"}])
    with track_usage() as used:
        runs.invoke(node(model, mode="cot", temperature=0.3, module="mood"), ASKED)
    assert list(model.calls[0].schema["properties"]) == ["reasoning", "mood"]
    assert model.calls[0].kwargs["temperature"] == 0.3
    assert used.by_module["mood"].calls == 1


def test_an_answer_that_never_comes_is_an_error(runs):
    with pytest.raises(BlueprintError, match="blueprint asking Mood"):
        runs.invoke(node(ScriptedChatModel(["no"] * 9)), ASKED)


def test_a_template_that_cannot_be_rendered_is_an_error(runs):
    with pytest.raises(PromptError, match="'language' is undefined"):
        runs.invoke(node(ScriptedChatModel([]), values={}), ASKED)
    with pytest.raises(PromptError, match="'orders' is undefined"):
        runs.invoke(node(ScriptedChatModel([]), reads=[]), ASKED)


def test_the_head_is_rendered_once(runs):
    model = ScriptedChatModel([{"signs": "!", "mood": "glad"}] * 2)
    step = node(model)
    runs.invoke(step, ASKED)
    runs.invoke(step, {"messages": [HumanMessage("Hm")], "orders": [1]})
    assert model.calls[0].messages[0].text == model.calls[1].messages[0].text


def test_a_template_may_be_a_file(runs, tmp_path):
    path = tmp_path / "mood.md"
    path.write_text(TEMPLATE, encoding="utf-8")
    model = ScriptedChatModel([{"signs": "!", "mood": "glad"}])
    step = BlueprintNode(model, Mood, path, reads=["orders"], values={"language": "Dutch"})
    assert runs.invoke(step, ASKED) == {}
    assert model.calls[0].messages[0].text == "Tell the mood in Dutch."
