"""What the page knows of a report, in the form in which its scripts read it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.measure import satisfied_by
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.reports.html_layout import layered
from arq_graph.milestones.reports.records import ConversationRecord, GraphRecord
from arq_graph.milestones.reports.report import Report, stand_in_notice
from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.reasoning.sections import clean

MOST_BROKEN_SHOWN = 500
MAX_CHARACTERS = 4_000
"""So much of each text is shown."""

# Control characters, and those that turn the direction of a line: shown by their number, they cannot hide a text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# What could end a script element or begin another, and line ends that older JavaScript does not take in a text.
_IN_A_SCRIPT = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"})


def page_data(report: Report, words: Words) -> dict[str, Any]:
    """Figures, graphs and conversations; milestones and edges go by their numbers in their graph.

    Raises:
        InputError: A conversation and its graph do not fit together.
        SpecError: A graph is none that anything can be measured on.
    """
    flows = {name: _Flow(number, name, record) for number, (name, record) in enumerate(report.graphs.items())}
    sources: dict[str, int] = {}
    conversations = []
    for index, record in enumerate(report.conversations):
        flow = flows.get(record.graph)
        if flow is None or not flow.holds(record):
            raise InputError(
                f"conversation {index} of the report ({record.id!r}) was measured on the graph {record.graph!r}, which "
                "the report does not hold, or not with each milestone that was reached"
            )
        row = flow.add(record, words)
        if record.source is not None:
            row["source"] = sources.setdefault(record.source, len(sources))
        conversations.append(row)
    broken = report.broken[:MOST_BROKEN_SHOWN]
    return {
        "stand_in": stand_in_notice(report.stand_ins),
        "summary": report.summary.model_dump(),
        "sources": list(sources),
        "graphs": [flow.drawn(words) for flow in flows.values()],
        "conversations": conversations,
        "broken": [{**one.model_dump(), "error": words.text(one.error)} for one in broken],
        "broken_count": len(report.broken),
        "missing": report.missing,
        "stopped": None if report.stopped is None else words.text(report.stopped),
    }


def status(record: ConversationRecord) -> str:
    """`completed`, `missed`, `undecided`, or `nothing` where there is nothing to complete."""
    if record.goal_completed is None:
        return "nothing" if record.progress_range is None else "undecided"
    return "completed" if record.goal_completed else "missed"


class _Flow:
    """A graph, and how conversations went through it: what they reached, along which edges, and where they stopped."""

    def __init__(self, number: int, name: str, record: GraphRecord) -> None:
        self._number, self._name, self._record = number, name, record
        # Its milestones and edges, without the rules that observe them.
        shown = [Milestone(**one.model_dump()) for one in record.milestones]
        self._graph = MilestoneGraph(shown, file=record.file)
        self._numbers = {name: place for place, name in enumerate(self._graph)}
        self._edges = {edge: place for place, edge in enumerate(self._graph.edges)}
        self._conversations = self._completed = 0
        self._reached, self._possibly, self._stopped = Counter[str](), Counter[str](), Counter[str]()
        self._travelled = Counter[tuple[str, str]]()

    def holds(self, record: ConversationRecord) -> bool:
        """Whether it is the graph that a conversation was measured on, as far as that can be seen."""
        return all(one.name in self._numbers for one in record.reached)

    def add(self, record: ConversationRecord, words: Words) -> dict[str, Any]:
        """Count one more conversation; what the page knows of it."""
        reached = {one.name: one.step for one in record.reached}
        edges = [(one, name) for name, behind in satisfied_by(self._graph, reached).items() for one in behind]
        stop = record.stopped_at if record.goal_completed is False else None
        self._conversations += 1
        self._completed += record.goal_completed is True
        self._reached.update(reached.keys())
        self._possibly.update(record.possibly_reached)
        self._stopped.update([stop] if stop is not None else [])
        self._travelled.update(edges)
        row = {
            "id": record.id,
            "record": record.record,
            "use_case": record.use_case,
            "task": record.task,
            "graph": self._number,
            "status": status(record),
            "goal": None if record.goal is None else (record.goal, record.goal_reached),
            "progress": record.progress_range,
            "reached": [(self._numbers[name], step) for name, step in reached.items()],
            "edges": [self._edges[edge] for edge in edges if edge in self._edges],
            "possibly": self._known(record.possibly_reached),
            "undecided": self._known(record.undecided),
            "frontier": self._known(record.frontier),
            "stopped": None if stop is None else self._numbers.get(stop),
            "forbidden": [(one.step, one.rule) for one in record.forbidden],
            "counts": (record.events, record.turns, record.calls),
            "wasted": record.wasted_calls,
            "repeated": record.repeated_calls,
            "unanswered": record.unanswered_calls,
            "invented": dict(record.invented_arguments),
            "reasons": self._reasons(record, words),
            "reward": record.reward,
            "arm": record.arm,
            "user": record.user,
            "error": None if record.error is None else words.text(record.error),
        }
        return {name: value for name, value in row.items() if value is not None and value not in ([], (), {})}

    def drawn(self, words: Words) -> dict[str, Any]:
        """What the page knows of the graph, once all conversations are counted."""
        layout = layered(self._graph)
        milestones = [
            {
                "name": one.name,
                "type": one.type,
                "description": words.text(one.description),
                "all": one.requires == "all" and len(one.dependencies) > 1,
                "weight": one.weight,
                "at": layout.nodes[one.name],
                "reached": self._reached[one.name],
                "possibly": self._possibly[one.name],
                "stopped": self._stopped[one.name],
            }
            for one in self._record.milestones
        ]
        edges = [
            {
                "ends": (self._numbers[edge[0]], self._numbers[edge[1]]),
                "bends": layout.bends[edge],
                "count": self._travelled[edge],
            }
            for edge in self._graph.edges
        ]
        return {
            "name": self._name,
            "file": self._record.file,
            "reviewed": self._record.reviewed,
            "conversations": self._conversations,
            "completed": self._completed,
            "layers": layout.layers,
            "breadth": layout.breadth,
            "milestones": milestones,
            "edges": edges,
        }

    def _known(self, names: Iterable[str]) -> list[int]:
        return [self._numbers[name] for name in names if name in self._numbers]

    def _reasons(self, record: ConversationRecord, words: Words) -> list[list[Any]]:
        """What a judge said of each milestone: its number, the reason, the share of votes that agree."""
        return [
            [self._numbers[name], words.text(record.reasons.get(name, "")), record.agreement.get(name)]
            for name in dict.fromkeys([*record.reasons, *record.agreement])
            if name in self._numbers
        ]


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
        if isinstance(event, Message):
            return {"speaker": event.speaker, "text": self.text(event.text)}
        if isinstance(event, Call):
            if event.malformed is not None:
                return {"tool": event.tool, "malformed": self.text(event.malformed)}
            written = partial(json.dumps, ensure_ascii=False, indent=2, skipkeys=True, default=str)
            arguments = [[name, self.text(written(value))] for name, value in event.arguments.items()]
            return {"tool": event.tool, "arguments": arguments}
        found: dict[str, Any] = {"result": event.tool, "text": self.text(event.text)}
        if event.call is not None:
            found["call"] = event.call
        return found | ({"failed": True} if event.failed else {})
