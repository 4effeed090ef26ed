"""Hand-made prompts in the format of the shipped templates, for the offline model."""

import json
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage


def section(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<{name}>{text}</{name}>"


def line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def conversation(*entries: Any) -> list[dict[str, Any]]:
    """Lines from short forms.

    "text" or "customer: text" is the customer's, "agent: text" the agent's, and ("tool", {arguments}, result)
    a tool's result.
    """
    lines: list[dict[str, Any]] = []
    said = results = 0
    for entry in entries:
        if isinstance(entry, tuple):
            results += 1
            tool, arguments, result = entry[:3]
            text = result if isinstance(result, str) else json.dumps(result)
            record = {"id": f"T{results}", "from": "tool", "tool": tool, "arguments": arguments, "result": text}
            lines.append({**record, "error": True} if entry[3:] else record)
            continue
        said += 1
        speaker, _, text = entry.partition(": ")
        if speaker not in ("agent", "customer", "system"):
            speaker, text = "customer", entry
        lines.append({"id": f"M{said}", "from": speaker, "text": text})
    return lines


def prompt(
    *entries: Any,
    now: dict[str, Any] | None = None,
    head: dict[str, Any] | None = None,
    tail: dict[str, Any] | None = None,
    variables: list[dict[str, Any]] | None = None,
    profile: str = "You are the help desk of a shop.",
    glossary: list[dict[str, Any]] | None = None,
) -> list[BaseMessage]:
    lines = conversation(*entries)
    turn = next((entry["id"] for entry in reversed(lines) if entry["from"] == "customer"), None)
    sections = {"profile": {"id": "P", "name": "Agent", "text": profile}}
    if glossary:
        sections["glossary"] = glossary
    system = ["Do the task.", section("example", {"situation": "an example"})]
    system += [section(name, value) for name, value in {**sections, **(head or {})}.items()]
    human = [section("variables", variables)] if variables else []
    human += ["<conversation>", *map(line, lines), "</conversation>"]
    human += [section(name, value) for name, value in (tail or {}).items()]
    human += [section("now", {"turn": turn, **(now or {})}), "Answer."]
    return [SystemMessage("\n".join(system)), HumanMessage("\n".join(human))]
