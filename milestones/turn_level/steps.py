"""The steps of a recorded conversation: each action of its agent, with the true history before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from arq_graph.milestones.transcript import Event, Message, Transcript
from arq_graph.milestones.turn_level.actions import Action, agent_actions


@dataclass(frozen=True)
class TurnStep:
    """One action of the agent, as ground truth.

    Args:
        conversation: The conversation's id.
        number: Which of the conversation's steps, from 1.
        event: The number of the action's first event, from 1.
        truth: The action that was taken.
        transcript: The whole conversation.
    """

    conversation: str
    number: int
    event: int
    truth: Action
    transcript: Transcript

    @property
    def history(self) -> tuple[Event, ...]:
        """What happened before the action."""
        return self.transcript.events[: self.event - 1]


def steps_of(transcript: Transcript, *, conversation: str | None = None) -> Iterator[TurnStep]:
    """The steps of a conversation, in order. Pre-Act 3.2.1, Algorithm 1, and 4.2.

    Each message of the agent is a step: the tool calls in it, or else its final answer; a message with both is
    a tool call. No step is an action before the user has said anything, because nothing was asked for, nor a
    message with neither words nor calls.

    Args:
        transcript: What happened.
        conversation: Its id, where it is not the transcript's own.
    """
    asked = next(
        (
            number
            for number, event in transcript.numbered()
            if isinstance(event, Message) and event.speaker == "user"
        ),
        len(transcript) + 1,
    )
    count = 0
    for first, _, action in agent_actions(transcript.events):
        if first < asked or action.kind == "nothing":
            continue
        count += 1
        yield TurnStep(
            transcript.id if conversation is None else conversation, count, first, action, transcript
        )
