"""An experiment on one suite: the arms in its conversations and on its gold turns, and the tables of both."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.evaluation.arms import Arm, Arms
from arq_graph.milestones.evaluation.runner import aevaluate
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Planned, Suite, read_shard
from arq_graph.milestones.experiments.tables import Experiment
from arq_graph.milestones.turn_level.evaluation import aevaluate_turns
from arq_graph.milestones.turn_level.metrics import StepOutcome, turn_metrics
from arq_graph.models.resolve import model_name
from arq_graph.reasoning.sections import clean

SUITES = Path(__file__).parent.parent / "suites"
"""The suites that come with the library, each in a folder of its own."""


_USUAL_ARMS = {"guidelines": "arq,cot,direct", "use_cases": "react,pre-act"} | dict.fromkeys(
    ("household", "shop", "booking"), "react,respact"
)


def suite_file(name: str | Path) -> Path:
    """The file of a suite: a shipped one by its name, or the path itself.

    Raises:
        InputError: There is neither.
    """
    shipped = {each.parent.name.replace("_", "-"): each for each in sorted(SUITES.glob("*/suite.yaml"))}
    if (found := shipped.get(str(name))) is not None:
        return found
    if not Path(name).is_file():
        near = suggestion(str(name), shipped)
        raise InputError(
            f"there is no suite {str(name)!r}: give a suite's file, or one of {', '.join(shipped)}{near}"
        )
    return Path(name)


def usual_arms(file: Path) -> str:
    """The arms that the paper compares on a shipped suite; on another, the agent as it ships."""
    return _USUAL_ARMS.get(file.parent.name, "guided") if file.is_relative_to(SUITES) else "guided"


def file_name(name: str) -> str:
    """The name of a suite or an arm as a part of a file's name."""
    return re.sub(r"[^\w+.-]+", "-", name).casefold()


async def aexperiment(
    file: Path,
    suite: Suite,
    arms: Mapping[str, Arm],
    *,
    results: Path,
    ablated: Mapping[str, str] | None = None,
    **settings: Any,
) -> Experiment:
    """Try arms on a suite: its conversations by `aevaluate`, and its gold turns by `aevaluate_turns`.

    Gold conversations stand in the folder `gold` beside the suite, in a file named as the agent's that they are of.
    Under a ceiling they are left out; of shards, the first takes them all.

    Args:
        file: The suite's file.
        suite: Its scenarios, or those of them that are to be held.
        arms: The arms, by name.
        results: Where conversations are kept; turns are kept beside it.
        ablated: By arm that leaves queries out, the step that they are left out of.
        **settings: Those of `aevaluate`.

    Raises:
        InputError: As `aevaluate` raises.
    """
    report = await aevaluate(suite, arms, results=results, record=True, **settings)
    is_left_out = (
        any(map(settings.get, ("max_calls", "max_cost"))) or read_shard(settings.get("shard", "1/1"))[0] > 1
    )
    golden = {} if is_left_out else _golden(file, suite)
    model = settings.get("model")
    known = Arms(arms, model)
    asked = settings.get("depends_on", {}).get("the agent's model") or model_name(model or "none")
    turns = {}
    for arm in known.names if golden else ():
        outcomes: list[StepOutcome] = []
        for gold, scenario in golden.items():
            app = known.make(Planned(arm, scenario, 1, suite.seed)).app
            name = f"{suite.name}, {gold.stem}, {arm}"
            kept = results.with_name(f"{file_name(name)}.turns.jsonl")
            of = {"the agent": fingerprint(scenario.agent), "the arm": arm, "the agent's model": asked}
            many = settings.get("concurrency", 8)
            found = await aevaluate_turns(
                app, gold, results=kept, depends_on=of, record=name, concurrency=many
            )
            outcomes += found.outcomes
        turns[arm] = turn_metrics(outcomes)
    return Experiment(
        suite=file.parent.name if file.is_relative_to(SUITES) and file.name == "suite.yaml" else suite.name,
        report=report,
        turns=turns,
        ablated=ablated or {},
    )


def _golden(file: Path, suite: Suite) -> dict[Path, Scenario]:
    """The files of gold conversations, each with a scenario of the agent that they are of."""
    by_agent = {one.agent.file.stem: one for one in suite.scenarios if one.agent and one.agent.file}
    golden = sorted(file.parent.glob("gold/*.jsonl"))
    # A recorded conversation holds no record of a yes, so no call could ever be agreed to.
    return {
        gold: one.replace(agent=one.agent.replace(confirm={}))
        for gold in golden
        if (one := by_agent.get(gold.stem)) and one.agent
    }


def write_experiment(path: Path, experiment: Experiment) -> None:
    """Write an experiment as JSON; the file is there whole or as it was before."""
    held = experiment.model_dump(mode="json", by_alias=True)
    held["tables"] = [table.model_dump(mode="json") for table in experiment.tables]
    write_atomically(path, clean(json.dumps(held, ensure_ascii=False, indent=1)) + "\n")
