"""Whatever the model answers: what matters is confirmed, nothing is guessed, questions end, and so does the run."""

from __future__ import annotations

import re
from functools import cache
from itertools import count, cycle
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
from arq_graph.agent.spec import FALLBACK
from arq_graph.apps.respact import create_respact_agent
from arq_graph.nodes.speaking.questions import speech_of
from tests.apps.desk import says, thread
from tests.apps.kitchen import TASK, Kitchen
from tests.brain import brain
from tests.speaking import Made, speaker

ORDERS = ["A-1", "A-2", "B-77"]
YES = ["Yes", "Sure, go ahead", "Do it: A-1", "ok"]
NO = ["No", "No, thanks. A-2", "Don't cancel A-1!", "Never", "Stop", "OK, but not A-1"]
HEDGED = [
    "Yes, if it is free",
    "Yes, unless I need it",
    "ok, let me think about it",
    "sure, tomorrow maybe",
    "Y'all keep off",
    "keep it",
    "right, hmm, I'd prefer to keep it",
    "Yes, after the summer",
    "ok I can't",
    "later",
    "I",
    "Yes?",
    "Yes? What is it?",
    "Yes, I changed my mind.",
    "Yes, I hear you.",
    "Yes, one moment.",
    "Yes, as soon as I have talked to my wife.",
    "Yes, in a week.",
    "Yes, only half of it.",
    "Yes, the other one.",
    "Yes to keeping it.",
    "Yeah right.",
    "Of course I want it to stay.",
    "Absolutely nothing.",
    "Go ahead and tell me more.",
    "Do it later.",
    "I do love that trip.",
    "Agreed, it is expensive.",
    "yes ... nope",
    "👍👎",
    "Ja, wenn es nichts kostet",
    "Oui, si c'est gratuit",
    "Si es gratis",
    "はい、無料なら",
]
OTHER = ["Cancel A-1", "Hm", "And A-2?", "Where is my order?", "I don't care", "Weiter bitte", *HEDGED[:3]]
ASKS_TO_CANCEL = ["Shall I cancel A-1?", "Shall I cancel A-2 for you?", "Cancel B-77, urgent?"]
ASKS_SOMETHING_ELSE = [
    "Do you want to keep {}?",
    "Shall I keep {} and cancel nothing?",
    "Is {} the one you mean?",
    "Shall I cancel {} or keep it?",
    "Shall I cancel {}, or shall I not?",
    "Shall I cancel {} now or later?",
    "Would you like to know what it costs to cancel {}?",
    "Shall I look up {}?",
    "Do you like tea? ({})",
    "Shall I cancel {}? And do you like tea?",
    "I can cancel {}. Do you like tea?",
    "I will not cancel {}. Is that right?",
    "Please confirm that you want to keep {}.",
    "I won't cancel {}. Shall I proceed?",
    "{} can be cancelled. Shall I go on looking?",
    "Shall I proceed with the search for {}?",
    "{} is yours. Please confirm that everything is correct.",
    "Tell me about {}.",
    "May I ask why you want to cancel {}?",
    "Do you know what happens to {} if you want to cancel?",
    "Do you want to cancel {} yourself in the app?",
    "Shall I cancel {} if it has not arrived by Friday?",
    "Shall I cancel the insurance for {}?",
    "Shall I cancel the cancellation of {}?",
    "Shall I cancel everything except {}?",
    "Shall I cancel {} and close your account?",
    "Are you happy with the cancellation fee of 20 for {}?",
    "Cancelling {} costs 20. I could move it to Friday for free. Shall I do that?",
    "I can look up the cancellation fee of {}. Shall I go ahead?",
    "I could cancel {}, and I could change it. Is that right?",
    "So you no longer want to cancel {}?",
    "{} stays active. OK?",
    "Has {} arrived?",
    "I found {}. Correct order?",
    "Nobody can cancel {}. Shall I go ahead with that?",
]
QUESTIONS = [
    *ASKS_TO_CANCEL,
    *(each.format("A-1") for each in ASKS_SOMETHING_ELSE[:3]),
    "Which one?",
    "Please tell me.",
]
MAX_QUESTIONS, MAX_STEPS, MAX_THOUGHTS = 2, 4, 1
BOUND = (MAX_STEPS + 1) * (MAX_THOUGHTS + 1) * 3
GUIDED_BOUND = (MAX_STEPS + 1) * (2 + 1 + 1) * 3 + 2 * 3

