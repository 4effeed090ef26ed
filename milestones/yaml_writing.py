"""Milestone graphs written as milestone files; the optional keys stand only where they say something."""

from __future__ import annotations

from typing import Any

import yaml

from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Forbidden, Function, Milestone, Said
from arq_graph.milestones.review import Review

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write_yaml(graph: MilestoneGraph) -> str:
    """The text of a milestone file; reading it gives an equal graph."""
    written: dict[str, Any] = {}
    if graph.review is not None:
        written["review"] = _review_as_written(graph.review)
    if graph.failed_if is not None:
        written["failed_if"] = graph.failed_if.text
    if graph.grounded is not None:
        written["grounded"] = graph.grounded
    if graph.forbidden:
        written["forbidden"] = [_forbidden_as_written(rule) for rule in graph.forbidden]
    written["milestones"] = [_as_written(milestone) for milestone in graph.milestones]
    text: str = yaml.dump(written, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=110)
    return text


def _review_as_written(review: Review) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if review.generated_by is not None:
        written["generated_by"] = review.generated_by
    written["reviewed"] = review.reviewed
    if review.entries:
        written["entries"] = [
            {"milestone": entry.milestone, "what": entry.what, "by": entry.by, "date": entry.date}
            for entry in review.entries
        ]
    return written


def _as_written(milestone: Milestone) -> dict[str, Any]:
    written: dict[str, Any] = {"name": milestone.name, "type": milestone.type}
    if milestone.description:
        written["description"] = milestone.description
    if milestone.tool is not None:
        written["tool"] = milestone.tool
    if milestone.arguments:
        written["arguments"] = {name: rule.as_written() for name, rule in milestone.arguments.items()}
    if milestone.check is not None:
        check = milestone.check
        written["check"] = check.name if isinstance(check, Function) else _said_as_written(check)
    if milestone.holds:
        written["holds"] = True
    if milestone.requires != "any":
        written["requires"] = milestone.requires
    if milestone.weight != 1:
        written["weight"] = milestone.weight
    written["dependencies"] = list(milestone.dependencies)
    return written


def _forbidden_as_written(rule: Forbidden) -> dict[str, Any]:
    if isinstance(rule.event, Said):
        return _said_as_written(rule.event)
    written: dict[str, Any] = {"tool": rule.event.tool}
    if rule.event.arguments:
        written["arguments"] = {name: rule.as_written() for name, rule in rule.event.arguments.items()}
    return written


def _said_as_written(said: Said) -> dict[str, Any]:
    voice = {"said_by": said.said_by} if said.said_by else {}
    return {**voice, "pattern": said.pattern.text}
