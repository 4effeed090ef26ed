"""The speaking agent in a task: an utterance waits for its answer, which joins the context."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import InputError
from tests.apps.desk import get_order, kinds, says, thread
from tests.brain import asked_by
from tests.nodes.order_tools import cancel
from tests.speaking import act, ask, respact, say, speaker

A1 = {"order_id": "A-1"}
END = say("All is done.", ends_task=True)


def task(model, tools=(get_order,), saver=None, **options):
    return respact(model, list(tools), setting="task", checkpointer=saver or MemorySaver(), **options)


def test_an_utterance_waits_and_its_answer_joins_the_context(runs):
    model = speaker([ask("Which order?"), act("get_order", A1), END])
    app = task(model)
    waiting = runs.invoke(app, says("Look it up."), thread())
    assert waiting["__interrupt__"][0].value == {
        "type": "speak",
        "text": "Which order?",
        "category": "probing_question",
    }
    done = runs.invoke(app, Command(resume="A-1"), thread())
    assert kinds(done) == ["human", "ai", "human", "ai", "tool", "ai"]
    assert asked_by(model, "speaker")[1].lines[-1]["text"] == "A-1"
    assert not app.get_state(thread()).next


def test_a_status_update_waits_too_and_the_last_word_does_not(runs):
    app = task(speaker([say("I am at it."), END]))
    waiting = runs.invoke(app, says("Look it up."), thread())
    assert waiting["__interrupt__"][0].value["category"] == "status_update"
    done = runs.invoke(app, Command(resume="Fine."), thread())
    assert "__interrupt__" not in done
    assert done["messages"][-1].text == "All is done."


def test_the_act_of_limited_speech_is_told():
    app = task(speaker([ask("Where is it?", dialogue_act="ReqForObjLocAndOD")]), dialogue_acts="household")
    waiting = app.invoke(says("Look."), thread())
    assert waiting["__interrupt__"][0].value["dialogue_act"] == "ReqForObjLocAndOD"


@pytest.mark.parametrize("answer", ["", "  ", 7, {"a": 1}, ["x"]])
def test_an_answer_that_says_nothing_can_be_given_again(answer):
    app = task(speaker([ask("Which order?"), END]))
    app.invoke(says("Look it up."), thread())
    with pytest.raises(InputError, match="a text that says something"):
        app.invoke(Command(resume=answer), thread())
    assert app.invoke(Command(resume="A-1"), thread())["messages"][-2].text == "A-1"


def test_it_never_waits_forever():
    questions = iter(range(100))
    app = task(speaker(lambda _: ask(f"What about {next(questions)}?")), max_questions=3)
    state = app.invoke(says("Look it up."), thread())
    waits = 0
    while state.get("__interrupt__"):
        waits += 1
        state = app.invoke(Command(resume="Hm."), thread())
    assert waits == 3


def test_steps_of_a_task_are_counted_across_its_answers():
    def script(asked):
        return ask(f"Number {len(asked.lines)}?") if len(asked.lines) % 4 == 1 else act("get_order", A1)

    model = speaker(script)
    app = task(model, max_steps=6)
    state = app.invoke(says("Look up A-1."), thread())
    for _ in range(20):
        if not state.get("__interrupt__"):
            break
        state = app.invoke(Command(resume="Go on."), thread())
    assert "__interrupt__" not in state
    assert sum(kind == "ai" for kind in kinds(state)) <= 7
    assert state["messages"][-1].text


def test_a_new_message_is_a_new_task():
    model = speaker([ask("Which order?"), END])
    app = task(model)
    app.invoke(says("Look it up."), thread())
    app.invoke(Command(resume="A-1"), thread())
    assert asked_by(model, "speaker")[1].now["steps_left"] == 39
    app.invoke(says("And another thing."), thread())
    assert asked_by(model, "speaker")[2].now["steps_left"] == 40


def test_a_call_is_confirmed_within_a_task(runs):
    put = ask("Shall I cancel A-1?", asks_for=[("cancel", None)])
    script = [act("cancel", A1), put, act("cancel", A1), END]
    for answer, tools in (("Yes.", 1), ("No.", 0)):
        app = task(speaker(script), [cancel], confirm={"cancel": "customer"})
        runs.invoke(app, says("Cancel A-1"), thread())
        state = runs.invoke(app, Command(resume=answer), thread())
        assert kinds(state).count("tool") == tools
