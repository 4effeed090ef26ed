"""A JSON Lines file to which a run appends one line at a time, and which it can go on with after it was killed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from arq_graph.errors import InputError


class KeptLines:
    """A file of lines, each appended by one write: a kill leaves at most the last line cut off, and it is dropped.

    Args:
        file: The file; it is made when it is not there.
        fresh: Whether to begin again, whatever is there.
        head: How the first line of a file of ours begins; empty: any line may stand there. Another beginning is
            handed over as it is, so that the complaint is about what stands there.

    Attributes:
        is_new: Whether there was no whole line, or it begins again.

    Raises:
        InputError: The file cannot be read.
    """

    def __init__(self, file: Path, *, fresh: bool = False, head: bytes = b"") -> None:
        self.file = file
        try:
            self._whole = b"" if fresh else _whole_lines(file, head)
        except OSError as error:
            raise self._unusable(error) from None
        self.is_new = not self._whole
        self._stream: BinaryIO | None = None

    def found(self) -> Iterator[Mapping[str, Any]]:
        """The whole lines that were there, in order, until the file is opened; what is no object is an empty one."""
        return (_object(line) for line in self._whole.split(b"\n") if line)

    def open(self) -> None:
        """Open the file for appending; a line that was cut off goes.

        Raises:
            InputError: It cannot be written.
        """
        try:
            self._stream = self.file.open("ab")
            self._stream.truncate(len(self._whole))
            self._whole = b""
        except OSError as error:
            raise self._unusable(error) from None

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line; it is on its way to the disk when this returns.

        Raises:
            InputError: It cannot be written, or the file is not open.
        """
        if self._stream is None:
            raise InputError(f"{self.file} is not open")
        try:
            # One write for one line. JSON that is ASCII alone holds lone surrogates, too.
            self._stream.write(json.dumps(line, ensure_ascii=True, default=str).encode("ascii") + b"\n")
            self._stream.flush()
        except OSError as error:
            raise InputError(f"{self.file} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()

    def _unusable(self, error: OSError) -> InputError:
        return InputError(
            f"{self.file}, where results are kept as they come, cannot be used: {error.strerror}"
        )


def _whole_lines(file: Path, head: bytes) -> bytes:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return b""
    whole = content[: content.rfind(b"\n") + 1]
    if not whole and not head.startswith(content[: len(head)]):
        # Not ours: the complaint is about what stands there.
        return content
    return whole


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
