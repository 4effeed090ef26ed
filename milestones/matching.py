"""Matching events with milestones: where each was observed, as code sees it in calls, results and words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

from arq_graph.agent.patterns import Pattern
from arq_graph.errors import SpecError, require_type
from arq_graph.milestones.constraints import all_hold
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.milestone import Forbidden, Milestone
from arq_graph.milestones.observation_rules import StateCheck, load_rules
from arq_graph.milestones.references import References
from arq_graph.milestones.tool_schemas import Schema, get_argument_schemas, has_required_arguments
from arq_graph.milestones.transcript import Call, Event, Result, Transcript

T = TypeVar("T")

_PLAIN = str.maketrans("\u00a0\u202f\u2011", "  -")


@dataclass(frozen=True, slots=True)
class ForbiddenEvent:
    """An event that must not happen, and did: its number, from 1, and the rule that forbids it."""

    event: int
    rule: Forbidden


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations of code and judges in one conversation.

    Args:
        events: The numbers of the events, from 1 and increasing, at which each milestone was observed.
        length: The number of events.
        undecided: Milestones for which nothing decides whether they were observed, in the graph's order.
        forbidden: The forbidden events, in order; where a rule has a `before`, all that would be forbidden if its
            milestone were never reached (`measure.select_forbidden`).
        unanswered: Calls, by event number, that have no result: nobody knows whether they succeeded.
    """

    events: Mapping[str, tuple[int, ...]]
    length: int
    undecided: tuple[str, ...] = ()
    forbidden: tuple[ForbiddenEvent, ...] = ()
    unanswered: tuple[int, ...] = ()


def observe(graph: MilestoneGraph, transcript: Transcript, *, tools: Any = None) -> Observations:
    """Return where each milestone was observed in a conversation, as code sees it.

    An FC is observed at each genuine call of its tool: its result is there, isn't an error and doesn't match
    `failed_if`; it gives every argument that the tool's schema requires, in its type, where the schema is
    known; `arguments:` holds; and, under `grounded: strict`, it has no value that nobody gave before. An NFC
    is observed at each event where its `check:` holds, or after the last one if its `state:` does; one with neither is
    undecided, unless it is a `step` that the agent's records decide. Pre-Act 4.3 and Appendix H.
    Cost O(events + observations), and the searches for the patterns.

    Args:
        graph: The milestones.
        transcript: The conversation.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name
            (what `get_argument_schemas` returns: worth making once for many conversations); None: those that
            the transcript brings.

    Raises:
        SpecError: A pattern doesn't finish, or a function can't be loaded; file and line are named.
        ToolError: A tool has no name.
        InputError: The graph or the transcript isn't one.
    """
    require_type("graph", graph, MilestoneGraph, "read one with read_milestones(path)")
    require_type("transcript", transcript, Transcript, "read one with read_transcript(messages)")
    schemas = get_argument_schemas(transcript.tools if tools is None else tools)
    observer = _Observer(graph, transcript, schemas)
    for event in transcript.events:
        observer.process(event)
    observer.process_calls()
    if observer.rules.milestones_by_step:
        observer.process_steps()
    observer.process_states()
    return Observations(
        {name: tuple(sorted(numbers)) for name, numbers in observer.observed.items()},
        len(transcript),
        tuple(observer.undecided),
        tuple(observer.forbidden),
        tuple(number for number, call in observer.unanswered_calls.items() if call.by == "agent"),
    )


