"""A shop that takes items back, with a journey of seven steps."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver

from arq_graph import Agent, Guideline, Journey, JourneyStep, create_guided_agent
from tests.brain import brain


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The order's number.
    """
    return f"{order_id} has a lamp"


def refund(order_id: str, reason: str = "") -> str:
    """Refund an order.

    Args:
        order_id: The order's number.
        reason: Why.
    """
    return f"refunded {order_id}"


def exchange(order_id: str) -> str:
    """Exchange an item.

    Args:
        order_id: The order's number.
    """
    return f"exchanged {order_id}"


RETURN = Journey(
    "return",
    "the customer wants to return an item",
    [
        JourneyStep("order", "ask which order it is and look it up", tools=[get_order]),
        JourneyStep("reason", "ask what is wrong with the item", after="order"),
        JourneyStep("refund", "refund it", condition="the item is faulty", after="reason", tools=[refund]),
        JourneyStep(
            "exchange", "exchange it", condition="the item does not fit", after="reason", tools=[exchange]
        ),
        JourneyStep("close", "sum up what was agreed", after=["refund", "exchange"]),
    ],
    give_up="the customer wants to keep the item",
)


def make_shop(**fields: Any) -> Agent:
    guidelines = [Guideline("the customer asks for the opening hours", "say that it is open until six")]
    return Agent("Shop", "You sell lamps.", **{"guidelines": guidelines, "journeys": [RETURN], **fields})


class Talk:
    """A conversation with the shop; `steps`, `judge` and `call` can be changed between the turns."""

    def __init__(self, agent: Agent | None = None, moves: Any = None, **options: Any) -> None:
        self.steps: dict[str, Any] = {}
        self.judge: dict[str, Any] = {"return": 9}
        self.call: dict[str, Any] = {}
        self.journeys: dict[str, Any] = {}
        self.model = brain(
            judge=self.judge,
            call=self.call,
            moves=moves,
            steps=self.steps,
            journeys=lambda prompt: self.journeys,
        )
        self.agent = agent or make_shop()
        self.app = create_guided_agent(self.model, self.agent, checkpointer=InMemorySaver(), **options)
        self.state: dict[str, Any] = {}

    def say(self, text: str) -> None:
        config = {"configurable": {"thread_id": "1"}}
        self.state = self.app.invoke({"messages": [("user", text)]}, config)

    @property
    def active(self) -> list[str]:
        """The steps that are active, without the journey's id before them."""
        active: list[str] = []
        for match in self.state["guideline_matches"]:
            if match["active"] and match["guideline"] in self.step_ids:
                active.append(match["guideline"].partition("-")[2])
        return active

    @property
    def step_ids(self) -> list[str]:
        ids: list[str] = []
        for journey in self.agent.journeys:
            ids.extend(f"{journey.id}-{step.id}" for step in journey.steps)
        return ids

    @property
    def journey(self) -> dict[str, Any]:
        """How far the journey is: the steps by their state."""
        (record,) = self.state["journeys"]
        (journey,) = [entry for entry in record["journeys"] if entry["journey"] == "return"]
        return {"": journey["state"]} | {step["step"]: step["state"] for step in journey["steps"]}

    @property
    def results(self) -> list[str]:
        return [message.text for message in self.state["messages"] if message.type == "tool"]
