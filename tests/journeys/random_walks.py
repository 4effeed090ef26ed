"""Random conversations through random journeys, and what the agent's own records say was done in them."""

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from arq_graph import Agent, Journey, JourneyStep, create_guided_agent
from arq_graph.milestones import MilestoneGraph, read_transcript, score
from tests.brain import Prompt, act, brain, say

TURNS = 4


def look(id: str) -> str:
    """Look something up.

    Args:
        id: What.
    """
    return f"{id} is there" if id != "A-0" else '{"error": "there is none"}'


def pay(id: str) -> str:
    """Pay for something.

    Args:
        id: What.
    """
    return f"paid for {id}"


def send(id: str) -> str:
    """Send something.

    Args:
        id: What.
    """
    return f"sent {id}"


TOOLS = (look, pay, send)


def make_journey(chance: random.Random, id: str, parts: list[str]) -> Journey:
    steps: list[JourneyStep] = []
    for number in range(chance.randint(2, 7)):
        earlier = [step.id for step in steps]
        after = chance.sample(earlier, min(len(earlier), chance.choice((0, 1, 1, 1, 1, 2, 2))))
        fields: dict[str, Any] = {"after": after, "requires": chance.choice(("any", "any", "all"))}
        if chance.random() < 0.35:
            fields["condition"] = f"it is so in {number}"
        if parts and chance.random() < 0.2:
            steps.append(JourneyStep(f"s{number}", journey=parts.pop(), **fields))
            continue
        if chance.random() < 0.45:
            fields["tools"] = chance.sample(TOOLS, chance.choice((1, 1, 1, 2)))
        if chance.random() < 0.15:
            fields["done_when"] = "enough was said"
        steps.append(JourneyStep(f"s{number}", f"do {number}", **fields))
    condition = None if id == "part" else "the customer wants it"
    return Journey(id, condition, steps, give_up="they want it no more" if chance.random() < 0.5 else None)


@dataclass
class Walk:
    """A conversation, what its records said was done at any time, and how often something else was done with it.

    Attributes:
        done: The ids of the steps' rules that were done, and of the journeys.
        reopened: How often a step that was done was open again.
    """

    seed: int
    agent: Agent
    messages: list[Any] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    reopened: int = 0

    @property
    def has_ended(self) -> bool:
        """True if the journey was done, or if one of its last steps was: the last reply of all may have told it."""
        return self._has_ended(self.agent.get_journey("main"))

    def _has_ended(self, journey: Journey) -> bool:
        last_steps = [step for step in journey.steps if not journey.following[step.id]]
        return journey.id in self.done or any(self._is_done(journey, step) for step in last_steps)

    def _is_done(self, journey: Journey, step: JourneyStep) -> bool:
        if step.journey is None or f"{journey.id}-{step.id}" in self.done:
            return f"{journey.id}-{step.id}" in self.done
        # Once it opens, which may be in the next turn, the journey in it was done already.
        earlier = [journey.by_id[id] for id in step.after]
        if step.requires == "all":
            may_open = all(self._is_done(journey, other) or other.condition for other in earlier)
        else:
            may_open = not earlier or any(
                self._is_done(journey, other) or other.condition for other in earlier
            )
        return may_open and self._has_ended(self.agent.get_journey(step.journey))

    def find_disagreements(self) -> list[str]:
        """Return the milestones that were reached and not done, or done and not reached."""
        graph = MilestoneGraph.from_journey(self.agent, "main")
        result = score(graph, read_transcript(self.messages), tools=self.agent.toolbox)
        wrong: list[str] = [] if result.progress_rate is not None else ["undecided"]
        for step in self.agent.get_journey("main").steps:
            names = [step.id]
            if len(step.tools) > 1 and step.done_when is None:
                names = [f"{step.id}/{tool.name}" for tool in step.tools]
            is_done = f"main-{step.id}" in self.done
            is_reached = any(name in result.reached for name in names)
            if (
                step.journey is not None
            ):  # the records say only later that it was done, if it is not the last turn
                is_reached = is_done and (step.id in result.reached or step.id not in graph)
            if is_done != is_reached:
                wrong.append(step.id)
        if result.goal_completed != self.has_ended:
            wrong.append("End")
        return wrong


