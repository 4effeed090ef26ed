"""The eager agent: fewer waves of model calls, with the same decisions."""

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
    ScriptedChatModel,
    ToolCalling,
    create_guided_agent,
    errors,
    resume_or_invoke,
)
from arq_graph.nodes import (
    GuidelineMatcher,
    MessageReviser,
    Parallel,
    ToolCaller,
    guarded_tools,
    route_calls,
)
from tests.apps.desk import get_types, judge_late, make_desk, make_input, make_thread
from tests.brain import Brain, brain, get_prompts
from tests.order_tools import A1, get_order, search

QUESTION = {"messages": [{"role": "user", "content": "Where is A-1?", "id": "m1"}]}
FIRST_WAVE = ["matcher", "tools", "tools"]
"""The first wave at the desk, which has two tools."""


class ThreadedModel(ScriptedChatModel):
    """Its calls wait in threads of their own, in an async run too."""

    _agenerate = BaseChatModel._agenerate


def make_waving_model(
    answer: Callable[[Any], Any], waves: list[list[str]]
) -> tuple[ScriptedChatModel, list[str]]:
    """Make a model that answers once all calls of a wave have come, and the list of modules that called it."""
    changed = Condition()
    modules: list[str] = []
    wave_ends = list(accumulate(map(len, waves)))

    def script(call: Any) -> Any:
        with changed:
            modules.append(call.module)
            wave_end = next((end for end in wave_ends if len(modules) <= end), 0)
            changed.notify_all()
            if not changed.wait_for(lambda: len(modules) >= wave_end, 5):
                modules.append("alone")
        return answer(call)

    return ThreadedModel(script), modules


def split_waves(modules: list[str], waves: list[list[str]]) -> list[list[str]]:
    """Cut the modules that called into waves of the expected sizes; any further ones are the last."""
    ends = list(accumulate(map(len, waves), initial=0))
    result = [sorted(modules[start:end]) for start, end in pairwise(ends)]
    if len(modules) > ends[-1]:
        result.append(modules[ends[-1] :])
    return result


def sort_waves(waves: list[list[str]]) -> list[list[str]]:
    return [sorted(wave) for wave in waves]


def summarize(state: dict[str, Any]) -> Any:
    """Return what a turn decided, without random ids."""
    messages = [(message.type, message.text) for message in state["messages"]]
    calls = [call for message in state["messages"] for call in getattr(message, "tool_calls", ())]
    arguments = [(call["name"], call["args"]) for call in calls]
    channels = {name: state.get(name) for name in ("guideline_matches", "tool_insights", "revisions")}
    applied = [(record["guideline"], record["times"]) for record in state["applied_guidelines"]]
    return messages, arguments, channels, applied


def count_rules(prompt: Any) -> str:
    return f"{len(prompt.section('active_guidelines'))} rules apply."


INDEPENDENT = {"score": 2, "could_a_tool_change_that": False}
TURNS: dict[str, tuple[dict[str, Any], list[list[str]]]] = {
    "no condition is open after the call": (
        {"judge": {"G1": 9, "G2": INDEPENDENT}, "call": {"get_order": A1}},
        [FIRST_WAVE, ["tools", "message"]],
    ),
    "a result changes the prompt of the reply": (
        {"judge": {"G1": 9, "G2": judge_late}, "call": {"get_order": A1}, "reply": count_rules},
        [FIRST_WAVE, [*FIRST_WAVE, "message"], ["message"]],
    ),
    "a result leads to another call": (
        {
            "judge": {"G1": 9, "G2": judge_late},
            "call": {"get_order": A1, "give_discount": A1},
            "reply": "Late.",
        },
        [FIRST_WAVE, [*FIRST_WAVE, "message"], ["tools", "tools", "message"]],
    ),
}
CASES = [*((case, "sync") for case in TURNS), ("a result leads to another call", "async")]


