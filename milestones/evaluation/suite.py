"""Scenarios that agents are tried on together, in Python or as a YAML file.

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
  goal: expedite_shipping                # the milestone that serves what the user came for
  user:
    intents:
    - request: Where is my order?
      slots: {order_id: ORD-1002}
      accepts: [expedited shipping]
```
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import InstanceOf, PrivateAttr, ValidationInfo, model_validator

from arq_graph.agent.modules import load
from arq_graph.agent.parts import Part
from arq_graph.agent.spec import Agent
from arq_graph.agent.yaml_file import Document, read_model
from arq_graph.errors import SpecError
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.graph_file import read_yaml as read_milestones
from arq_graph.milestones.users.spec import Intents, Kind, Text, UserSpec


@dataclass(frozen=True)
class BrokenScenario:
    """A scenario of a file that cannot be used: its name, and what is wrong with it, with file and line."""

    name: str
    error: SpecError


@dataclass(frozen=True)
class Planned:
    """One conversation to be held: the arm's name, the scenario, its run from 1, and what all chance depends on."""

    arm: str
    scenario: Scenario
    run: int
    seed: int

    @property
    def id(self) -> str:
        """What tells it from every other one of its suite."""
        return f"{self.scenario.name} / {self.arm} / {self.run}"


class Suite(Part):
    """Scenarios, each with a name of its own.

    Args:
        scenarios: The scenarios.
        seed: What all chance depends on.
        name: What it is called.
        broken: Scenarios of its file that cannot be used; reports name them.

    Raises:
        SpecError: Two scenarios have one name, or there is none at all.
    """

    scenarios: tuple[InstanceOf[Scenario], ...]
    seed: int = 0
    name: str = "suite"
    broken: tuple[InstanceOf[BrokenScenario], ...] = ()

    @model_validator(mode="after")
    def _has_scenarios(self) -> Self:
        _require_names((*self.scenarios, *self.broken))
        return self

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], *, strict: bool = True) -> Suite:
        """Read a suite from a YAML file; files and modules that it names are looked for beside it.

        Args:
            path: The file.
            strict: Whether a scenario that cannot be used is an error; otherwise it is among `broken`. What is
                wrong with the file as such is an error always.

        Raises:
            SpecError: Something is wrong; file and line are named.
        """
        file = read_model(path, SuiteFile, what="suite file")
        scenarios: list[Scenario] = []
        broken: list[BrokenScenario] = []
        for index, entry in enumerate(file.scenarios):
            try:
                scenarios += file.made(index)
            except SpecError as error:
                if strict:
                    raise
                broken.append(BrokenScenario(entry.name, error))
        name = file.name or Path(path).stem
        return cls(scenarios=tuple(scenarios), seed=file.seed, name=name, broken=tuple(broken))

    def planned(self, arms: Sequence[str], runs: int) -> Iterator[Planned]:
        """Every conversation: the arms of one run side by side, so that a run that is stopped leaves pairs."""
        for run in range(1, runs + 1):
            for scenario in self.scenarios:
                seed = seed_of(self.seed, scenario.name, run)
                for arm in arms:
                    yield Planned(arm, scenario, run, seed)


def _require_names(scenarios: Sequence[Scenario | BrokenScenario | ScenarioEntry]) -> None:
    names = [one.name for one in scenarios]
    if not names:
        raise ValueError("has no scenarios; give one or more")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"has two scenarios called {twice!r}; give each its own name")


def seed_of(suite: int, scenario: str, run: int) -> int:
    """The seed of a conversation: the same on every machine, and for every arm."""
    text = f"{suite}\0{scenario}\0{run}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


class PartialUser(UserSpec):
    """Some of what there is to say about a user; the rest stands in `defaults`, or the other way round."""

    intents: Intents = ()


class Defaults(Part):
    """What holds for every scenario that does not say otherwise.

    Args:
        agent: The agent's YAML file.
        milestones: The milestone file.
        world: The class or function that makes the world of one conversation: "module:name".
        user: Who talks to the agent.
        kinds: Kinds of users: one scenario for each.
        limits: How far a conversation may go.
        use_case: What kind of conversation it is, as reports group them.
        task: What its runs are runs of.
        goal: The milestone that serves what the user came for.
    """

    agent: Text | None = None
    milestones: Text | None = None
    world: Text | None = None
    user: PartialUser = PartialUser()
    kinds: tuple[Kind, ...] = ()
    limits: Limits = Limits()
    use_case: Text | None = None
    task: Text | None = None
    goal: Text | None = None


class ScenarioEntry(Defaults):
    """A scenario of a file; its name is unique in the suite."""

    name: Text


class SuiteFile(Part):
    """A suite as a YAML file.

    Args:
        name: What it is called; the file's name unless given.
        seed: What all chance depends on.
        defaults: What holds for every scenario that does not say otherwise.
        scenarios: The scenarios.
    """

    name: Text | None = None
    seed: int = 0
    defaults: Defaults = Defaults()
    scenarios: tuple[ScenarioEntry, ...]

    _document: Document = PrivateAttr()
    _read: dict[str, Any] = PrivateAttr(default_factory=dict)  # several scenarios name one file

    @model_validator(mode="after")
    def _names_are_unique(self, info: ValidationInfo) -> Self:
        if info.context is not None:
            self._document = info.context
        _require_names(self.scenarios)
        return self

    def made(self, index: int) -> Iterator[Scenario]:
        """The scenario of an entry: one, or one for each kind of user; raises `SpecError` where it cannot be used."""
        entry = self.scenarios[index]
        fields, own = (part.model_dump(exclude_unset=True) for part in (self.defaults, entry))
        fields |= own | {key: fields.get(key, {}) | own.get(key, {}) for key in ("user", "limits")}
        user, kinds, task = fields["user"], fields.pop("kinds", ()), fields.pop("task", None)
        if not user.get("intents"):
            raise self._error(index, "user", "has a user without `intents`: add what the user wants")
        if "milestones" not in fields:
            raise self._error(index, "name", "has no `milestones`; add `milestones: FILE`")
        for key, read in (("agent", Agent.from_yaml), ("milestones", read_milestones)):
            if key in fields:
                fields[key] = self._file(index, key, fields[key], read)
        if "world" in fields:
            try:
                fields["world"] = load(fields["world"], self._document.folder)
            except SpecError as error:
                raise self._error(index, "world", f"has a `world` that {error}") from error.__cause__
        for kind in kinds or (None,):
            of_kind = f" ({kind})" if kind else ""
            named = {"name": f"{entry.name}{of_kind}", "task": f"{task}{of_kind}" if task else None}
            try:
                yield Scenario(**fields | named | {"user": user | ({"kind": kind} if kind else {})})
            except SpecError as error:
                raise error if error.file else self._error(index, "name", str(error)) from None

    def _file(self, index: int, key: str, name: str, read: Callable[[Path], Any]) -> Any:
        path = self._document.folder / name
        if not path.is_file():
            raise self._error(index, key, f"names {str(path)!r} as its `{key}`, and there is no such file")
        if name not in self._read:
            self._read[name] = read(path)
        return self._read[name]

    def _error(self, index: int, key: str, message: str) -> SpecError:
        entry = self.scenarios[index]
        place = ("scenarios", index, key) if key in entry.model_fields_set else ("defaults", key)
        file, line = self._document.source, self._document.line(place)
        return SpecError(f"scenario {entry.name!r} {message}", file=file, line=line)
