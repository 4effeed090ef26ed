"""Saves a conversation as a scenario of a suite file; what the file holds already stays as it is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from langchain_core.messages import HumanMessage

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.yaml_file import Document, parse_model, read_text
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.suite_file import SuiteFile
from arq_graph.play.agent_source import AgentSource
from arq_graph.reasoning.tool_calls import pair_calls

_RARE_LINE_BREAK = re.compile("[\x85\u2028\u2029]")
_HEADER = "# Conversations that were saved in the playground.\nscenarios:\n"


def make_entry(
    name: str, source: AgentSource, suite_folder: Path, state: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a conversation as a scenario, in which the customer says the same again.

    It is measured on the milestones that the playground was given, else on the journey that got furthest, else on the
    calls that were made. `suite_folder` is the folder from which the suite names files, `state` that of the thread.
    """
    messages = state.get("messages", ())
    texts = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
    if not texts:
        raise InputError("There is no conversation to save yet: write a message first.")
    if source.file is None:
        raise InputError("A suite names its agents by YAML files, and this agent is an object of a module.")
    entry: dict[str, Any] = {"name": name, "agent": _make_relative(source.file, suite_folder), "says": texts}
    journeys = [record for record in state.get("progress", ()) if record.get("journey")]
    if source.milestones_file:
        entry["milestones"] = _make_relative(source.milestones_file, suite_folder)
    elif journeys:
        furthest = max(journeys, key=lambda record: record["progress_range"] or [])
        entry["journey"] = furthest["journey"]
    else:
        entry["expect"] = _expect_calls(messages)
    return entry


def save_entry(path: Path, entry: Mapping[str, Any]) -> None:
    """Append a scenario to a suite file, or begin the file with it; raise an error if the suite would be invalid."""
    before = ""
    if path.exists():
        before = read_text(path, file_kind="suite file")
    source = str(path)
    text = _append_entry(before, entry, source)
    parse_model(text, SuiteFile, file_kind="suite file", source=source)
    old_scenarios = Document(before, source).values.get("scenarios", [])
    if Document(text, source).values["scenarios"] != [*old_scenarios, entry]:
        advice = "end the last scenario with a line break, or add this one by hand"
        raise InputError(f"{source}: scenarios would be changed by adding one; {advice}")
    write_atomically(path, text)


def find_suite_path(folder: Path, file_name: str) -> Path:
    """Return the path of a suite file, after all links; raise an InputError if it is outside the folder."""
    try:
        path = (folder / file_name).resolve()
    except (OSError, ValueError) as error:  # a circle of links, or a character that no name has
        raise InputError(f"{file_name!r:.200} is no file's name: {error}") from error
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{file_name!r:.200} is outside the project's folder {folder}: name a file in it")
    if path.suffix not in (".yaml", ".yml") or not path.parent.is_dir():
        raise InputError(f"{file_name!r:.200} must end in .yaml, and its folder must exist: try suite.yaml")
    return path


def _make_relative(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file.resolve(), folder)).as_posix()


def _expect_calls(messages: Sequence[Any]) -> dict[str, Any]:
    """Return that the calls which succeeded are expected, each once, and that those which failed may be made."""
    calls: list[dict[str, Any]] = []
    failed = set()
    for placed_call in pair_calls(messages):
        tool, result = placed_call.call["name"], placed_call.result
        arguments = {}
        for name, value in placed_call.call["args"].items():
            arguments[name] = {"equals": value} if isinstance(value, dict) else value
        call = {"tool": tool, "arguments": arguments}
        if result is None or result.status == "error":
            failed.add(tool)
        elif call not in calls:
            calls.append(call)
    return {"calls": calls, "may_call": sorted(failed)}


def _append_entry(before: str, entry: Mapping[str, Any], source: str) -> str:
    new_lines = yaml.safe_dump([dict(entry)], sort_keys=False, allow_unicode=True, width=100)
    if _RARE_LINE_BREAK.search(new_lines):  # YAML would write it as it is, and fold it into a space
        new_lines = yaml.safe_dump([dict(entry)], sort_keys=False, width=100)
    if not before.strip():
        return _HEADER + new_lines
    values = Document(before, source).values
    root: Any = yaml.compose(before, yaml.SafeLoader)
    nodes = {key.value: value for key, value in root.value} if values and isinstance(values, dict) else {}
    scenarios = nodes.get("scenarios")
    if scenarios is None:
        return f"{before.rstrip()}\n\nscenarios:\n{new_lines}"
    if not isinstance(scenarios, yaml.SequenceNode) or scenarios.flow_style:
        raise InputError(f"{source}: nothing can be added to `scenarios`; write each as `- name: …`")
    indent = " " * scenarios.start_mark.column
    end = len(before[: scenarios.end_mark.index].rstrip())
    lines = "".join(f"\n{indent}{line}" for line in ("", *new_lines.rstrip("\n").split("\n")))
    return before[:end] + lines.replace(f"\n{indent}\n", "\n\n") + (before[end:] or "\n")