@pytest.mark.parametrize(("case", "runs"), CASES, indirect=["runs"])
def test_eager_turn_decides_the_same_in_fewer_waves(case, runs):
    answers, waves = TURNS[case]
    model, modules = make_waving_model(Brain(**answers), waves)
    outcomes = []
    for chat_model, eager in ((model, True), (brain(**answers), False)):
        app = create_guided_agent(chat_model, make_desk(), eager=eager)
        parts = runs.stream(app, QUESTION, stream_mode=["values", "custom"])
        events = [event for mode, event in parts if mode == "custom"]
        state = [state for mode, state in parts if mode == "values"][-1]
        replies = [event for event in events if event.type.startswith("reply_")]
        first_types = [event.type for event in events[:3]]
        outcomes.append((summarize(state), replies, first_types))
    assert split_waves(modules, waves) == sort_waves(waves)
    assert outcomes[0] == outcomes[1]


def test_only_tools_of_preselected_guidelines_are_asked_about_ahead():
    """The customer's words lead the first pass to parcels, and the tool's result the later ones to vouchers."""

    def find_parcel() -> str:
        """Find the parcel."""
        return "lost, so a voucher is due"

    guidelines = []
    for topic, tool in {"parcel": find_parcel, "voucher": get_order, "mattress": search}.items():
        condition, action = f"about a {topic}", f"help with the {topic}"
        guidelines.append(Guideline(f"{condition} (1)", action, id=f"{topic}-1", tools=[tool]))
        guidelines.append(Guideline(f"{condition} (2)", action, id=f"{topic}-2"))
    agent = Agent("Desk", "You help.", guidelines)
    answers: Any = ({"parcel-1": 9, "voucher-1": 9}, {"find_parcel": {}, "get_order": A1}, "I sent you one.")
    waves = [["matcher", "tools"], *[["matcher", "matcher", "message", "tools", "tools"]] * 2]
    model, modules = make_waving_model(Brain(*answers), waves)
    outcomes = []
    for chat_model, eager in ((model, True), (brain(*answers), False)):
        matching = Matching(batch_size=2, max_judged=2)
        app = create_guided_agent(chat_model, agent, matching=matching, eager=eager)
        messages = {"messages": [{"role": "user", "content": "Where is my parcel?", "id": "m1"}]}
        parts = list(app.stream(messages, stream_mode=["values", "custom"]))
        judged = [part.judged for _, part in parts if getattr(part, "type", "") == "guidelines_matched"]
        state = [part for mode, part in parts if mode == "values"][-1]
        outcomes.append((summarize(state), judged))
        candidates = {tool for call in get_prompts(chat_model, "tools") for tool in call.now["candidates"]}
        assert candidates == {"find_parcel", "get_order"}
    assert split_waves(modules, waves) == waves
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1][:2] == [("parcel-1", "parcel-2"), ("parcel-2", "voucher-1", "voucher-2")]


@pytest.mark.parametrize(("active", "questions"), [("A", 2), ("", 1)])
def test_call_is_made_with_the_guidelines_that_are_active(active, questions):
    """If two guidelines grant one tool, one that doesn't match has no say in the arguments."""
    guidelines = [Guideline(f"about {id}", "look it up", id=id, tools=[get_order]) for id in "AB"]
    agent = Agent("Desk", "You help.", guidelines)
    outcomes = []
    for eager in (True, False):
        arguments = {"get_order": lambda prompt: {"order_id": "+".join(prompt.now["active"])}}
        model = brain(dict.fromkeys(active, 9), arguments)
        app = create_guided_agent(model, agent, strategy=ToolCalling(max_rounds=1), eager=eager)
        outcomes.append((summarize(app.invoke(QUESTION)), len(get_prompts(model, "tools"))))
    (eager_summary, eager_questions), (plain_summary, _) = outcomes
    assert eager_summary == plain_summary
    assert eager_summary[1] == ([("get_order", {"order_id": "+".join(active)})] if active else [])
    assert eager_questions == questions


def test_tool_that_no_match_grants_leaves_no_trace():
    refusal = errors.RefusalError("no", "no")
    call = {"get_order": A1, "give_discount": lambda _: refusal}
    for judge, ran in (({}, []), ({"G1": 9}, ["get_order"])):
        app = create_guided_agent(brain(judge=judge, call=call), make_desk(), eager=True, mode="direct")
        state = app.invoke(QUESTION)
        assert [message.name for message in state["messages"] if message.type == "tool"] == ran
        assert {record["tool"] for record in state["tool_insights"]} == set(ran)
    model = brain(judge={"G1": 9}, call={"get_order": lambda _: refusal})
    with pytest.raises(errors.RefusalError):
        create_guided_agent(model, make_desk(), eager=True, mode="direct").invoke(QUESTION)


