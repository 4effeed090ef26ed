"""Handing a conversation over to a person: the tool that does it, and the record of it in the channel `takeover`."""

from __future__ import annotations

from arq_graph.agent.record import RecordPart

HANDED_OVER = "I'm handing you over to a colleague, who will answer you here."


def hand_over(reason: str = "") -> str:
    """Hand the conversation over to a person, who answers the customer from then on.

    Args:
        reason: Why a person is needed, in one sentence for the colleague who takes over.
    """
    if not reason:
        return "handed over"
    return f"handed over: {reason}"


class TakeoverSummary(RecordPart):
    """What the person who takes over has to know, written by code from the messages and the records.

    `asked` are the customer's first and last message, `done` the calls with their results, and `agreed` those of them
    that a person had agreed to. `open_question` waits for the customer's yes. `journeys` says how far each one is, and
    `last_messages` are the last lines of the conversation.
    """

    asked: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    agreed: tuple[str, ...] = ()
    open_question: str | None = None
    journeys: tuple[str, ...] = ()
    last_messages: tuple[str, ...] = ()


class Takeover(RecordPart):
    """The takeover of a conversation. While the channel has one, the agent answers nothing.

    `by` is who decided: `agent` (it called `hand_over`), `check NAME`, or a name given from outside. `turn` is the id
    of the customer's message in whose turn it happened.
    """

    agent: str = ""
    turn: str = ""
    by: str = ""
    reason: str = ""
    summary: TakeoverSummary | None = None
