"""Conversations and a milestone file for a run of `arq-graph score` that is made to be killed.

The check in the milestone file prints the conversation's number when its scoring begins and waits for a line on
stdin, or for its end, so that whoever started the run can kill it right there.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

CHECK = """
import sys


def began(event, earlier):
    if not earlier:
        print("began", event.text, flush=True)
        sys.stdin.readline()
    return "thank" in getattr(event, "text", "").lower()
"""
GRAPH = """
milestones:
- {name: Start, type: NFC}
- {name: thanked, type: NFC, check: "began_check:began", dependencies: [Start]}
- {name: find, type: FC, dependencies: [Start]}
- {name: satisfied, type: NFC, description: The customer is satisfied with the lamp., dependencies: [find]}
- {name: End, type: NFC, dependencies: [thanked, satisfied]}
"""


def write_shop(folder: Path, count: int, chance: random.Random) -> None:
    """Write `chats.jsonl`, some of whose lines are broken, and `shop.yaml`.

    Args:
        folder: Where.
        count: How many lines.
        chance: What differs between conversations.
    """
    (folder / "began_check.py").write_text(CHECK)
    (folder / "shop.yaml").write_text(GRAPH)
    with (folder / "chats.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            if chance.random() < 0.1:
                file.write('{"messages": [{"role": "user"\n')
                continue
            messages: list[dict[str, object]] = [{"role": "user", "content": str(number)}]
            for turn in range(chance.randrange(6)):
                call = {
                    "id": f"c{turn}",
                    "function": {"name": chance.choice(["find", "buy"]), "arguments": "{}"},
                }
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                messages.append(
                    {"role": "tool", "tool_call_id": f"c{turn}", "content": "ü" * chance.randrange(99)}
                )
            words = chance.choice(["Thank you, are you satisfied with the lamp?", "No lamps."])
            messages.append({"role": "assistant", "content": words})
            file.write(json.dumps({"id": f"chat {number}", "messages": messages}) + "\n")
