"""The store of runs that are resumed after they were stopped or killed: a JSON Lines file of their entries.

    {"arq_graph": "score", "version": 1, "of": {"the judge": "none", …}, "parts": {}}
    {…an entry, one a line…}

The first line is the header. It names everything that shapes the run, each with a fingerprint. A run that is shaped
by anything else is refused, and the message says what has changed.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from arq_graph.agent.fingerprint import describe_changes
from arq_graph.errors import InputError

if sys.platform != "win32":
    import fcntl

MODEL_ROLES = {"model": "the agent's model", "user_model": "the users' model", "judge": "the judge"}
"""The name of a model in headers and messages, by the argument of `aevaluate`."""
VERSION = 1
_HEADER_START = b'{"arq_graph": "'
_OTHER_FILE = "name another file, or move this one away"
_REPLAY = (
    ". To score recorded answers by what is expected now, without a model: `arq-graph experiment SUITE --replay DIR "
    "--record DIR2`"
)


class RunStore:
    """The entries of a run, each appended to a file by one write; a context manager, which closes the file.

    A kill leaves at most the last line cut off. It is dropped, so that its work is done again. Only one run at a time
    can use the file, if the system can lock files. Making a store locks and reads the file; entering it writes.

    Args:
        file: The file.
        kind: The kind of run, such as "evaluation".
        depends_on: The things that shape all entries, each with a value or a fingerprint, by their names in messages.
        parts: The same for things that shape only some entries, such as scenarios. Another run may have other parts.
        resume: Continue the run in the file; otherwise the file must not have one.

    Raises:
        InputError: The file can't be used, or another run uses it; or it holds another run, or one that isn't resumed.
    """

    def __init__(
        self,
        file: str | Path,
        kind: str,
        depends_on: Mapping[str, str],
        *,
        parts: Mapping[str, str] | None = None,
        resume: bool = True,
    ) -> None:
        self.file = Path(file)
        self._problem = f"results cannot be kept in {file}"
        self._header: dict[str, Any] = {
            "arq_graph": kind,
            "version": VERSION,
            "of": dict(depends_on),
            "parts": dict(parts or {}),
        }
        self._earlier_parts: dict[str, str] = {}
        self._resume = resume
        self._size = 0
        with convert_file_errors(self._problem):
            # A device may have no end, and a pipe may never have a beginning.
            if self.file.exists() and not self.file.is_file():
                raise InputError(f"{self._problem}: it is not a regular file")
            # Without a buffer, nothing is left that a close would write again.
            self._stream = self.file.open("ab", buffering=0)
            try:
                _lock(self._stream, self.file)
                self._read_headers()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        has_new_parts = not self._header["parts"].keys() <= self._earlier_parts.keys()
        if not self._size or has_new_parts:
            self.append(self._header)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the earlier run, in order, and read lazily. Unreadable lines are left out."""
        for record in read_records(self.file):
            if not is_header(record):
                yield record

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; when this returns, the system has it, so that a kill doesn't lose it."""
        if self.file.suffix == ".gz":
            raise InputError(f"{self.file} is compressed: unpack it to continue it, or name another file")
        # ASCII, because that can hold lone surrogates, too.
        line = json.dumps(entry, skipkeys=True, default=str).encode("ascii") + b"\n"
        size_before = os.fstat(self._stream.fileno()).st_size
        with convert_file_errors(self._problem):
            try:
                self._write(line)
            except OSError:
                with suppress(OSError):
                    self._stream.truncate(size_before)
                raise

    def remove(self) -> None:
        """Delete the file, because all that it holds is elsewhere now."""
        self.close()
        self.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        with convert_file_errors(self._problem):
            self._stream.close()

    def _write(self, line: bytes) -> None:
        # One write for one line; only a full disk takes less than all of it.
        rest = memoryview(line)
        while rest:
            byte_count = self._stream.write(rest) or 0
            rest = rest[byte_count:]

    def _read_headers(self) -> None:
        """Compare the headers with that of this run, and drop what follows the last whole line."""
        with open_lines(self.file) as lines:
            for line in lines:
                is_first_line = self._size == 0
                if is_first_line and not _HEADER_START.startswith(line[: len(_HEADER_START)]):
                    self._compare_header({})
                if not line.endswith(b"\n"):
                    break
                if line.startswith(_HEADER_START):
                    self._compare_header(_parse_object(line))
                self._size += len(line)
        if self.file.suffix != ".gz":
            self._stream.truncate(self._size)

    def _compare_header(self, header: Mapping[str, Any]) -> None:
        if (header.get("arq_graph"), header.get("version")) != (self._header["arq_graph"], VERSION):
            raise InputError(
                f"{self.file} holds no results of this kind and version of arq_graph; {_OTHER_FILE}"
            )
        if not self._resume:
            raise InputError(
                f"{self.file} holds results already: continue them with --resume (in Python, resume=True), or name "
                "another file with --results (for `experiment`, another folder with --record)"
            )
        self._earlier_parts.update(header["parts"])
        shared_parts = header["parts"].keys() & self._header["parts"].keys()
        before = header["of"] | {name: header["parts"][name] for name in shared_parts}
        now = self._header["of"] | {name: self._header["parts"][name] for name in shared_parts}
        changes = describe_changes(before, now)
        if changes:
            is_replay_useful = all(change.startswith("the milestones of ") for change in changes)
            raise InputError(
                f"{self.file} holds the results of another run: {', '.join(_group_changes(changes))} changed since. "
                f"Give what was given then, or {_OTHER_FILE}{_REPLAY if is_replay_useful else ''}"
            )


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in the lines of a file, headers included. The file may be compressed.

    Unreadable lines are left out.

    Raises:
        InputError: The file cannot be read.
    """
    with convert_file_errors(f"{file} cannot be read"), open_lines(file) as lines:
        for line in lines:
            record = _parse_object(line)
            if record:
                yield record


@contextmanager
def convert_file_errors(problem: str) -> Iterator[None]:
    """Turn errors of reading and writing inside the block into an `InputError` that begins with the problem."""
    try:
        yield
    except (OSError, EOFError) as error:
        # The errors of a broken compressed file have no `strerror`.
        raise InputError(f"{problem}: {getattr(error, 'strerror', None) or error}") from None


def open_lines(file: Path) -> BinaryIO:
    """Open a file for reading; it is decompressed if its name ends with .gz."""
    return cast(BinaryIO, gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def is_header(record: Any) -> bool:
    """Return whether a record of a JSON Lines file is a header, not an entry."""
    return isinstance(record, Mapping) and isinstance(record.get("arq_graph"), str)


def _group_changes(changes: Sequence[str]) -> Iterator[str]:
    """Yield the changes, each of them once even if several scenarios share it."""
    groups: dict[str, list[str]] = {}
    for change in changes:
        groups.setdefault(change.partition(" of scenario ")[0], []).append(change)
    for name, group in groups.items():
        yield group[0] if len(group) == 1 else f"{name} of {len(group)} scenarios"


def _lock(stream: FileIO, file: Path) -> None:
    """Lock the file, if the file system can."""
    if sys.platform == "win32":
        return
    in_use = InputError(f"{file} is in use by another run: wait for its end, or name another file")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise in_use from None
    except OSError:
        return
    # The run that had locked it may have removed it meanwhile.
    if not os.path.samestat(os.fstat(stream.fileno()), file.stat()):
        raise in_use


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