def test_prompt_of_a_tool_asked_ahead_differs_only_at_its_end():
    answers = {"judge": {"G1": 9, "G2": INDEPENDENT}, "call": {"get_order": A1}}
    prompts = []
    for eager in (True, False):
        model = brain(**answers)
        create_guided_agent(model, make_desk(), eager=eager).invoke(QUESTION)
        prompts.append(get_prompts(model, "tools"))
    eager_prompts, plain_prompts = prompts
    ahead = next(prompt for prompt in eager_prompts if "get_order" in prompt.now["candidates"])
    assert (ahead.head, ahead.schema) == (plain_prompts[0].head, plain_prompts[0].schema)
    assert ahead.now == {**plain_prompts[0].now, "other_candidates": ["give_discount"]}
    assert "is being decided at the same time" in ahead.tail
    assert eager_prompts[-1].text == plain_prompts[1].text
    assert "at the same time" not in eager_prompts[-1].tail


def test_tool_beyond_max_speculative_tools_is_asked_about_once_it_is_granted():
    waves = [["matcher", "tools"], ["tools"], ["message"], ["matcher", "tools"], ["message"]]
    model, modules = make_waving_model(Brain({"G2": 9}), waves)
    strategy = ToolCalling(max_speculative_tools=1)
    app = create_guided_agent(model, make_desk(), strategy=strategy, eager=True, checkpointer=MemorySaver())
    for text in ("It is late.", "Hello?"):
        app.invoke(make_input(text), make_thread())
    assert split_waves(modules, waves) == waves
    # In the second turn, the tool that was granted before is asked about first.
    candidates = [prompt.now["candidates"] for prompt in get_prompts(model, "tools")]
    assert candidates == [["get_order"], ["give_discount"], ["give_discount"]]


def test_step_with_condition_functions_is_asked_ahead_too(runs):
    guidelines = [Guideline(bool, "greet", id="A"), Guideline(lambda _: False, "greet", id="B")]
    other = Agent("Other", "You help.", guidelines)
    model, modules = make_waving_model(Brain({"A": 9}), [["matcher", "matcher"]])
    node = Parallel(GuidelineMatcher(model, make_desk()), GuidelineMatcher(model, other))
    matches = runs.invoke(node, QUESTION)["guideline_matches"]
    assert [record["guideline"] for record in matches if record["active"]] == ["G4", "A"]
    assert modules == ["matcher", "matcher"]


def test_a_condition_that_fails_is_named_also_where_its_matcher_is_asked_speculatively():
    other = Agent("Other", "You help.", [Guideline(lambda _: 1 / 0, "greet", id="A")])
    node = Parallel(GuidelineMatcher(brain(), make_desk()), GuidelineMatcher(brain(), other))
    with pytest.raises(errors.SpecError, match="guideline A raised ZeroDivisionError"):
        node.invoke(QUESTION)


@pytest.mark.parametrize("confirm", [{}, {"get_order": "operator"}])
def test_turn_that_failed_while_drafting_resumes_without_running_a_tool_twice(confirm):
    ran, failures = [], [RuntimeError()]

    def get_order(order_id: str) -> str:
        """Look up an order."""
        ran.append(order_id)
        return "it is late"

    model = brain({"G1": 9}, {"get_order": A1}, lambda _: failures.pop() if failures else "It is late.")
    agent = Agent("Desk", "You help.", [Guideline("they ask", "look", tools=[get_order])], confirm=confirm)
    app = create_guided_agent(model, agent, eager=True, checkpointer=MemorySaver())
    run_input: Any = QUESTION
    if confirm:
        app.invoke(QUESTION, make_thread())
        run_input = Command(resume={"decisions": [{"type": "approve"}]})
    with pytest.raises(RuntimeError):
        app.invoke(run_input, make_thread(), durability="sync")
    state = resume_or_invoke(app, None, make_thread())
    assert (get_types(state), state["messages"][-1].text) == (["human", "ai", "tool", "ai"], "It is late.")
    assert ran == ["A-1"]


