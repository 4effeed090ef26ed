"""Milestone files: the paper's YAML (Pre-Act, Appendix F), with our optional keys."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, model_validator

from arq_graph.agent.part import Part, Text
from arq_graph.agent.patterns import PatternText
from arq_graph.agent.yaml_file import parse_model, read_text
from arq_graph.milestones.findings import check_milestones, require_measurable
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Forbidden, Milestone, Reviewed

FILE_KIND = "milestone file"


class MilestoneFile(Part):
    """A milestone file; its JSON Schema describes the format to editors."""

    model_config = ConfigDict(title=FILE_KIND)

    generated_by: Text | None = None
    reviewed: Reviewed | None = None
    failed_if: PatternText | None = None
    grounded: Literal["strict"] | None = None
    forbidden: tuple[Forbidden, ...] = ()
    milestones: tuple[Milestone, ...]

    @model_validator(mode="before")
    @classmethod
    def _accept_list_of_milestones(cls, data: Any) -> Any:
        # The paper's files are a list of milestones and nothing else.
        return {"milestones": data} if isinstance(data, list) else data


def read_milestones(path: str | Path, *, check: bool = True) -> MilestoneGraph:
    """Read a milestone file: the paper's YAML (Appendix F), with the optional keys.

    Args:
        path: The file.
        check: Raise an error if nothing can be measured on the graph, and give each doubt about it as a Python
            warning. False: take the graph as it is; `check_milestones` returns errors and doubts as data.

    Raises:
        SpecError: The file can't be read, or nothing can be measured on the graph; file and line are named.
    """
    graph = parse_milestones(read_text(path, file_kind=FILE_KIND), file=str(path))
    if check:
        require_measurable(graph)
        for finding in check_milestones(graph).warnings:
            warnings.warn(f"{path}: {finding}", stacklevel=2)
    return graph


def parse_milestones(text: str, *, file: str | None = None) -> MilestoneGraph:
    """Parse the text of a milestone file; `check_milestones` tells what is wrong with the graph.

    `file` is the file it came from, for messages and for functions in modules beside it.

    Raises:
        SpecError: The text isn't YAML, or not a list of milestones; the line is named.
    """
    model = parse_model(text, MilestoneFile, file_kind=FILE_KIND, source=file or "<text>")
    fields = {name: getattr(model, name) for name in MilestoneFile.model_fields}
    return MilestoneGraph(**fields, file=file)


def dump_milestones(graph: MilestoneGraph) -> str:
    """Return the graph as the text of a milestone file; parsing it gives an equal graph.

    Optional keys are written only if they say something.
    """
    fields = {}
    for name in MilestoneFile.model_fields:
        if value := getattr(graph, name):
            fields[name] = value
    model = MilestoneFile.model_construct(**fields)
    data = model.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every text that our loader or YAML 1.1 could parse as something else."""


def _represent_text(dumper: Any, text: str) -> Any:
    is_plain = text[:1].isalpha() and text.lower() not in ("null", "true", "false")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else "'")


_Dumper.add_representer(str, _represent_text)
