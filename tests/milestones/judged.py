"""A graph, a conversation and scripted models that the tests of judges share."""

import json
import re
from collections.abc import Mapping
from typing import Any

from arq_graph import ScriptedChatModel
from arq_graph.milestones import Transcript, parse_milestones
from tests.milestones.conversations import agent, called, conversation, user
from tests.schemas import fill_schema, inline_references

GRAPH = parse_milestones("""
milestones:
- {name: Start, type: NFC}
- {name: get_status, type: FC, description: Look up the download.}
- {name: Offer Later, type: NFC, description: The agent offers to try again later., dependencies: [get_status]}
- {name: User Agrees, type: NFC, description: The user agrees to wait., dependencies: [Offer Later]}
- {name: End, type: NFC, dependencies: [User Agrees]}
""")
"""Ids: M2 is the call, M3 the offer, M4 the user's consent."""


def make_talk(*more: list[Any], **fields: Any) -> Transcript:
    """Return a conversation: 1 and 2 are messages, 3 is the call, 4 its result, 5 the offer, 6 the consent."""
    return conversation(
        user("My download is stuck."),
        agent("Let me look."),
        called("get_status", "stuck at 40 %", id="D1"),
        agent("It is stuck. Please try again later, in an hour."),
        user("Alright, I agree to wait."),
        *more,
        **fields,
    )


def make_answer(
    achieved: bool | None, step: int | None = None, quote: str | None = None, reason: str = "so it is"
) -> dict[str, Any]:
    return {"achieved": achieved, "step": step, "quote": quote, "reason": reason}


ALL_GOOD = {
    "M2": make_answer(True, 3),
    "M3": make_answer(True, 5, "try again later"),
    "M4": make_answer(True, 6, "I agree to wait"),
}


def make_judge_model(*votes: Mapping[str, Mapping[str, Any]] | BaseException) -> ScriptedChatModel:
    """Return a judge's model with the answers of each vote by milestone id; further votes repeat the last one.

    The answer about a milestone that a vote leaves out is "cannot tell". An answer that is refused is repeated.
    """

    def answer(call: Any) -> Any:
        now = parse_section(call, "now")
        vote = votes[min(now.get("vote", 1), len(votes)) - 1]
        if isinstance(vote, BaseException):
            return vote
        fields = fill_schema(inline_references(call.schema))
        for id in now["judge"]:
            fields[id].update(make_answer(None) | dict(vote.get(id, {})))
        return fields

    return ScriptedChatModel(answer)


def parse_section(call: Any, name: str) -> Any:
    """Return the content of a section of the prompt, which must be there once."""
    (content,) = re.findall(rf"^<{name}>(.*?)</{name}>$", call.text, re.MULTILINE | re.DOTALL)
    return json.loads(content)
