"""Digests of files, by which a run that goes on knows that it reads what it read before.

They stand in kept result files: another digest of the same file would keep a run from being gone on with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from arq_graph.errors import InputError

_CHUNK = 1 << 20


def digest_of_files(files: Sequence[Path]) -> str:
    """A digest of what the files hold, in their order.

    Args:
        files: Their names do not count.

    Raises:
        InputError: One cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    for file in files:
        size = 0
        for chunk in _chunks(file):
            digest.update(chunk)
            size += len(chunk)
        digest.update(b"\0%d" % size)
    return digest.hexdigest()


def fingerprint(file: Path) -> str:
    """The file's name and what it holds, so that a person sees which of two was edited or is another.

    Args:
        file: Its folder does not count.

    Raises:
        InputError: It cannot be read.
    """
    digest = hashlib.sha256()
    for chunk in _chunks(file):
        digest.update(chunk)
    return f"{file.name}, sha256 {digest.hexdigest()[:16]}"


def _chunks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from None
