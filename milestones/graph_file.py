"""Milestone files: the paper's YAML (Pre-Act, Appendix F), with our optional keys."""

from __future__ import annotations

from typing import Any, Literal

import yaml
from pydantic import ConfigDict, model_validator

from arq_graph.agent.parts import Part, Text
from arq_graph.agent.yaml_file import parse_model
from arq_graph.milestones.milestone import Forbidden, Milestone, Reviewed
from arq_graph.milestones.patterns import PatternText

WHAT = "milestone file"


class MilestoneFile(Part):
    """A milestone file; its JSON Schema describes the format to editors."""

    model_config = ConfigDict(title=WHAT)

    generated_by: Text | None = None
    reviewed: Reviewed | None = None
    failed_if: PatternText | None = None
    grounded: Literal["strict"] | None = None
    forbidden: tuple[Forbidden, ...] = ()
    milestones: tuple[Milestone, ...]

    @model_validator(mode="before")
    @classmethod
    def _list(cls, written: Any) -> Any:
        """A file that is only a list, as the paper's are, lists the milestones."""
        return {"milestones": written} if isinstance(written, list) else written


def parsed(text: str, source: str) -> dict[str, Any]:
    """What the text of a milestone file says, as it stands."""
    read = parse_model(text, MilestoneFile, what=WHAT, source=source)
    return {name: getattr(read, name) for name in MilestoneFile.model_fields}


def written(graph: object) -> str:
    """The text of a milestone file; the optional keys stand only where they say something."""
    fields = {name: value for name in MilestoneFile.model_fields if (value := getattr(graph, name))}
    data = MilestoneFile.model_construct(**fields).model_dump(
        mode="json", exclude_unset=True, exclude_none=True
    )
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Quotes every text that our loader or YAML 1.1 could read as something else."""


def _text(dumper: Any, text: str) -> Any:
    is_plain = text[:1].isalpha() and text.lower() not in ("null", "true", "false")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else "'")


_Dumper.add_representer(str, _text)