ids = st.one_of(st.none(), st.sampled_from([f"M{n}" for n in range(1, 8)]))
bases = st.sampled_from(
    ["this_request", "known", "another_request", "inferred", "ambiguous", "does_not_matter", "nobody"]
)
orders = st.sampled_from(ORDERS)
flags = {
    name: st.booleans() for name in ("asks", "mentions_failure", "closes", "states_belief", "offers_choice")
}


def cancel(order_id: str, how: Literal["now", "later", "any"] = "now", refund: bool = False) -> str:
    """Cancel an order.

    Args:
        order_id: The order's number.
        how: When.
        refund: Whether the money is given back.
    """
    return "gone"


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number.
    """
    return "it is late"


def calls_of(tool):
    further = st.sampled_from([{}, {}, {"refund": True}]) if tool == "cancel" else st.just({})
    return st.builds(
        lambda order, basis, affirmed, further: Made(
            tool, args={"order_id": order, **further}, bases={"order_id": basis}, affirmed_in=affirmed
        ),
        orders,
        bases,
        ids,
        further,
    )


def speeches(ends: bool):
    asks_for = st.lists(
        st.tuples(st.sampled_from(["cancel", "get_order", "x"]), st.sampled_from([None, "order_id"])),
        max_size=2,
    )
    further = {**flags, **({"ends_task": st.booleans()} if ends else {})}
    return st.builds(
        lambda text, asked, fields: Made("speak", text, asks_for=asked, fields=fields),
        st.sampled_from([*QUESTIONS, "Fine.", "", "cancel() says no"]),
        asks_for,
        st.fixed_dictionaries(further),
    )


thoughts = st.builds(Made, st.just("think"), st.sampled_from(["One.", "Two.", "Three.", ""]))
chat_moves = st.one_of(
    calls_of("cancel"), calls_of("cancel"), calls_of("get_order"), speeches(False), speeches(False), thoughts
)
task_moves = st.one_of(calls_of("cancel"), calls_of("get_order"), speeches(True), thoughts)
lines = st.sampled_from([*YES, *NO, *OTHER])


class Actor:
    """An app that is compiled once, and answers each example in a thread of its own."""

    def __init__(self, tools=(), **options):
        self.model = ScriptedChatModel(lambda call: self.script(call))
        self.app = self.compiled(tools, options)
        self.threads = count()

    def compiled(self, tools, options):
        limits = {"max_questions": MAX_QUESTIONS, "max_steps": MAX_STEPS, "max_thoughts": MAX_THOUGHTS}
        return create_respact_agent(self.model, tools, checkpointer=MemorySaver(), **limits, **options)

    def begins(self, moves, otherwise=None):
        """A new thread, in which the model makes these moves, and the last one for ever."""
        answers = iter(moves)
        self.script = speaker(lambda _: next(answers, moves[-1]), otherwise=otherwise)._answer
        config = thread(str(next(self.threads)))
        return lambda given: self.app.invoke(given, config)


class GuidedActor(Actor):
    """The same with guidelines, which are matched before and after each call, and with replies that are revised."""

    def compiled(self, tools, options):
        guideline = Guideline("the customer writes", "help them", tools=tools)
        agent = Agent("Desk", "You help.", [guideline], confirm={"cancel": "customer"})
        settings = {"speaking": True, "max_rounds": MAX_STEPS, "checkpointer": MemorySaver(), **options}
        return create_guided_agent(self.model, agent, **settings)


@cache
def guided():
    return GuidedActor([cancel, get_order], policies=[])


@cache
def chat():
    policies = ["confirm_inferred", "placeholder_for_dont_care", "name_or_type"]
    return Actor([cancel, get_order], consequential=["cancel"], policies=policies)


@cache
def task():
    return Actor([cancel, get_order], consequential=["cancel"], policies=[], setting="task")


@cache
def household(free):
    world = Kitchen(free=free)
    return Actor(environment=world, policies=[]), world


def assert_held(messages, max_questions=MAX_QUESTIONS):
    """What code promises of every call and every question of a thread."""
    asked: list[str] = []
    last = ""
    for index, message in enumerate(messages):
        before = messages[:index]
        if isinstance(message, ToolMessage):
            asked = []
        if not isinstance(message, AIMessage):
            continue
        for call in message.tool_calls:
            order = call["args"]["order_id"]
            spoken = [m for m in before if isinstance(m, HumanMessage)][-1]
            put = [m.text for m in before[: before.index(spoken)] if isinstance(m, AIMessage) and m.text][-1:]
            told = [m.text for m in before if isinstance(m, HumanMessage | ToolMessage)]
            agreed = spoken.text in YES or spoken.text == f"Cancel {order}"
            was_put = any(order in text for text in put) and agreed
            assert was_put or any(order in text for text in told), f"{order} is a guess"
            if call["name"] == "cancel":
                asked_for = any(
                    text in ASKS_TO_CANCEL or "confirm this: Cancel an order" in text for text in put
                )
                if call["args"].get("refund"):
                    assert any("refund: yes" in text for text in put), "a flag was never put"
                others = [each for each in ORDERS if each != order and each in spoken.text]
                assert was_put and asked_for and not others, (
                    f"{call['args']} runs without a yes, after {spoken.text!r}"
                )
        if message.text:
            assert message.text != last or message.text == FALLBACK, f"{last!r} is said twice in a row"
            last = message.text
            if "?" in message.text or speech_of(message).get("asks"):
                question = " ".join(re.findall(r"\w+", message.text.casefold()))
                assert question not in asked, f"{message.text!r} is asked twice in a row"
                asked.append(question)
                assert len(asked) <= max_questions
            else:
                asked = []


@settings(max_examples=60)
@given(st.lists(chat_moves, min_size=1, max_size=25), st.lists(lines, min_size=2, max_size=6))
def test_in_a_chat(moves, said):
    actor = chat()
    run = actor.begins(moves)
    for line in said:
        before = len(actor.model.calls)
        state = run(says(line))
        assert state["messages"][-1].text, "every turn ends with a word to the customer"
        assert len(actor.model.calls) - before <= BOUND
    assert_held(state["messages"])


@settings(max_examples=40)
@given(
    st.lists(chat_moves, min_size=1, max_size=25),
    st.lists(st.sampled_from([None, None, *QUESTIONS, "Fine.", ""]), min_size=1, max_size=12),
    st.lists(lines, min_size=2, max_size=5),
)
def test_in_a_chat_with_guidelines_whatever_the_reviser_makes_of_the_draft(moves, replies, said):
    actor = guided()
    written = cycle(replies)

    def reply(asked):
        text = next(written)
        return text if text is not None else asked.section("draft") or "Fine."

    run = actor.begins(moves, brain(judge={"G1": 9}, reply=reply))
    for line in said:
        before = len(actor.model.calls)
        state = run(says(line))
        assert state["messages"][-1].text, "every turn ends with a word to the customer"
        assert len(actor.model.calls) - before <= GUIDED_BOUND
    assert_held(state["messages"], max_questions=3)


@settings(max_examples=25)
@given(st.lists(task_moves, min_size=1, max_size=25), lines, st.lists(lines, min_size=1, max_size=4))
def test_in_a_task(moves, wanted, answers):
    actor = task()
    run = actor.begins(moves)
    before = len(actor.model.calls)
    state = run(says(wanted))
    waits = 0
    while state.get("__interrupt__"):
        waits += 1
        assert waits <= MAX_STEPS
        state = run(Command(resume=answers[waits % len(answers)]))
    assert len(actor.model.calls) - before <= BOUND
    assert_held(state["messages"])


@settings(max_examples=25)
@given(
    st.lists(
        st.one_of(
            st.builds(
                Made,
                st.just("act"),
                st.sampled_from(["look", "open the cupboard", "wash the mug", "fly", ""]),
            ),
            speeches(True).map(lambda made: Made("speak", made.text, fields=made.fields)),
            thoughts,
        ),
        min_size=1,
        max_size=25,
    ),
    st.booleans(),
)
def test_in_a_world(moves, free):
    actor, world = household(free)
    world.resets.clear()
    run = actor.begins(moves)
    state = run(says(TASK))
    while state.get("__interrupt__"):
        state = run(Command(resume="Go on."))
    assert len(world.steps) <= MAX_STEPS
    assert state["world"].taken == len(world.steps)
    assert len(world.resets) <= 1
    assert free or all(step in ("look", "open the cupboard", "wash the mug") for step in world.steps)
