"""The YAML reference: a line `{{ schema KIND }}` becomes tables of the keys that such a file may have."""

import json
import re
import subprocess
import sys
from typing import Any

NAMES = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "mapping"}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each such line; MkDocs calls this for every page."""
    return re.sub(r"^\{\{ schema (\w+) \}\}$", _make_tables, markdown, flags=re.MULTILINE)


def _make_tables(match: re.Match[str]) -> str:
    printed = subprocess.check_output([sys.executable, "-m", "arq_graph", "schema", match[1]])
    schema = json.loads(printed)
    tables = [_make_table(schema, match[1])]
    for name, part in schema["$defs"].items():
        for option in part.get("anyOf", [part]):
            if "properties" in option or "examples" in option:
                tables.append(f"### {name} {{#{match[1]}-{name.lower()}}}\n\n{option['description']}")
                tables.append(_make_table(option, match[1]))
    return "\n\n".join(tables)


def _make_table(part: dict[str, Any], kind: str) -> str:
    if "properties" not in part:
        return ""
    rows = ["| key | value | what it means |", "|---|---|---|"]
    for key, value in part["properties"].items():
        name = f"`{key}`, required" if key in part.get("required", ()) else f"`{key}`"
        meaning = " ".join(value.get("description", "").split()).replace("|", "\\|")
        rows.append(f"| {name} | {_describe_type(value, kind)} | {meaning} |")
    return "\n".join(rows)


def _describe_type(value: dict[str, Any], kind: str) -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return "any value" if name == "JsonValue" else f"[{name}](#{kind}-{name.lower()})"
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if options := value.get("anyOf") or value.get("oneOf"):
        names = [_describe_type(option, kind) for option in options if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(names))
    if value.get("type") == "array":
        return f"list: {_describe_type(value.get('items', {}), kind)}"
    return NAMES.get(value.get("type", ""), value.get("type", "any value"))
