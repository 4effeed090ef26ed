"""A conversation that is too long for its prompts, with a desk whose model is scripted."""

from typing import Any

from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from tests.brain import act, brain, evaluate, get_prompts, say
from tests.order_tools import get_order

THREAD: Any = {"configurable": {"thread_id": "1"}}
OPENING = ("My order is ORD-77.", "I am allergic to nuts.", "Can I have a refund?")
PROMISE = "I promise it by Friday."
FACTS = ("ORD-77", "allergic to nuts", PROMISE)
SAFE = Guideline("they are allergic", "recommend nothing that harms them")
LOOK_UP = Guideline("they ask about an order", "look it up", tools=[get_order])
DESK = Agent("Desk", "You help.", [SAFE, LOOK_UP])


def reply(prompt: Any) -> str:
    if "refund" in prompt.lines[-1].get("text", ""):
        return PROMISE
    number = prompt.now["turn"][1:].translate(str.maketrans("0123456789", "abcdefghij"))
    return f"Certainly. That is the answer called {number}, which is no repetition of an earlier one."


def summarise(prompt: Any) -> list[dict[str, Any]]:
    """Take over the earlier points, and add the lines that hold one of the facts."""
    earlier = prompt.section("summary") or {"points": []}
    points = [{"text": point["text"], "sources": point["sources"]} for point in earlier["points"]]
    for line in prompt.lines:
        text = line.get("text", line.get("result", ""))
        if any(fact in text for fact in (*FACTS, "is late")):
            points.append({"text": text, "sources": [line["id"]]})
    return points


def move(prompt: Any) -> Any:
    is_asked = "A-1" in prompt.lines[-1].get("text", "")
    return act("get_order", {"order_id": "A-1"}) if is_asked else say(reply(prompt))


class Talk:
    """A conversation with a desk whose prompts hold a short history."""

    def __init__(self, runs: Any = None, points: Any = summarise, tokens: int = 600, **options: Any) -> None:
        self.points = points
        self.reply: Any = reply
        self.model = brain(
            {"G1": 9, "G2": lambda prompt: 9 if "A-1" in prompt.lines[-1].get("text", "") else 2},
            reply=lambda prompt: evaluate(self.reply, prompt),
            moves=move,
            summary=lambda prompt: evaluate(self.points, prompt),
        )
        self.runs = runs
        options = {"mode": "direct", "checkpointer": MemorySaver(), **options}
        self.app = options.pop("create", create_guided_agent)(
            self.model, options.pop("agent", DESK), history_tokens=tokens, **options
        )
        self.events: list[Any] = []

    def say(self, *texts: str) -> dict[str, Any]:
        for text in texts:
            input = {"messages": [("user", text)]}
            if self.runs:
                self.runs.invoke(self.app, input, THREAD)
            else:
                self.events += self.app.stream(input, THREAD, stream_mode="custom")
        return dict(self.app.get_state(THREAD).values)

    def chat(self, turns: int) -> dict[str, Any]:
        return self.say(*["And another thing: " + "word " * 12] * turns)

    @property
    def reply_prompts(self) -> list[Any]:
        return get_prompts(self.model, "message")
