"""The eager agent: fewer waves of model calls, and the same decisions as without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from threading import Condition
from typing import Annotated, Any

import pytest
from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command

from arq_graph import (
    Agent,
    Guideline,
    Matching,
    Reasoner,
    ScriptedChatModel,
    ToolCalling,
    create_guided_agent,
    errors,
    resume_or_invoke,
    track_usage,
)
from arq_graph.nodes import GuidelineMatcher, MessageReviser, Parallel, ToolCaller, guarded_tools, route_calls
from tests.apps.desk import desk, kinds, late, says, thread
from tests.brain import Brain, asked_by, brain
from tests.order_tools import A1, get_order, search

ASKED = {"messages": [{"role": "user", "content": "Where is A-1?", "id": "m1"}]}
LOOK = ["matcher", "tools", "tools"]
"""The first wave at the desk, both of whose tools could be granted."""


class Threaded(ScriptedChatModel):
    """Its calls wait in threads of their own in an async run, too."""

    _agenerate = BaseChatModel._agenerate


def in_waves(answer: Callable[[Any], Any], waves: list[list[str]]) -> tuple[ScriptedChatModel, list[str]]:
    """A model that answers when all calls of a wave are under way, and the modules that called, in their order."""
    came, seen, ends = Condition(), list[str](), list(accumulate(map(len, waves)))

    def script(call: Any) -> Any:
        with came:
            seen.append(call.module)
            end = next((end for end in ends if len(seen) <= end), 0)
            came.notify_all()
            if not came.wait_for(lambda: len(seen) >= end, 5):
                seen.append("alone")
        return answer(call)

    return Threaded(script), seen


def active_in(asked: Any) -> str:
    return f"{len(asked.section('active_guidelines'))} rules apply."


def told(state: dict[str, Any]) -> Any:
    """What a turn decided, without ids that are drawn."""
    calls = [
        [(call["name"], call["args"]) for call in getattr(m, "tool_calls", ())] for m in state["messages"]
    ]
    said = [(message.type, message.text) for message in state["messages"]]
    held = {name: state.get(name) for name in ("guideline_matches", "tool_insights", "revisions")}
    followed = [(each["guideline"], each["times"]) for each in state["applied_guidelines"]]
    return said, calls, held, followed


SETTLED = {"score": 2, "could_a_tool_change_that": False}
TURNS = {
    "no tool is called": ({"judge": {"G1": 9}}, [LOOK, ["message"]]),
    "an argument is missing": ({"judge": {"G1": 9}, "call": {"get_order": {}}}, [LOOK, ["message"]]),
    "no condition is open after the call": (
        {"judge": {"G1": 9, "G2": SETTLED}, "call": {"get_order": A1}},
        [LOOK, ["tools", "message"]],
    ),
    "the second look changes nothing": (
        {"judge": {"G1": 9}, "call": {"get_order": A1}},
        [LOOK, [*LOOK, "message"]],
    ),
    "the draft is revised, and kept": (
        {"judge": {"G1": 9}, "call": {"get_order": A1}, "reply": ["T1 says: late.", "It is late."]},
        [LOOK, [*LOOK, "message"], ["message"]],
    ),
    "a result changes what the reply is told": (
        {"judge": {"G1": 9, "G2": late}, "call": {"get_order": A1}, "reply": active_in},
        [LOOK, [*LOOK, "message"], ["message"]],
    ),
    "a result leads to another call": (
        {"judge": {"G1": 9, "G2": late}, "call": {"get_order": A1, "give_discount": A1}, "reply": "Late."},
        [LOOK, [*LOOK, "message"], ["tools", "tools", "message"]],
    ),
}  # fmt: skip


WAYS = [*((case, "sync") for case in TURNS), ("a result leads to another call", "async")]


@pytest.mark.parametrize(("case", "runs"), WAYS, indirect=["runs"])
def test_a_turn_decides_and_tells_the_same_in_fewer_waves(case, runs):
    answers, waves = TURNS[case]
    model, seen = in_waves(Brain(**answers), waves)
    turns = []
    for each, eager in ((model, True), (brain(**answers), False)):
        app = create_guided_agent(each, desk(), eager=eager)
        parts = runs.stream(app, ASKED, stream_mode=["values", "custom"])
        events = [event for mode, event in parts if mode == "custom"]
        turns.append((told([state for mode, state in parts if mode == "values"][-1]), events))
    (decided, eagerly), (expected, plainly) = turns
    ends = list(accumulate(map(len, waves), initial=0))
    assert [sorted(seen[a:b]) for a, b in pairwise(ends)] == [*map(sorted, waves)]
    assert len(seen) == ends[-1]
    assert decided == expected
    assert [e for e in eagerly if e.type.startswith("reply_")] == [
        e for e in plainly if e.type.startswith("reply_")
    ]
    assert [e.type for e in eagerly][:3] == [e.type for e in plainly][:3]


def test_of_many_guidelines_those_near_are_judged_and_their_tools_alone_are_asked_about_ahead():
    """The customer's words lead the first look to parcels, and the tool's result the later ones to vouchers."""

    def find_parcel() -> str:
        """Find the parcel."""
        return "lost, so a voucher is due"

    rules = [
        Guideline(
            f"about a {topic} ({n})", f"help with the {topic}", id=f"{topic}-{n}", tools=[tool][n - 1 :]
        )
        for topic, tool in {"parcel": find_parcel, "voucher": get_order, "mattress": search}.items()
        for n in (1, 2)
    ]
    agent = Agent("Desk", "You help.", rules)
    answers: Any = ({"parcel-1": 9, "voucher-1": 9}, {"find_parcel": {}, "get_order": A1}, "I sent you one.")
    waves = [["matcher", "tools"], *[["matcher", "matcher", "message", "tools", "tools"]] * 2]
    model, seen = in_waves(Brain(*answers), waves)
    turns = []
    for each, eager in ((model, True), (brain(*answers), False)):
        matching = Matching(batch_size=2, max_judged=2)
        app = create_guided_agent(each, agent, matching=matching, eager=eager)
        asked = {"messages": [{"role": "user", "content": "Where is my parcel?", "id": "m1"}]}
        parts = list(app.stream(asked, stream_mode=["values", "custom"]))
        judged = [part.judged for _, part in parts if getattr(part, "type", "") == "guidelines_matched"]
        turns.append((told([part for mode, part in parts if mode == "values"][-1]), judged))
        candidates = [set(call.now["candidates"]) for call in asked_by(each, "tools")]
        assert set().union(*candidates) == {"find_parcel", "get_order"}
    assert [sorted(seen[a:b]) for a, b in ((0, 2), (2, 7), (7, None))] == waves
    assert turns[0] == turns[1]
    assert turns[0][1][:2] == [("parcel-1", "parcel-2"), ("parcel-2", "voucher-1", "voucher-2")]


@pytest.mark.parametrize(("active", "asked"), [("A", 2), ("B", 2), ("AB", 1), ("", 1)])
def test_a_call_is_made_as_the_guidelines_that_are_active_ask_for_it(active, asked):
    """Of two that grant one tool, the one that does not match has no say in its arguments."""
    rules = [Guideline(f"about {id}", "look it up", id=id, tools=[get_order]) for id in "AB"]
    turns = []
    for eager in (True, False):
        model = brain(
            dict.fromkeys(active, 9), {"get_order": lambda now: {"order_id": "+".join(now.now["active"])}}
        )
        app = create_guided_agent(
            model, Agent("Desk", "You help.", rules), strategy=ToolCalling(max_rounds=1), eager=eager
        )
        turns.append((told(app.invoke(ASKED)), len(asked_by(model, "tools"))))
    (eagerly, times), (plainly, _) = turns
    assert eagerly == plainly
    assert [call for calls in eagerly[1] for call in calls] == (
        [("get_order", {"order_id": "+".join(active)})] if active else []
    )
    assert times == asked


def test_a_draft_is_streamed_as_a_whole_once_it_is_kept_and_not_at_all_if_it_is_dropped():
    for judge, said, sent in (
        (2, ["It is late."], "It is late."),
        (late, ["Soon.", "It is late. Sorry!"], None),
    ):
        model = brain({"G1": 9, "G2": judge}, {"get_order": A1}, said)
        app = create_guided_agent(model, desk(), eager=True, stream=True, mode="direct")
        seen = list(app.stream(ASKED, stream_mode="custom"))
        replies = [event for event in seen if event.type.startswith("reply_")]
        assert [event.type for event in replies][-2:] == ["reply_revised", "reply_sent"]
        deltas = [event for event in replies if event.type == "reply_delta"]
        assert len({event.revision for event in deltas}) == 1
        assert "".join(event.text for event in deltas) == replies[-1].content == (sent or said[-1])
        assert (len(deltas) == 1) is bool(sent)


def test_what_no_match_grants_leaves_no_trace_whatever_is_said_of_it():
    refused = errors.RefusalError("no", "no")
    for judge, call in (
        ({}, {"get_order": A1}),
        ({"G1": 9}, {"get_order": A1, "give_discount": lambda _: refused}),
    ):
        state = create_guided_agent(brain(judge=judge, call=call), desk(), eager=True, mode="direct").invoke(
            ASKED
        )
        ran = [message.name for message in state["messages"] if message.type == "tool"]
        assert ran == (["get_order"] if judge else [])
        assert {each["tool"] for each in state["tool_insights"]} == set(ran)
    model = brain(judge={"G1": 9}, call={"get_order": lambda _: refused})
    with pytest.raises(errors.RefusalError):
        create_guided_agent(model, desk(), eager=True, mode="direct").invoke(ASKED)


def test_the_tool_caller_is_told_that_it_is_asked_ahead_at_the_end_of_its_prompt_alone():
    answers = {"judge": {"G1": 9, "G2": SETTLED}, "call": {"get_order": A1}}
    first, plain = (
        (create_guided_agent(model, desk(), eager=eager).invoke(ASKED), asked_by(model, "tools"))[1]
        for eager in (True, False)
        for model in [brain(**answers)]
    )
    ahead, again = (next(each for each in first if "get_order" in each.now["candidates"]), first[-1])
    assert (ahead.head, ahead.schema) == (plain[0].head, plain[0].schema)
    assert ahead.now == {**plain[0].now, "other_candidates": ["give_discount"]}
    assert "is being decided at the same time" in ahead.tail
    assert again.prompt == plain[1].prompt  # nothing was decided at the same time
    assert "at the same time" not in again.tail


def test_each_step_is_asked_by_its_own_model_in_its_own_mode():
    agent, models = desk(), [brain(judge={"G1": 9}), brain(call={"get_order": A1}), brain()]
    reasoners = {
        "matcher": Reasoner(models[0], mode="direct"),
        "strategy": models[1],
        "message": Reasoner(models[2], mode="cot"),
    }
    app = create_guided_agent(reasoners, agent, eager=True)
    with track_usage() as usage:
        app.invoke(ASKED)
    asked = [{(c.module, c.metadata["arq_mode"]) for c in model.calls} for model in models]
    assert asked == [{("matcher", "direct")}, {("tools", "arq")}, {("message", "cot")}]
    assert {name: each.calls for name, each in usage.by_module.items()} == {
        "matcher": 2,
        "tools": 4,
        "message": 1,
    }


def test_a_tool_beyond_the_bound_is_asked_about_once_it_is_granted_and_one_that_was_granted_comes_first():
    waves = [["matcher", "tools"], ["tools"], ["message"], ["matcher", "tools"], ["message"]]
    judge: dict[str, Any] = {"G2": 9}
    model, seen = in_waves(Brain(judge), waves)
    app = create_guided_agent(
        model, desk(), strategy=ToolCalling(max_ahead=1), eager=True, checkpointer=MemorySaver()
    )
    for text in ("It is late.", "Hello?"):
        app.invoke(says(text), thread())
    assert [sorted(seen[a:b]) for a, b in ((0, 2), (2, 4), (4, 6))] == [
        ["matcher", "tools"],
        ["message", "tools"],
        ["matcher", "tools"],
    ]
    asked = [each.now["candidates"] for each in asked_by(model, "tools")]
    assert asked == [["get_order"], ["give_discount"], ["give_discount"]]


def test_a_reply_is_drafted_once_although_the_tools_are_waited_for_behind_the_second_look():
    waves = [["matcher"], ["tools"], ["matcher", "message"], ["tools"]]
    model, seen = in_waves(Brain({"G1": 9}, {"get_order": A1}), waves)
    create_guided_agent(model, desk(), strategy=ToolCalling(max_ahead=0), eager=True).invoke(ASKED)
    assert [seen[:2], sorted(seen[2:4]), seen[4:]] == [
        ["matcher", "tools"],
        ["matcher", "message"],
        ["tools"],
    ]


def test_a_step_with_functions_of_ones_own_is_asked_ahead_too(runs):
    rules = [
        Guideline(condition, "greet", id=id) for id, condition in {"A": bool, "B": lambda _: False}.items()
    ]
    model, seen = in_waves(Brain({"A": 9}), [["matcher", "matcher"]])
    both = Parallel(*(GuidelineMatcher(model, each) for each in (desk(), Agent("Other", "You help.", rules))))
    matches = runs.invoke(both, ASKED)["guideline_matches"]
    assert [each["guideline"] for each in matches if each["active"]] == ["G4", "A"]
    assert seen == ["matcher", "matcher"]


@pytest.mark.parametrize("confirm", [{}, {"get_order": "operator"}])
def test_a_turn_that_broke_off_while_the_reply_was_drafted_goes_on_and_no_tool_runs_twice(confirm):
    ran, broken = [], [RuntimeError()]

    def get_order(order_id: str) -> str:
        """Look up an order."""
        ran.append(order_id)
        return "it is late"

    model = brain({"G1": 9}, {"get_order": A1}, lambda _: broken.pop() if broken else "It is late.")
    agent = Agent("Desk", "You help.", [Guideline("they ask", "look", tools=[get_order])], confirm=confirm)
    app = create_guided_agent(model, agent, eager=True, checkpointer=MemorySaver())
    given: Any = ASKED
    if confirm:
        app.invoke(ASKED, thread())
        given = Command(resume={"decisions": [{"type": "approve"}]})
    with pytest.raises(RuntimeError):
        app.invoke(given, thread(), durability="sync")
    state = resume_or_invoke(app, None, thread())
    assert (kinds(state), state["messages"][-1].text) == (["human", "ai", "tool", "ai"], "It is late.")
    assert ran == ["A-1"]


def test_a_new_message_on_a_turn_that_waits_gives_its_call_a_result_before_it_makes_another():
    model = brain({"G1": 9}, {"get_order": A1})
    app = create_guided_agent(
        model, desk(confirm={"get_order": "operator"}), eager=True, mode="direct", checkpointer=MemorySaver()
    )
    app.invoke(ASKED, thread())
    state = app.invoke(says("Well?"), thread())
    assert kinds(state) == ["human", "ai", "tool", "human", "ai"]
    said = [[line["id"] for line in asked.lines] for asked in asked_by(model, "tools")[2:]]
    assert said == [["M1", "T1", "M2"]] * 2


def test_no_reply_is_drafted_while_calls_that_were_agreed_to_are_made():
    model = brain({"G1": 9}, {"get_order": [A1, {"order_id": "A-2"}]})
    agent = desk(confirm={"get_order": "customer"})
    app = create_guided_agent(model, agent, eager=True, mode="direct", checkpointer=MemorySaver())
    for text in ("Where are A-1 and A-2?", "Yes"):
        state = app.invoke(says(text), thread())
    assert kinds(state) == ["human", "ai", "human", "ai", "tool", "ai", "tool", "ai"]
    assert len(asked_by(model, "message")) == 2


def test_a_function_of_ones_own_reads_an_answer_once():
    read: list[str] = []
    how = ToolCalling(agrees=lambda said, _: read.append(said))
    agent, model = desk(confirm={"get_order": "customer"}), brain({"G1": 9}, {"get_order": A1})
    app = create_guided_agent(
        model, agent, strategy=how, eager=True, mode="direct", checkpointer=MemorySaver()
    )
    for text in ("Where is A-1?", "Yes"):
        app.invoke(says(text), thread())
    assert read == ["Yes"]


@dataclass
class Own:
    """A state of the user's, which is no dict and whose messages have another name."""

    chat: Annotated[list[Any], add_messages]
    guideline_matches: list[Any] = field(default_factory=list)
    tool_insights: list[Any] = field(default_factory=list)


