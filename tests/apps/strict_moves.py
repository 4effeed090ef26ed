"""Run by test_respact_persistence.py, each part in a process of its own: LangGraph reads its strictness at import.

    python strict_moves.py DATABASE PART…

Prints one JSON line: what the last run waits with, the moves of the thread, and how its world stands.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from arq_graph.apps.respact import create_respact_agent
from tests.apps.desk import says, thread
from tests.apps.kitchen import Kitchen
from tests.nodes.order_tools import cancel
from tests.speaking import act, ask, do, say, speaker, think

A1 = {"order_id": "A-1"}
PARTS: list[tuple[Any, list[Any]]] = [
    (
        says("Wash the mug and cancel it."),
        [do("open the cupboard"), think("Which?"), ask("Cancel which order?")],
    ),
    (Command(resume="A-1"), [act("cancel", A1), ask("Shall I cancel A-1?", asks_for=[("cancel", None)])]),
    (Command(resume="Yes."), [act("cancel", A1, affirmed_in="M5"), say("Now the mug."), do("wash the mug")]),
    (Command(resume="Fine."), [do("wash the mug")]),
]


def main(path: str, *parts: str) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        for part in parts:
            given, script = PARTS[int(part)]
            app = create_respact_agent(
                speaker(script), [cancel], environment=Kitchen(), consequential=["cancel"], checkpointer=saver
            )
            state = app.invoke(given, thread(), durability="sync")
    waiting = state.get("__interrupt__")
    found = {
        "waits": waiting[0].value["text"] if waiting else None,
        "moves": [f"{type(move).__name__} {move.kind} {move.text}" for move in state["moves"]],
        "world": [type(state["world"]).__name__, state["world"].taken, state["world"].done],
        "ran": [m.name for m in state["messages"] if m.type == "tool"],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
