"""Live milestones: how far the conversation got, as it runs, and the same number from the finished thread."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph import Agent, create_guided_agent, errors
from arq_graph.milestones import Verdict, parse_milestones, read_transcript, score
from arq_graph.nodes import ProgressTracker
from tests.apps.desk import judge_late, make_desk, make_input
from tests.brain import act, brain, get_prompts, say
from tests.order_tools import A1

GRAPH = parse_milestones("""\
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC, description: the order was looked up}
- {name: give_discount, type: FC, dependencies: [get_order]}
- {name: Goodbye, type: NFC, check: {said_by: agent, pattern: '(?i)goodbye'}, dependencies: [give_discount]}
- {name: End, type: NFC, dependencies: [Goodbye]}
""")
FOR_A_JUDGE = parse_milestones("""\
milestones:
- {name: Start, type: NFC}
- {name: Calmed Down, type: NFC, description: the customer is calm}
- {name: End, type: NFC, dependencies: [Calmed Down]}
""")
CALLED = [
    HumanMessage("Where is A-1?", id="h1"),
    AIMessage("", tool_calls=[{"name": "get_order", "args": A1, "id": "c1"}]),
    ToolMessage("A-1 is late", tool_call_id="c1"),
]


@pytest.mark.parametrize(("strategy", "eager"), [("tools", False), ("tools", True), ("pre-act", False)])
def test_the_reply_counts_in_its_own_turn_and_a_planner_sees_the_next_milestones(strategy, eager):
    script: dict[str, Any] = {"moves": [act("get_order", A1), act("give_discount", A1), say()]}
    if strategy == "tools":
        script = {"call": {"get_order": A1, "give_discount": A1}}
    model = brain({"G1": 9, "G2": judge_late}, reply="Goodbye!", **script)
    app = create_guided_agent(model, make_desk(), strategy=strategy, eager=eager, milestones=GRAPH)
    state = app.invoke(make_input("Where is A-1?"))
    assert (state["progress"][-1]["progress_rate"], state["progress"][-1]["goal_completed"]) == (1.0, True)
    assert score(GRAPH, read_transcript(state["messages"])).progress_rate == 1.0
    shown = [prompt.now["next_milestones"] for prompt in get_prompts(model, "planner")]
    names = [[milestone["name"] for milestone in milestones] for milestones in shown]
    assert names == ([] if strategy == "tools" else [["get_order"], ["give_discount"], ["Goodbye"]])


def test_each_change_of_progress_is_an_event_and_nothing_else_is():
    model = brain(moves=[act("get_order", A1), say()], judge={"G1": 9}, reply="It is late.")
    app = create_guided_agent(model, make_desk(), strategy="react", milestones=GRAPH)
    events = list(app.stream(make_input("Where is A-1?"), stream_mode="custom"))
    assert {event.agent for event in events} == {make_desk().name}
    changes = [event for event in events if event.type == "progress_made"]
    assert [event.newly_reached for event in changes] == [("Start",), ("get_order",)]
    # Three milestones on the only road, and End, each of weight 1.
    assert [event.progress.progress_rate for event in changes] == [0.0, 0.25]


def test_a_judge_decides_what_code_leaves_open():
    def judge(graph, transcript, observations):
        return [Verdict("Calmed Down", True, len(transcript), transcript.events[-1].text)]

    turn_input = make_input("Grr, I am so angry!")
    app = create_guided_agent(
        brain(reply="All is well now."), make_desk(), milestones=FOR_A_JUDGE, judge=judge
    )
    assert app.invoke(turn_input)["progress"][-1]["goal_completed"] is True
    without = create_guided_agent(brain(), make_desk(), milestones=FOR_A_JUDGE).invoke(turn_input)[
        "progress"
    ][-1]
    assert without.get("goal_completed") is None
    assert (without["progress_range"], without["undecided"]) == ([0.0, 1.0], ["Calmed Down"])


def test_a_graph_that_cannot_be_measured_on_is_an_error_before_anything_runs():
    endless = parse_milestones("- {name: Start, type: NFC}")
    with pytest.raises(errors.SpecError, match="no milestone named 'End'"):
        create_guided_agent(brain(), make_desk(), milestones=endless)
    with pytest.raises(errors.InputError, match=r"graph .*read_milestones"):
        ProgressTracker("milestones.yaml")  # type: ignore[arg-type]


def test_two_agents_of_one_name_each_have_their_own_progress():
    state: dict[str, Any] = {"messages": CALLED}
    agents = [Agent("Desk", profile) for profile in ("You help.", "You sell.")]
    for agent, milestones in zip(agents, (GRAPH, FOR_A_JUDGE), strict=True):
        state |= ProgressTracker(milestones, agent=agent).invoke(state)
    owners = [(record["specification"], record["reached"]) for record in state["progress"]]
    assert owners == [(agents[0].fingerprint, ["Start", "get_order"]), (agents[1].fingerprint, ["Start"])]


def test_the_node_alone_works_in_a_graph_that_has_only_messages_or_another_channel():
    builder = StateGraph(MessagesState).add_node("measure", ProgressTracker(GRAPH)).add_edge(START, "measure")
    *_, state = builder.compile().stream({"messages": CALLED}, stream_mode="values")
    assert state["progress"][-1]["progress_rate"] == 0.25
    progress = ProgressTracker(GRAPH, messages_key="talk").invoke({"talk": CALLED})["progress"][-1]
    assert progress["reached"] == ["Start", "get_order"]
