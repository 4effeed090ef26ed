"""Milestone files on disk: written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.errors import InputError


class NotSaved(InputError):
    """A file could not be written; what is in it is as it was."""


def write_whole(path: Path, text: str) -> None:
    """Write a file; whoever reads it meanwhile sees the old one or the new one whole.

    Raises:
        NotSaved: It cannot be written.
    """
    path = path.resolve()
    try:
        write_atomically(path, text.encode())
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
