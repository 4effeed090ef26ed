"""A JSON Lines file to which a run appends one line at a time, and which it can go on with after it was killed."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

from arq_graph.errors import InputError

if sys.platform != "win32":
    import fcntl


class KeptLines:
    """A file of lines, each appended by one write: a kill leaves at most the last line cut off, and it is dropped.

    One run at a time has it open, where the system can lock files. What JSON cannot say is written as text: a key
    that is no text, a number that is not finite, an object.

    Args:
        file: The file; it is made when it is not there.
        fresh: Whether to begin again, whatever is there.
        head: How the first line of a file of ours begins; empty: any line may stand there. Another beginning is
            handed over as it is, so that the complaint is about what stands there.

    Attributes:
        is_new: Whether there was no whole line, or it begins again.

    Raises:
        InputError: The file cannot be read, or is a device, a pipe or a folder.
    """

    def __init__(self, file: Path, *, fresh: bool = False, head: bytes = b"") -> None:
        self.file = file
        self._fresh = fresh
        try:
            # A device may have no end, and a pipe may never have a beginning.
            if file.exists() and not file.is_file():
                raise self._unusable("it is no regular file")
            content = b"" if fresh else _content(file)
        except OSError as error:
            raise self._unusable(error.strerror) from None
        self._whole = _whole_lines(content, head)
        self._size = len(content)
        self.is_new = not self._whole
        self._stream: FileIO | None = None
        self._is_locked = self._has_failed = False

    def found(self) -> Iterator[Mapping[str, Any]]:
        """The whole lines that were there, in order, until the file is opened; what is no object is an empty one."""
        return (_object(line) for line in self._whole.split(b"\n") if line)

    def open(self) -> None:
        """Open the file for appending; a line that was cut off goes.

        Raises:
            InputError: It cannot be written, another run has it open, or it changed since it was read.
        """
        stream: FileIO | None = None
        try:
            # Without a buffer, nothing is left over that a close would write again.
            stream = self.file.open("ab", buffering=0)
            self._is_locked = self._lock(stream)
            if self._checked_size(stream) > len(self._whole):
                stream.truncate(len(self._whole))
        except (OSError, InputError) as error:
            if stream is not None:
                stream.close()
            raise self._unusable(error.strerror) if isinstance(error, OSError) else error from None
        self._stream, self._whole = stream, b""

    def append(self, line: Mapping[str, Any]) -> None:
        """Append a line; it is on its way to the disk when this returns.

        Raises:
            InputError: It cannot be written, or the file is not open.
        """
        if self._stream is None:
            raise InputError(f"{self.file} is not open")
        try:
            # JSON that is ASCII alone holds lone surrogates, too.
            written = json.dumps(_sayable(line), ensure_ascii=True, allow_nan=False, default=str)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.file}: a result is nothing that JSON can hold: {error}") from None
        before = 0
        try:
            before = os.fstat(self._stream.fileno()).st_size
            # One write for one line; only a full disk takes less than all of it.
            left = memoryview(written.encode("ascii") + b"\n")
            while left:
                left = left[self._stream.write(left) or 0 :]
        except OSError as error:
            self._has_failed = True
            if self._is_locked:
                with suppress(OSError):
                    self._stream.truncate(before)
            raise InputError(f"{self.file} cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """Close the file.

        Raises:
            InputError: What was written did not reach the disk, and no `append` has said so.
        """
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            stream.close()
        except OSError as error:
            if not self._has_failed:
                raise InputError(f"{self.file} cannot be written: {error.strerror}") from None

    def _lock(self, stream: FileIO) -> bool:
        """Whether the file is this run's alone; not every file system can say."""
        if sys.platform == "win32":
            return False
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{self.file} is in use by another run: wait for its end, or name another file"
            ) from None
        except OSError:
            return False
        return True

    def _checked_size(self, stream: FileIO) -> int:
        """The size of the file, which is still the one that was read."""
        now = os.fstat(stream.fileno())
        is_same = os.path.samestat(now, self.file.stat())
        if not is_same or not (self._fresh or now.st_size == self._size):
            raise InputError(f"{self.file} changed while it was read: another run wrote to it; try again")
        return now.st_size

    def _unusable(self, why: str | None) -> InputError:
        return InputError(f"{self.file}, where results are kept as they come, cannot be used: {why}")


class KeepsLines:
    """Something that keeps its results in a file of lines; a context manager, which closes the file."""

    _lines: KeptLines | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lines is not None:
            self._lines.close()


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names of what results depend on that is not the same any more, those of `before` first."""
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _whole_lines(content: bytes, head: bytes) -> bytes:
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


def _sayable(value: Any) -> Any:
    """A value with what JSON has no way to say as text."""
    if isinstance(value, Mapping):
        return {_key(key): _sayable(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_sayable(held) for held in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _key(key: Any) -> Any:
    if isinstance(key, float):
        return str(key)
    return key if isinstance(key, str | int) or key is None else str(key)
