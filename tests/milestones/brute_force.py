"""The measure as it is defined, as directly as possible: slow, and sharing no code with the library.

Every function takes the milestones by name and works with fractions; each fixpoint is found by applying the
definition until nothing changes.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction

from arq_graph.milestones import Milestone

INFINITE = Fraction(10**30)


class Definition:
    def __init__(self, milestones: Iterable[Milestone]) -> None:
        self.milestones = {milestone.name: milestone for milestone in milestones}
        self.dependencies: dict[str, list[str]] = {}
        for name, milestone in self.milestones.items():
            implied = [] if name == "Start" else ["Start"]
            self.dependencies[name] = list(dict.fromkeys(milestone.dependencies)) or implied

    def requires_all(self, name: str) -> bool:
        return self.milestones[name].requires == "all"

    def get_step(self, name: str, counted: Iterable[str] = ()) -> Fraction:
        is_step = name != "Start" and self.milestones[name].type != "Aggregator"
        if self.milestones[name].optional and name not in counted:
            is_step = False
        return Fraction(str(self.milestones[name].weight)) if is_step else Fraction(0)

    def reach(
        self, observed: Mapping[str, Iterable[int]], length: int, always: Iterable[str] = ()
    ) -> dict[str, int]:
        """Walk through the events one after the other."""
        events = {name: set(numbers) for name, numbers in observed.items()}
        for name, milestone in self.milestones.items():
            if milestone.holds and events.get(name):
                events[name] = set(range(min(events[name]), length + 1))
        events |= {name: set(range(1, length + 1)) for name in always}
        times = {"Start": 0}
        passed = {"Start": 0}
        for event in range(length + 2):
            while self._reach_at(event, events, times, passed):
                pass
        return times

    def _reach_at(
        self, event: int, events: Mapping[str, set[int]], times: dict[str, int], passed: dict[str, int]
    ) -> bool:
        """Add the milestones that become reached or passed at an event; return whether there are any."""
        before = len(times) + len(passed)
        for name, dependencies in self.dependencies.items():
            passed_at = [passed[dependency] for dependency in dependencies if dependency in passed]
            is_missing = len(passed_at) < len(dependencies) if self.requires_all(name) else not passed_at
            if name in times or is_missing or not dependencies:
                continue
            satisfied = max(passed_at) if self.requires_all(name) else min(passed_at)
            if name == "End" or self.milestones[name].type == "Aggregator":
                times[name] = passed[name] = satisfied
                continue
            if self.milestones[name].optional:
                passed[name] = satisfied
            milestone = self.milestones[name]
            may_share = milestone.type == "NFC" and milestone.step is not None and milestone.holds
            if event in events.get(name, ()) and event >= satisfied + (not may_share):
                times[name] = event
                passed.setdefault(name, event)
        return len(times) + len(passed) > before

    def need(self, reached: Iterable[str], counted: Iterable[str] = ()) -> dict[str, Fraction]:
        done = set(reached)

        def apply_rule(name: str, need: Mapping[str, Fraction]) -> Fraction:
            return need[name] if name in done else self._apply_need(name, need, done, counted)

        start = {name: Fraction(0) if name in done else INFINITE for name in self.dependencies}
        return _find_least_fixpoint(start, apply_rule)

    def _apply_need(
        self, name: str, need: Mapping[str, Fraction], done: set[str], counted: Iterable[str] = ()
    ) -> Fraction:
        dependencies, step = self.dependencies[name], self.get_step(name, counted)
        if not self.requires_all(name):
            return step + min((need[dependency] for dependency in dependencies), default=INFINITE)
        missing = []
        for dependency in dependencies:
            is_skipped = self.milestones[dependency].optional and need[dependency] == 0
            if dependency not in done and not is_skipped:
                missing.append(need[dependency])
        return step + (max(missing) + len(missing) - 1 if missing else 0)

    def left(self, reached: Iterable[str]) -> dict[str, Fraction]:
        done = set(reached)
        need = self.need(done)

        def get_cost(name: str, dependent: str) -> Fraction:
            if dependent in done:
                return Fraction(0)
            if self.requires_all(dependent):
                return self._apply_need(dependent, need, done | {name})
            return self.get_step(dependent)

        def apply_rule(name: str, left: Mapping[str, Fraction]) -> Fraction:
            dependents = [other for other in self.dependencies if name in self.dependencies[other]]
            return min((get_cost(name, other) + left[other] for other in dependents), default=INFINITE)

        start = dict.fromkeys(self.dependencies, INFINITE) | {"End": Fraction(0)}
        return _find_least_fixpoint(start, apply_rule)

    def get_progress_rate(self, reached: Iterable[str]) -> Fraction:
        done = set(reached) | {"Start"}
        if "End" in done:
            return Fraction(1)
        depth, need, left = self.need({"Start"}, done), self.need(done), self.left(done)
        rates = [Fraction(0)]
        for name in self.dependencies:
            if max(depth[name], need[name], left[name]) < INFINITE / 2:
                rates.append((depth[name] - need[name]) / (depth[name] + left[name]))
        return max(rates)


def _find_least_fixpoint(
    values: dict[str, Fraction], rule: Callable[[str, Mapping[str, Fraction]], Fraction]
) -> dict[str, Fraction]:
    while lower := {name: new for name in values if (new := rule(name, values)) < values[name]}:
        values |= lower
    return values
