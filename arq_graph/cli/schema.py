"""`arq-graph schema`: the JSON Schema of a kind of file."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer
from pydantic import BaseModel

from arq_graph.agent.spec import Agent
from arq_graph.milestones.evaluation.suite import SuiteFile
from arq_graph.milestones.graph_file import MilestoneFile

_MODELS: dict[str, type[BaseModel]] = {"agent": Agent, "milestones": MilestoneFile, "suite": SuiteFile}


def schema(
    kind: Annotated[
        Literal["agent", "milestones", "suite"], typer.Argument(help="Which kind of file.", show_choices=True)
    ],
) -> None:
    """Print the JSON Schema of a kind of file, for completion and checks in an editor."""
    typer.echo(json.dumps(_MODELS[kind].model_json_schema(), indent=2, ensure_ascii=False))
