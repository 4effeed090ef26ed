"""Load threads from a SQLite file into a fresh app and print how many customer messages each holds.

python -m tests.slow.load_threads FILE THREAD...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from arq_graph import ScriptedChatModel, create_guided_agent
from tests.slow.conversations import sqlite_saver
from tests.slow.desk import Desk
from tests.slow.transcripts import said


def main(file: str, *threads: str) -> None:
    with sqlite_saver(Path(file), asynchronously=False) as (saver, _):
        app = create_guided_agent(ScriptedChatModel([]), Desk().agent, checkpointer=saver)
        states = {thread: app.get_state({"configurable": {"thread_id": thread}}).values for thread in threads}
    print(json.dumps({thread: len(said(state["messages"])) for thread, state in states.items()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
