"""Save the entries of a run in a JSON Lines file, so that a run that was stopped or killed can be resumed.

    {"arq_graph": "score", "version": 2, "of": {"the judge": "none", …}, "parts": {}}
    {…an entry, one a line…}

The first line is a header: it names everything that shapes the run, with a value or a fingerprint. A run that is shaped
by anything else isn't resumed, and the error says what has changed.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, cast

from arq_graph.agent.fingerprint import describe_changes
from arq_graph.agent.regular_file import open_regular_file, read_lines, require_regular_file
from arq_graph.errors import InputError
from arq_graph.milestones.values import parse_json

if sys.platform != "win32":
    import fcntl

ComponentFingerprints = Mapping[str, Mapping[str, Mapping[str, str]]]
"""The fingerprints of a run's components, each of which shapes only some entries.

By the component's kind, its name, and the aspect of it: `{"scenario": {"late boots": {"the user": "…"}}}`.
"""

_VERSION = 2
_HEADER_START = b'{"arq_graph": "'
_MAX_NAMES = 3
_OTHER_FILE = "name another file, or move this one away"


class ChangedRunError(InputError):
    """A file holds the results of a run that was shaped by something else.

    Args:
        file: The file.
        changes: What changed among the things that shape all entries.
        component_changes: The aspects that changed of components, each with the names of these components:
            `{"the user": "scenario 'late boots'"}`.
    """

    def __init__(self, file: Path, changes: list[str], component_changes: Mapping[str, str]) -> None:
        self.changes = changes
        self.component_changes = component_changes
        descriptions = list(changes)
        for aspect, component_names in component_changes.items():
            descriptions.append(f"{aspect} of {component_names}")
        super().__init__(
            f"{file} holds the results of another run: {', '.join(descriptions)} changed since. "
            f"Use the earlier settings, or {_OTHER_FILE}"
        )


class RunStore:
    """The entries of a run, each appended to a file by one write; a context manager, which closes the file.

    If a kill cut off the last line, it is dropped, so that its work is done again. Only one run at a time can use the
    file, if the system can lock files. Making a store locks and reads the file; entering it writes the header.

    Args:
        file: The file.
        kind: The kind of run, such as "evaluation".
        depends_on: What shapes all entries: a value or a fingerprint by the name that errors show.
        components: What shapes only some entries, such as a scenario. Another run of the file may have other ones.
        resume: Continue the run in the file; otherwise the file must not have one.

    Raises:
        InputError: The file can't be used, another run uses it, or it holds a run that isn't resumed.
        ChangedRunError: It holds another run.
    """

    def __init__(
        self,
        file: str | Path,
        kind: str,
        depends_on: Mapping[str, str],
        *,
        components: ComponentFingerprints | None = None,
        resume: bool = True,
    ) -> None:
        self.file = Path(file)
        self._components = components or {}
        self._header: dict[str, Any] = {
            "arq_graph": kind,
            "version": _VERSION,
            "of": dict(depends_on),
            "parts": self._components,
        }
        self._resume = resume
        self._write_error = f"results cannot be saved in {file}"
        with convert_file_errors(self._write_error):
            require_regular_file(self.file)
            # Unbuffered: a buffered file would retry a failed write when it is closed.
            self._stream = self.file.open("ab", buffering=0)
            try:
                _lock(self._stream, self.file)
                self._headers, size = self._read_headers()
                self._require_same_run()
                if self.file.suffix != ".gz":
                    self._stream.truncate(size)  # drops a line that was cut off
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> Self:
        try:
            if not self._headers or self._has_new_components():
                self.append(self._header)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield the entries of the earlier run, in order, and read lazily. Unreadable lines are left out."""
        for value in read_json_lines(self.file):
            if not is_header(value):
                yield value

    def require_appendable(self) -> None:
        """Raise an error if nothing can be appended, before any work is done whose result would be lost.

        Raises:
            InputError: The file is compressed.
        """
        if self.file.suffix == ".gz":
            raise InputError(f"{self.file} is compressed: unpack it to continue it, or name another file")

    def append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry. It is handed to the system at once, so that a kill of this process doesn't lose it."""
        # ASCII, because that can hold lone surrogates, too.
        self.append_line(json.dumps(entry, skipkeys=True, default=str).encode("ascii"))

    def append_line(self, line: bytes) -> None:
        """Append an entry that is JSON already; see `append`."""
        self.require_appendable()
        size_before = os.fstat(self._stream.fileno()).st_size
        with convert_file_errors(self._write_error):
            try:
                write_line(self._stream, line + b"\n")
            except OSError:
                with suppress(OSError):
                    self._stream.truncate(size_before)
                raise

    def remove(self) -> None:
        """Delete the file, because all that it holds is elsewhere now. If another run uses it, it stays."""
        self.close()
        if sys.platform == "win32":
            self.file.unlink(missing_ok=True)
            return
        with suppress(FileNotFoundError, InputError), self.file.open("rb") as stream:
            _lock(stream, self.file)
            self.file.unlink()

    def close(self) -> None:
        """Close the file."""
        with convert_file_errors(self._write_error):
            self._stream.close()

    def _read_headers(self) -> tuple[list[dict[str, Any]], int]:
        """Return the headers of the file, and the size of its whole lines in bytes.

        A run that has other scenarios or arms than the one that it continues writes another header.
        """
        headers = []
        size = 0
        with open_lines(self.file) as lines:
            for line in read_lines(lines):
                # This also accepts a beginning of the header, which a kill may have cut off.
                if size == 0 and not _HEADER_START.startswith(line[: len(_HEADER_START)]):
                    raise self._make_other_file_error()
                if not line.endswith(b"\n"):
                    break
                if line.startswith(_HEADER_START):
                    headers.append(_parse_object(line))
                size += len(line)
        return headers, size

    def _require_same_run(self) -> None:
        for header in self._headers:
            if (header.get("arq_graph"), header.get("version")) != (self._header["arq_graph"], _VERSION):
                raise self._make_other_file_error()
            if not self._resume:
                raise InputError(
                    f"{self.file} holds results already: continue them with --resume (in Python, resume=True), start "
                    "anew with --overwrite, or name another file with --results (for `experiment`, another folder with "
                    "--record)"
                )
            changes = describe_changes(header["of"], self._header["of"])
            component_changes = _find_component_changes(header["parts"], self._components)
            if changes or component_changes:
                raise ChangedRunError(self.file, changes, component_changes)

    def _has_new_components(self) -> bool:
        for kind, components in self._components.items():
            stored_names: set[str] = set()
            for header in self._headers:
                stored_names.update(header["parts"].get(kind, ()))
            if not components.keys() <= stored_names:
                return True
        return False

    def _make_other_file_error(self) -> InputError:
        return InputError(
            f"{self.file} holds no results of this kind and version of arq_graph; {_OTHER_FILE}"
        )


