"""Digests of files: the same file has the digest that kept results hold of it, and another file has another."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.cli.file_digests import digest_of_files, fingerprint
from arq_graph.errors import InputError

LARGE = b"0123456789abcdef" * (1 << 17)  # more than is read at once


@pytest.mark.parametrize("held", [b"", b'{"messages": []}\n', LARGE])
def test_what_stands_in_a_kept_file_stays_what_it_is(tmp_path: Path, held: bytes):
    file = tmp_path / "chats.jsonl"
    file.write_bytes(held)
    assert fingerprint(file) == f"chats.jsonl, sha256 {hashlib.sha256(held).hexdigest()[:16]}"
    with_size = hashlib.blake2b(held + b"\0" + str(len(held)).encode(), digest_size=16)
    assert digest_of_files([file]) == with_size.hexdigest()


@given(st.lists(st.binary(max_size=4), max_size=3), st.lists(st.binary(max_size=4), max_size=3))
@settings(max_examples=60)
def test_other_files_have_another_digest(tmp_path_factory: pytest.TempPathFactory, one, other):
    def written(contents: list[bytes]) -> list[Path]:
        folder = tmp_path_factory.mktemp("files")
        files = [folder / str(number) for number in range(len(contents))]
        for file, held in zip(files, contents, strict=True):
            file.write_bytes(held)
        return files

    assert (digest_of_files(written(one)) == digest_of_files(written(other))) == (one == other)


def test_a_file_of_another_name_has_another_fingerprint(tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"the same")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "b")


@pytest.mark.parametrize("digest", [fingerprint, lambda file: digest_of_files([file])])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, digest):
    with pytest.raises(InputError, match=r"gone\.json cannot be read: No such file"):
        digest(tmp_path / "gone.json")
