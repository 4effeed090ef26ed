"""Calls, waves and characters of a turn with one tool call, counted at an HTTP endpoint on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages

from arq_graph import Matching, create_guided_agent
from benchmarks.in_process import agent_of, model
from benchmarks.turn import TURN
from tests.reasoning.endpoint import Endpoint, Reply, Request, ok, status

_PATIENCE = 10.0


@dataclass(frozen=True)
class Count:
    """What one turn sends.

    Args:
        calls: Model calls.
        waves: Groups of calls that are under way at the same time, one after the other.
        prompt_characters: Characters of all messages of all calls.
        schema_characters: Characters of the JSON schemas that go with them.
        tools_run: Tool results in the thread.
    """

    calls: int
    waves: int
    prompt_characters: int
    schema_characters: int
    tools_run: int


def count(guidelines: int, **matching: Any) -> Count:
    """Play one turn of an agent of so many guidelines, of which one applies and has its tool called.

    `matching` are the fields of `Matching`.
    """
    agent, alone = agent_of(guidelines), model()
    app = create_guided_agent(alone, agent, matching=Matching(**matching))
    app.invoke(TURN)
    first = next(at for at, call in enumerate(alone.calls) if call.module != "matcher")
    # Matching, the tool; the tool again, with what its result may change; the reply.
    expected = [first, 1, len(alone.calls) - first - 2, 1]
    with Endpoint(together(expected, answered_by(model()))) as endpoint:
        asked = endpoint.chat_model()
        app = create_guided_agent(asked, agent, matching=Matching(**matching))
        messages = app.invoke(TURN)["messages"]
    prompts = sum(len(request.prompt) for request in endpoint.requests)
    return Count(
        calls=endpoint.calls,
        waves=waves(endpoint.requests),
        prompt_characters=prompts,
        schema_characters=sum(len(json.dumps(each.schema)) for each in endpoint.requests if each.schema),
        tools_run=sum(message.type == "tool" for message in messages),
    )


def waves(requests: Sequence[Request]) -> int:
    """In how many groups, each as large as it can be, the requests overlap in time."""
    groups, end = 0, float("-inf")
    for request in sorted(requests, key=lambda request: request.arrived):
        groups += request.arrived >= end
        end = max(end, request.answered)
    return groups


def answered_by(chat_model: BaseChatModel) -> Callable[[Request], Reply]:
    """An endpoint's script that has a chat model of this process answer.

    What the model raises is answered with 400: a connection that breaks would be tried again and again.
    """

    def answer(request: Request) -> Reply:
        asked_for = {key: request.body[key] for key in ("response_format",) if key in request.body}
        try:
            reply = chat_model.invoke(convert_to_messages(request.messages), **asked_for)
            return ok(json.loads(reply.text))
        except Exception as error:
            return status(400, f"the model raised {error!r}")

    return answer


def together(sizes: Sequence[int], answer: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
    """Answer so many requests at a time: those that are made in parallel overlap on the slowest machine too.

    Requests that do not come in parallel are answered all the same, after a while, and are waves of their own.
    """
    ends = list(accumulate(sizes))
    arrival = threading.Condition()
    arrived = 0

    def script(request: Request) -> Reply:
        nonlocal arrived
        with arrival:
            arrived += 1
            last = next((end for end in ends if arrived <= end), arrived)
            arrival.notify_all()
            arrival.wait_for(lambda: arrived >= last, _PATIENCE)
        return answer(request)

    return script