def discard_run(file: Path) -> None:
    """Delete a file of results, if there is one.

    Raises:
        InputError: It holds something else, or another run uses it.
    """
    if not file.exists():
        return
    with convert_file_errors(f"{file} cannot be deleted"), file.open("rb") as stream:
        start = stream.read(len(_HEADER_START))
        if not _HEADER_START.startswith(start):
            raise InputError(f"{file} holds no results of arq_graph, so it isn't deleted; {_OTHER_FILE}")
        _lock(stream, file)
        file.unlink()


def read_json_lines(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in the lines of a file, headers included. The file may be compressed.

    Unreadable lines are left out.

    Raises:
        InputError: The file cannot be read.
    """
    with convert_file_errors(f"{file} cannot be read"), open_lines(file) as lines:
        for line in read_lines(lines):
            value = _parse_object(line)
            if value:
                yield value


def write_line(stream: RawIOBase, line: bytes) -> None:
    """Write a line to an unbuffered file: by one write, unless the system takes less than all of it.

    Raises:
        OSError: The rest can't be written, as on a full disk.
    """
    rest = memoryview(line)
    while rest:
        byte_count = stream.write(rest) or 0
        rest = rest[byte_count:]


@contextmanager
def convert_file_errors(problem: str) -> Iterator[None]:
    """Turn errors of reading and writing inside the block into an `InputError` that begins with the problem."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        # The errors of a broken compressed file have no `strerror`.
        raise InputError(f"{problem}: {getattr(error, 'strerror', None) or error}") from None


def open_lines(file: Path) -> BinaryIO:
    """Open a file for reading; it is decompressed if its name ends with .gz."""
    stream = open_regular_file(file)
    return cast(BinaryIO, gzip.open(stream)) if file.suffix == ".gz" else stream


def is_header(value: Any) -> bool:
    """Return whether a value in a JSON Lines file is a header, not an entry."""
    return isinstance(value, Mapping) and isinstance(value.get("arq_graph"), str)


def _find_component_changes(stored: ComponentFingerprints, current: ComponentFingerprints) -> dict[str, str]:
    """Return the aspects that changed of components that both runs have, with the names of these components."""
    changes: dict[str, str] = {}
    for kind, components in current.items():
        stored_components = stored.get(kind, {})
        names_by_aspect: dict[str, list[str]] = {}
        for name, fingerprints in components.items():
            for aspect in describe_changes(stored_components.get(name, fingerprints), fingerprints):
                names_by_aspect.setdefault(aspect, []).append(name)
        for aspect, names in names_by_aspect.items():
            changes[aspect] = _format_component_names(kind, names)
    return changes


def _format_component_names(kind: str, names: list[str]) -> str:
    if len(names) == 1:
        return f"{kind} {names[0]!r}"
    if len(names) > _MAX_NAMES:
        return f"{len(names)} {kind}s"
    return f"{kind}s {', '.join(map(repr, names))}"


def _lock(stream: IO[bytes] | RawIOBase, file: Path) -> None:
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
        value = parse_json(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
