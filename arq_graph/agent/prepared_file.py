"""The answers that were prepared for an agent's guidelines, kept in a JSON file.

An answer belongs to the wording of a guideline, not to its id: it holds while condition and action are what they
were when it was given, wherever in the specification the guideline stands.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.errors import SpecError

if TYPE_CHECKING:
    from arq_graph.agent.parts import Guideline
    from arq_graph.agent.spec import Agent

A = TypeVar("A", bound="Agent")


class PreparedAnswer(BaseModel):
    """What was answered about one guideline.

    Args:
        wording: Digest of the condition and action that the answer is about.
        continuous: Whether the action is to be kept up rather than done once.
        continuous_rationale: Why.
        sensitive_to_tools: Whether a tool's result could make the condition true.
        sensitive_to_tools_rationale: Why.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    wording: str
    continuous: bool
    continuous_rationale: str = ""
    sensitive_to_tools: bool
    sensitive_to_tools_rationale: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    about: str = (
        "Written by arq_graph: what a model answered about each guideline, ahead of all conversations."
    )
    version: Literal[1] = 1
    guidelines: dict[str, PreparedAnswer]


class PreparedAnswers:
    """The answers of one file, by the wording of the guideline.

    Args:
        path: The file; one that does not exist yet holds no answers.

    Raises:
        SpecError: It is not a file of answers.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._by_id = _read(path)
        self._by_wording = {answer.wording: answer for answer in self._by_id.values()}

    def get(self, guideline: Guideline) -> PreparedAnswer | None:
        """Return the answer about a guideline as it is worded now, if there is one."""
        return self._by_wording.get(wording(guideline))

    def outdated(self, guidelines: Sequence[Guideline]) -> list[str]:
        """Ids of guidelines whose answer is about other words than theirs."""
        return [g.id for g in guidelines if g.id in self._by_id and self.get(g) is None]


def prepared_path(file: Path) -> Path:
    """Where the answers for an agent's file are kept: `orders.prepared.json` beside `orders.yaml`."""
    return file.with_suffix(".prepared.json")


def with_prepared_answers(agent: A) -> A:
    """Return an agent that was read from a file, with the answers that were prepared beside it."""
    if agent.file is None or not prepared_path(agent.file).exists():
        return agent
    answers = PreparedAnswers(prepared_path(agent.file))
    if outdated := answers.outdated(agent.guidelines):
        warnings.warn(
            f"{answers.path}: what it says of {', '.join(outdated)} is about an earlier wording and is not used;"
            f" run `arq-graph prepare {agent.file}` to ask again",
            stacklevel=3,  # whoever called Agent.from_yaml
        )
    return agent.with_guidelines(
        [filled(g, answer) if (answer := answers.get(g)) else g for g in agent.guidelines]
    )


def filled(guideline: Guideline, answer: PreparedAnswer) -> Guideline:
    """Fill in what the designer left open; a condition that is a function stays with the code."""
    continuous, sensitive = guideline.continuous, guideline.sensitive_to_tools
    if continuous is None and guideline.action is not None:
        continuous = answer.continuous
    if sensitive is None and not callable(guideline.condition):
        sensitive = guideline.condition is not None and answer.sensitive_to_tools
    return guideline.replace(continuous=continuous, sensitive_to_tools=sensitive)


def wording(guideline: Guideline) -> str:
    """Return a digest of what the guideline says."""
    condition = guideline.condition
    if callable(condition):
        condition = f"function {getattr(condition, '__qualname__', type(condition).__qualname__)}"
    return sha256(json.dumps([condition, guideline.action]).encode()).hexdigest()[:32]


def write_prepared(path: Path, answers: Mapping[str, PreparedAnswer]) -> None:
    """Write answers by guideline id; whoever reads the file meanwhile sees the old one or the new one whole.

    Raises:
        SpecError: The file cannot be written.
    """
    text = _File(guidelines=dict(answers)).model_dump_json(indent=2)
    try:
        write_atomically(path, f"{text}\n".encode())
    except OSError as error:
        raise SpecError(f"the prepared answers cannot be written: {error}", file=str(path)) from error


def check_writable(path: Path) -> None:
    """Check that a file can be written, before a model is paid for what goes into it.

    Raises:
        SpecError: It cannot.
    """
    if not path.parent.is_dir():
        raise SpecError(f"there is no folder {path.parent} to keep the prepared answers in", file=str(path))
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise SpecError("the prepared answers cannot be written here; give another `path`", file=str(path))


def _read(path: Path) -> dict[str, PreparedAnswer]:
    try:
        return _File.model_validate_json(path.read_bytes()).guidelines
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SpecError(f"the prepared answers cannot be read: {error}", file=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise SpecError(
            f"is not a file of prepared answers: {first['msg']}{f' ({place})' if place else ''}; delete it and"
            " prepare the agent again",
            file=str(path),
        ) from None
