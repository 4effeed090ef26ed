"""Measure the library's own time in a turn, and how much of each prompt stays the same from turn to turn."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver

from arq_graph import Agent, create_guided_agent
from benchmarks.floor import FloorGraph, TurnCalls, make_langchain_agent
from benchmarks.in_process import make_agent, make_model
from benchmarks.output_tokens import CountTokens

TURN = {"messages": [("user", "Where is my order ORD-1001?")]}
QUESTIONS = [
    "Hello, where is my order ORD-1001?",
    "Thanks. And can it be sent to another address than the one I gave?",
    "It would be my office, Market Street 4, if that is possible.",
    "What about the invoice: will it be sent there too?",
    "Good. How long do I have to return it if it does not fit?",
    "And who pays for sending it back?",
]


@dataclass(frozen=True)
class TurnTime:
    """The median milliseconds of processor time of a turn with one tool call.

    Args:
        guideline_count: The number of guidelines.
        is_async: It was run with `ainvoke`.
        guided: The guided agent's turn.
        floor: A bare LangGraph with the same nodes, Sends and model calls.
        langchain: LangChain's `create_agent` with the same tool, which asks its model twice.
    """

    guideline_count: int
    is_async: bool
    guided: float
    floor: float
    langchain: float

    @property
    def ratio(self) -> float:
        """The guided agent's time, divided by the floor's."""
        return self.guided / self.floor


@dataclass(frozen=True)
class Growth:
    """The median milliseconds of processor time of the first and the last turn of a long conversation.

    Args:
        has_checkpointer: A checkpointer keeps the conversation; otherwise the caller sends all of its messages.
        message_count: The messages before the last turn.
        first: The first turn.
        last: The last turn.
        floor_first: The first turn of a bare LangGraph with the same nodes, Sends and model calls.
        floor_last: Its last turn.
    """

    has_checkpointer: bool
    message_count: int
    first: float
    last: float
    floor_first: float
    floor_last: float

    @property
    def own_first(self) -> float:
        """The library's share of the first turn."""
        return self.first - self.floor_first

    @property
    def own_last(self) -> float:
        """The library's share of the last turn."""
        return self.last - self.floor_last


@dataclass(frozen=True)
class StablePrefix:
    """What stays the same in the prompts of a step.

    Args:
        blueprint: What the step asks.
        smallest_share: The smallest share of a prompt that the next turn's prompt begins with.
        mean_share: The mean of these shares.
        head_tokens: Tokens of the system message, which is the same in every conversation; of several, the shortest.
        schema_tokens: Tokens of the schema that goes with it.
    """

    blueprint: str
    smallest_share: float
    mean_share: float
    head_tokens: int
    schema_tokens: int


def measure_turns(guideline_counts: Sequence[int] = (20, 200), runs: int = 20) -> Iterator[TurnTime]:
    """Measure a turn beside the floor, sync and async, in turns that alternate."""
    langchain_agent = make_langchain_agent()
    for guideline_count in guideline_counts:
        agent = make_agent(guideline_count)
        calls = _record_calls(agent, TURN)
        guided = create_guided_agent(make_model(), agent)
        floor = FloorGraph(make_model(), calls, is_async=False).compile()
        async_floor = FloorGraph(make_model(), calls, is_async=True).compile()
        turns = [partial(app.invoke, TURN) for app in (guided, floor, langchain_agent)]
        yield TurnTime(guideline_count, False, *measure_medians(turns, runs))
        with asyncio.Runner() as runner:
            loop = runner.get_loop()
            async_turns = []
            for app in (guided, async_floor, langchain_agent):
                async_turns.append(partial(_run_async_turn, loop, app))
            yield TurnTime(guideline_count, True, *measure_medians(async_turns, runs))


