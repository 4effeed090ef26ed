"""The answers that were prepared for an agent's guidelines, kept in a JSON file.

An answer belongs to the wording of a guideline, not to its id: it holds while condition and action are what they
were when it was given, wherever in the specification the guideline stands.
"""

from __future__ import annotations

import json
import os
import warnings
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeVar

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


class PreparedFile(BaseModel):
    """A file of answers by guideline id; one that does not exist yet holds none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    about: str = (
        "Written by arq_graph: what a model answered about each guideline, ahead of all conversations."
    )
    version: Literal[1] = 1
    guidelines: dict[str, PreparedAnswer]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file.

        Raises:
            SpecError: It is not a file of answers, or cannot be read.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return cls(guidelines={})
        except OSError as error:
            raise SpecError(f"the prepared answers cannot be read: {error}", file=str(path)) from error
        except ValidationError as error:
            first = error.errors()[0]
            raise SpecError(
                f"is not a file of prepared answers: {first['msg']} ({'.'.join(map(str, first['loc']))}); delete it"
                " and prepare the agent again",
                file=str(path),
            ) from None

    def write(self, path: Path) -> None:
        """Write the file; whoever reads it meanwhile sees the old one or the new one whole.

        Raises:
            SpecError: It cannot be written.
        """
        try:
            write_atomically(path, f"{self.model_dump_json(indent=2)}\n".encode())
        except OSError as error:
            raise SpecError(f"the prepared answers cannot be written: {error}", file=str(path)) from error

    def answer(self, guideline: Guideline) -> PreparedAnswer | None:
        """Return the answer about a guideline as it is worded now, if there is one."""
        wanted = wording(guideline)
        return next((answer for answer in self.guidelines.values() if answer.wording == wanted), None)


def prepared_path(file: Path) -> Path:
    """Where the answers for an agent's file are kept: `orders.prepared.json` beside `orders.yaml`."""
    return file.with_suffix(".prepared.json")


def with_prepared_answers(agent: A) -> A:
    """Return an agent that was read from a file, with the answers that were prepared beside it."""
    if agent.file is None or not (path := prepared_path(agent.file)).exists():
        return agent
    kept = PreparedFile.read(path)
    answers = {guideline.id: kept.answer(guideline) for guideline in agent.guidelines}
    if outdated := [id for id, answer in answers.items() if id in kept.guidelines and answer is None]:
        warnings.warn(
            f"{path}: what it says of {', '.join(outdated)} is about an earlier wording and is not used;"
            f" run `arq-graph prepare {agent.file}` to ask again",
            stacklevel=3,  # whoever called Agent.from_yaml
        )
    return agent.with_guidelines([filled(guideline, answers[guideline.id]) for guideline in agent.guidelines])


def filled(guideline: Guideline, answer: PreparedAnswer | None) -> Guideline:
    """Fill in what the designer left open; a condition that is a function stays with the code."""
    if answer is None:
        return guideline
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


def check_writable(path: Path) -> None:
    """Check that a file can be written, before a model is paid for what goes into it.

    Raises:
        SpecError: It cannot.
    """
    if not path.parent.is_dir():
        raise SpecError(f"there is no folder {path.parent} to keep the prepared answers in", file=str(path))
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise SpecError("the prepared answers cannot be written here; give another `path`", file=str(path))
