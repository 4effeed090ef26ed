"""Matching events with milestones: where each was observed, as code sees it in calls, results and words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from arq_graph.agent.modules import load
from arq_graph.errors import SpecError
from arq_graph.milestones.constraints import all_hold
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.milestone import Forbidden, Milestone, Said, Voice
from arq_graph.milestones.observations import ForbiddenEvent, Observations
from arq_graph.milestones.patterns import SECONDS_PER_SEARCH, Pattern
from arq_graph.milestones.tool_schemas import Schema, argument_schemas, has_required_arguments
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript
from arq_graph.milestones.verdicts import Verdict, apply_verdicts

EventCheck = Callable[[Event, Sequence[Event]], bool]
"""Asked at every event, with all events before it; must depend on nothing else."""


def observe(
    graph: MilestoneGraph,
    transcript: Transcript,
    *,
    tools: Any = None,
    verdicts: Iterable[Verdict] = (),
) -> Observations:
    """Where each milestone was observed in a conversation.

    An FC is observed at each genuine call of its tool: its result is there, is no error and does not match
    `failed_if`; it gives every argument that the tool's schema requires, in its type, where the schema is
    known; `arguments:` holds; and, under `grounded: strict`, it has no value that nobody gave before. An NFC
    is observed at each event where its `check:` holds, or where a judge says so with a quote that stands
    there. An NFC without a check and without a verdict is undecided. Pre-Act 4.3 and Appendix H.
    Cost O(events + observations), and the searches for the patterns.

    Args:
        graph: The milestones.
        transcript: What happened.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name
            (what `argument_schemas` gives: worth making once for many conversations); None: those that the
            transcript brings.
        verdicts: What judges say, if any were asked.

    Raises:
        SpecError: A pattern does not finish, or a function cannot be loaded; file and line are named.
        InputError: A verdict is about no milestone of the graph.
        ToolError: A tool has no name.
    """
    observer = Observer(graph, tools=transcript.tools if tools is None else tools, conversation=transcript.id)
    for event in transcript.events:
        observer.feed(event)
    return observer.observations(apply_verdicts(graph, transcript, verdicts, observer.observed))


class Observer:
    """Observes one conversation, an event at a time."""

    def __init__(self, graph: MilestoneGraph, *, tools: Any = None, conversation: str = "") -> None:
        self.rules = _Rules.of(graph)
        self.now = 0
        self.observed: dict[str, set[int]] = {}
        self.forbidden: list[ForbiddenEvent] = []
        self._schemas: Mapping[str, Schema] = argument_schemas(tools) if tools else {}
        self._conversation = conversation
        self._open: dict[int, tuple[Call, bool]] = {}
        self._grounding = Grounding() if graph.grounded else None
        self._earlier: list[Event] = []

    def observations(self, decided: Collection[str] = ()) -> Observations:
        """What was observed so far."""
        return Observations(
            {name: tuple(sorted(numbers)) for name, numbers in self.observed.items() if numbers},
            self.now,
            tuple(name for name in self.rules.for_judges if name not in decided),
            tuple(self.forbidden),
            tuple(self._open),
        )

    def feed(self, event: Event) -> None:
        """The next event. A result may show the call before it to be genuine."""
        self.now += 1
        if isinstance(event, Message):
            self._said(event.speaker, event.text)  # nothing listens to the system
        elif isinstance(event, Call):
            self._called(event)
        else:
            self._said("tool", event.text)
            self._answered(event)
        if self._grounding is not None:
            self._grounding.hear(event)
        if self.rules.functions:
            self._asked(event)

    def _see(self, rule: Milestone | Forbidden, event: int) -> None:
        if isinstance(rule, Forbidden):
            self.forbidden.append(ForbiddenEvent(event, rule))
        else:
            self.observed.setdefault(rule.name, set()).add(event)

    def _said(self, voice: str, text: str) -> None:
        for rule, pattern in self.rules.words.get(voice, ()):
            if self._holds(rule, pattern.is_in, text):
                self._see(rule, self.now)

    def _called(self, call: Call) -> None:
        for rule in self.rules.forbidden_calls.get(call.tool, ()):
            # Of arguments that cannot be read nothing is known: not that one is absent, either.
            is_known = not rule.arguments or call.malformed is None
            if is_known and self._holds(rule, all_hold, rule.arguments, call.arguments):
                self._see(rule, self.now)
        invented = bool(self._grounding and self._grounding.invented(call))
        self._open[self.now] = (call, invented)

    def _answered(self, result: Result) -> None:
        called = self._open.pop(result.call, None) if result.call is not None else None
        if called is None or result.call is None:
            return
        call, invented = called
        watching = self.rules.calls.get(call.tool, ())
        if not watching or result.failed or invented or call.malformed is not None:
            return
        failed_if = self.rules.failed_if
        if failed_if is not None and self._holds(None, failed_if.is_in, result.text):
            return
        schema = self._schemas.get(call.tool)
        if schema is not None and not has_required_arguments(schema, call.arguments):
            return
        for milestone in watching:
            if self._holds(milestone, all_hold, milestone.arguments, call.arguments):
                self._see(milestone, result.call)

    def _asked(self, event: Event) -> None:
        for milestone, function in self.rules.functions:
            try:
                holds = function(event, self._earlier)
            except Exception as error:
                raise SpecError(
                    f"the check of milestone {milestone.name!r}, {milestone.check}, fails at event "
                    f"{self.now}{self._where()}: {type(error).__name__}: {error}",
                    file=self.rules.file,
                    line=milestone.line,
                ) from error
            if holds:
                self._see(milestone, self.now)
        self._earlier.append(event)

    def _holds(self, rule: Milestone | Forbidden | None, holds: Callable[..., bool], *asked: Any) -> bool:
        try:
            return holds(*asked)
        except TimeoutError:
            whose = f"milestone {rule.name!r}" if isinstance(rule, Milestone) else "`forbidden`"
            raise SpecError(
                f"{whose if rule else '`failed_if`'}: a pattern was still searching after {SECONDS_PER_SEARCH:g} s in "
                f"event {self.now}{self._where()}; write one that backtracks less (no repeat inside a repeat)",
                file=self.rules.file,
                line=rule.line if rule else None,
            ) from None

    def _where(self) -> str:
        return f" of conversation {self._conversation}" if self._conversation else ""


class _Rules:
    """A graph's rules by what they listen to; made once per graph."""

    def __init__(self, graph: MilestoneGraph) -> None:
        self.file = graph.file
        self.failed_if = graph.failed_if
        self.calls: dict[str, list[Milestone]] = {}
        self.forbidden_calls: dict[str, list[Forbidden]] = {}
        self.words: dict[str, list[tuple[Milestone | Forbidden, Pattern]]] = {}
        self.functions: list[tuple[Milestone, EventCheck]] = []
        self.for_judges: list[str] = []
        for rule in graph.forbidden:
            if rule.tool is not None:
                self.forbidden_calls.setdefault(rule.tool, []).append(rule)
            elif rule.pattern is not None:
                self._listen(rule, rule.pattern, rule.said_by)
        for milestone in graph.milestones:
            if milestone.is_derived:
                continue
            if milestone.type == "FC":
                self.calls.setdefault(milestone.called_tool, []).append(milestone)
            elif isinstance(milestone.check, Said):
                self._listen(milestone, milestone.check.pattern, milestone.check.said_by)
            elif milestone.check is not None:
                function = load_check(milestone.check, file=graph.file, line=milestone.line)
                self.functions.append((milestone, function))
            else:
                self.for_judges.append(milestone.name)

    def _listen(self, rule: Milestone | Forbidden, pattern: Pattern, said_by: Voice | None) -> None:
        voices: tuple[Voice, ...] = ("user", "agent", "tool")
        for voice in voices if said_by is None else (said_by,):
            self.words.setdefault(voice, []).append((rule, pattern))

    @classmethod
    def of(cls, graph: MilestoneGraph) -> _Rules:
        known: _Rules | None = graph.__dict__.get("_rules")
        if known is None:
            known = graph.__dict__["_rules"] = cls(graph)
        return known


def load_check(name: str, *, file: str | None = None, line: int | None = None) -> EventCheck:
    """The function that a check names; a module beside the file is preferred to an installed one."""
    try:
        found = load(name, Path(file).resolve().parent if file else None)
    except SpecError as error:
        raise SpecError(f"`check` {error}", file=file, line=line) from error.__cause__
    if not callable(found):
        raise SpecError(f"`check` names {name!r}, which is no function", file=file, line=line)
    return cast(EventCheck, found)
