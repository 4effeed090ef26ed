"""Takeover: a person has the conversation until it is given back, and the agent answers nothing."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from arq_graph import (
    Agent,
    AgentState,
    Check,
    Guideline,
    create_guided_agent,
    create_tool_agent,
    errors,
    hand_over,
    resume_or_invoke,
)
from arq_graph.milestones import parse_milestones, read_transcript, score
from arq_graph.nodes import colleague_message, events
from tests.apps.desk import make_input, make_thread
from tests.apps.test_checks import APPS, ATTACK, get_texts, is_harmless
from tests.brain import act, brain, get_prompts, say
from tests.crashing import CrashingSaver, run_turns
from tests.journeys.returns import Talk, make_shop
from tests.order_tools import A1, cancel, get_order

LOOK_UP = Guideline("they ask about an order", "look it up", tools=[get_order])
HAND_OVER = Guideline("they want a person", "hand them over", tools=[hand_over])
REASON = {"reason": "They want a person."}
DESK = Agent("Desk", "You help.", [LOOK_UP, HAND_OVER], handed_over="Ann will write to you here.")
THREAD = make_thread()


def wants_a_person(prompt: Any) -> bool:
    return "person" in prompt.lines[-1].get("text", "")


def make_model() -> Any:
    def move(prompt: Any) -> Any:
        if prompt.results("get_order") or "late" not in prompt.lines[-1].get("text", ""):
            return act("hand_over", REASON) if wants_a_person(prompt) else say()
        return act("get_order", A1)

    return brain(
        {"G1": 9, "G2": lambda prompt: 9 if wants_a_person(prompt) else 2},
        call={
            "hand_over": lambda prompt: REASON if wants_a_person(prompt) else [],
            "get_order": lambda prompt: A1 if "late" in prompt.lines[-1].get("text", "") else [],
        },
        moves=move,
    )


class Conversation:
    """A conversation with the desk in one thread."""

    def __init__(self, runs: Any = None, model: Any = None, agent: Agent = DESK, **options: Any) -> None:
        self.runs = runs
        self.model = model or make_model()
        self.app = create_guided_agent(self.model, agent, checkpointer=MemorySaver(), **options)

    def say(self, text: str) -> dict[str, Any]:
        input = make_input(text)
        if self.runs:
            return dict(self.runs.invoke(self.app, input, THREAD))
        return dict(self.app.invoke(input, THREAD))

    def update(self, **values: Any) -> None:
        self.app.update_state(THREAD, values)

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.app.get_state(THREAD).values)


@pytest.mark.parametrize("strategy", APPS)
def test_hand_over_ends_the_turn_in_the_designers_words_and_nobody_is_asked_until_it_is_given_back(
    runs: Any, strategy: str
) -> None:
    conversation = Conversation(runs, **APPS[strategy])
    state = conversation.say("I want a person.")
    assert get_texts(state)[-1] == "Ann will write to you here."
    takeover = state["takeover"]
    assert (takeover["agent"], takeover["by"]) == ("Desk", "agent")
    assert (takeover["reason"], takeover["turn"]) == ("They want a person.", state["messages"][0].id)

    calls_before = len(conversation.model.calls)
    state = conversation.say("Hello? My order is late.")
    assert get_texts(state)[-1] == "Hello? My order is late."
    assert len(conversation.model.calls) == calls_before
    assert state["takeover"] == takeover

    conversation.update(messages=[colleague_message("I refunded A-1.", "Ann")])
    conversation.update(takeover=None)
    assert not conversation.app.get_state(THREAD).next
    state = conversation.say("Thank you!")
    assert len(conversation.model.calls) > calls_before
    assert state["messages"][-1].name == "Desk"
    lines = get_prompts(conversation.model, "message")[-1].lines
    (colleague_line,) = [line for line in lines if line.get("from") == "colleague"]
    assert (colleague_line["name"], colleague_line["text"]) == ("Ann", "I refunded A-1.")


@pytest.mark.parametrize("how", ["update", "command"])
def test_a_conversation_that_is_given_back_waits_for_the_customer(how: str) -> None:
    conversation = Conversation()
    conversation.say("I want a person.")
    conversation.say("Hello?")
    calls_before = len(conversation.model.calls)
    if how == "command":
        conversation.app.invoke(Command(update={"takeover": None}), THREAD)
    else:
        conversation.update(takeover=None)
    resume_or_invoke(conversation.app, None, THREAD)
    assert len(conversation.model.calls) == calls_before
    assert conversation.state["takeover"] is None


def test_a_check_can_hand_over_and_the_event_has_the_summary() -> None:
    def is_calm(text: str) -> dict[str, Any]:
        return {"passed": "!!!" not in text, "reason": "very angry"}

    agent = DESK.replace(checks=[Check("input", is_calm, "takeover", text="I'll get somebody.")])
    conversation = Conversation(agent=agent)
    parts = list(conversation.app.stream(make_input("Help!!!"), THREAD, stream_mode="custom"))
    (event,) = [part for part in parts if isinstance(part, events.HandedOver)]
    assert (event.takeover.by, event.takeover.reason) == ("check is_calm", "very angry")
    assert event.takeover.summary is not None and event.takeover.summary.asked == ("Help!!!",)
    assert get_texts(conversation.state) == ["Help!!!", "I'll get somebody."]


def test_the_summary_says_what_was_asked_done_agreed_and_is_open() -> None:
    guidelines = [LOOK_UP, HAND_OVER, Guideline("they want to cancel", "cancel it", tools=[cancel])]
    agent = DESK.replace(guidelines=guidelines, confirm={"cancel": "customer"})

    def last_text(prompt: Any) -> str:
        return str(prompt.lines[-1].get("text", ""))

    model = brain(
        {"G1": 9, "G2": lambda prompt: 9 if wants_a_person(prompt) else 2, "G3": 9},
        call={
            "get_order": lambda prompt: A1 if "late" in last_text(prompt) else [],
            "cancel": lambda prompt: (
                {"order_id": last_text(prompt)[-3:]} if "ancel" in last_text(prompt) else []
            ),
            "hand_over": lambda prompt: REASON if wants_a_person(prompt) else [],
        },
    )
    conversation = Conversation(model=model, agent=agent)
    for text in (
        "My order is late",
        "So cancel A-1",
        "yes",
        "Also cancel A-2",
        "I want a person " + "x" * 900,
    ):
        conversation.say(text)
    summary = conversation.state["takeover"]["summary"]
    first, last = summary["asked"]
    assert first == "My order is late" and last.startswith("I want a person") and len(last) <= 400
    assert summary["done"] == [
        'get_order {"order_id": "A-1"} → A-1 is late',
        'cancel {"order_id": "A-1", "reason": "none"} → cancelled A-1 none',
    ]
    assert summary["agreed"] == summary["done"][1:]
    assert summary["open_question"].startswith('Cancel (order id: "A-2"')
    assert summary["last_messages"][-1].startswith("customer: I want a person")
    assert len(summary["last_messages"]) == 6


def test_a_takeover_from_outside_gets_its_summary_with_the_next_message() -> None:
    conversation = Conversation()
    conversation.say("My order is late.")
    conversation.update(takeover={"by": "Ann", "reason": "a complaint"})
    state = conversation.say("Hello?")
    assert (state["takeover"]["by"], state["takeover"]["reason"]) == ("Ann", "a complaint")
    assert state["takeover"]["summary"]["asked"] == ["My order is late.", "Hello?"]
    assert get_texts(state)[-1] == "Hello?"


def test_a_server_can_write_a_colleagues_message_as_json() -> None:
    conversation = Conversation()
    conversation.say("I want a person.")
    metadata = {"colleague": True}
    message = {"role": "assistant", "content": "I am Ann.", "name": "Ann", "response_metadata": metadata}
    conversation.update(messages=[message], takeover=None)
    conversation.say("Thank you!")
    lines = get_prompts(conversation.model, "message")[-1].lines
    assert [line["from"] for line in lines if "from" in line][-2:] == ["colleague", "customer"]


@pytest.mark.parametrize("colleague", [None, "Ann"])
def test_nothing_said_to_a_colleague_agrees_to_a_call(colleague: str | None) -> None:
    agent = DESK.replace(confirm={"get_order": "customer"})
    conversation = Conversation(agent=agent)
    state = conversation.say("My order is late.")
    assert get_texts(state)[-1].endswith("Reply yes to go ahead.")
    conversation.update(takeover={"by": "Ann"})
    if colleague:
        conversation.update(messages=[colleague_message("Is all well?", colleague)])
    with pytest.warns(UserWarning, match="question of 'Desk' was closed"):
        conversation.say("yes")
    conversation.update(takeover=None)
    state = conversation.say("yes")
    assert "A-1 is late" not in get_texts(state)


def test_a_colleague_without_a_name_does_not_speak_as_the_agent() -> None:
    agent = DESK.replace(confirm={"get_order": "customer"})
    conversation = Conversation(agent=agent)
    question = conversation.say("My order is late.")["messages"][-1].text
    message = AIMessage(question, response_metadata={"colleague": True})
    conversation.update(messages=[message])
    with pytest.warns(UserWarning, match="question of 'Desk' was closed"):
        state = conversation.say("yes")
    assert "A-1 is late" not in get_texts(state)


@pytest.mark.parametrize("strategy", ["react", "pre-act", "respact"])
def test_an_agent_without_guidelines_hands_over_too(runs: Any, strategy: Any) -> None:
    agent = Agent("Desk", "You help.", tools=[get_order, hand_over])
    app = create_tool_agent(make_model(), agent, strategy=strategy, checkpointer=MemorySaver())
    state = runs.invoke(app, make_input("A person, please"), THREAD)
    assert get_texts(state)[-1] == agent.handed_over
    assert state["takeover"]["summary"]["asked"] == ["A person, please"]


def test_a_call_beside_the_hand_over_runs_and_is_in_the_summary() -> None:
    model = brain({"G1": 9, "G2": 9}, call={"hand_over": REASON, "get_order": A1})
    state = Conversation(model=model).say("My order is late, I want a person")
    assert state["takeover"]["summary"]["done"] == ['get_order {"order_id": "A-1"} → A-1 is late']
    assert get_texts(state)[-1] == DESK.handed_over
    assert len(get_prompts(model, "matcher")) == 1, "nothing is matched again"


@pytest.mark.parametrize("stop", ["tools", "hand_over"])
def test_a_turn_that_breaks_off_while_it_hands_over_does_it_once(runs: Any, stop: str) -> None:
    conversation = Conversation(runs, interrupt_after=[stop])
    conversation.say("I want a person.")
    state = dict(runs.call(conversation.app.invoke, conversation.app.ainvoke, None, THREAD))
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    assert state["takeover"]["reason"] == "They want a person."


def test_a_file_names_hand_over_and_its_words(tmp_path: Any) -> None:
    path = tmp_path / "desk.yaml"
    path.write_text(
        "name: Desk\nprofile: You help.\nhanded_over: Einen Moment bitte.\n"
        "guidelines:\n- {condition: they want a person, action: hand them over, tools: [hand_over]}\n"
    )
    model = brain({"G1": 9}, call={"hand_over": REASON})
    state = create_guided_agent(model, Agent.from_yaml(path)).invoke(make_input("A person, please"))
    assert get_texts(state)[-1] == "Einen Moment bitte."


def test_an_app_inside_another_graph_is_silent_while_the_conversation_is_taken_over() -> None:
    model = make_model()
    app = create_guided_agent(model, DESK, input_schema=AgentState)
    builder = StateGraph(AgentState)
    builder.add_node("desk", app)
    builder.add_edge(START, "desk")
    graph = builder.compile(checkpointer=MemorySaver())
    graph.invoke(make_input("I want a person"), THREAD)  # type: ignore[arg-type]
    calls_before = len(model.calls)
    graph.invoke(make_input("Hello?"), THREAD)  # type: ignore[arg-type]
    assert len(model.calls) == calls_before


def test_a_takeover_of_another_form_is_an_error() -> None:
    conversation = Conversation()
    conversation.say("Hello")
    conversation.update(takeover={"who": "Ann"})
    with pytest.raises(errors.StateError, match="channel 'takeover' must hold a takeover such as"):
        conversation.say("Hello?")


def test_the_summary_says_how_far_each_journey_is() -> None:
    guideline = Guideline("the customer wants a person", "hand them over", tools=[hand_over])
    talk = Talk(make_shop(guidelines=[guideline]))
    talk.call["get_order"] = {"order_id": "A-301"}
    talk.steps["return-reason"] = {"asks_for_something": True}
    talk.say("I want to return order A-301.")
    talk.judge["G1"] = 9
    talk.call["hand_over"] = REASON
    talk.say("A person, please.")
    assert talk.state["takeover"]["summary"]["journeys"] == ["return (active): done order; open reason"]


def test_a_client_can_neither_set_a_takeover_nor_end_one() -> None:
    conversation = Conversation()
    conversation.app.invoke(make_input("Hello") | {"takeover": {"by": "me"}}, THREAD)
    assert not conversation.state.get("takeover")
    conversation.say("I want a person.")
    conversation.app.invoke(make_input("Hello?") | {"takeover": None, "checks": []}, THREAD)
    assert conversation.state["takeover"]["by"] == "agent"


@pytest.mark.slow
def test_a_crash_at_any_write_of_a_takeover_changes_nothing() -> None:
    agent = DESK.replace(checks=[Check("input", is_harmless)])
    give_back: Any = Command(update={"takeover": None})
    inputs = [
        f"{ATTACK} It is late.",
        "My order is late.",
        "I want a person.",
        "Hello?",
        give_back,
        "Thank you.",
    ]

    def run(saver: CrashingSaver) -> list[Any]:
        states = run_turns(
            lambda: create_guided_agent(make_model(), agent, checkpointer=saver, eager=True), inputs
        )
        return [(get_texts(state), read_reason(state)) for state in states]

    def read_reason(state: Any) -> Any:
        return state.get("takeover") and state["takeover"]["reason"]

    whole = CrashingSaver()
    expected = run(whole)
    assert [reason for _, reason in expected[2:]] == [
        "They want a person.",
        "They want a person.",
        None,
        None,
    ]
    for fatal_write in range(3, whole.write_count):
        assert run(CrashingSaver(fatal_write)) == expected, fatal_write


def test_a_measure_does_not_take_a_colleagues_words_for_the_agents() -> None:
    said = "I have refunded it."
    graph = parse_milestones(
        "milestones:\n- {name: Start, type: NFC}\n"
        "- {name: Refunded, type: NFC, check: {said_by: agent, pattern: refunded}}\n"
        "- {name: End, type: NFC, dependencies: [Refunded]}\n"
    )
    for message, is_reached in ((AIMessage(said), True), (colleague_message(said, "Ann"), False)):
        transcript = read_transcript([HumanMessage("Hello"), message])
        reached = score(graph, transcript).reached
        assert ("Refunded" in reached) == is_reached
