"""A report as one HTML file that needs no network: the graph, who stopped where, and every conversation to read."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from heapq import heappop, heappush
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.measure import find_satisfying_dependencies
from arq_graph.milestones.reports.html_layout import layered
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord, grouped
from arq_graph.milestones.reports.report import Report, stand_in_notice
from arq_graph.milestones.reports.shown import Table
from arq_graph.milestones.reports.tables import tables_of
from arq_graph.milestones.transcript import Call, Event, Result, Transcript
from arq_graph.reasoning.sections import visible

MAX_BYTES = 20_000_000
"""The words of conversations take at most so much of a page."""
MAX_CHARACTERS = 4_000
"""Of each text of a conversation, so many characters are shown."""

_SCRIPTS = ("dom.js", "figures.js", "plot.js", "graph.js", "list.js", "reader.js", "page.js")
_SHOWN = {"name", "type", "description", "dependencies", "requires", "weight"}
_NOT_SHOWN = {"progress_rate", "path_taken", "coverage", "seed", "turn_seconds"}

# What could end a script element or begin another, and line ends that older JavaScript does not take in a text.
_IN_A_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def write_html(
    path: str | Path,
    report: Report,
    transcripts: Iterable[Transcript] = (),
    *,
    title: str = "Milestone report",
    tables: Sequence[Table] | None = None,
) -> None:
    """Write a report as a page that holds its style, its scripts and its data, and asks nobody for anything.

    The file is there whole or as it was before. The words of conversations take up to 20 MB of it, and 4,000 characters
    of each text are shown; what the page leaves out, it says. Cost O(events), and O(E log E) for each graph.

    Args:
        path: The file.
        report: What was measured.
        transcripts: What was said, one at a time and in any order; of several with one id, in the report's order.
        title: What stands on top.
        tables: What is shown beneath it, such as the tables of an experiment. Default: those of the report.

    Raises:
        InputError: A transcript was not measured in this report, or the file cannot be written.
        SpecError: A graph of the report cannot be measured on.
    """
    conversations, about = _readable(transcripts, report)
    style = _file("style.css")
    script = "\n".join(['"use strict";\n(function () {', *map(_file, _SCRIPTS), "})();"])
    page = Environment(undefined=StrictUndefined, autoescape=True).from_string(_file("page.html"))
    text = page.render(
        title=visible(title),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(_embedded(_data(report) | about)),
        conversations=conversations,
        count=len(report.conversations),
        tables=_all_visible(
            [each.model_dump() for each in (tables_of(report) if tables is None else tables)]
        ),
    )
    write_atomically(path, text)


def _readable(
    transcripts: Iterable[Transcript], report: Report
) -> tuple[list[tuple[int, Markup]], dict[str, Any]]:
    """What was said, as far as there is room: first where something was forbidden, then where the goal was missed."""
    places: dict[tuple[str, int], deque[int]] = {}
    for index, record in enumerate(report.conversations):
        places.setdefault((record.id, record.events), deque()).append(index)
    kept: list[tuple[tuple[bool, bool, int], int, str, str]] = []
    left_out: tuple[bool, bool, int] | tuple[()] = ()
    numbers: dict[str, int] = {}  # many conversations have the same instructions
    sources, size = set[str | None](), 0
    for transcript in transcripts:
        if not (fitting := places.get((transcript.id, len(transcript)))):
            raise InputError(
                f"{transcript.id!r} with {len(transcript)} events is no conversation of the report, or was given "
                "twice; give the transcripts that were measured, each once and without the broken ones"
            )
        index = fitting.popleft()
        record, instructions = report.conversations[index], transcript.instructions
        sources.add(transcript.source)
        worth = bool(record.forbidden), record.goal_completed is False, -index
        if worth < left_out:
            continue
        more = "" if instructions in numbers else instructions[:MAX_CHARACTERS]
        text = _embedded(_words(transcript, numbers))
        taken = len((text + more).encode(errors="replace"))
        heappush(kept, (worth, taken, text, instructions))
        size += taken
        while size > MAX_BYTES:
            left_out, taken, *_ = heappop(kept)
            size -= taken
    return sorted((-place, Markup(text)) for (_, _, place), _, text, _ in kept), {
        "readable": len(kept),
        "elsewhere": sorted(filter(None, sources)) if left_out else [],
        "instructions": {numbers[one]: _cut(one) for *_, one in kept if one},
    }


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _file(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _data(report: Report) -> dict[str, Any]:
    numbers = {name: number for number, name in enumerate(report.graphs)}
    graphs = {name: MilestoneGraph(record.milestones) for name, record in report.graphs.items()}
    edges = {name: {edge: place for place, edge in enumerate(graph.edges)} for name, graph in graphs.items()}
    rows = [
        _row(one, numbers[one.graph], graphs[one.graph], edges[one.graph]) for one in report.conversations
    ]
    of = grouped(rows, lambda row: row["graph"])
    return {
        "stand_in": stand_in_notice(report.stand_ins),
        "summary": report.summary.model_dump(),
        "graphs": [
            {"name": name, **_drawn(record, graphs[name], of.get(numbers[name], []))}
            for name, record in report.graphs.items()
        ],
        "conversations": rows,
        "broken": [one.error for one in report.broken],
        "missing": report.missing,
        "stopped": report.stopped,
    }


def _status(record: ConversationRecord) -> str:
    if record.goal_completed is None:
        return "nothing" if record.progress_range is None else "undecided"
    return "completed" if record.goal_completed else "missed"


def _row(
    record: ConversationRecord, number: int, graph: MilestoneGraph, edges: Mapping[Any, int]
) -> dict[str, Any]:
    ways = find_satisfying_dependencies(graph, {one.name: one.step for one in record.reached}).items()
    return {
        **record.model_dump(exclude=_NOT_SHOWN, exclude_defaults=True),
        "graph": number,
        "status": _status(record),
        "goal_reached": record.goal_reached,
        "stopped_at": record.stopped_at,
        "edges": [edges[one, name] for name, behind in ways for one in behind],
    }


def _drawn(record: GraphRecord, graph: MilestoneGraph, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A graph with its layout, and how many of these conversations reached each milestone and went along each edge."""
    places, bends = layered(graph)
    points = [*places.values(), *chain(*bends.values())]
    numbers = {name: number for number, name in enumerate(graph)}
    reached = Counter(one["name"] for row in rows for one in row["reached"])
    possibly = Counter(name for row in rows for name in row.get("possibly_reached", ()))
    stopped = Counter(row["stopped_at"] for row in rows)
    travelled = Counter(edge for row in rows for edge in row["edges"])
    milestones = [
        {
            **one.model_dump(include=_SHOWN),
            "at": places[one.name],
            "reached": reached[one.name],
            "possibly": possibly[one.name],
            "stopped": stopped[one.name],
        }
        for one in record.milestones
    ]
    edges = [
        {"ends": [numbers[end] for end in edge], "bends": bends[edge], "count": travelled[place]}
        for place, edge in enumerate(graph.edges)
    ]
    return {
        "file": record.file,
        "reviewed": record.reviewed,
        "conversations": len(rows),
        "completed": sum(row["status"] == "completed" for row in rows),
        "layers": 1 + max((layer for layer, _ in points), default=0),
        "breadth": max((place for _, place in points), default=0.0),
        "milestones": milestones,
        "edges": edges,
    }


