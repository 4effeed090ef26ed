"""What `arq-graph score` is asked for, and whether its files can be used at all."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from arq_graph.cli.settings import ModelChoice
from arq_graph.errors import InputError
from arq_graph.milestones.reports.sources import Located, read_files
from arq_graph.milestones.transcripts.formats import FORMATS


@dataclass(frozen=True)
class Wanted:
    """What is to be scored, on what, and where it goes.

    Args:
        files: Files of transcripts.
        milestones: Milestone files, `FILE` or `NAME=FILE`.
        gold: Instead of milestone files: the gold actions that the records hold.
        agent: The agent's file.
        tools: Instead of it: a file of tool definitions.
        judge: The judge's model; None: no judge.
        votes: How often the judge is asked, from 1.
        veto: Whether it may veto calls.
        date: The day that it is told; None: it is told none.
        concurrency: About how many conversations it is asked at once, from 1.
        format: The transcripts' format; None: recognised.
        use_case: Conversations of this use case alone.
        limit: How many conversations at most, from 1.
        html: Where the page goes.
        json: Where the report goes.
        fresh: Whether to drop what an unfinished run left.
    """

    files: tuple[Path, ...]
    milestones: tuple[str, ...] = ()
    gold: Literal["ordered", "unordered"] | None = None
    agent: Path | None = None
    tools: Path | None = None
    judge: ModelChoice | None = None
    votes: int = 1
    veto: bool = True
    date: datetime.date | None = None
    concurrency: int = 8
    format: str | None = None
    use_case: str | None = None
    limit: int | None = None
    html: Path | None = None
    json: Path | None = None
    fresh: bool = False

    @property
    def kept(self) -> Path | None:
        """Where results are kept as they come; None: nowhere."""
        out = self.json or self.html
        if out is None or (out.exists() and not out.is_file()):
            return None  # a pipe or a device has nothing beside it
        return out.with_name(f"{out.name}.partial.jsonl")

    @property
    def judge_settings(self) -> str:
        """What beside its model makes another judge."""
        told = f", told {self.date}" if self.date else ""
        return f"{self.votes} votes, {'veto' if self.veto else 'no veto'}{told}"

    def read(self) -> Iterator[Located]:
        """The conversations, from the beginning."""
        return read_files(self.files, format=self.format, use_case=self.use_case, limit=self.limit)


def require_files(wanted: Wanted) -> None:
    """Refuse, before anything runs, what could not be read or written in the end.

    Raises:
        InputError: A file is missing or a folder, an output is an input, or the format is unknown.
    """
    if wanted.format is not None and wanted.format not in FORMATS:
        raise InputError(f"the format {wanted.format!r} is not known; known are {', '.join(FORMATS)}")
    for file in wanted.files:
        if file.is_dir():
            raise InputError(f"{file} is a folder; name the files in it")
        if not file.exists():
            raise InputError(f"{file} cannot be read: there is no such file")
    outs = [out for out in (wanted.json, wanted.html) if out is not None]
    for out in outs:
        if out.is_dir() or not out.absolute().parent.is_dir():
            raise InputError(f"{out} cannot be written: its folder is missing, or it is a folder itself")
        if any(file.resolve() == out.resolve() for file in wanted.files):
            raise InputError(f"{out} is one of the files that are read; write to another")
    if len({out.resolve() for out in outs}) < len(outs):
        raise InputError(f"{outs[0]} cannot be both the page and the report")
