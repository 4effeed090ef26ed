"""Open files of others: regular files only, and no more bytes than a kind of file may have.

A pipe may never have a beginning and a device may never have an end, so that reading one could hang or fill the memory.
Problems are raised as `OSError`, which the callers turn into an error that names the kind of file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import IO, AnyStr

MAX_TEXT_BYTES = 16 * 2**20
"""The limit for files that are read as a whole and that people write, such as YAML files."""
MAX_DATA_BYTES = 256 * 2**20
"""The limit for data that programs write and that is read as a whole, and for a line of JSON Lines."""


def require_regular_file(path: str | os.PathLike[str]) -> None:
    """Raise an OSError if the path is anything but a regular file, or a file that doesn't exist yet."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        problem = "it is not a regular file but a pipe, a socket or a device; save its content in a file"
        raise OSError(errno.EINVAL, problem, str(path))


def open_regular_file(path: str | os.PathLike[str]) -> BufferedReader:
    """Open a regular file to read it; raises OSError."""
    require_regular_file(path)
    return Path(path).open("rb")


def read_regular_file(path: str | os.PathLike[str], max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of a regular file; raises OSError, also if it is larger than the limit."""
    with open_regular_file(path) as stream:
        return read_limited(stream, max_bytes)


def read_limited(stream: IO[AnyStr], max_size: int) -> AnyStr:
    """Return the rest of a stream; raises OSError if it is larger than the limit."""
    content = stream.read(max_size + 1)
    if len(content) > max_size:
        raise OSError(errno.EFBIG, f"it is larger than {max_size // 2**20} MB, the limit for such files")
    return content


def read_lines(stream: IO[AnyStr], max_size: int = MAX_DATA_BYTES) -> Iterator[AnyStr]:
    """Yield the lines of a stream, one at a time; raises OSError if a line is longer than the limit."""
    while line := stream.readline(max_size + 1):
        if len(line) > max_size:
            raise OSError(errno.EFBIG, f"a line is longer than {max_size // 2**20} MB, the limit for lines")
        yield line
