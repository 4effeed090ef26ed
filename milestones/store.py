"""The one store of runs that can go on after they were stopped or killed: a JSON Lines file of what is done so far.

    {"arq_graph": "score", "version": 2, "of": {"the judge": "none", …}, "parts": {}}
    {…an entry, one a line…}

The first line names everything that shapes the run, each with a fingerprint. A run that is shaped by anything else
is refused, and the message says which of these changed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

from arq_graph.agent.fingerprint import changed
from arq_graph.errors import InputError

if sys.platform != "win32":
    import fcntl

VERSION = 2
_BEGINNING = b'{"arq_graph": "'


class RunStore:
    """The entries of a run, each appended to a file by one write; a context manager, which closes the file.

    A kill leaves at most the last line cut off; it is dropped, and what it was about is done again. One run at a
    time has the file, where the system can lock files. Making a store reads and locks the file; entering it writes.

    Every entry depends on all that `of` names; `parts` name what only some entries depend on, such as single scenarios:
    another run may leave parts out or add some (`parts_before` holds the earlier run's). `resume` goes on with what is
    there, `fresh` begins again whatever is there, and otherwise there must be nothing; `instead` is what a refusal
    recommends.
    """

    def __init__(
        self,
        file: str | Path,
        kind: str,
        of: Mapping[str, str],
        *,
        parts: Mapping[str, str] | None = None,
        resume: bool = True,
        fresh: bool = False,
        instead: str = "name another file, or move this one away",
    ) -> None:
        self.file = Path(file)
        self.kind = kind
        self.parts_before: dict[str, str] = {}
        self._of, self._parts = dict(of), dict(parts or {})
        self._resume, self._fresh, self._instead = resume, fresh, instead
        self._stream: FileIO | None = None
        self._open()

    @property
    def is_new(self) -> bool:
        """Whether there is no earlier run, or it begins again."""
        return self._size == 0

    def __enter__(self) -> Self:
        if self._stream is None:
            self._open()
        assert self._stream is not None
        try:
            self._stream.truncate(self._size)
        except OSError as error:
            raise self._failure(error) from None
        if self.is_new or not self._parts.keys() <= self.parts_before.keys():
            self.append({"arq_graph": self.kind, "version": VERSION, "of": self._of, "parts": self._parts})
        self._fresh = False
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries of the earlier run, in order; memory holds one. A line that cannot be read is left out."""
        left = self._size
        with self.file.open("rb") as lines:
            while left > 0:
                line = lines.readline()
                left -= len(line) or left
                entry = _object(line)
                if entry and not is_head(entry):
                    yield entry

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; the system has it when this returns, so that a kill does not lose it.

        What JSON cannot say is written as text: a number that is not finite, an object.
        """
        if self._stream is None:
            raise InputError(f"{self.file} is closed: results are kept inside its `with` block")
        line = _line(entry, self.file)
        before = os.fstat(self._stream.fileno()).st_size
        try:
            # One write for one line; only a full disk takes less than all of it.
            left = memoryview(line)
            while left:
                left = left[self._stream.write(left) or 0 :]
        except OSError as error:
            with suppress(OSError):
                if self._is_locked:
                    self._stream.truncate(before)
            raise self._failure(error) from None

    def remove(self) -> None:
        """Take the file away: all that it holds is elsewhere now."""
        self.close()
        self.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        stream, self._stream = self._stream, None
        try:
            if stream is not None:
                stream.close()
        except OSError as error:
            raise self._failure(error) from None

    def _open(self) -> None:
        self._size = 0
        try:
            _require_regular(self.file)
            # Without a buffer, nothing is left over that a close would write again.
            self._stream = self.file.open("ab", buffering=0)
            self._is_locked = _lock(self._stream, self.file)
            if not self._fresh:
                self._read()
        except (OSError, InputError) as error:
            self.close()
            raise self._failure(error) if isinstance(error, OSError) else error from None

    def _read(self) -> None:
        """Find the heads, and the end of the last whole line."""
        with self.file.open("rb") as lines:
            for line in lines:
                if not self._size and not _BEGINNING.startswith(line[: len(_BEGINNING)]):
                    raise InputError(
                        f"{self.file} holds no results that this version can go on with; {self._instead}"
                    )
                if not line.endswith(b"\n"):
                    break
                if line.startswith(_BEGINNING):
                    self._compare(_object(line))
                self._size += len(line)

    def _compare(self, head: Mapping[str, Any]) -> None:
        of, parts = head.get("of"), head.get("parts")
        is_ours = (head.get("arq_graph"), head.get("version")) == (self.kind, VERSION)
        if not is_ours or not isinstance(of, dict) or not isinstance(parts, dict):
            raise InputError(
                f"{self.file} holds results of another kind or of another version of arq_graph; {self._instead}"
            )
        if not self._resume:
            raise InputError(
                f"{self.file} holds results already: go on with them by --resume (`resume=True`), or {self._instead}"
            )
        self.parts_before |= parts
        both = parts.keys() & self._parts.keys()
        before = of | {name: parts[name] for name in both}
        if others := changed(before, self._of | {name: self._parts[name] for name in both}):
            raise InputError(
                f"{self.file} holds the results of an unfinished run, and this is another: {', '.join(others)} "
                f"changed since. To go on with it, give what was given then; or {self._instead}"
            )

    def _failure(self, error: OSError) -> InputError:
        return InputError(f"results cannot be kept in {self.file}: {error.strerror}")


def is_head(record: Any) -> bool:
    """Whether a record of a JSON Lines file is no entry but names what the entries after it depend on."""
    return isinstance(record, Mapping) and isinstance(record.get("arq_graph"), str)


def _require_regular(file: Path) -> None:
    # A device may have no end, and a pipe may never have a beginning.
    if file.exists() and not file.is_file():
        raise InputError(f"results cannot be kept in {file}: it is no regular file")


def _lock(stream: FileIO, file: Path) -> bool:
    """Whether the file is this run's alone; not every file system can say."""
    if sys.platform == "win32":
        return False
    taken = InputError(f"{file} is in use by another run: wait for its end, or name another file")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise taken from None
    except OSError:
        return False
    # The run that had it may have taken it away meanwhile.
    if not os.path.samestat(os.fstat(stream.fileno()), file.stat()):
        raise taken
    return True


def _line(entry: Mapping[str, Any], file: Path) -> bytes:
    try:
        text = json.dumps(entry, skipkeys=True, default=str)
        if "NaN" in text or "Infinity" in text:
            text = json.dumps(json.loads(text, parse_constant=str))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: a result cannot be written as JSON: {error}") from None
    # JSON that is ASCII alone holds lone surrogates, too.
    return text.encode("ascii") + b"\n"


def _object(line: bytes) -> dict[str, Any]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
