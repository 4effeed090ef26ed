"""The speaking agent in a world that isn't a set of tools."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Observation, errors
from arq_graph.nodes import WorldActor, events
from tests.brain import act, ask, do, say, think
from tests.speaking.chat import DESK, THREAD, Chat

TASK = "Wash the mug, please."
WASHED = [do("open the cupboard"), do("wash the mug")]
END = say("It is clean.", ends_task=True)


class Kitchen:
    """A mug has to be found in a cupboard; `free` takes any text for an action and refuses what it does not know."""

    def __init__(self, *, free: bool = False) -> None:
        self.free, self.open, self.resets = free, False, 0
        self.done, self.score = False, None
        self.steps: list[str] = []

    def reset(self):
        self.resets += 1
        self.steps, self.open, self.done, self.score = [], False, False, 0.0
        return "You are in a kitchen. There are a cupboard and a sink."

    def possible(self):
        return ["look", "open the cupboard", *(["wash the mug"] if self.open else [])]

    def actions(self):
        return None if self.free else self.possible()

    def step(self, action):
        self.steps.append(action)
        if action not in self.possible():
            return Observation("Nothing happens.", valid=False)
        if action == "open the cupboard":
            self.open, self.score = True, 0.5
        if action == "wash the mug":
            self.done, self.score = True, 1.0
        observations = {"open the cupboard": "There is a mug.", "wash the mug": "The mug is clean."}
        return Observation(observations.get(action, "A kitchen."))


def household(script, world=None, **settings):
    return Chat(script, [], environment=world or Kitchen(), **settings)


@pytest.mark.parametrize("setting", ["task", "chat"])
def test_it_acts_until_the_world_has_ended_and_says_so(setting):
    end = END if setting == "task" else say("It is clean.")
    home = household([think("Where is it?"), *WASHED, do("look"), end], setting=setting)
    assert (home.send(TASK), home.interrupt) == ("It is clean.", None)
    assert home.calls == [("act", {"action": "open the cupboard"}), ("act", {"action": "wash the mug"})]
    assert "the world's task has ended" in home.prompts[4].complaint
    world = home.state["world"][-1]
    steps = [["open the cupboard", "There is a mug."], ["wash the mug", "The mug is clean."]]
    assert (world["done"], world["score"], world["steps"], world["invalid"]) == (True, 1.0, steps, 0)
    assert home.prompts[0].section("world") == {
        "beginning": "You are in a kitchen. There are a cupboard and a sink.",
        "actions": ["look", "open the cupboard"],
        "score": 0.0,
        "done": False,
        "invalid": 0,
    }


@pytest.mark.parametrize("free", [False, True])
def test_what_cannot_be_done_is_observed_and_counted(free):
    world = Kitchen(free=free)
    home = household([do("fly"), *WASHED, END], world)
    stream = list(home.app.stream({"messages": [("user", TASK)]}, THREAD, stream_mode="custom"))
    assert {event.agent for event in stream} == {"Agent"}
    refused, opened, _ = [event for event in stream if isinstance(event, events.ToolCalled)]
    assert refused.status == "error"
    possible = "this cannot be done now; what can: look, open the cupboard"
    assert refused.result == ("Nothing happens." if free else possible)
    assert (opened.status, opened.result) == ("success", "There is a mug.")
    assert opened.arguments["action"] == "open the cupboard"
    assert world.steps == [*(["fly"] if free else []), "open the cupboard", "wash the mug"]
    assert (home.state["world"][-1]["invalid"], len(home.state["world"][-1]["steps"])) == (1, 2)
    assert ("actions" in home.prompts[0].section("world")) is not free


def test_actions_are_bounded_and_the_end_is_told():
    world = Kitchen()
    home = household([do("look")], world, max_steps=4)
    assert home.send(TASK) == DESK.fallback
    assert (len(world.steps), home.interrupt) == (4, None)


def test_in_another_process_the_actions_are_repeated():
    saver, fresh = MemorySaver(), Kitchen()
    household([WASHED[0], ask("This mug?")], checkpointer=saver).send(TASK)
    home = household([WASHED[1], END], fresh, checkpointer=saver)
    home.answer("Yes.")
    assert home.state["world"][-1]["score"] == 1.0
    assert (fresh.resets, fresh.steps) == (1, ["open the cupboard", "wash the mug"])


def test_a_namesake_has_a_world_of_its_own_and_an_edited_agent_goes_on_with_its_earlier_one():
    first, second = Agent("Desk", "You wash up."), Agent("Desk", "You wash up carefully.")
    call = {"name": "act", "args": {"action": "open the cupboard"}, "id": "1"}
    state = {"messages": [HumanMessage(TASK, id="h1"), AIMessage("", tool_calls=[call])]}
    state["world"] = WorldActor(Kitchen(), agent=first).invoke(state)["world"]
    both = WorldActor(Kitchen(), agent=second).look(state)["world"]
    assert [len(record["steps"]) for record in both] == [1, 0]
    state["messages"].append(HumanMessage("Go on.", id="h2"))
    assert WorldActor(Kitchen(), agent=second).look(state)["world"][-1]["steps"] == both[0]["steps"]


class Fickle(Kitchen):
    """A world that shows something else each time."""

    def step(self, action):
        observation = super().step(action)
        return Observation(f"{observation.text} ({self.resets})", observation.valid)


@pytest.mark.parametrize("kind", [Kitchen, Fickle])
def test_threads_take_turns_in_one_world_which_has_to_repeat_itself(kind):
    world, second_thread = kind(), {"configurable": {"thread_id": "2"}}
    home = household([WASHED[0], ask("This mug?"), ask("Which mug?"), WASHED[1], END], world)
    home.send(TASK)
    home.app.invoke({"messages": [("user", TASK)]}, second_thread)
    assert world.steps == []
    if kind is Fickle:
        with pytest.raises(errors.StateError, match="replaying the actions gave another result"):
            home.answer("Yes.")
    else:
        home.answer("Yes.")
        assert home.state["world"][-1]["done"]


class Silent(Kitchen):
    """A world that says nothing to begin with."""

    def reset(self):
        pass


def test_what_a_world_must_return_is_named_with_its_class_and_line():
    problem = r"Silent.reset\(\) returned \(line \d+ of .*test_worlds.py\) is a NoneType: .* type str"
    with pytest.raises(errors.InputError, match=problem):
        household([WASHED[0], END], Silent()).send(TASK)


def test_actions_that_come_with_the_input_are_not_taken():
    world, opens = Kitchen(), {"action": "open the cupboard"}
    done, waiting = (
        AIMessage("", tool_calls=[{"name": "act", "args": opens, "id": id}]) for id in ("x", None)
    )
    shown = ToolMessage("There is a mug.", name="act", tool_call_id="x", artifact={**opens, "valid": True})
    home = household([END], world)
    state = home.app.invoke({"messages": [HumanMessage(TASK), done, shown, waiting]}, THREAD)
    assert (world.steps, state["messages"][-2].text[:9]) == ([], "abandoned")


def test_a_world_and_tools_go_together_but_no_tool_is_called_like_acting():
    def ring(name: str) -> str:
        """Ring somebody up."""
        return f"{name} is on the phone"

    home = Chat([act("ring", {"name": "Ann"}), *WASHED, END], [ring], environment=Kitchen())
    home.send("Wash the mug and ring Ann.")
    assert home.results == ["Ann is on the phone", "There is a mug.", "The mug is clean."]
    ring.__name__ = "act"
    with pytest.raises(errors.InputError, match="rename it"):
        Chat([], [ring], environment=Kitchen())