@pytest.mark.filterwarnings("error")
def test_steps_go_together_in_a_graph_of_ones_own():
    agent, model = desk(), brain({"G1": 9}, {"get_order": A1}, "It is late.")
    steps = [
        each(model, agent, messages_key="chat") for each in (GuidelineMatcher, ToolCaller, MessageReviser)
    ]
    graph = StateGraph(Own)
    graph.add_node("look", Parallel(*steps))
    graph.add_node("tools", guarded_tools(agent, messages_key="chat"))
    graph.add_edge(START, "look")
    graph.add_conditional_edges(
        "look", route_calls(agent, otherwise=END, messages_key="chat"), ["tools", END]
    )
    graph.add_edge("tools", "look")
    state = graph.compile().invoke({"chat": ASKED["messages"]})
    assert [message.type for message in state["chat"]] == ["human", "ai", "tool", "ai"]
    alone = Parallel(*steps).invoke({"chat": [("user", "Where is A-1?")]})
    assert alone["chat"][0].tool_calls[0]["name"] == "get_order"


def test_what_cannot_go_together_is_said():
    with pytest.raises(errors.InputError, match="a step is a node that asks a model"):
        Parallel(GuidelineMatcher(brain(), desk()), guarded_tools(desk()))
    with pytest.raises(errors.InputError, match='eager is for strategy="tools"'):
        create_guided_agent(brain(), desk(), strategy="pre-act", eager=True)
    with pytest.raises(errors.InputError, match="takes the steps that it is to run"):
        Parallel()
