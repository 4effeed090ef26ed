"""A suite written as a YAML file; a mistake in it is told with its line and what was expected.

```yaml
name: Order desk
seed: 7
defaults:                                # for every scenario that does not say otherwise
  agent: agent.yaml                      # beside this file
  milestones: milestones.yaml
  world: tools:Shop                      # a class in tools.py beside this file, or in an installed module
  limits: {turns: 12, calls: 200, seconds: 300}
  use_case: orders
  kinds: [helpful, perturbed, unhelpful] # one scenario for each kind of user
  user: {persona: impatient}
scenarios:
- name: late boots
  goal: expedite_shipping                # the milestone that serves the user's goal
  user:
    intents:
    - request: Where is my order?
      slots: {order_id: ORD-1002}
      accepts: [expedited shipping]
```
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from arq_graph.agent import entries
from arq_graph.agent.entries import Misfit, Reader, described, suggestion
from arq_graph.agent.modules import load
from arq_graph.agent.origin import Origin
from arq_graph.agent.spec import Agent
from arq_graph.agent.yaml_values import read_yaml
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.suite import BrokenScenario, Suite
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import read_yaml as read_milestones
from arq_graph.milestones.users.spec import Kind, UserSpec

_SCENARIO: dict[str, Reader] = {
    "agent": entries.text,
    "milestones": entries.text,
    "world": entries.text,
    "user": lambda value: value,
    "kinds": entries.listing(entries.one_of(*get_args(Kind)), "kinds of users"),
    "limits": lambda value: value,
    "use_case": entries.text,
    "task": entries.text,
    "goal": entries.text,
}
_NAMED: dict[str, Reader] = {"name": entries.text, **_SCENARIO}
_SUITE: dict[str, Reader] = {
    "name": entries.text,
    "seed": entries.whole_number,
    "defaults": lambda value: value,
    "scenarios": entries.listing(lambda value: value, "scenarios"),
}
_LIMITS: dict[str, Reader] = {
    "turns": entries.whole_number,
    "calls": entries.whole_number,
    "seconds": lambda value: value,
}

Place = tuple[str | int, ...]


def read_suite(path: str | os.PathLike[str], *, strict: bool = True) -> Suite:
    """Read a suite from a YAML file; files that it names are looked for beside it.

    Args:
        path: The file.
        strict: Whether a scenario that cannot be used is an error; otherwise it is among the suite's `broken`.

    Raises:
        SpecError: Something is wrong; file and line are named.
    """
    values, origin = read_yaml(os.fspath(path), needs="a suite needs at least `scenarios:`, a list of them")
    try:
        fields = _suite(values)
        defaults = _read(fields.get("defaults", {}), _SCENARIO, "`defaults`", "defaults")
    except Misfit as misfit:
        raise origin.error(misfit) from misfit.__cause__
    reading = _Reading(origin, defaults)
    scenarios: list[Scenario] = []
    broken: list[BrokenScenario] = []
    for index, value in enumerate(fields["scenarios"]):
        name = value.get("name") if isinstance(value, Mapping) else None
        try:
            for scenario in reading.scenarios(index, value):
                _require_new(scenario, scenarios)
                scenarios.append(scenario)
        except (SpecError, InputError) as error:
            if strict:
                raise
            wrong = error if isinstance(error, SpecError) else SpecError(str(error))
            broken.append(BrokenScenario(str(name or f"scenario {index + 1}"), wrong))
    named = fields.get("name") or Path(path).stem
    return Suite(tuple(scenarios), fields.get("seed", 0), named, tuple(broken))


def _suite(values: object) -> dict[str, Any]:
    fields = _read(values, _SUITE, "the suite")
    if "scenarios" not in fields:
        raise Misfit("the suite has no `scenarios`; add a list of them")
    if not fields["scenarios"]:
        raise Misfit("the suite's `scenarios` are none; add one or more", "scenarios")
    return fields


def _require_new(scenario: Scenario, before: list[Scenario]) -> None:
    for other in before:
        if other.name == scenario.name:
            raise SpecError(
                f"a second scenario is called {scenario.name!r} (the first is in line {other.line}); give each its "
                "own name",
                file=scenario.file,
                line=scenario.line,
            )


@dataclass
class _Reading:
    """One walk over the scenarios; what several of them name is read once."""

    origin: Origin
    defaults: Mapping[str, Any]
    _agents: dict[Path, Agent] = field(default_factory=dict)
    _graphs: dict[Path, MilestoneGraph] = field(default_factory=dict)

    def scenarios(self, index: int, value: object) -> Iterator[Scenario]:
        """The scenario of an entry: one, or one for each kind of user."""
        place: Place = ("scenarios", index)
        try:
            yield from self._made(self._own(index, value, place), place)
        except Misfit as misfit:
            raise self.origin.error(misfit) from misfit.__cause__

    def _own(self, index: int, value: object, place: Place) -> dict[str, Any]:
        own = _read(value, _NAMED, f"scenario {index + 1}", *place)
        for required in ("name", "user", "milestones"):
            if required not in own and required not in self.defaults:
                raise Misfit(f"scenario {index + 1} has no `{required}`; add `{required}: …`", *place)
        return own

    def _made(self, own: Mapping[str, Any], place: Place) -> Iterator[Scenario]:
        fields = {**self.defaults, **own}
        user = self._user(own, place)
        kinds = fields.get("kinds")
        if kinds and "kind" in user:
            raise Misfit(
                f"scenario {own['name']!r} has `kinds` and a user of one `kind`: give one of the two", *place
            )
        agent = self._agent(fields, own, place)
        graph = self._graph(fields, own, place)
        limits = self._limits(own, place)
        world = self._world(fields, own, place)
        line = self._line(*place, "name")
        for kind in kinds or (None,):
            try:
                spec = UserSpec.model_validate({**user, "kind": kind} if kind else user)
            except ValidationError as error:
                wrong = "; ".join(
                    f"`{'.'.join(map(str, each['loc']))}`: {each['msg']}" for each in error.errors()
                )
                raise Misfit(f"the user: {wrong}", *place, "user") from error
            name, task = own["name"], fields.get("task")
            yield Scenario(
                name if kind is None else f"{name} ({kind})",
                spec,
                graph,
                agent,
                world,
                limits,
                fields.get("use_case"),
                task if task is None or kind is None else f"{task} ({kind})",
                fields.get("goal"),
                file=self.origin.file,
                line=line,
            )

    def _user(self, own: Mapping[str, Any], place: Place) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for held, where in ((self.defaults.get("user"), ("defaults",)), (own.get("user"), place)):
            if held is None:
                continue
            if not isinstance(held, Mapping):
                raise Misfit(
                    f"`user` must be a mapping (`intents: …`), but is {described(held)}", *where, "user"
                )
            merged |= held
        return merged

    def _agent(self, fields: Mapping[str, Any], own: Mapping[str, Any], place: Place) -> Agent | None:
        if "agent" not in fields:
            return None
        path = self._path(fields["agent"])
        if path not in self._agents:
            self._agents[path] = self._found(path, "agent", own, place, Agent.from_yaml)
        return self._agents[path]

    def _graph(self, fields: Mapping[str, Any], own: Mapping[str, Any], place: Place) -> MilestoneGraph:
        path = self._path(fields["milestones"])
        if path not in self._graphs:
            self._graphs[path] = self._found(path, "milestones", own, place, read_milestones)
        return self._graphs[path]

    def _found(self, path: Path, key: str, own: Mapping[str, Any], place: Place, read: Any) -> Any:
        if not path.is_file():
            where = (*place, key) if key in own else ("defaults", key)
            raise Misfit(f"`{key}` names {str(path)!r}, and there is no such file", *where)
        return read(path)

    def _world(self, fields: Mapping[str, Any], own: Mapping[str, Any], place: Place) -> Any:
        if "world" not in fields:
            return None
        where = (*place, "world") if "world" in own else ("defaults", "world")
        try:
            found = load(fields["world"], self.origin.folder)
        except SpecError as error:
            raise Misfit(f"`world` {error}", *where) from error.__cause__
        if not callable(found):
            raise Misfit(
                f"`world` names {fields['world']!r}, which is {described(found)}; name a class, or a function that "
                "makes the world of one conversation",
                *where,
            )
        return found

    def _limits(self, own: Mapping[str, Any], place: Place) -> Limits:
        merged: dict[str, Any] = {}
        for held, where in (
            (self.defaults.get("limits", {}), ("defaults",)),
            (own.get("limits", {}), place),
        ):
            merged |= _read(held, _LIMITS, "`limits`", *where, "limits")
        try:
            return Limits(**merged)
        except InputError as error:
            where = place if "limits" in own else ("defaults",)
            raise Misfit(str(error), *where, "limits") from None

    def _path(self, named: str) -> Path:
        return Path(self.origin.file).parent / named

    def _line(self, *place: str | int) -> int | None:
        return self.origin.lines.get(place) or self.origin.lines.get(place[:-1])


def _read(value: object, readers: Mapping[str, Reader], owner: str, *place: str | int) -> dict[str, Any]:
    """Read a mapping that has no unknown key, each value by its reader."""
    if not isinstance(value, Mapping):
        raise Misfit(f"{owner} must be a mapping of keys to values, but is {described(value)}", *place)
    for name in value:
        if name not in readers:
            known = ", ".join(readers)
            raise Misfit(
                f"{owner} has an unknown key `{name}`{suggestion(name, readers)} (the keys are {known})",
                *(*place, name),
            )
    return entries.settle(owner, readers, value, *place)
