"""A report as one HTML file that needs no network: the graph, who stopped where, and every conversation to read."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.errors import InputError
from arq_graph.milestones.reports.drawn_graph import DrawnGraph
from arq_graph.milestones.reports.page_data import describe_figures, shorten_path
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.report import Report, format_stand_in_notice
from arq_graph.milestones.reports.table_format import Table
from arq_graph.milestones.reports.tables import build_tables
from arq_graph.milestones.transcript import Call, Event, Result, Transcript
from arq_graph.reasoning.sections import visible

MAX_BYTES = 20_000_000
"""The most bytes of a page that the words of conversations take."""
MAX_CHARACTERS = 4_000
"""The number of characters shown of each text of a conversation."""

_SCRIPTS = [
    "dom.js",
    "figures.js",
    "charts.js",
    "guidelines.js",
    "graph.js",
    "list.js",
    "reader.js",
    "page.js",
]
_OMITTED_FIGURES: Any = {
    "overall": {"guidelines"},
    "use_cases": {"__all__": {"guidelines"}},
    "arms": {"__all__": {"guidelines"}},
}

# Characters that could end a script element or begin another, and line ends that older JavaScript refuses in a text.
_SCRIPT_ESCAPES = str.maketrans(
    {"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"}
)


def write_html(
    path: str | Path,
    report: Report,
    transcripts: Iterable[Transcript] = (),
    *,
    title: str = "Milestone report",
    tables: Sequence[Table] | None = None,
) -> None:
    """Write a report as a page that holds its style, its scripts and its data, and needs no network.

    The file is written atomically. The words of conversations take up to 20 MB of it, and 4,000 characters of each text
    are shown; the page says what it leaves out. Cost O(events), and O(E log E) for each graph.

    Args:
        path: The file.
        report: The report.
        transcripts: Its conversations, one at a time and in any order; of several with one id, in the report's order.
        title: The title of the page.
        tables: The tables beneath it, such as those of an experiment. Default: those of the report.

    Raises:
        InputError: A transcript was not measured in this report, or the file cannot be written.
        SpecError: A graph of the report cannot be measured on.
    """
    words = _ConversationWords(report)
    for transcript in transcripts:
        words.add(transcript)
    if tables is None:
        tables = build_tables(report)
    style = _read_page_file("style.css")
    modules = "\n".join(map(_read_page_file, _SCRIPTS))
    script = f'"use strict";\n(function () {{\n{modules}\n}})();'
    template = Environment(undefined=StrictUndefined, autoescape=True).from_string(
        _read_page_file("page.html")
    )
    text = template.render(
        title=visible(title),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=_embed(_describe_report(report) | words.describe_omissions()),
        conversations=words.list_embedded(),
        count=len(report.conversations),
        tables=_make_visible([table.model_dump() for table in tables if table.kind != "chart"]),
    )
    write_atomically(path, text)


_Priority = tuple[bool, bool, int]
"""Of a conversation: True if something forbidden happened, True if it missed the goal, and its negative position."""


class _IncludedWords(NamedTuple):
    priority: _Priority
    position: int
    size: int
    text: Markup
    instructions: str


class _ConversationWords:
    """The words of conversations, as far as there is room: first those with a forbidden event, then missed goals."""

    def __init__(self, report: Report) -> None:
        self._records = report.conversations
        self._positions: dict[tuple[str, int], list[int]] = {}  # the last one first
        for position, record in reversed(list(enumerate(report.conversations))):
            self._positions.setdefault((record.id, record.events), []).append(position)
        self._included: list[_IncludedWords] = []  # a heap, with the lowest priority first
        self._size = 0
        self._highest_omitted: _Priority | None = None
        self._instruction_numbers: dict[str, int] = {}  # many conversations have the same instructions
        self._sources: set[str] = set()

    def add(self, transcript: Transcript) -> None:
        """Include a conversation, and omit those of the lowest priority if there is no room.

        Raises:
            InputError: It isn't a conversation of the report, or was added before.
        """
        positions = self._positions.get((transcript.id, len(transcript)))
        if not positions:
            raise InputError(
                f"{transcript.id!r} with {len(transcript)} events isn't a conversation of the report, or was given "
                "twice; give the transcripts that were measured, each once and without the broken ones"
            )
        position = positions.pop()
        if transcript.source:
            self._sources.add(shorten_path(transcript.source))
        record = self._records[position]
        priority = bool(record.forbidden), record.goal_completed is False, -position
        if self._highest_omitted is not None and priority < self._highest_omitted:
            return
        is_new = transcript.instructions not in self._instruction_numbers
        text = _embed(_describe_transcript(transcript, self._instruction_numbers))
        size = len(text.encode(errors="replace"))
        if is_new:
            size += len(transcript.instructions[:MAX_CHARACTERS].encode(errors="replace"))
        heappush(self._included, _IncludedWords(priority, position, size, text, transcript.instructions))
        self._size += size
        while self._size > MAX_BYTES:
            omitted = heappop(self._included)
            self._highest_omitted = omitted.priority
            self._size -= omitted.size

    def list_embedded(self) -> list[tuple[int, Markup]]:
        """Return the position of each conversation in the report, and its words as JSON."""
        return sorted((words.position, words.text) for words in self._included)

    def describe_omissions(self) -> dict[str, Any]:
        """Return the number of included conversations, the files that hold the others, and the instructions."""
        instructions = {}
        for words in self._included:
            if words.instructions:
                number = self._instruction_numbers[words.instructions]
                instructions[number] = _shorten(words.instructions)
        return {
            "readable": len(self._included),
            "elsewhere": sorted(self._sources) if self._highest_omitted else [],
            "instructions": instructions,
        }


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read_page_file(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")


def _describe_report(report: Report) -> dict[str, Any]:
    graphs: dict[str, DrawnGraph] = {}
    for name, graph_record in report.graphs.items():
        graphs[name] = DrawnGraph(len(graphs), name, graph_record)
    return {
        "stand_in": format_stand_in_notice(report.stand_ins),
        "summary": report.summary.model_dump(exclude=_OMITTED_FIGURES),
        # Conversations are counted before their graphs are described.
        "conversations": [graphs[record.graph].add(record) for record in report.conversations],
        "graphs": [graph.describe() for graph in graphs.values()],
        "broken": list(map(_describe_broken, report.broken)),
        "missing": report.missing,
        "stopped": report.stopped,
    } | describe_figures(report)


def _describe_broken(record: BrokenConversation) -> str:
    if record.source is None:
        return record.error
    return record.error.replace(record.source, shorten_path(record.source))


def _embed(value: Any) -> Markup:
    """Return a value as JSON that cannot end the script element that holds it."""
    text = json.dumps(_make_visible(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_SCRIPT_ESCAPES))


def _make_visible(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(name)): _make_visible(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_make_visible(inner) for inner in value]
    return value


def _describe_transcript(transcript: Transcript, instruction_numbers: dict[str, int]) -> dict[str, Any]:
    described: dict[str, Any] = {"events": list(map(_describe_event, transcript.events))}
    if transcript.history_length:
        described["history"] = transcript.history_length
    if answers := _list_model_answers(transcript):
        described["answers"] = answers
    instructions = transcript.instructions
    if instructions:
        described["instructions"] = instruction_numbers.setdefault(instructions, len(instruction_numbers))
    return described


def _list_model_answers(transcript: Transcript) -> list[dict[str, Any]]:
    """Return the answers of the models by step, if they were recorded."""
    answers = []
    for call in transcript.extra.get("model_answers", ()):
        texts = [call["answer"].get("content")]
        for tool_call in call["answer"].get("tool_calls", ()):
            texts.append(json.dumps(tool_call["args"]))
        for text in texts:
            if text and isinstance(text, str):
                answers.append({"step": call["module"], "text": _shorten(text)})
    return answers


def _describe_event(event: Event) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for name, value in event._asdict().items():
        if isinstance(value, str):
            value = _shorten(value)
        if value is not None and name not in ("id", "step", "turn_notes"):
            described[name] = value
    if notes := getattr(event, "turn_notes", ()):
        described["turn"] = [note.model_dump(exclude_defaults=True) for note in notes]
    if isinstance(event, Call):
        if event.by == "agent":
            del described["by"]
        described["arguments"] = [[name, _format_json(value)] for name, value in event.arguments.items()]
    if isinstance(event, Result):
        with suppress(ValueError, RecursionError):
            value = json.loads(event.text)
            if isinstance(value, dict | list):
                described["text"] = _format_json(value)
    return described


def _format_json(value: Any) -> str:
    return _shorten(json.dumps(value, ensure_ascii=False, indent=2, skipkeys=True, default=str))


def _shorten(text: str) -> str:
    rest = len(text) - MAX_CHARACTERS
    if rest <= 0:
        return text
    return f"{text[:MAX_CHARACTERS]}… {rest:,} more characters are not in this page"
