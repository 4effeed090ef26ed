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
from arq_graph.milestones.measure import satisfied_by
from arq_graph.milestones.reports.html_layout import layered
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report, stand_in_notice
from arq_graph.milestones.reports.shown import Table
from arq_graph.milestones.reports.tables import tables_of
from arq_graph.milestones.transcript import Call, Event, Result, Transcript
from arq_graph.reasoning.sections import visible

MAX_BYTES = 20_000_000
"""The words of conversations take so much of a page, and no more."""
MOST_BROKEN_SHOWN = 500
MAX_CHARACTERS = 4_000
"""So much of each text of a conversation is shown."""

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
        InputError: A transcript is none of those that were measured, or the file cannot be written.
        SpecError: A graph of the report is none that anything can be measured on.
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
    """Figures, graphs and conversations: the records as they are, with what the page draws and counts."""
    flows = {name: _Flow(number, record) for number, (name, record) in enumerate(report.graphs.items())}
    conversations = [flows[record.graph].add(record) for record in report.conversations]
    return {
        "stand_in": stand_in_notice(report.stand_ins),
        "summary": report.summary.model_dump(),
        "graphs": [{"name": name, **flow.drawn()} for name, flow in flows.items()],
        "conversations": conversations,
        "broken": [one.error for one in report.broken[:MOST_BROKEN_SHOWN]],
        "broken_count": len(report.broken),
        "missing": report.missing,
        "stopped": report.stopped,
    }


def _status(record: ConversationRecord) -> str:
    if record.goal_completed is None:
        return "nothing" if record.progress_range is None else "undecided"
    return "completed" if record.goal_completed else "missed"


class _Flow:
    """A graph, and how conversations went through it: what they reached, along which edges, and where they stopped."""

    def __init__(self, number: int, record: GraphRecord) -> None:
        self._number, self._record = number, record
        self._graph = MilestoneGraph(record.milestones)
        self._edges = {edge: place for place, edge in enumerate(self._graph.edges)}
        self._rows: list[dict[str, Any]] = []

    def add(self, record: ConversationRecord) -> dict[str, Any]:
        """What the page knows of one more conversation that was measured on it."""
        reached = {one.name: one.step for one in record.reached}
        ways = satisfied_by(self._graph, reached).items()
        row = {
            **record.model_dump(exclude=_NOT_SHOWN, exclude_defaults=True),
            "graph": self._number,
            "status": _status(record),
            "goal_reached": record.goal_reached,
            "stopped_at": record.stopped_at,
            "edges": [self._edges[one, name] for name, behind in ways for one in behind],
        }
        self._rows.append(row)
        return row

    def drawn(self) -> dict[str, Any]:
        """What the page knows of the graph, once all conversations are added."""
        places, bends = layered(self._graph)
        points = [*places.values(), *chain(*bends.values())]
        numbers = {name: number for number, name in enumerate(self._graph)}
        reached = Counter(one["name"] for row in self._rows for one in row["reached"])
        possibly = Counter(name for row in self._rows for name in row.get("possibly_reached", ()))
        stopped = Counter(row["stopped_at"] for row in self._rows)
        travelled = Counter(edge for row in self._rows for edge in row["edges"])
        milestones = [
            {
                **one.model_dump(include=_SHOWN),
                "at": places[one.name],
                "reached": reached[one.name],
                "possibly": possibly[one.name],
                "stopped": stopped[one.name],
            }
            for one in self._record.milestones
        ]
        edges = [
            {"ends": [numbers[end] for end in edge], "bends": bends[edge], "count": travelled[place]}
            for edge, place in self._edges.items()
        ]
        return {
            "file": self._record.file,
            "reviewed": self._record.reviewed,
            "conversations": len(self._rows),
            "completed": sum(row["status"] == "completed" for row in self._rows),
            "layers": 1 + max((layer for layer, _ in points), default=0),
            "breadth": max((place for _, place in points), default=0.0),
            "milestones": milestones,
            "edges": edges,
        }


def _embedded(value: Any) -> str:
    """A value as JSON that can stand in a script element: nothing in it is hidden, and no text ends the element."""
    text = json.dumps(_all_visible(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_A_SCRIPT)


def _all_visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(name)): _all_visible(each) for name, each in value.items()}
    return [_all_visible(each) for each in value] if isinstance(value, list | tuple) else value


def _words(transcript: Transcript, instructions: dict[str, int]) -> dict[str, Any]:
    """A transcript as the page reads it: its events, and the number of its instructions."""
    found: dict[str, Any] = {"events": [_event(event) for event in transcript.events]}
    if transcript.history:
        found["history"] = transcript.history
    if answers := _answers(transcript):
        found["answers"] = answers
    if transcript.instructions:
        found["instructions"] = instructions.setdefault(transcript.instructions, len(instructions))
    return found


def _answers(transcript: Transcript) -> list[dict[str, Any]]:
    """What models answered, where the transcript comes from a file in which a run was recorded."""
    kept = transcript.extra.get("arq_graph")
    recorded = kept.get("recorded", ()) if isinstance(kept, Mapping) else ()
    answered = [(call["module"], call["answer"]) for call in recorded if call.get("answer")]
    return [
        {"step": step, "text": _cut(text)}
        for step, answer in answered
        for text in [
            answer.get("content"),
            *(json.dumps(call["args"]) for call in answer.get("tool_calls", ())),
        ]
        if text and isinstance(text, str)
    ]


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
