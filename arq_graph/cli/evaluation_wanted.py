"""What `arq-graph evaluate` and `simulate` are asked for, and whether it can be done at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arq_graph.cli.failures import note
from arq_graph.cli.settings import OFFLINE, ModelChoice
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.budget import Prices
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Suite


@dataclass(frozen=True)
class WantedEvaluation:
    """What is tried on what, how often, and where it goes.

    Args:
        suite: The file of scenarios.
        arms: The names of the arms.
        model: The model of the arms.
        runs: How often, from 1.
        concurrency: How many conversations at once, from 1.
        user_model: Who plays the users; None: agendas.
        judge: The judge's model; None: no judge.
        scenarios: Names of the scenarios; none: all.
        max_calls: The ceiling for model calls.
        max_cost: The ceiling for what they cost.
        prices: What tokens cost.
        reject: Whether calls that wait for an operator are rejected.
        results: Where conversations are kept.
        resume: Whether to go on with what is there.
        html: Where the page goes.
        json: Where the report goes.
    """

    suite: Path
    arms: tuple[str, ...]
    model: ModelChoice
    runs: int = 1
    concurrency: int = 8
    user_model: ModelChoice | None = None
    judge: ModelChoice | None = None
    scenarios: tuple[str, ...] = ()
    max_calls: int | None = None
    max_cost: float | None = None
    prices: Prices = field(default_factory=dict)
    reject: bool = False
    results: Path | None = None
    resume: bool = False
    html: Path | None = None
    json: Path | None = None

    @property
    def kept(self) -> Path:
        """Where conversations are kept."""
        return self.results or self.suite.with_name(f"{self.suite.stem}.results.jsonl")

    @property
    def depends_on(self) -> dict[str, str]:
        """What results depend on beside the suite."""
        return {
            "the model": _shown(self.model),
            "the user's model": _shown(self.user_model),
            "the judge": _shown(self.judge),
            "the operator": "reject" if self.reject else "approve",
        }


@dataclass(frozen=True)
class WantedConversation:
    """The one conversation that is watched.

    Args:
        suite: The file of scenarios.
        arm: The name of the arm.
        model: Its model.
        scenario: The scenario's name; None: the first.
        kind: The kind of its user; None: as it says.
        seed: What chance depends on; None: that of the first run.
        user_model: Who plays the user; None: an agenda.
        judge: The judge's model; None: no judge.
    """

    suite: Path
    arm: str
    model: ModelChoice
    scenario: str | None = None
    kind: str | None = None
    seed: int | None = None
    user_model: ModelChoice | None = None
    judge: ModelChoice | None = None


def require_files(wanted: WantedEvaluation) -> None:
    """Refuse, before anything runs, what could not be written in the end.

    Raises:
        InputError: An output's folder is missing, or two files are one.
    """
    outs = [out for out in (wanted.kept, wanted.json, wanted.html) if out is not None]
    for out in outs:
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise InputError(f"{out} cannot be written: its folder is missing, or it is a folder itself")
    files = [file.resolve() for file in (wanted.suite, *outs)]
    if len(set(files)) < len(files):
        raise InputError("the suite, the results, the page and the report must be four different files")


def chosen(suite: Suite, names: tuple[str, ...]) -> Suite:
    """The suite with the scenarios of these names alone; a name also stands for those of all its kinds.

    Raises:
        InputError: There is none of a name.
    """
    if not names:
        return suite
    wanted = [one for name in names for one in of_name(suite, name)]
    distinct = tuple(dict.fromkeys(one.name for one in wanted))
    return suite.replace(scenarios=tuple(suite.scenario(name) for name in distinct), broken=())


def of_name(suite: Suite, name: str) -> list[Scenario]:
    """The scenario of a name, or those of all its kinds.

    Raises:
        InputError: There is none, or it cannot be used.
    """
    found = [one for one in suite.scenarios if one.name in (name, f"{name} ({one.user.kind})")]
    if not found:
        for broken in suite.broken:
            if broken.name == name:
                raise broken.error
        suite.scenario(name)
    return found


def read_prices(text: str | None) -> dict[str, tuple[float, float]]:
    """The prices of `--prices`.

    Args:
        text: `MODEL=IN/OUT` for each model, with commas between them.

    Raises:
        InputError: It is written otherwise.
    """
    prices: dict[str, tuple[float, float]] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        model, equals, costs = part.strip().rpartition("=")
        try:
            read, written = (float(each) for each in costs.split("/"))
        except ValueError:
            equals = ""
        if not equals or not model:
            raise InputError(
                f"--prices: {part.strip()!r} must be written MODEL=IN/OUT, such as gpt-4o=2.5/10"
            )
        prices[model] = (read, written)
    return prices


def tell_choice(choice: ModelChoice, arms: Sequence[str]) -> None:
    """Say what should be known about the choice of the model for these arms."""
    if choice.notice:
        note(choice.notice)
    if choice.spec == OFFLINE and "create_agent" in arms:
        note("The offline model never calls a tool that is bound to it: the arm create_agent can only talk.")


def _shown(choice: ModelChoice | None) -> str:
    return "none" if choice is None else f"{choice.spec} at {choice.base_url}"
