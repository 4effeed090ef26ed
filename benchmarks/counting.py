"""Count calls, waves and characters of a turn with one tool call, at an HTTP endpoint on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages

from arq_graph import Matching, ScriptedChatModel, create_guided_agent
from benchmarks.in_process import make_agent, make_model
from benchmarks.turn import TURN
from tests.reasoning.endpoint import Endpoint, Reply, Request, ok, status

_WAITING_SECONDS = 10.0


@dataclass(frozen=True)
class Count:
    """The requests of one turn.

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


def count_turn(
    guideline_count: int, make_model: Callable[[], ScriptedChatModel] = make_model, **matching: Any
) -> Count:
    """Run one turn of an agent of so many guidelines, of which one applies and has its tool called.

    `matching` are the fields of `Matching`.
    """
    agent = make_agent(guideline_count)
    model = make_model()
    create_guided_agent(model, agent, matching=Matching(**matching)).invoke(TURN)
    modules = [call.module for call in model.calls]
    matching_calls = modules.index("tools")
    # Matching, the tool; the tool again, with what its result may change; the reply.
    wave_sizes = [matching_calls, 1, len(modules) - matching_calls - 2, 1]
    with Endpoint(answer_in_waves(wave_sizes, answer_with(make_model()))) as endpoint:
        app = create_guided_agent(endpoint.chat_model(), agent, matching=Matching(**matching))
        messages = app.invoke(TURN)["messages"]
    prompt_characters = 0
    schema_characters = 0
    for request in endpoint.requests:
        prompt_characters += len(request.prompt)
        if request.schema:
            schema_characters += len(json.dumps(request.schema))
    return Count(
        calls=endpoint.calls,
        waves=count_waves(endpoint.requests),
        prompt_characters=prompt_characters,
        schema_characters=schema_characters,
        tools_run=sum(message.type == "tool" for message in messages),
    )


def count_waves(requests: Sequence[Request]) -> int:
    """Return the number of groups, each as large as possible, in which the requests overlap in time."""
    wave_count = 0
    wave_end = float("-inf")
    for request in sorted(requests, key=lambda request: request.arrived):
        if request.arrived >= wave_end:
            wave_count += 1
        wave_end = max(wave_end, request.answered)
    return wave_count


def answer_with(chat_model: BaseChatModel) -> Callable[[Request], Reply]:
    """Return an endpoint's script that has a chat model of this process answer.

    If the model raises, the endpoint answers with status 400: a broken connection would be tried again and again.
    """

    def answer(request: Request) -> Reply:
        options = {key: request.body[key] for key in ("response_format",) if key in request.body}
        try:
            reply = chat_model.invoke(convert_to_messages(request.messages), **options)
            return ok(json.loads(reply.text))
        except Exception as error:
            return status(400, f"the model raised {error!r}")

    return answer


def answer_in_waves(
    wave_sizes: Sequence[int], answer: Callable[[Request], Reply]
) -> Callable[[Request], Reply]:
    """Return a script that answers so many requests at a time, so that parallel ones overlap on the slowest machine.

    Requests that do not come in parallel are answered after a while, and are waves of their own.
    """
    wave_ends = list(accumulate(wave_sizes))
    arrival = threading.Condition()
    arrived = 0

    def script(request: Request) -> Reply:
        nonlocal arrived
        with arrival:
            arrived += 1
            wave_end = next((end for end in wave_ends if arrived <= end), arrived)
            arrival.notify_all()
            arrival.wait_for(lambda: arrived >= wave_end, _WAITING_SECONDS)
        return answer(request)

    return script