class _Model:
    """Answers at random, but as a model may; questions that are asked at the same time don't change each other."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts: Counter[str] = Counter()

    def draw(self, name: str) -> random.Random:
        """Return the chance for the next answer of this name."""
        self.counts[name] += 1
        return random.Random(f"{self.seed} {name} {self.counts[name]}")

    def judge_step(self, prompt: Prompt, id: str) -> dict[str, Any]:
        chance = self.draw(f"step {id}")
        is_asking = random.Random(f"{self.seed} {id}").random() < 0.6
        if chance.random() < 0.05:
            is_asking = not is_asking
        return {
            "condition_holds": chance.choice(("yes", "yes", "yes", "no", "not_known_yet")),
            "asks_for_something": is_asking,
            "answered_by": chance.choice((None, "M1", prompt.now["turn"])) if is_asking else None,
            "done_when_holds": chance.random() < 0.5,
        }

    def judge_journeys(self, prompt: Prompt) -> dict[str, Any]:
        chance, now = self.draw("journeys"), prompt.now
        answer: dict[str, Any] = {}
        if now.get("done") and chance.random() < 0.2:
            step = chance.choice(now["done"])["id"]
            answer["changed"] = [{"step": step, "answered_by": chance.choice((None, now["turn"]))}]
        if now.get("give_up") and chance.random() < 0.1:
            answer["given_up"] = [now["give_up"][0]["id"]]
        if now.get("ended") and chance.random() < 0.3:
            answer["begun_anew"] = [now["ended"][0]["id"]]
        return answer

    def propose(self, prompt: Prompt, tool: str) -> list[dict[str, str]]:
        chance = self.draw(tool)
        return [{"id": f"A-{chance.randint(0, 3)}"}] if chance.random() < 0.85 else []

    def move(self, prompt: Prompt) -> Any:
        chance = self.draw("move")
        tools = prompt.now.get("candidates")
        if tools and chance.random() < 0.85:
            return act(chance.choice(tools), {"id": f"A-{chance.randint(0, 3)}"})
        return say()

    def reply(self, prompt: Prompt) -> dict[str, Any]:
        chance = self.draw("reply")
        ids = [guideline["id"] for guideline in prompt.section("active_guidelines")]
        followed = [id for id in ids if chance.random() < 0.7]
        return {"content": f"Well, {chance.random()}.", "followed": followed}


def walk(seed: int) -> Walk:
    """Run a conversation."""
    chance = random.Random(seed)
    journeys = [make_journey(chance, "part", []), make_journey(chance, "main", ["part"])]
    if not any(step.journey for step in journeys[1].steps):
        del journeys[0]
    agent = Agent("Shop", "You help.", journeys=journeys)
    answers = _Model(seed)
    strategy = chance.choice(("tools", "tools", "pre-act", "react", "respact"))
    model = brain(
        judge={"main": lambda _: answers.draw("main").choice((9, 9, 9, 2))},
        steps={rule.id: partial(answers.judge_step, id=rule.id) for rule in agent.rules},
        journeys=answers.judge_journeys,
        call={tool.__name__: partial(answers.propose, tool=tool.__name__) for tool in TOOLS},
        moves=None if strategy == "tools" else answers.move,
        reply=answers.reply,
    )
    eager = strategy == "tools" and chance.random() < 0.4
    app = create_guided_agent(model, agent, strategy=strategy, eager=eager, checkpointer=InMemorySaver())
    result = Walk(seed, agent)
    for number in range(TURNS):
        turn_input = {"messages": [("user", f"Message {number}")]}
        config = {"configurable": {"thread_id": "1"}}
        for state in app.stream(turn_input, config, stream_mode="values"):
            _collect(result, state)
        result.messages = state["messages"]
        result.done.update(_list_told(agent, state))
    return result


def _collect(result: Walk, state: dict[str, Any]) -> None:
    for record in state.get("journeys", ()):
        for journey in record["journeys"]:
            if journey["state"] == "done":
                result.done.add(journey["journey"])
            for step in journey["steps"]:
                id = f"{journey['journey']}-{step['step']}"
                if step["state"] == "done":
                    result.done.add(id)
                elif id in result.done:
                    result.reopened += 1


def _list_told(agent: Agent, state: dict[str, Any]) -> list[str]:
    """Return the steps that the last reply told; the records say so once the next turn begins."""
    followed = [id for revision in state["revisions"] if revision["sent"] for id in revision["followed"]]
    told: list[str] = []
    for record in state.get("journeys", ()):
        for journey in record["journeys"]:
            for step in journey["steps"]:
                id = f"{journey['journey']}-{step['step']}"
                spec = agent.get_journey(journey["journey"]).by_id[step["step"]]
                is_told = step["state"] == "open" and step["asks"] is False and id in followed
                if is_told and not spec.tools and spec.done_when is None:
                    told.append(id)
    return told
