"""A graph, a conversation and scripted models that the tests of judges share."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from arq_graph import ScriptedChatModel
from arq_graph.milestones import Transcript, parse_milestones
from tests.brain import filled, inlined
from tests.milestones.conversations import agent, called, conversation, user

GRAPH = parse_milestones("""
milestones:
- {name: Start, type: NFC}
- {name: get_status, type: FC, description: Look up the download.}
- {name: Offer Later, type: NFC, description: The agent offers to try again later., dependencies: [get_status]}
- {name: User Agrees, type: NFC, description: The user agrees to wait., dependencies: [Offer Later]}
- {name: End, type: NFC, dependencies: [User Agrees]}
""")
"""Ids: M2 is the call, M3 the offer, M4 the user's consent."""


def talk(*more: list[Any], **fields: Any) -> Transcript:
    """1 and 2 are said, 3 is the call, 4 its result, 5 the offer, 6 the consent."""
    return conversation(
        user("My download is stuck."),
        agent("Let me look."),
        called("get_status", "stuck at 40 %", id="D1"),
        agent("It is stuck. Please try again later, in an hour."),
        user("Alright, I agree to wait."),
        *more,
        **fields,
    )


def says(
    achieved: bool | None, step: int | None = None, quote: str | None = None, reason: str = "so it is"
) -> dict[str, Any]:
    return {"achieved": achieved, "step": step, "quote": quote, "reason": reason}


ALL_GOOD = {
    "M2": says(True, 3),
    "M3": says(True, 5, "try again later"),
    "M4": says(True, 6, "I agree to wait"),
}


def model(*votes: Mapping[str, Mapping[str, Any]] | BaseException) -> ScriptedChatModel:
    """A judge's model: the words of each vote by milestone id; the last ones again for all further votes.

    What is asked and not mentioned cannot be told. An answer that is refused is given again.
    """

    def answer(call: Any) -> Any:
        now = section(call, "now")
        said = votes[min(now.get("vote", 1), len(votes)) - 1]
        if isinstance(said, BaseException):
            return said
        given = filled(inlined(call.schema))
        for id in now["judge"]:
            given[id].update(says(None) | dict(said.get(id, {})))
        return given

    return ScriptedChatModel(answer)


def section(call: Any, name: str) -> Any:
    """What a section of the prompt holds; it must stand there once."""
    (found,) = re.findall(rf"^<{name}>(.*?)</{name}>$", call.text, re.MULTILINE | re.DOTALL)
    return json.loads(found)