def _embedded(value: Any) -> str:
    """A value as JSON that cannot end the script element that holds it."""
    text = json.dumps(_all_visible(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_A_SCRIPT)


def _all_visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(name)): _all_visible(each) for name, each in value.items()}
    return [_all_visible(each) for each in value] if isinstance(value, list | tuple) else value


def _words(transcript: Transcript, instructions: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"events": [_event(event) for event in transcript.events]}
    if transcript.history:
        found["history"] = transcript.history
    if answers := _answers(transcript):
        found["answers"] = answers
    if transcript.instructions:
        found["instructions"] = instructions.setdefault(transcript.instructions, len(instructions))
    return found


def _answers(transcript: Transcript) -> list[dict[str, Any]]:
    """The models' answers, if they were recorded."""
    found = []
    for call in transcript.extra.get("model_answers", ()):
        answer = call["answer"]
        texts = [answer.get("content"), *(json.dumps(each["args"]) for each in answer.get("tool_calls", ()))]
        found += [
            {"step": call["module"], "text": _cut(text)} for text in texts if text and isinstance(text, str)
        ]
    return found


def _event(event: Event) -> dict[str, Any]:
    held = {each.name: getattr(event, each.name) for each in fields(event)}
    if isinstance(event, Call):
        held["arguments"] = [[name, _cut(_written(value))] for name, value in event.arguments.items()]
    if isinstance(event, Result):
        with suppress(ValueError, RecursionError):
            value = json.loads(event.text)
            held["text"] = _written(value) if isinstance(value, dict | list) else event.text
    return {
        name: _cut(each) if isinstance(each, str) else each
        for name, each in held.items()
        if name not in ("id", "step") and each is not None
    }


_written = partial(json.dumps, ensure_ascii=False, indent=2, skipkeys=True, default=str)


def _cut(text: str) -> str:
    rest = len(text) - MAX_CHARACTERS
    return f"{text[:MAX_CHARACTERS]}… {rest:,} more characters are not in this page" if rest > 0 else text
