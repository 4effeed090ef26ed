"""Worlds to act in: what was played, what was refused, and how far it got."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from arq_graph.agent.environment import Environment, Observation
from arq_graph.agent.state import WorldStatus
from arq_graph.errors import InputError
from arq_graph.milestones import Call, MilestoneGraph, Result, score
from examples.textworld.environment import TextWorldEnvironment, make_text_game
from examples.textworld.episode import Episode, EpisodeStep, episode_transcript, play_episode
from tests.speaking import do, respact, speaker

DOORS = {"hall": ("kitchen", "cellar"), "kitchen": ("hall",), "cellar": ("hall",)}
BY_WAY_OF_THE_CELLAR = ("go to cellar", "take apple", "go to hall", "go to kitchen", "put apple on table")


class Kitchen:
    """Three rooms; an apple that lies in the cellar belongs on the kitchen table."""

    def __init__(self) -> None:
        self.done = False
        self.score: float | None = 0.0
        self.room, self.apple = "hall", "cellar"

    def reset(self, seed: int | None = None) -> str:
        self.__init__()  # type: ignore[misc]
        return "You are in the hall. Bring the apple to the table."

    def actions(self) -> Sequence[str]:
        if self.done:
            return ()
        doors = [f"go to {room}" for room in DOORS[self.room]]
        if self.apple == self.room:
            doors.append("take apple")
        if self.apple == "hand" and self.room == "kitchen":
            doors.append("put apple on table")
        return doors

    def step(self, action: str) -> Observation:
        if action not in self.actions():
            return Observation("That does not work.", self.done, self.score, valid=False)
        if action.startswith("go to "):
            self.room = action.removeprefix("go to ")
        elif action == "take apple":
            self.apple = "hand"
        else:
            self.apple, self.done, self.score = "table", True, 1.0
        return Observation(f"You are in the {self.room}: {action}.", self.done, self.score)


def follows(actions: Sequence[str]):
    """A player that takes these actions and then gives up."""
    return lambda episode, _: actions[len(episode.steps)] if len(episode.steps) < len(actions) else None


def play(*actions: str, max_steps: int = 50) -> Episode:
    return play_episode(Kitchen(), follows(actions), max_steps=max_steps)


def test_a_world_of_your_own_is_an_environment():
    assert isinstance(Kitchen(), Environment)


def test_an_episode_keeps_what_was_done_and_how_it_went():
    episode = play(*BY_WAY_OF_THE_CELLAR)
    assert episode.beginning.startswith("You are in the hall.")
    assert episode.actions == BY_WAY_OF_THE_CELLAR
    assert (episode.done, episode.score, episode.invalid) == (True, 1.0, 0)


def test_nothing_is_asked_of_the_player_once_the_task_has_ended():
    assert play(*BY_WAY_OF_THE_CELLAR, "go to hall").actions == BY_WAY_OF_THE_CELLAR


def test_what_the_world_refuses_is_counted_and_changes_nothing():
    episode = play("take apple", "eat the door", *BY_WAY_OF_THE_CELLAR)
    assert (episode.invalid, episode.score) == (2, 1.0)


def test_an_episode_takes_no_more_steps_than_it_may():
    episode = play_episode(Kitchen(), lambda *_: "dance", max_steps=7)
    assert (len(episode.steps), episode.invalid, episode.done) == (7, 7, False)


def test_the_player_sees_what_is_possible_now_and_what_happened():
    seen: list[tuple[tuple[str, ...], list[str]]] = []

    def watches(episode: Episode, possible: Sequence[str] | None) -> str | None:
        seen.append((episode.actions, list(possible or ())))
        return "go to cellar" if len(seen) == 1 else None

    assert play_episode(Kitchen(), watches).score == 0.0
    assert seen == [
        ((), ["go to kitchen", "go to cellar"]),
        (("go to cellar",), ["go to hall", "take apple"]),
    ]


def test_a_player_who_gives_up_at_once_has_no_score():
    episode = play()
    assert (episode.steps, episode.score, episode.done) == ((), None, False)


@pytest.mark.parametrize("max_steps", [0, -1])
def test_an_episode_without_steps_is_a_mistake(max_steps: int):
    with pytest.raises(InputError, match=f"max_steps is {max_steps}"):
        play("go to cellar", max_steps=max_steps)


def test_an_action_that_is_no_text_is_a_mistake():
    with pytest.raises(InputError, match="the player gave a int"):
        play_episode(Kitchen(), lambda *_: 3)  # type: ignore[arg-type, return-value]


def test_each_action_is_a_call_with_its_result():
    transcript = episode_transcript(play("go to cellar", "fly"), id="e1", task="apple")
    assert transcript.events == (
        Call("act", {"action": "go to cellar"}, step=0),
        Result(1, "act", "You are in the cellar: go to cellar.", step=0),
        Call("act", {"action": "fly"}, step=1),
        Result(3, "act", "That does not work.", failed=True, step=1),
    )
    assert (transcript.id, transcript.task) == ("e1", "apple")
    assert transcript.instructions.startswith("You are in the hall.")
    assert transcript.extra == {"score": 0.0, "done": False, "invalid": 1}


def test_an_action_may_be_a_call_of_its_verb():
    transcript = episode_transcript(play("go to cellar", "TAKE apple", " "), by_verb=True)
    assert [call.tool for _, call in transcript.calls()] == ["go", "take", "act"]
    assert [event.tool for event in transcript.events if isinstance(event, Result)] == ["go", "take", "act"]
    assert [call.arguments["action"] for _, call in transcript.calls()] == ["go to cellar", "TAKE apple", " "]


def test_an_episode_in_which_nothing_happened_cannot_be_measured():
    with pytest.raises(InputError, match="empty"):
        episode_transcript(play())


WALKTHROUGH = MilestoneGraph.from_actions(
    [{"tool": "act", "arguments": {"action": action}} for action in BY_WAY_OF_THE_CELLAR]
)
QUEST = MilestoneGraph.parse_yaml(
    """
