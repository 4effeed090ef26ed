"""A step of your own: a blueprint and a template as a node."""

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph import ARQ, Agent, ScriptedChatModel, errors, query, respond, track_usage
from arq_graph.nodes import BlueprintNode, GuidelineMatcher, MessageReviser, Speaker, ToolCaller


class Mood(ARQ):
    """How does the customer feel?"""

    signs: str = query("What shows it?")
    mood: str = respond("In one word.")


TEMPLATE = """\
{% block head %}Tell the mood.{% endblock %}
{% block tail %}{{ orders | section("orders") }} Last: {{ conversation.last_customer_line.id }}{% endblock %}
"""
STATE = {"messages": [HumanMessage("Great!", id="h1")]}


def make_node(model, **options):
    write = {"mood": lambda answer: answer.value.mood, "calls": lambda answer: len(answer.attempts)}
    return BlueprintNode(model, Mood, TEMPLATE, **{"write": write, "reads": ["orders"], **options})


def make_model():
    return ScriptedChatModel([{"signs": "!", "mood": "glad"}])


def test_node_writes_its_channels_to_a_graph_that_has_only_messages(runs):
    model = make_model()
    graph = StateGraph(MessagesState).add_node("mood", make_node(model)).add_edge(START, "mood").compile()
    (update,) = runs.stream(graph, STATE, stream_mode="updates")
    assert update == {"mood": {"mood": "glad", "calls": 1}}
    head, tail = (message.text for message in model.calls[0].messages)
    assert head == "Tell the mood."
    assert tail.endswith("</conversation>\n<orders>null</orders> Last: M1")


def test_node_has_its_own_mode_temperature_and_module():
    model = ScriptedChatModel([{"reasoning": "They cheer.", "mood": "glad"}])
    with track_usage() as usage:
        make_node(model, mode="cot", temperature=0.3, module="mood").invoke(STATE)
    assert list(model.calls[0].schema["properties"]) == ["reasoning", "mood"]
    assert model.calls[0].kwargs["temperature"] == 0.3
    assert usage.by_module["mood"].calls == 1


@pytest.mark.parametrize(
    ("node_type", "setting", "value", "problem"),
    [
        (GuidelineMatcher, "batch_size", 0, "a whole number from 1 on, not 0"),
        (ToolCaller, "max_rounds", 0, "a whole number from 1 on, not 0"),
        (MessageReviser, "history_tokens", 99, "a whole number from 100 on, not 99"),
        (Speaker, "max_questions", -1, "a whole number from 0 on, not -1"),
        (Speaker, "setting", "theatre", "it must be one of 'chat', 'task'"),
    ],
)
def test_setting_out_of_its_range_is_an_error(node_type, setting, value, problem):
    with pytest.raises(errors.InputError, match=f"^{setting} .*{problem}"):
        node_type(make_model(), Agent("Desk", "You help."), **{setting: value})
