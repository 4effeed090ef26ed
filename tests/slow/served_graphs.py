"""Graphs that `langgraph dev` serves in the tests, beside that of examples/server.

python -m tests.slow.served_graphs    hold conversations in a process that has read no file yet, where nothing may block
"""

from __future__ import annotations

import asyncio
import re
import time
from functools import partial
from typing import Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from arq_graph import Agent, Guideline, Matching, ScriptedChatModel, create_guided_agent
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.milestones import Verdict, parse_milestones
from arq_graph.nodes import Policy
from tests.agreement.desk import SETTINGS
from tests.agreement.test_two_agents import make_shared_app
from tests.brain import Asked, Brain, act, brain, say
from tests.test_examples import load


def blocks(*given: Any) -> Any:
    """What a server refuses on its event loop."""
    time.sleep(0)


async def block_the_loop(state: MessagesState) -> dict[str, Any]:
    blocks()
    return {}


careless = StateGraph(MessagesState).add_node("block", block_the_loop).add_edge(START, "block").compile()


def applies(state: Any) -> bool:
    blocks()
    return True


def none_of_them(state: Any) -> list[str]:
    blocks()
    return []


def agrees(message: str, question: str) -> bool | None:
    blocks()
    return message == "So be it" or None


def was_called(event: Any, before: Any) -> bool:
    blocks()
    return bool(getattr(event, "tool", "") == "close_shop")


def judge(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
    blocks()
    return []


def close_shop(day: str) -> str:
    """Close the shop.

    Args:
        day: On which day.
    """
    blocks()
    return "closed"


CLOSING = parse_milestones("""\
milestones:
- {name: Start, type: NFC}
- {name: Closed, type: NFC, check: 'tests.slow.served_graphs:was_called'}
- {name: Content, type: NFC, description: the customer is content, dependencies: [Closed]}
- {name: End, type: NFC, dependencies: [Content]}
""")
POLICY = Policy("p", "r", requires=none_of_them, forbids=none_of_them)


def shop(name: str, **options: Any) -> Any:
    """An agent with a function of the user's wherever one may stand, each of which blocks."""
    strategy = "tools" if name == "eager" else name
    first = act("close_shop", {"day": "Monday"})
    rules = [Guideline(applies, "close", tools=[close_shop])]
    confirm = {"close_shop": "customer"}
    policies: Any = {"policies": [POLICY]} if strategy == "respact" else {}
    return create_guided_agent(
        brain(moves=lambda asked: first if len(asked.lines) == 1 else say("Done.")),
        Agent("Shop", "You help.", rules, confirm=confirm),
        strategy=SETTINGS[strategy](agrees=agrees, **policies),
        milestones=CLOSING,
        judge=judge,
        eager=name == "eager",
        stream=True,
        **options,
    )


blocking = shop("respact")
DESK = load("server/app").DESK
quick = create_guided_agent("offline", DESK, eager=True, stream=True)


WORDS = {"look-up": "rental", "cancel": "cancel", "refund": "refund"}
TOOLS = {"look-up": "find_rental", "cancel": "cancel_rental", "refund": "refund_rental"}


def calls_for(text: str) -> list[tuple[str, dict[str, Any]]]:
    """What a message of the customer's asks for: a rental is looked up, and cancelled or refunded."""
    found = re.findall(r"R-\d+", text)
    return [(TOOLS[id], {"rental_id": each}) for id, word in WORDS.items() if word in text for each in found]


def text_of(asked: Asked) -> str:
    """The customer's last message, as a prompt shows it."""
    return str([line for line in asked.lines if line.get("from") == "customer"][-1])


class OneMind(Brain):
    """Judges, calls and replies by the customer's last message, in each step of ours and as an agent's own model."""

    def __init__(self) -> None:
        judge = {id: partial(self.judged, word) for id, word in WORDS.items()}
        call = {tool: partial(self.called, tool) for tool in TOOLS.values()}
        super().__init__(judge, call, lambda asked: f"That is all, after {len(asked.lines)} lines.")

    def __call__(self, call: Any) -> Any:
        if call.module:
            return super().__call__(call)
        last = call.messages[-1]
        wanted = calls_for(last.text) if last.type == "human" else []
        calls = [{"name": name, "args": args, "id": str(uuid4())} for name, args in wanted]
        return AIMessage("" if calls else "All is done.", tool_calls=calls)

    def judged(self, word: str, asked: Asked) -> int:
        return 9 if word in text_of(asked) else 2

    def called(self, tool: str, asked: Asked) -> list[dict[str, Any]]:
        return [args for name, args in calls_for(text_of(asked)) if name == tool and not asked.results(name)]


MODEL = ScriptedChatModel(OneMind())
scripted = create_guided_agent(MODEL, DESK)
langchains = create_agent(MODEL, middleware=[GuidelineMiddleware(MODEL, DESK)])


WANTED = {"call": {"refund": {"order_id": "A-1"}}, "reply": "I do what I can."}
two = make_shared_app({"Shop": brain({"G1": 9}, **WANTED), "Bank": brain({"G1": 2}, **WANTED)}).copy(
    {"checkpointer": None}
)


async def hold(app: Any) -> Any:
    """Talk to a shop where every blocking call on the event loop raises."""
    from blockbuster import BlockBuster  # comes with the server

    detector = BlockBuster()
    detector.functions.pop("threading.Lock.acquire")  # which every queue and every thread takes
    detector.activate()
    try:
        for text in ("Please close on Monday", "Yes"):
            thread: Any = {"configurable": {"thread_id": "1"}}
            state = await app.ainvoke({"messages": [("user", text)]}, thread)
    finally:
        detector.deactivate()
    return [message.text for message in state["messages"] if message.type == "tool"]


MANY = ("many, by spelling", "many, by embeddings", "many, in middleware")


def many(name: str) -> Any:
    """Make an agent with more guidelines than a matching pass judges: most batches are rendered when first asked."""
    others = [Guideline(f"about {number}", "help") for number in range(9)]
    close = Guideline(applies, "close", id="close", tools=[close_shop])
    agent = Agent("Shop", "You help.", [*others, close], confirm={"close_shop": "customer"})
    day = {"day": "Monday"}
    model = brain(judge={"close": 9}, call={"close_shop": day})
    near = DeterministicFakeEmbedding(size=8) if name == MANY[1] else None
    matching = Matching(batch_size=2, max_judged=3, embeddings=near)
    if name != MANY[2]:
        return create_guided_agent(model, agent, matching=matching, checkpointer=InMemorySaver())
    decided = iter([AIMessage("", tool_calls=[{"name": "close_shop", "args": day, "id": "c"}])])
    own = ScriptedChatModel(lambda _: next(decided, AIMessage("Done.")))
    guided = GuidelineMiddleware(model, agent, matching=matching)
    return create_agent(own, middleware=[guided], checkpointer=InMemorySaver())


if __name__ == "__main__":
    for name in (*SETTINGS, "eager"):
        print(name, asyncio.run(hold(shop(name, checkpointer=InMemorySaver()))))
    for name in MANY:
        print(name, asyncio.run(hold(many(name))))