milestones:
- {name: Start, type: NFC, description: The episode begins., dependencies: []}
- {name: take, type: FC, description: The apple is taken., arguments: {action: take apple}, dependencies: [Start]}
- {name: put, type: FC, description: It is put., arguments: {action: {regex: put .* on table}}, dependencies: [take]}
- {name: End, type: NFC, description: The episode is over., dependencies: [put]}
"""
)


def test_a_walkthrough_is_a_milestone_graph():
    assert score(WALKTHROUGH, episode_transcript(play(*BY_WAY_OF_THE_CELLAR))).goal_completed is True
    # Two of its five actions; End is a step of its own.
    assert score(WALKTHROUGH, episode_transcript(play(*BY_WAY_OF_THE_CELLAR[:2]))).progress_rate == 2 / 6


def test_how_far_an_episode_got_is_measured_by_its_verbs():
    detour = ("go to kitchen", "go to hall", *BY_WAY_OF_THE_CELLAR)
    assert score(QUEST, episode_transcript(play(*detour), by_verb=True)).goal_completed is True
    half = score(QUEST, episode_transcript(play(*detour[:4]), by_verb=True))
    assert (half.goal_completed, half.frontier) == (False, ("put",))


def test_an_action_that_was_refused_serves_no_milestone():
    refused = episode_transcript(play("take apple", "put apple on table"), by_verb=True)
    assert score(QUEST, refused).progress_rate == 0
    assert score(QUEST, refused).wasted_calls == (1, 3)


def acted(action: str, number: int, shown: str, *, valid: bool = True) -> list[AIMessage | ToolMessage]:
    return [
        AIMessage("", tool_calls=[{"name": "act", "args": {"action": action}, "id": f"c{number}"}]),
        ToolMessage(shown, name="act", tool_call_id=f"c{number}", status="success" if valid else "error"),
    ]


def test_what_an_agent_did_in_a_world_is_measured_with_what_was_said():
    messages = [
        HumanMessage("Bring the apple to the table."),
        AIMessage("Where is it?"),
        HumanMessage("In the cellar."),
        *acted("take apple", 1, "That does not work.", valid=False),
        *acted("go to cellar", 2, "You are in the cellar."),
        *acted("take apple", 3, "You have it."),
    ]
    status = WorldStatus(turn="h1", beginning="You are in the hall.", score=0.0, taken=2, invalid=1)
    for world in (status, status.model_dump()):
        transcript = episode_transcript({"messages": messages, "world": world}, by_verb=True)
        assert [type(event).__name__ for event in transcript.events] == ["Message"] * 3 + [
            "Call",
            "Result",
        ] * 3
        assert transcript.instructions == "You are in the hall."
        assert transcript.extra == {"score": 0.0, "done": False, "invalid": 1}
        assert score(QUEST, transcript).reached["take"] == 8
    assert episode_transcript(messages).extra == {}


def test_an_agent_that_acts_in_a_world_is_measured_on_its_way():
    refused = [do(action) for action in ("take apple", *BY_WAY_OF_THE_CELLAR)]
    app = respact(speaker(refused), environment=Kitchen(), setting="chat")
    state = app.invoke({"messages": [("user", "Bring the apple to the table.")]})
    transcript = episode_transcript(state)
    assert transcript.instructions.startswith("You are in the hall.")
    assert score(WALKTHROUGH, transcript).goal_completed is True
    assert transcript.extra["done"] is True
    failed = sum(event.failed for event in transcript.events if isinstance(event, Result))
    assert transcript.extra["invalid"] == failed


def test_a_state_without_messages_is_no_episode():
    with pytest.raises(InputError, match="no `messages`"):
        episode_transcript({"world": None})


def detours() -> st.SearchStrategy[list[str]]:
    """The walkthrough as far as it goes, with what leads nowhere before each action."""
    aside = st.lists(st.sampled_from(["fly", "", "take apple now"]), max_size=2)
    return st.tuples(st.integers(0, 5), st.lists(aside, min_size=6, max_size=6)).map(
        lambda drawn: [
            action
            for before, way in zip(drawn[1], BY_WAY_OF_THE_CELLAR[: drawn[0]], strict=False)
            for action in (*before, way)
        ]
    )


ANYTHING = st.lists(st.sampled_from([*BY_WAY_OF_THE_CELLAR, "fly", ""]), max_size=12)


@settings(max_examples=60)
@given(st.one_of(detours(), ANYTHING).filter(bool))
def test_any_episode_is_replayed_from_its_actions_and_measured(actions: list[str]):
    episode = play(*actions)
    assert play(*episode.actions) == episode
    transcript = episode_transcript(episode)
    results = [event for event in transcript.events if isinstance(event, Result)]
    assert [event.failed for event in results] == [not step.observation.valid for step in episode.steps]
    assert sum(event.failed for event in results) == episode.invalid
    assert all(isinstance(transcript.event(event.call or 0), Call) for event in results)
    assert score(QUEST, episode_transcript(episode, by_verb=True)).goal_completed is episode.done


def test_a_score_that_the_world_does_not_keep_stays_unknown():
    episode = Episode("", (EpisodeStep("wait", Observation("")),))
    assert episode_transcript(episode).extra["score"] is None


def test_without_textworld_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setitem(sys.modules, "textworld", None)
    for use in (lambda: TextWorldEnvironment("game.z8"), lambda: make_text_game(tmp_path, seed=1)):
        with pytest.raises(InputError, match=r'pip install "arq_graph\[textworld\]"'):
            use()
