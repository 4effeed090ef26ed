"""Files for `arq-graph score`: conversations with a shop, and what they are measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GRAPH = """
milestones:
- {name: Start, type: NFC}
- {name: find, type: FC, dependencies: [Start]}
- {name: buy, type: FC, dependencies: [find]}
- {name: End, type: NFC, dependencies: [buy]}
"""
JUDGED = """
milestones:
- {name: Start, type: NFC}
- {name: thanked, type: NFC, description: The agent thanks the customer., dependencies: [Start]}
- {name: End, type: NFC, dependencies: [thanked]}
"""


def chat(
    *tools: str, id: str | None = None, says: str = "Thank you for your order.", **more: Any
) -> dict[str, Any]:
    """A recorded conversation in which these tools are called, one after the other."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "A lamp, please."}]
    for tool in tools:
        call = {"id": tool, "function": {"name": tool, "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": tool, "content": "done"})
    messages.append({"role": "assistant", "content": says})
    return {"messages": messages, **({} if id is None else {"id": id}), **more}


def write_json(file: str, value: Any) -> str:
    """Write a file of the working directory."""
    Path(file).write_text(json.dumps(value), encoding="utf-8")
    return file
