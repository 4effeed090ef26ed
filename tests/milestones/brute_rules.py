"""What is observed and forbidden, as it is defined: slow, and sharing no code with the library's matching.

Constraints without a reference are the library's own.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from arq_graph.milestones import Call, MilestoneGraph, Result, Transcript
from tests.milestones import end_states


class Rules:
    def __init__(self, graph: MilestoneGraph, transcript: Transcript) -> None:
        self.graph = graph
        self.transcript = transcript
        self.events = dict(enumerate(transcript.events, start=1))

    def observe(self) -> dict[str, tuple[int, ...]]:
        """Return the events at which each milestone that code decides was observed."""
        observed = {}
        for milestone in self.graph.milestones:
            is_observed = self.observes_call if milestone.type == "FC" else self.observes_words
            numbers = tuple(number for number in self.events if is_observed(milestone.name, number))
            if milestone.state is not None and _ask_state(milestone.state, self.transcript):
                numbers = (len(self.transcript) + 1,)
            if numbers and not milestone.is_derived:
                observed[milestone.name] = numbers
        return observed

    def find_undecided_states(self) -> list[str]:
        names = []
        for milestone in self.graph.milestones:
            if milestone.state is not None and _ask_state(milestone.state, self.transcript) is None:
                names.append(milestone.name)
        return names

    def observes_words(self, name: str, number: int) -> bool:
        check, event = self.graph.get_milestone(name).check, self.events[number]
        if check is None or isinstance(event, Call):
            return False
        speaker = "tool" if isinstance(event, Result) else event.speaker
        if speaker == "system" or check.said_by not in (None, speaker):
            return False
        return check.tool in (None, getattr(event, "tool", "")) and check.pattern.search(event.text)

    def observes_call(self, name: str, number: int) -> bool:
        milestone, call = self.graph.get_milestone(name), self.events[number]
        is_call = isinstance(call, Call) and call.tool == milestone.tool_name and call.malformed is None
        if not is_call or call.by != milestone.by or self.get_outcome(number) != "succeeded":
            return False
        return self.all_hold(milestone.arguments, number)

    def get_outcome(self, call: int) -> str:
        for number, event in self.events.items():
            if isinstance(event, Result) and event.call == call < number:
                failed_if = self.graph.failed_if
                return "failed" if failed_if and failed_if.search(event.text) else "succeeded"
        return "unknown"

    def all_hold(self, constraints: Mapping[str, Any], number: int) -> bool:
        arguments = self.events[number].arguments
        for name, constraint in constraints.items():
            if constraint.equals_result_of or constraint.equals_argument_of:
                values = map(_normalize, self.find_values(constraint, number))
                if name not in arguments or _normalize(arguments[name]) not in values:
                    return False
            elif not constraint.holds(name in arguments, arguments.get(name), lambda _: ()):
                return False
        return True

    def find_values(self, constraint: Any, before: int) -> Iterator[Any]:
        for number, event in self.events.items():
            if number >= before:
                return
            if isinstance(event, Result) and self.get_outcome(event.call or 0) == "succeeded":
                tool, _, path = (constraint.equals_result_of or "").partition(".")
                if event.tool == tool:
                    yield from _walk(_parse(event.text), path.split(".") if path else [])
                    yield from () if path else (event.text,)
            name, _, path = (constraint.equals_argument_of or "").partition(".")
            if name and self.observes_call(name, number):
                yield from _walk(event.arguments, path.split("."))

    def forbid(self, reached: Mapping[str, int]) -> list[int]:
        """Return the numbers of the forbidden events, one for each rule that forbids it."""
        numbers: list[int] = []
        for rule in self.graph.forbidden:
            exceptions = list(rule.unless)
            for number, event in self.events.items():
                is_meant = self.is_meant(rule, number)
                if is_meant and isinstance(event, Call):
                    used = [each for each in exceptions if self.all_hold(each, number)]
                    exceptions = [each for each in exceptions if each is not (used or [None])[0]]
                    is_meant = not used
                if is_meant and (rule.before is None or number < reached.get(rule.before, 10**9)):
                    numbers.append(number)
        return sorted(numbers)

    def is_meant(self, rule: Any, number: int) -> bool:
        event = self.events[number]
        if rule.pattern is not None:
            speaker = "tool" if isinstance(event, Result) else getattr(event, "speaker", "system")
            is_read = speaker != "system" and rule.said_by in (None, speaker)
            return is_read and rule.pattern.search(event.text)
        if not isinstance(event, Call) or event.tool != rule.tool or event.by == "user":
            return False
        if rule.failed == "ignore" and self.get_outcome(number) == "failed":
            return False
        is_known = not rule.arguments or event.malformed is None
        return is_known and self.all_hold(rule.arguments, number)


def _ask_state(reference: str, transcript: Transcript) -> bool | None:
    return getattr(end_states, reference.partition(":")[2])(transcript)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return object()


def _walk(value: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield value
    if isinstance(value, dict) and path and path[0] in value:
        yield from _walk(value[path[0]], path[1:])
    if isinstance(value, list):
        for element in value:
            if not isinstance(element, list):
                yield from _walk(element, path)


def _normalize(value: Any) -> Any:
    return json.dumps(float(value) if isinstance(value, int) else value, default=id)
