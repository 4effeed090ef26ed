"""Writing files so that they are always complete, however the program ends."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from arq_graph.agent.regular_file import require_regular_file
from arq_graph.errors import InputError


def write_atomically(path: str | Path, text: str) -> None:
    """Write a text file; a process that reads it meanwhile sees either the old or the new file, complete.

    A link stays, and the file that it points to is written. An existing file keeps its mode. Lone surrogates become
    question marks.
    """
    content = text.encode(errors="replace")
    try:
        require_regular_file(path)
        _replace_file(Path(path).resolve(), content)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def _replace_file(target: Path, content: bytes) -> None:
    draft = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
    try:
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