def measure_growth(guideline_count: int = 20, turn_count: int = 200, runs: int = 10) -> Iterator[Growth]:
    """Measure the first and the last turn of a conversation in which each turn calls a tool.

    The last turn is repeated from the state before it.
    """
    agent = make_agent(guideline_count)
    forgetful = create_guided_agent(make_model(), agent)
    last_turn: dict[str, Any] = TURN
    for _ in range(turn_count - 1):
        state = forgetful.invoke(last_turn)
        last_turn = {"messages": state["messages"] + TURN["messages"]}
    history = state["messages"]
    # The prompts of the last turn are longer.
    first_floor = FloorGraph(make_model(), _record_calls(agent, TURN), is_async=False)
    last_floor = FloorGraph(make_model(), _record_calls(agent, last_turn), is_async=False)

    guided: Any = create_guided_agent(make_model(), agent, checkpointer=InMemorySaver())
    stored_floor = last_floor.compile(checkpointer=InMemorySaver())
    turns: list[Callable[[], Any]] = [
        partial(_start_thread, guided),
        partial(guided.invoke, TURN, _store_state(guided, state)),
        partial(_start_thread, first_floor.compile(checkpointer=InMemorySaver())),
        partial(stored_floor.invoke, TURN, _store_state(stored_floor, {"messages": history})),
    ]
    yield Growth(True, len(history), *measure_medians(turns, runs))

    turns = [
        partial(forgetful.invoke, TURN),
        partial(forgetful.invoke, last_turn),
        partial(first_floor.compile().invoke, TURN),
        partial(last_floor.compile().invoke, last_turn),
    ]
    yield Growth(False, len(history), *measure_medians(turns, runs))


def _store_state(app: Any, state: dict[str, Any]) -> Any:
    """Store the state after a turn in a new thread; return the config with which a run continues from there."""
    return app.update_state({"configurable": {"thread_id": str(uuid4())}}, state, as_node="message")


def _start_thread(app: Any) -> None:
    app.invoke(TURN, {"configurable": {"thread_id": str(uuid4())}})


def measure_medians(functions: Sequence[Callable[[], Any]], runs: int) -> list[float]:
    """Return the median milliseconds of processor time of each function; they are called in turns.

    It is the time of this process, all threads included, so that other processes disturb it little.
    """
    times: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()  # what a first call loads or caches isn't counted
    gc.collect()
    for _ in range(runs):
        for function, milliseconds in zip(functions, times, strict=True):
            start = time.process_time()
            function()
            milliseconds.append(1000 * (time.process_time() - start))
    return [statistics.median(milliseconds) for milliseconds in times]


def _record_calls(agent: Agent, turn: Mapping[str, Any]) -> TurnCalls:
    """Return the model calls of a guided turn."""
    model = make_model()
    create_guided_agent(model, agent).invoke(turn)
    return TurnCalls.from_recorded(model.calls)


def _run_async_turn(loop: asyncio.AbstractEventLoop, app: Any) -> None:
    # Not by `Runner.run`: for the handler of signals, enum makes the representation of the task and of the state in it.
    loop.run_until_complete(app.ainvoke(TURN))


def measure_stable_prefixes(count_tokens: CountTokens, guideline_count: int = 20) -> Iterator[StablePrefix]:
    """Compare the prompts of a conversation's turns with those of the turns before."""
    model = make_model()
    app = create_guided_agent(model, make_agent(guideline_count), checkpointer=InMemorySaver())
    prompts_by_turn: list[dict[tuple[str, str], str]] = []
    for question in QUESTIONS:
        earlier_call_count = len(model.calls)
        app.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "1"}})
        # Of each head, the first prompt of the turn.
        first_prompts: dict[tuple[str, str], str] = {}
        for call in model.calls[earlier_call_count:]:
            first_prompts.setdefault((call.blueprint or "", call.messages[0].text), call.text)
        prompts_by_turn.append(first_prompts)
    shares = defaultdict(list)
    for prompts, next_prompts in pairwise(prompts_by_turn):
        for key, prompt in prompts.items():
            if key in next_prompts:
                blueprint, _ = key
                shares[blueprint].append(_count_common(prompt, next_prompts[key]) / len(prompt))
    tokens = defaultdict(list)
    for call in model.calls:
        head_tokens = count_tokens(call.messages[0].text)
        tokens[call.blueprint].append((head_tokens, count_tokens(json.dumps(call.schema))))
    for blueprint, values in shares.items():
        head_tokens, schema_tokens = min(tokens[blueprint], key=sum)
        yield StablePrefix(blueprint, min(values), statistics.mean(values), head_tokens, schema_tokens)


def _count_common(text: str, other_text: str) -> int:
    """Return how many characters both texts begin with."""
    count = 0
    for character, other_character in zip(text, other_text, strict=False):
        if character != other_character:
            break
        count += 1
    return count