def make_confirming_app(model, confirm, **options):
    agent = make_desk(confirm={"get_order": confirm})
    return create_guided_agent(model, agent, eager=True, mode="direct", checkpointer=MemorySaver(), **options)


def test_new_message_on_a_waiting_turn_answers_its_call_before_the_next_one():
    model = brain({"G1": 9}, {"get_order": A1})
    app = make_confirming_app(model, "operator")
    app.invoke(QUESTION, make_thread())
    state = app.invoke(make_input("Well?"), make_thread())
    assert get_types(state) == ["human", "ai", "tool", "human", "ai"]
    lines = [[line["id"] for line in prompt.lines] for prompt in get_prompts(model, "tools")[2:]]
    assert lines == [["M1", "T1", "M2"]] * 2


def test_no_reply_is_drafted_while_confirmed_calls_are_made():
    model = brain({"G1": 9}, {"get_order": [A1, {"order_id": "A-2"}]})
    app = make_confirming_app(model, "customer")
    for text in ("Where are A-1 and A-2?", "Yes"):
        state = app.invoke(make_input(text), make_thread())
    assert get_types(state) == ["human", "ai", "human", "ai", "tool", "ai", "tool", "ai"]
    assert len(get_prompts(model, "message")) == 2


def test_agrees_function_is_called_once_for_an_answer():
    answers: list[str] = []
    strategy = ToolCalling(agrees=lambda answer, _: answers.append(answer))
    app = make_confirming_app(brain({"G1": 9}, {"get_order": A1}), "customer", strategy=strategy)
    for text in ("Where is A-1?", "Yes"):
        app.invoke(make_input(text), make_thread())
    assert answers == ["Yes"]


@dataclass
class ChatState:
    """A user's state that isn't a dict, with messages under another name."""

    chat: Annotated[list[Any], add_messages]
    guideline_matches: list[Any] = field(default_factory=list)
    tool_insights: list[Any] = field(default_factory=list)


@pytest.mark.filterwarnings("error")
def test_parallel_works_in_any_graph():
    agent, model = make_desk(), brain({"G1": 9}, {"get_order": A1}, "It is late.")
    node_types = (GuidelineMatcher, ToolCaller, MessageReviser)
    parallel = Parallel(*(node_type(model, agent, messages_key="chat") for node_type in node_types))
    graph = StateGraph(ChatState)
    graph.add_node("match_and_act", parallel)
    graph.add_node("tools", guarded_tools(agent, messages_key="chat"))
    graph.add_edge(START, "match_and_act")
    route = route_calls(agent, otherwise=END, messages_key="chat")
    graph.add_conditional_edges("match_and_act", route, ["tools", END])
    graph.add_edge("tools", "match_and_act")
    state = graph.compile().invoke({"chat": QUESTION["messages"]})
    assert [message.type for message in state["chat"]] == ["human", "ai", "tool", "ai"]
    update = parallel.invoke({"chat": [("user", "Where is A-1?")]})
    assert update["chat"][0].tool_calls[0]["name"] == "get_order"


def test_invalid_steps_and_strategies_are_refused():
    with pytest.raises(errors.InputError, match="give nodes that ask a model"):
        Parallel(GuidelineMatcher(brain(), make_desk()), guarded_tools(make_desk()))
    with pytest.raises(errors.InputError, match="takes the nodes that it is to run"):
        Parallel()
    matchers = [GuidelineMatcher(brain(), make_desk(), messages_key=key) for key in ("messages", "chat")]
    with pytest.raises(
        errors.InputError, match=r"nodes\[1\]: messages_key is 'chat', but nodes\[0\] has 'messages'"
    ):
        Parallel(*matchers)
    with pytest.raises(errors.InputError, match='eager is for strategy="tools"'):
        create_guided_agent(brain(), make_desk(), strategy="pre-act", eager=True)
