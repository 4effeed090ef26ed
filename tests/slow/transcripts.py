"""What holds for the messages of any thread, whatever the model said."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage


def assert_whole(messages: Sequence[AnyMessage], *, finished: bool = True) -> None:
    """Hold a transcript against what providers demand of one.

    Each message has an id of its own; each call has a result, directly behind its message and those of the
    calls beside it; no result is without a call; a finished thread ends with a reply that says something.

    Args:
        messages: The thread's messages.
        finished: Whether the last turn is over: if not, the last message with calls may be waiting for results.
    """
    ids = [message.id for message in messages]
    assert None not in ids
    assert len(set(ids)) == len(ids), "two messages have one id"
    open_calls: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_calls, f"a result without a call before it: {message}"
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls, f"calls without a result stand before {message}"
        if isinstance(message, AIMessage):
            calls = [str(call["id"]) for call in message.tool_calls]
            assert calls or message.text.strip(), f"an empty message of the agent: {message}"
            assert not seen & {*calls}, "two calls have one id"
            seen |= {*calls}
            open_calls = {*calls}
        else:
            assert isinstance(message, HumanMessage)
    if finished:
        assert not open_calls, f"calls without a result: {open_calls}"
        assert isinstance(messages[-1], AIMessage)
        assert not messages[-1].tool_calls


def said(messages: Sequence[AnyMessage]) -> list[str]:
    """What the customer said."""
    return [message.text for message in messages if isinstance(message, HumanMessage)]


def calls_that_ran(messages: Sequence[AnyMessage]) -> list[ToolCall]:
    """The calls whose tool gave a result of its own."""
    succeeded = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status == "success"}
    return [
        call
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] in succeeded
    ]


def replies_with_ids(messages: Sequence[AnyMessage]) -> Iterator[tuple[str, set[str]]]:
    """What the agent said to the customer, each with the ids that the prompt's conversation had given out."""
    spoken = results = 0
    for message in messages:
        if isinstance(message, ToolMessage):
            results += 1
        elif message.text or not isinstance(message, AIMessage):
            if isinstance(message, AIMessage):
                lines = {f"M{n}" for n in range(1, spoken + 1)} | {f"T{n}" for n in range(1, results + 1)}
                yield message.text, lines
            spoken += 1


def shown_of(internal: Collection[str], text: str) -> list[str]:
    """Which of these ids and names stand in a text as words of their own."""
    return [name for name in internal if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