class _Observer:
    """Goes through the events of one conversation and notes where milestones and forbidden events happened."""

    def __init__(self, graph: MilestoneGraph, transcript: Transcript, schemas: Mapping[str, Schema]) -> None:
        self.rules = load_rules(graph)
        self.observed: dict[str, set[int]] = defaultdict(set)
        self.forbidden: list[ForbiddenEvent] = []
        self.undecided = list(self.rules.undecided)
        self.unanswered_calls: dict[int, Call] = {}
        self._graph = graph
        self._transcript = transcript
        self._schemas = schemas
        self._grounding = Grounding() if graph.grounded else None
        self._ungrounded_calls: set[int] = set()
        self._calls: list[tuple[int, Call]] = []
        self._succeeded_calls: set[int] = set()
        self._failed_calls: set[int] = set()
        self._references = References()
        # For each rule, by its identity, the exceptions (by index) that have let a call through.
        self._used_exceptions: dict[int, set[int]] = defaultdict(set)
        self._number = 0

    def process(self, event: Event) -> None:
        """Process the next event."""
        self._number += 1
        if isinstance(event, Call):
            self._process_call(event)
        elif isinstance(event, Result):
            if patterns := self.rules.patterns_by_speaker.get("tool"):
                self._search_patterns(patterns, event.text)
            if patterns := self.rules.patterns_by_tool.get(event.tool):
                self._search_patterns(patterns, event.text)
            self._process_result(event)
        elif patterns := self.rules.patterns_by_speaker.get(event.speaker):
            self._search_patterns(patterns, _as_displayed(event.text))
        if self._grounding is not None:
            self._grounding.add_event(event)
        for milestone, function in self.rules.functions:
            earlier = self._transcript.events[: self._number - 1]
            self._apply(milestone, self._number, function, event, earlier)

    def _process_call(self, call: Call) -> None:
        self.unanswered_calls[self._number] = call
        if call.tool in self.rules.tools:
            self._calls.append((self._number, call))
        is_of_agent = call.by == "agent"
        if self._grounding is not None and is_of_agent and self._grounding.find_invented_arguments(call):
            self._ungrounded_calls.add(self._number)

    def _search_patterns(self, patterns: Iterable[tuple[Milestone | Forbidden, Pattern]], text: str) -> None:
        for rule, pattern in patterns:
            self._apply(rule, self._number, pattern.search, text)

    def _process_result(self, result: Result) -> None:
        if result.call is None or result.call not in self.unanswered_calls:
            return
        call = self.unanswered_calls.pop(result.call)
        is_referred_to = self.rules.result_references and self.rules.refers_to_result_of(call.tool)
        if call.tool not in self.rules.tools and not is_referred_to:
            return
        failed_if = self._graph.failed_if
        if result.failed or (failed_if is not None and self._run_check(None, failed_if.search, result.text)):
            self._failed_calls.add(result.call)
            return
        self._succeeded_calls.add(result.call)
        if is_referred_to:
            self._references.add_result(self._number, call.tool, result.text)

    def process_calls(self) -> None:
        """Apply the rules about calls to each in its order, now that all results are known."""
        find_values = self._references.find_values
        for number, call in self._calls:
            self._number = number
            self._references.before = number
            if call.by == "agent":
                self._forbid(number, call)
            milestones = self.rules.milestones_by_tool.get(call.tool)
            if milestones and self._is_genuine(number, call):
                for milestone in milestones:
                    if milestone.by == call.by:
                        self._apply(
                            milestone, number, all_hold, milestone.arguments, call.arguments, find_values
                        )
                    if self.rules.has_references and number in self.observed.get(milestone.name, ()):
                        self._references.add_call(number, milestone.name, call)
        self.forbidden.sort(key=attrgetter("event"))

    def process_steps(self) -> None:
        """Note which steps of journeys were done, and where, if the agent's messages say it."""
        recorded: set[str] = set()
        last_number = 0
        known_steps: tuple[str, ...] | None = None
        for number, event in self._transcript.enumerate_events():
            if isinstance(event, Result) or event.done_steps is None:
                continue
            last_number = number
            # What the agent knows when it makes a call was done before.
            done_at = number - 1 if isinstance(event, Call) else number
            if done_at <= self._transcript.history_length or event.done_steps == known_steps:
                continue
            known_steps = event.done_steps
            for step in known_steps:
                for milestone in self.rules.milestones_by_step.get(step, ()):
                    recorded.add(milestone.name)
                    if milestone.type == "NFC":
                        self.observed[milestone.name].add(done_at)
        if last_number == 0:
            return
        for milestones in self.rules.milestones_by_step.values():
            for milestone in milestones:
                if milestone.name in self.undecided:
                    self.undecided.remove(milestone.name)
                if milestone.name not in recorded and milestone.type == "FC":
                    # The calls of the last message may have done a step that no later message could name.
                    calls = self.observed.pop(milestone.name, set())
                    if later_calls := {number for number in calls if number >= last_number}:
                        self.observed[milestone.name] = later_calls

    def process_states(self) -> None:
        """Ask each function of the end state; a state is observed after the last event."""
        self._number = len(self._transcript) + 1
        for milestone, function in self.rules.states:
            is_reached = self._run_check(milestone, _ask_for_state, function, self._transcript)
            if is_reached is None:
                self.undecided.append(milestone.name)
            elif is_reached:
                self.observed[milestone.name].add(self._number)
        if self.rules.states:
            names = list(self._graph)
            self.undecided.sort(key=names.index)

    def _forbid(self, number: int, call: Call) -> None:
        for rule in self.rules.forbidden_by_tool.get(call.tool, ()):
            # Malformed arguments are unknown, so none of them counts as absent.
            is_known = not rule.arguments or call.malformed is None
            is_spared = rule.failed == "ignore" and number in self._failed_calls
            if is_known and not is_spared:
                self._apply(rule, number, self._is_forbidden, rule, call)

    def _is_forbidden(self, rule: Forbidden, call: Call) -> bool:
        find_values = self._references.find_values
        if not all_hold(rule.arguments, call.arguments, find_values):
            return False
        used = self._used_exceptions[id(rule)]
        for index, arguments in enumerate(rule.unless):
            if index not in used and all_hold(arguments, call.arguments, find_values):
                used.add(index)
                return False
        return True

    def _is_genuine(self, number: int, call: Call) -> bool:
        if number not in self._succeeded_calls or call.malformed is not None:
            return False
        schema = self._schemas.get(call.tool)
        is_complete = schema is None or has_required_arguments(schema, call.arguments)
        return is_complete and number not in self._ungrounded_calls

    def _apply(
        self, rule: Milestone | Forbidden, number: int, check: Callable[..., bool], *arguments: Any
    ) -> None:
        """Note that the event with this number fits the rule, if the check holds and it isn't part of the history."""
        if number <= self._transcript.history_length or not self._run_check(rule, check, *arguments):
            return
        if isinstance(rule, Forbidden):
            self.forbidden.append(ForbiddenEvent(number, rule))
        else:
            self.observed[rule.name].add(number)

    def _run_check(self, rule: Milestone | Forbidden | None, check: Callable[..., T], *arguments: Any) -> T:
        """Return what a check returns; `rule` is None for `failed_if`."""
        try:
            return check(*arguments)
        except Exception as error:  # a pattern that doesn't finish, or whatever a function raises
            place = f"event {self._number}"
            if self._number > len(self._transcript):
                place = "the end"
            if self._transcript.id:
                place += f" of conversation {self._transcript.id}"
            problem = str(error)
            if not isinstance(error, TimeoutError):
                problem = f"{type(error).__name__}: {error}"
            name, line = "`failed_if`", None
            if rule is not None:
                name, line = _describe_rule(rule), rule.line
            message = f"the check of {name} fails at {place}: {problem}"
            raise SpecError(message, file=self._graph.file, line=line) from error


def _ask_for_state(function: StateCheck, transcript: Transcript) -> bool | None:
    answer: object = function(transcript)
    if answer is None or isinstance(answer, bool):
        return answer
    raise TypeError(f"a `state` function returns True, False or None, and not {answer!r:.60}")


def _describe_rule(rule: Milestone | Forbidden) -> str:
    return "`forbidden`" if isinstance(rule, Forbidden) else f"milestone {rule.name!r}"


def _as_displayed(text: str) -> str:
    """Return a message as its reader sees it: without marks of bold type, and with plain spaces and hyphens."""
    return text.replace("**", "").translate(_PLAIN)
