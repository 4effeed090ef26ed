"""Milestone files on disk: written whole or not at all, never over somebody else's changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from arq_graph.agent.whole_file import replace_whole
from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.yaml_file import parse_yaml, read_yaml


class NotSaved(InputError):
    """A file could not be written; what is in it is as it was."""


def write_whole(path: Path, text: str) -> None:
    """Write a file; whoever reads it meanwhile sees the old one or the new one whole.

    Raises:
        NotSaved: It cannot be written.
    """
    path = path.resolve()
    try:
        replace_whole(path, text.encode())
    except OSError as error:
        raise NotSaved(f"{path} cannot be written: {error.strerror or error}") from error


def check_new(path: Path, *, force: bool) -> None:
    """Check that a file can be made, before a model is paid for what goes into it.

    Args:
        path: The file.
        force: Whether one that is there may be replaced.

    Raises:
        InputError: It cannot, or it is there already.
    """
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: name a file in a folder that is there")
    if path.exists() and not force:
        raise InputError(f"{path} is there already; --force replaces it, or name another file")


class MilestoneFile:
    """A milestone file that is changed step by step.

    The first change keeps the file as it was in a copy beside it, as its comments and its layout are lost.

    Args:
        path: The file.

    Raises:
        SpecError: It cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.graph: MilestoneGraph = read_yaml(path)
        self.copy: Path | None = None
        self._content = path.read_bytes()

    def save(self, graph: MilestoneGraph) -> MilestoneGraph:
        """Write a graph to the file.

        Returns:
            The graph as the file now has it, with its lines.

        Raises:
            NotSaved: The file was changed by somebody else meanwhile, or cannot be written.
        """
        text = graph.to_yaml()
        try:
            unchanged = self.path.read_bytes() == self._content
        except OSError:
            unchanged = False
        if not unchanged:
            raise NotSaved(
                f"{self.path} was changed by somebody else meanwhile; start again to go on from there"
            )
        if self.copy is None and self._content != self.graph.to_yaml().encode():
            self.copy = self._kept()
        write_whole(self.path, text)
        self._content = text.encode()
        self.graph = parse_yaml(text, file=str(self.path))
        return self.graph

    def _kept(self) -> Path:
        copies = (
            self.path.with_name(f"{self.path.name}.bak{number}") for number in ("", *map(str, range(2, 1000)))
        )
        copy = next(each for each in copies if not each.exists())
        try:
            shutil.copy2(self.path, copy)
        except OSError as error:
            raise NotSaved(f"a copy of {self.path} cannot be kept: {error.strerror or error}") from error
        return copy
