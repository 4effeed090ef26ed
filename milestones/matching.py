"""Matching events with milestones: where each was observed, as code sees it in calls, results and words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from arq_graph.agent.modules import load
from arq_graph.errors import SpecError, require_type
from arq_graph.milestones.constraints import all_hold
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.milestone import Forbidden, Milestone, PatternCheck
from arq_graph.milestones.patterns import Pattern
from arq_graph.milestones.tool_schemas import Schema, get_argument_schemas, has_required_arguments
from arq_graph.milestones.transcript import Call, Event, Message, Result, Transcript

EventCheck = Callable[[Event, Sequence[Event]], bool]
"""Asked at every event, with all events before it; must depend on nothing else."""


_PLAIN = str.maketrans("\u00a0\u202f\u2011", "  -")


@dataclass(frozen=True, slots=True)
class ForbiddenEvent:
    """Something happened that must not.

    Args:
        event: The event's number, from 1.
        rule: What is forbidden.
    """

    event: int
    rule: Forbidden


@dataclass(frozen=True, slots=True)
class Observations:
    """What code and judges saw.

    Args:
        events: The numbers of the events, from 1 and increasing, at which each milestone was observed.
        length: How many events there were.
        undecided: Milestones of which nothing says whether they were observed, in the graph's order.
        forbidden: The forbidden events, in order.
        unanswered: Calls, by event number, that have no result: nobody knows whether they succeeded.
    """

    events: Mapping[str, tuple[int, ...]]
    length: int
    undecided: tuple[str, ...] = ()
    forbidden: tuple[ForbiddenEvent, ...] = ()
    unanswered: tuple[int, ...] = ()


def observe(graph: MilestoneGraph, transcript: Transcript, *, tools: Any = None) -> Observations:
    """Where each milestone was observed in a conversation, as code sees it.

    An FC is observed at each genuine call of its tool: its result is there, is no error and does not match
    `failed_if`; it gives every argument that the tool's schema requires, in its type, where the schema is
    known; `arguments:` holds; and, under `grounded: strict`, it has no value that nobody gave before. An NFC
    is observed at each event where its `check:` holds; one without a check is undecided. Pre-Act 4.3 and
    Appendix H. Cost O(events + observations), and the searches for the patterns.

    Args:
        graph: The milestones.
        transcript: What happened.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name
            (what `get_argument_schemas` gives: worth making once for many conversations); None: those that the
            transcript brings.

    Raises:
        SpecError: A pattern does not finish, or a function cannot be loaded; file and line are named.
        ToolError: A tool has no name.
        InputError: The graph or the transcript is none.
    """
    require_type("graph", graph, MilestoneGraph, "read one with read_milestones(path)")
    require_type("transcript", transcript, Transcript, "read one with read_transcript(messages)")
    observer = _Observer(
        graph, transcript, get_argument_schemas(transcript.tools if tools is None else tools)
    )
    for event in transcript.events:
        observer.see(event)
    return Observations(
        {name: tuple(sorted(numbers)) for name, numbers in observer.observed.items()},
        len(transcript),
        tuple(observer.rules.for_judges),
        tuple(observer.forbidden),
        tuple(observer.waiting),
    )


class _Observer:
    def __init__(self, graph: MilestoneGraph, transcript: Transcript, schemas: Mapping[str, Schema]) -> None:
        self.rules = load_rules(graph)
        self.observed: dict[str, set[int]] = {}
        self.forbidden: list[ForbiddenEvent] = []
        self.waiting: dict[int, tuple[Call, bool]] = {}
        self._graph = graph
        self._transcript = transcript
        self._schemas = schemas
        self._grounding = Grounding() if graph.grounded else None
        self._let_through: dict[int, set[int]] = {}
        self._now = 0

    def see(self, event: Event) -> None:
        """The next event. A result may show the call before it to be genuine."""
        self._now += 1
        if isinstance(event, Call):
            for rule in self.rules.forbidden_calls.get(event.tool, ()):
                # Arguments that cannot be read are unknown, so none of them counts as absent.
                if not rule.arguments or event.malformed is None:
                    self._look(rule, self._now, self._is_forbidden, rule, event)
            self.waiting[self._now] = (
                event,
                bool(self._grounding and self._grounding.find_invented_arguments(event)),
            )
        else:
            voice, text = (
                (event.speaker, _as_read(event.text)) if isinstance(event, Message) else ("tool", event.text)
            )
            for listener, pattern in self.rules.words.get(voice, ()):
                self._look(listener, self._now, pattern.search, text)
        if isinstance(event, Result):
            self._answered(event)
        if self._grounding is not None:
            self._grounding.add_event(event)
        for milestone, function in self.rules.functions:
            self._look(milestone, self._now, function, event, self._transcript.events[: self._now - 1])

    def _is_forbidden(self, rule: Forbidden, call: Call) -> bool:
        if not all_hold(rule.arguments, call.arguments):
            return False
        used = self._let_through.setdefault(id(rule), set())
        lets = (at for at, each in enumerate(rule.unless) if all_hold(each, call.arguments))
        before = len(used)
        used.update([at for at in lets if at not in used][:1])
        return len(used) == before

    def _answered(self, result: Result) -> None:
        if result.call is None or result.call not in self.waiting:
            return
        call, invented = self.waiting.pop(result.call)
        watching = self.rules.calls.get(call.tool, ())
        if not watching or result.failed or invented or call.malformed is not None:
            return
        failed_if = self._graph.failed_if
        if failed_if is not None and self._holds(None, failed_if.search, result.text):
            return
        schema = self._schemas.get(call.tool)
        if schema is None or has_required_arguments(schema, call.arguments):
            for milestone in watching:
                self._look(milestone, result.call, all_hold, milestone.arguments, call.arguments)

    def _look(self, rule: Milestone | Forbidden, at: int, check: Callable[..., bool], *given: Any) -> None:
        if at <= self._transcript.history or not self._holds(rule, check, *given):
            return
        if isinstance(rule, Forbidden):
            self.forbidden.append(ForbiddenEvent(at, rule))
        else:
            self.observed.setdefault(rule.name, set()).add(at)

    def _holds(self, rule: Milestone | Forbidden | None, check: Callable[..., bool], *given: Any) -> bool:
        try:
            return check(*given)
        except Exception as error:  # a pattern that does not finish, or whatever a function raises
            whose = f"milestone {rule.name!r}" if isinstance(rule, Milestone) else "`forbidden`"
            told = str(error) if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
            of = f" of conversation {self._transcript.id}" if self._transcript.id else ""
            said = f"the check of {whose if rule else '`failed_if`'} fails at event {self._now}{of}: {told}"
            raise SpecError(said, file=self._graph.file, line=rule.line if rule else None) from error


class ObservationRules:
    """A graph's rules by what they listen to; a function that a check names is loaded, or a `SpecError` is raised."""

    def __init__(self, graph: MilestoneGraph) -> None:
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
                self.calls.setdefault(milestone.tool_name, []).append(milestone)
            elif isinstance(milestone.check, PatternCheck):
                self._listen(milestone, milestone.check.pattern, milestone.check.said_by)
            elif milestone.check is not None:
                function = _load_check(milestone.check, file=graph.file, line=milestone.line)
                self.functions.append((milestone, function))
            else:
                self.for_judges.append(milestone.name)

    def _listen(self, rule: Milestone | Forbidden, pattern: Pattern, said_by: str | None) -> None:
        # Nothing listens to the system.
        for voice in ("user", "agent", "tool") if said_by is None else (said_by,):
            self.words.setdefault(voice, []).append((rule, pattern))


def load_rules(graph: MilestoneGraph) -> ObservationRules:
    """Return the graph's rules; the functions that its checks name are imported the first time.

    Raises:
        SpecError: A function can't be loaded; file and line are named.
    """
    return graph.compute_once(ObservationRules)


def _load_check(name: str, *, file: str | None, line: int | None) -> EventCheck:
    """The function that a check names; a module beside the file is preferred to an installed one."""
    try:
        found = load(name, Path(file).resolve().parent if file else None)
    except SpecError as error:
        raise SpecError(f"`check` {error}", file=file, line=line) from error.__cause__
    if not callable(found):
        raise SpecError(f"`check` names {name!r}, which is no function", file=file, line=line)
    return cast(EventCheck, found)


def _as_read(text: str) -> str:
    """A message as its reader sees it: without marks of bold type, and with plain spaces and hyphens."""
    return text.replace("**", "").translate(_PLAIN)
