"""Suites of scenarios, in Python or from a YAML file, and the conversations that an evaluation plans from them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, InstanceOf

from arq_graph.agent.part import Part
from arq_graph.agent.yaml_file import read_model
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite_file import SuiteFile, require_unique_names

PlanKey = tuple[str, str, int, int]
"""A planned conversation without its scenario: arm, scenario's name, run and seed."""


@dataclass(frozen=True)
class PlannedConversation:
    """A conversation that an evaluation plans.

    Args:
        arm: The name of the arm.
        scenario: The scenario.
        run: The number of the run, from 1.
        seed: The seed of all that is random in it.
    """

    arm: str
    scenario: Scenario
    run: int
    seed: int

    @property
    def id(self) -> str:
        """Its id, unique in its suite."""
        return f"{self.scenario.name} / {self.arm} / {self.run}"

    @property
    def key(self) -> PlanKey:
        """The conversation as it is sent to a worker."""
        return self.arm, self.scenario.name, self.run, self.seed


class Suite(Part):
    """Scenarios, each with a name of its own.

    Args:
        scenarios: The scenarios, 1 or more.
        seed: The seed of all that is random in their conversations.
        name: The name of the suite.

    Raises:
        SpecError: Two scenarios have the same name, or there is none.
    """

    scenarios: Annotated[
        tuple[InstanceOf[Scenario], ...], Field(min_length=1), AfterValidator(require_unique_names)
    ]
    seed: int = 0
    name: str = "suite"

    def __repr_args__(self) -> Iterator[tuple[str, int | str]]:
        yield "name", self.name
        yield "scenarios", len(self.scenarios)

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Suite:
        """Read a suite from a YAML file; the files and modules that it names are searched for beside it.

        Raises:
            SpecError: The file isn't valid; the message names every mistake with its file and line.
        """
        file = read_model(path, SuiteFile, file_kind="suite file")
        return cls(scenarios=file.all_scenarios, seed=file.seed, name=file.name or Path(path).stem)

    def plan_conversations(self, arms: Sequence[str], runs: int) -> Iterator[PlannedConversation]:
        """Yield every conversation. Arms vary fastest, so that a stopped run still has pairs to compare.

        Args:
            arms: The names of the arms.
            runs: The number of conversations of each scenario with each arm, 1 or more.
        """
        for run, scenario in product(range(1, runs + 1), self.scenarios):
            seed = derive_seed(self.seed, scenario.name, run)
            for arm in arms:
                yield PlannedConversation(arm, scenario, run, seed)


def derive_seed(suite_seed: int, scenario_name: str, run: int) -> int:
    """Return the seed of a conversation, which is the same on every machine and for every arm."""
    text = f"{suite_seed}\0{scenario_name}\0{run}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")
