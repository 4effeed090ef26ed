"""Milestone files: the paper's YAML (Pre-Act, Appendix F), with our optional keys."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict

from arq_graph.agent.yaml_file import parse_model, read_text
from arq_graph.errors import SpecError
from arq_graph.milestones.findings import require_sound
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Forbidden, Milestone, Name, Reviewed
from arq_graph.milestones.patterns import PatternText

LARGEST_FILE = 64_000_000
WHAT = "milestone file"


class MilestoneFile(BaseModel):
    """A milestone file; its JSON Schema describes the format to editors."""

    model_config = ConfigDict(frozen=True, extra="forbid", title=WHAT)

    generated_by: Name | None = None
    reviewed: Reviewed | None = None
    failed_if: PatternText | None = None
    grounded: Literal["strict"] | None = None
    forbidden: Annotated[tuple[Forbidden, ...], BeforeValidator(lambda rules: rules or ())] = ()
    milestones: tuple[Milestone, ...]


def load_graph(path: Path) -> MilestoneGraph:
    """Read a milestone file that can be measured on; what is doubtful becomes a warning of Python's."""
    graph = read_yaml(path)
    require_sound(graph)
    for finding in graph.check().warnings:
        warnings.warn(f"{path}: {finding}", stacklevel=3)
    return graph


def read_yaml(path: Path) -> MilestoneGraph:
    """Read a milestone file as it stands; `check()` on the graph says what is wrong with it."""
    return parse_yaml(read_text(path, what=WHAT, max_bytes=LARGEST_FILE), file=str(path))


def parse_yaml(text: str, *, file: str | None = None) -> MilestoneGraph:
    """Read the text of a milestone file as it stands; see `read_yaml`."""
    try:
        read = _parsed(text, file)
    except SpecError:
        # Published files have descriptions with colons and quotes in them, unquoted.
        quoted = _with_quoted_descriptions(text)
        if quoted == text:
            raise
        read = _parsed(quoted, file)
    return MilestoneGraph(**{name: getattr(read, name) for name in MilestoneFile.model_fields}, file=file)


def written(graph: MilestoneGraph) -> str:
    """The text of a milestone file; the optional keys stand only where they say something."""
    fields = {name: getattr(graph, name) for name in MilestoneFile.model_fields}
    data = MilestoneFile.model_construct(**fields).model_dump(mode="json", exclude_defaults=True)
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text


def _parsed(text: str, file: str | None) -> MilestoneFile:
    source = file or "<text>"
    return parse_model(
        text, MilestoneFile, what=WHAT, source=source, max_bytes=LARGEST_FILE, list_as="milestones"
    )


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Puts every text in quotes that could be read as something else, here or by YAML 1.1."""


def _text(dumper: Any, text: str) -> Any:
    is_plain = text[:1].isalpha() and text.lower() not in ("null", "true", "false")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else "'")


_Dumper.add_representer(str, _text)

_DESCRIPTION = re.compile(r"^(?P<indent> *(?:- +)?)description:[ \t]+(?P<text>\S.*)$")
_IS_QUOTED = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[|>][-+0-9]*)\s*(?:#.*)?""")


def _with_quoted_descriptions(text: str) -> str:
    """The same text, line for line, with every description in quotes that stood without."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        found = _DESCRIPTION.match(lines[at])
        if not found or _IS_QUOTED.fullmatch(found["text"]):
            at += 1
            continue
        indent = len(found["indent"])
        last = at
        while last + 1 < len(lines) and _goes_on(lines[last + 1], indent):
            last += 1
        head = found["indent"] + "description: "
        lines[at] = head + "'" + lines[at][found.start("text") :].rstrip().replace("'", "''")
        for inner in range(at + 1, last + 1):
            lines[inner] = lines[inner].rstrip().replace("'", "''")
        lines[last] += "'"
        at = last + 1
    return "\n".join(lines)


def _goes_on(line: str, indent: int) -> bool:
    # Words that stand deeper than the key belong to it; a blank line may stand between them only in quotes.
    return bool(line.strip()) and len(line) - len(line.lstrip(" ")) > indent
