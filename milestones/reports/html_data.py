"""What the page knows of a report, in the form in which its scripts read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import fields
from functools import partial
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.measure import satisfied_by
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.reports.html_layout import layered
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report, stand_in_notice
from arq_graph.milestones.transcript import Call, Event, Transcript
from arq_graph.reasoning.sections import clean

MOST_BROKEN_SHOWN = 500
MAX_CHARACTERS = 4_000
"""So much of each text of a conversation is shown."""

_NOT_SHOWN = {"progress_rate", "path_taken", "coverage", "seed", "seconds", "turn_seconds"}

# Control characters, and those that turn the direction of a line: shown by their number, they cannot hide a text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What could end a script element or begin another, and line ends that older JavaScript does not take in a text.
_IN_A_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def page_data(report: Report) -> dict[str, Any]:
    """Figures, graphs and conversations: the records as they are, with what the page draws and counts.

    Raises:
        InputError: A conversation and its graph do not fit together.
        SpecError: A graph is none that anything can be measured on.
    """
    flows = {name: _Flow(number, record) for number, (name, record) in enumerate(report.graphs.items())}
    conversations = []
    for index, record in enumerate(report.conversations):
        flow = flows.get(record.graph)
        if flow is None or not all(one.name in flow.graph for one in record.reached):
            raise InputError(
                f"conversation {index} of the report ({record.id!r}) was measured on the graph {record.graph!r}, which "
                "the report does not hold, or not with each milestone that was reached"
            )
        conversations.append(flow.add(record))
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


def status(record: ConversationRecord) -> str:
    """`completed`, `missed`, `undecided`, or `nothing` where there is nothing to complete."""
    if record.goal_completed is None:
        return "nothing" if record.progress_range is None else "undecided"
    return "completed" if record.goal_completed else "missed"


class _Flow:
    """A graph, and how conversations went through it: what they reached, along which edges, and where they stopped."""

    def __init__(self, number: int, record: GraphRecord) -> None:
        self._number, self._record = number, record
        # Its milestones and edges, without the rules that observe them.
        self.graph = MilestoneGraph(
            [Milestone(**one.model_dump()) for one in record.milestones], file=record.file
        )
        self._edges = {edge: place for place, edge in enumerate(self.graph.edges)}
        self._rows: list[dict[str, Any]] = []

    def add(self, record: ConversationRecord) -> dict[str, Any]:
        """What the page knows of one more conversation that was measured on it."""
        reached = {one.name: one.step for one in record.reached}
        ways = satisfied_by(self.graph, reached).items()
        row = {
            **record.model_dump(exclude=_NOT_SHOWN, exclude_defaults=True),
            "graph": self._number,
            "status": status(record),
            "goal_reached": record.goal_reached,
            "stopped_at": record.stopped_at,
            "edges": [self._edges[one, name] for name, behind in ways for one in behind],
        }
        self._rows.append(row)
        return row

    def drawn(self) -> dict[str, Any]:
        """What the page knows of the graph, once all conversations are added."""
        layout = layered(self.graph)
        numbers = {name: number for number, name in enumerate(self.graph)}
        reached = Counter(one["name"] for row in self._rows for one in row["reached"])
        possibly = Counter(name for row in self._rows for name in row.get("possibly_reached", ()))
        stopped = Counter(row["stopped_at"] for row in self._rows)
        travelled = Counter(edge for row in self._rows for edge in row["edges"])
        milestones = [
            {
                **one.model_dump(),
                "at": layout.nodes[one.name],
                "reached": reached[one.name],
                "possibly": possibly[one.name],
                "stopped": stopped[one.name],
            }
            for one in self._record.milestones
        ]
        edges = [
            {"ends": [numbers[end] for end in edge], "bends": layout.bends[edge], "count": travelled[place]}
            for edge, place in self._edges.items()
        ]
        return {
            "file": self._record.file,
            "reviewed": self._record.reviewed,
            "conversations": len(self._rows),
            "completed": sum(row["status"] == "completed" for row in self._rows),
            "layers": layout.layers,
            "breadth": layout.breadth,
            "milestones": milestones,
            "edges": edges,
        }


def shown(text: str) -> str:
    """A text in which nothing is hidden, and which can be written as UTF-8."""
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", clean(text))


def embedded(value: Any) -> str:
    """A value as JSON that can stand in a script element: its texts are `shown`, and none can end the element."""
    text = json.dumps(_shown(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.translate(_IN_A_SCRIPT)


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(str(name)): _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value


class Words:
    """Transcripts as the page reads them, and a count of the texts that had to be cut."""

    def __init__(self) -> None:
        self.cut = 0
        self.instructions: dict[str, int] = {}

    def of(self, transcript: Transcript) -> dict[str, Any]:
        """A transcript: its events, and the number of its instructions, which many conversations share."""
        found: dict[str, Any] = {"events": [self._event(event) for event in transcript.events]}
        if transcript.instructions:
            instructions = transcript.instructions
            found["instructions"] = self.instructions.setdefault(instructions, len(self.instructions))
        return found

    def text(self, text: str) -> str | list[Any]:
        """A text, or its beginning and the number of the characters that were left out."""
        rest = len(text) - MAX_CHARACTERS
        if rest <= 0:
            return text
        self.cut += 1
        return [text[:MAX_CHARACTERS], rest]

    def _event(self, event: Event) -> dict[str, Any]:
        held = {each.name: getattr(event, each.name) for each in fields(event)}
        if isinstance(event, Call):
            written = partial(json.dumps, ensure_ascii=False, indent=2, skipkeys=True, default=str)
            held["arguments"] = [[name, self.text(written(value))] for name, value in event.arguments.items()]
        return {
            name: self.text(each) if isinstance(each, str) else each
            for name, each in held.items()
            if name not in ("id", "step") and each is not None
        }
