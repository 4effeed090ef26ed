"""Graphs that `langgraph dev` serves in the tests, beside that of examples/server.

python -m tests.slow.served_graphs    run conversations in a fresh process where nothing may block
"""

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

from arq_graph import (
    Agent,
    Check,
    Guideline,
    Matching,
    ScriptedChatModel,
    create_guided_agent,
    hand_over,
)
from arq_graph.middleware import GuidelineMiddleware
from arq_graph.milestones import Verdict, parse_milestones
from arq_graph.nodes import Policy
from tests.agreement.desk import SETTINGS
from tests.brain import Brain, Prompt, act, brain, say
from tests.test_examples import load


def block() -> None:
    """Make a call that a server refuses on its event loop."""
    time.sleep(0)


async def block_the_loop(state: MessagesState) -> dict[str, Any]:
    block()
    return {}


careless = StateGraph(MessagesState).add_node("block", block_the_loop).add_edge(START, "block").compile()


def applies(state: Any) -> bool:
    block()
    return True


def find_nothing(state: Any) -> list[str]:
    block()
    return []


def agrees(message: str, question: str) -> bool | None:
    block()
    return message == "So be it" or None


def was_called(event: Any, before: Any) -> bool:
    block()
    return bool(getattr(event, "tool", "") == "close_shop")


def judge(graph: Any, transcript: Any, observations: Any) -> list[Verdict]:
    block()
    return []


def close_shop(day: str) -> str:
    """Close the shop.

    Args:
        day: On which day.
    """
    block()
    return "closed"


CLOSING = parse_milestones("""\
milestones:
- {name: Start, type: NFC}
- {name: Closed, type: NFC, check: 'tests.slow.served_graphs:was_called'}
- {name: Content, type: NFC, description: the customer is content, dependencies: [Closed]}
- {name: End, type: NFC, dependencies: [Content]}
""")
POLICY = Policy("p", "r", requires=find_nothing, forbids=find_nothing)


def make_shop(name: str, **options: Any) -> Any:
    """Return an agent with a blocking function of the user in every place that takes one."""
    strategy = "tools" if name == "eager" else name
    first = act("close_shop", {"day": "Monday"})
    rules = [Guideline(applies, "close", tools=[close_shop])]
    confirm = {"close_shop": "customer"}
    policies: Any = {"policies": [POLICY]} if strategy == "respact" else {}
    return create_guided_agent(
        brain(moves=lambda prompt: first if len(prompt.lines) == 1 else say("Done.")),
        Agent("Shop", "You help.", rules, confirm=confirm),
        strategy=SETTINGS[strategy](agrees=agrees, **policies),
        milestones=CLOSING,
        judge=judge,
        eager=name == "eager",
        stream=True,
        **options,
    )


blocking = make_shop("respact")
DESK = load("server/app").DESK


WORDS = {"look-up": "rental", "cancel": "cancel", "refund": "refund"}
TOOLS = {"look-up": "find_rental", "cancel": "cancel_rental", "refund": "refund_rental"}


def find_requested_calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls that a customer's message asks for."""
    calls = []
    for id, word in WORDS.items():
        if word in text:
            calls += [(TOOLS[id], {"rental_id": rental}) for rental in re.findall(r"R-\d+", text)]
    return calls


def get_last_customer_line(prompt: Prompt) -> str:
    lines = [line for line in prompt.lines if line.get("from") == "customer"]
    return str(lines[-1])


class KeywordBrain(Brain):
    """Decides by the customer's last message, in each step of this library and as an agent's own model."""

    def __init__(self) -> None:
        judge = {id: partial(self.judge_guideline, word) for id, word in WORDS.items()}
        call = {tool: partial(self.propose_calls, tool) for tool in TOOLS.values()}
        super().__init__(judge, call, lambda prompt: f"That is all, after {len(prompt.lines)} lines.")

    def __call__(self, call: Any) -> Any:
        if call.module:
            return super().__call__(call)
        last = call.messages[-1]
        calls = []
        if last.type == "human":
            for name, args in find_requested_calls(last.text):
                calls.append({"name": name, "args": args, "id": str(uuid4())})
        return AIMessage("" if calls else "All is done.", tool_calls=calls)

    def judge_guideline(self, word: str, prompt: Prompt) -> int:
        return 9 if word in get_last_customer_line(prompt) else 2

    def propose_calls(self, tool: str, prompt: Prompt) -> list[dict[str, Any]]:
        if prompt.results(tool):
            return []
        requested = find_requested_calls(get_last_customer_line(prompt))
        return [args for name, args in requested if name == tool]


MODEL = ScriptedChatModel(KeywordBrain())
scripted = create_guided_agent(MODEL, DESK)


def is_harmless(text: str) -> bool:
    block()
    return "Ignore your rules" not in text


handing_over = create_guided_agent(
    brain(
        {"G1": lambda prompt: 9 if "person" in get_last_customer_line(prompt) else 2}, call={"hand_over": {}}
    ),
    Agent(
        "Desk",
        "You help.",
        [Guideline("they want a person", "hand them over", tools=[hand_over])],
        checks=[Check(on="input", by=is_harmless), Check(on="output", by=is_harmless)],
    ),
)
langchain_agent = create_agent(MODEL, middleware=[GuidelineMiddleware(MODEL, DESK)])


async def run_two_turns(app: Any) -> Any:
    """Run a conversation in which every blocking call on the event loop raises; return the tools' results."""
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


PRESELECTING = ("many, by spelling", "many, by embeddings", "many, in middleware")


def make_preselecting_agent(name: str) -> Any:
    """Return an agent with more guidelines than a matching pass judges."""
    others = [Guideline(f"about {number}", "help") for number in range(9)]
    close = Guideline(applies, "close", id="close", tools=[close_shop])
    agent = Agent("Shop", "You help.", [*others, close], confirm={"close_shop": "customer"})
    day = {"day": "Monday"}
    model = brain(judge={"close": 9}, call={"close_shop": day})
    embeddings = DeterministicFakeEmbedding(size=8) if name == PRESELECTING[1] else None
    matching = Matching(batch_size=2, max_judged=3, embeddings=embeddings)
    if name != PRESELECTING[2]:
        return create_guided_agent(model, agent, matching=matching, checkpointer=InMemorySaver())
    answers = iter([AIMessage("", tool_calls=[{"name": "close_shop", "args": day, "id": "c"}])])
    own = ScriptedChatModel(lambda _: next(answers, AIMessage("Done.")))
    middleware = GuidelineMiddleware(model, agent, matching=matching)
    return create_agent(own, middleware=[middleware], checkpointer=InMemorySaver())


if __name__ == "__main__":
    for name in (*SETTINGS, "eager"):
        print(name, asyncio.run(run_two_turns(make_shop(name, checkpointer=InMemorySaver()))))
    for name in PRESELECTING:
        print(name, asyncio.run(run_two_turns(make_preselecting_agent(name))))
