"""The one store of runs that can go on after they were stopped or killed: a JSON Lines file of what is done so far.

    {"arq_graph": "score", "version": 1, "of": {"the judge": "none", …}, "parts": {}}
    {…an entry, one a line…}

The first line names everything that shapes the run, each with a fingerprint. A run that is shaped by anything else
is refused, and the message says which of these changed.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from arq_graph.agent.fingerprint import describe_changes
from arq_graph.errors import InputError

if sys.platform != "win32":
    import fcntl

MODEL_ROLES = {"model": "the agent's model", "user_model": "the users' model", "judge": "the judge"}
"""What is asked, by the argument of `aevaluate`, as the head of a results file and messages name it."""
VERSION = 1
_BEGINNING = b'{"arq_graph": "'
_INSTEAD = "name another file, or move this one away"
_ANEW = (
    ". To score recorded answers by what is expected now, without a model: `arq-graph experiment SUITE --replay DIR "
    "--record DIR2`"
)


class RunStore:
    """The entries of a run, each appended to a file by one write; a context manager, which closes the file.

    A kill leaves at most the last line cut off; it is dropped, and what it was about is done again. One run at a
    time has the file, where the system can lock files. Making a store locks and reads the file; entering it writes.

    Every entry depends on all that `of` names; `parts` name what only some entries depend on, such as single scenarios:
    another run may leave parts out or add some. `resume` goes on with what is there; otherwise there must be nothing.
    """

    def __init__(
        self,
        file: str | Path,
        kind: str,
        of: Mapping[str, str],
        *,
        parts: Mapping[str, str] | None = None,
        resume: bool = True,
    ) -> None:
        self.file = Path(file)
        self._place = f"results cannot be kept in {file}"
        self._head: dict[str, Any] = {"arq_graph": kind, "version": VERSION, "of": dict(of)}
        self._head["parts"] = dict(parts or {})
        self.parts_before: dict[str, str] = {}
        self._resume = resume
        self._size = 0
        with convert_file_errors(self._place):
            # A device may have no end, and a pipe may never have a beginning.
            if self.file.exists() and not self.file.is_file():
                raise InputError(f"{self._place}: it is no regular file")
            # Without a buffer, nothing is left over that a close would write again.
            self._stream = self.file.open("ab", buffering=0)
            try:
                _lock(self._stream, self.file)
                self._read()
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        if not self._size or not self._head["parts"].keys() <= self.parts_before.keys():
            self.append(self._head)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries of the earlier run, in order; memory holds one. A line that cannot be read is left out."""
        return (entry for entry in read_records(self.file) if not is_header(entry))

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry; the system has it when this returns, so that a kill does not lose it."""
        # Pure ASCII JSON can hold lone surrogates, too.
        line = json.dumps(entry, skipkeys=True, default=str).encode("ascii") + b"\n"
        if self.file.suffix == ".gz":
            raise InputError(f"{self.file} is compressed: unpack it to continue it, or name another file")
        before = os.fstat(self._stream.fileno()).st_size
        with convert_file_errors(self._place):
            try:
                # One write for one line; only a full disk takes less than all of it.
                left = memoryview(line)
                while left:
                    left = left[self._stream.write(left) or 0 :]
            except OSError:
                with suppress(OSError):
                    self._stream.truncate(before)
                raise

    def remove(self) -> None:
        """Take the file away: all that it holds is elsewhere now."""
        self.close()
        self.file.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file."""
        with convert_file_errors(self._place):
            self._stream.close()

    def _read(self) -> None:
        """Check the heads, and cut off what follows the last whole line."""
        with open_lines(self.file) as lines:
            for line in lines:
                if not self._size and not _BEGINNING.startswith(line[: len(_BEGINNING)]):
                    self._compare({})
                if not line.endswith(b"\n"):
                    break
                if line.startswith(_BEGINNING):
                    self._compare(_object(line))
                self._size += len(line)
        if self.file.suffix != ".gz":
            self._stream.truncate(self._size)

    def _compare(self, head: Mapping[str, Any]) -> None:
        if [head.get("arq_graph"), head.get("version")] != [self._head["arq_graph"], VERSION]:
            raise InputError(
                f"{self.file} holds no results of this kind and version of arq_graph; {_INSTEAD}"
            )
        if not self._resume:
            raise InputError(
                f"{self.file} holds results already: continue them with --resume (in Python, resume=True), or name "
                "another file with --results (for `experiment`, another folder with --record)"
            )
        self.parts_before |= head["parts"]
        both = head["parts"].keys() & self._head["parts"].keys()
        shaped = (each["of"] | {name: each["parts"][name] for name in both} for each in (head, self._head))
        if others := describe_changes(*shaped):
            told = ", ".join(_told_once(others))
            way = _ANEW if all(each.startswith("the milestones of ") for each in others) else ""
            raise InputError(
                f"{self.file} holds the results of another run: {told} changed since. Give what was "
                f"given then, or {_INSTEAD}{way}"
            )


def _told_once(names: list[str]) -> Iterator[str]:
    """The changes, each of them once, even if several scenarios share it."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.partition(" of scenario ")[0], []).append(name)
    for what, each in groups.items():
        yield each[0] if len(each) == 1 else f"{what} of {len(each)} scenarios"


def read_records(file: Path) -> Iterator[dict[str, Any]]:
    """What the lines of a file hold, heads included; it may be compressed. A line that cannot be read is left out.

    Raises:
        InputError: The file cannot be read.
    """
    with convert_file_errors(f"{file} cannot be read"), open_lines(file) as lines:
        yield from filter(None, map(_object, lines))


def find_record_files(named: Iterable[str | Path]) -> list[Path]:
    """Files as they are named, and of each folder its JSON Lines files, compressed or not, by name; each once.

    Single turns and model answers that an experiment saved in a folder are left out.
    """
    found: list[Path] = []
    for one in map(Path, named):
        inside = one.iterdir() if one.is_dir() else ()
        lines = sorted(each for each in inside if each.name.endswith((".jsonl", ".jsonl.gz")))
        found += [
            each
            for each in lines
            if not any(kind in each.name for kind in (".turns.jsonl", ".recording.jsonl"))
        ] or [one]
    return list(dict.fromkeys(found))


@contextmanager
def convert_file_errors(place: str) -> Iterator[None]:
    """What fails while a file is read or written becomes an `InputError` that says where."""
    try:
        yield
    except (OSError, EOFError) as error:
        # The errors of a broken compressed file have no `strerror`.
        raise InputError(f"{place}: {getattr(error, 'strerror', None) or error}") from None


def open_lines(file: Path) -> BinaryIO:
    """A file that is read, unpacked where its name ends with .gz."""
    return cast(BinaryIO, gzip.open(file)) if file.suffix == ".gz" else file.open("rb")


def is_header(record: Any) -> bool:
    """Whether a record of a JSON Lines file is no entry but names what the entries after it depend on."""
    return isinstance(record, Mapping) and isinstance(record.get("arq_graph"), str)


def _lock(stream: FileIO, file: Path) -> None:
    """Lock the file, if the file system can."""
    if sys.platform == "win32":
        return
    taken = InputError(f"{file} is in use by another run: wait for its end, or name another file")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise taken from None
    except OSError:
        return
    # The run that held it may have removed it meanwhile.
    if not os.path.samestat(os.fstat(stream.fileno()), file.stat()):
        raise taken


def _object(line: bytes) -> dict[str, Any]:
    try:
        read = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
