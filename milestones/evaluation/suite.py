"""Scenarios that agents are tried on together, and the conversations that come of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.reports.records import GraphRecord, graph_record


@dataclass(frozen=True)
class BrokenScenario:
    """A scenario of a file that cannot be used.

    Args:
        name: Its name, or its place in the file.
        error: What is wrong with it, with file and line.
    """

    name: str
    error: SpecError


@dataclass(frozen=True)
class Planned:
    """One conversation to be held.

    Args:
        arm: The name of the app.
        scenario: What it is about.
        run: Which of the scenario's runs, from 1.
        seed: What the user's and the world's chance depend on; the same for every arm.
    """

    arm: str
    scenario: Scenario
    run: int
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What tells it from every other one of its suite."""
        return self.arm, self.scenario.name, self.run

    @property
    def id(self) -> str:
        """The same as one word for people."""
        return f"{self.scenario.name} / {self.arm} / {self.run}"


@dataclass(frozen=True)
class Suite:
    """Scenarios, each under a name of its own.

    Args:
        scenarios: The scenarios.
        seed: What all chance depends on.
        name: What it is called.
        broken: Scenarios of its file that cannot be used; reports name them.
        left_out: Names of further scenarios of its file, which are not to be run now.

    Raises:
        SpecError: Two scenarios have one name, or there is none at all.
    """

    scenarios: Sequence[Scenario]
    seed: int = 0
    name: str = "suite"
    broken: Sequence[BrokenScenario] = ()
    left_out: Sequence[str] = ()

    def __post_init__(self) -> None:
        taken: set[str] = set()
        for scenario in self.scenarios:
            if scenario.name in taken:
                raise SpecError(
                    f"two scenarios are called {scenario.name!r}; give each its own name",
                    file=scenario.file,
                    line=scenario.line,
                )
            taken.add(scenario.name)
        if not self.scenarios and not self.broken:
            raise SpecError("a suite without scenarios; give one or more")

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str], *, strict: bool = True) -> Suite:
        """Read a suite from a YAML file; see `suite_file`.

        Args:
            path: The file.
            strict: Whether a scenario that cannot be used is an error; otherwise it is among `broken`. What is
                wrong with the file as a whole is an error always.

        Raises:
            SpecError: Something is wrong; file and line are named.
        """
        from arq_graph.milestones.evaluation.suite_file import read_suite

        return read_suite(path, strict=strict)

    def names(self, scenario: str) -> bool:
        """Whether one of its scenarios has that name, those included that are broken or left out."""
        if scenario in self.left_out or any(scenario == one.name for one in self.scenarios):
            return True
        return any(scenario == one.name or scenario.startswith(f"{one.name} (") for one in self.broken)

    def scenario(self, name: str) -> Scenario:
        """The scenario of that name.

        Raises:
            InputError: There is none.
        """
        for one in self.scenarios:
            if one.name == name:
                return one
        known = ", ".join(repr(one.name) for one in self.scenarios[:8])
        raise InputError(f"there is no scenario {name!r}; there are {known}")

    def planned(self, arms: Sequence[str], runs: int) -> Iterator[Planned]:
        """Every conversation: the arms of one run side by side, so that a run that is stopped leaves pairs."""
        for run in range(1, runs + 1):
            for scenario in self.scenarios:
                seed = seed_of(self.seed, scenario.name, run)
                for arm in arms:
                    yield Planned(arm, scenario, run, seed)

    def graphs(self) -> tuple[Mapping[str, str], Mapping[str, GraphRecord]]:
        """By what name reports have the graph of each scenario, and the graphs by that name."""
        names: dict[str, str] = {}
        records: dict[str, GraphRecord] = {}
        for scenario in self.scenarios:
            record = graph_record(scenario.milestones)
            wanted = _name_of(scenario.milestones) or scenario.name
            name, again = wanted, 1
            while records.get(name, record) != record:
                again += 1
                name = f"{wanted} ({again})"
            names[scenario.name] = name
            records[name] = record
        return names, records


def seed_of(suite: int, scenario: str, run: int) -> int:
    """The seed of a conversation: the same on every machine, and for every arm."""
    text = f"{suite}\0{scenario}\0{run}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


def _name_of(graph: MilestoneGraph) -> str:
    stem = os.path.splitext(os.path.basename(graph.file))[0] if graph.file else ""  # noqa: PTH119, PTH122
    return str(graph.name) or stem
