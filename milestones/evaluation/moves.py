"""An agent's moves in a conversation, counted: what it thought, said and did, and what it spoke for (ReSpAct, 5.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.transcript import Call, Message, Result, Transcript

SHARES = (
    "think: the share of thoughts in all moves; speak and act: the shares of what was said and done, thoughts aside, "
    "as not every arm tells of its thoughts; invalid: the share of the acts that were refused or failed."
)


def moves_of(transcript: Transcript, turns: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, Any]:
    """The fields of a record about an agent's moves; `turns` are those that its app's channel `moves` tells of.

    What was said and done stands in the transcript of any app. Only a speaker tells of its thoughts.
    """
    told = [move for moves in turns.values() for move in moves]
    events = transcript.measured
    thoughts = {"think": sum(move.get("kind") == "think" for move in told)} if turns else {}
    moves = {
        **thoughts,
        "speak": sum(isinstance(event, Message) and event.speaker == "agent" for event in events),
        "act": sum(isinstance(event, Call) for event in events),
        "invalid": sum(isinstance(event, Result) and event.failed for event in events),
    }
    return {
        "moves": moves,
        "speech": _by(told, "category"),
        "dialogue_acts": _by(told, "dialogue_act"),
    }


def shares_of(records: Iterable[ConversationRecord]) -> dict[str, float]:
    """The shares of an arm's moves, as `SHARES` says; those that are not told are left out."""
    counts = Counter[str]()
    for one in records:
        counts.update(one.moves)  # what never happened is told, too
    done = counts["speak"] + counts["act"]
    of = {"think": counts["think"] + done, "speak": done, "act": done, "invalid": counts["act"]}
    return {name: counts[name] / all_of for name, all_of in of.items() if all_of and name in counts}


def _by(moves: Iterable[Mapping[str, Any]], label: str) -> dict[str, int]:
    return dict(Counter(str(move[label]) for move in moves if move.get(label)))
