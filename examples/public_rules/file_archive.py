"""The end state of `file_archive.yaml`: the agent's calls are replayed on the files that were there before."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from arq_graph.milestones import Transcript

BEFORE = {"/Documentation/FinalReport.txt": "This is the final report."}
FOLDERS = {"/", "/Documentation", "/Documentation/Archives"}
AFTER = BEFORE | {"/Documentation/Archives/ArchivedFinalReport2024.txt": "This is the final report."}


class Files:
    """Files in folders, with the tools that change them or the current folder."""

    def __init__(self) -> None:
        self.contents = dict(BEFORE)
        self.folder = PurePosixPath("/")

    def cd(self, folder: str) -> None:
        self.folder = self.folder.parent if folder == ".." else self.folder / folder

    def cp(self, source: str, destination: str) -> None:
        self.contents[self._find_target(source, destination)] = self.contents[str(self.folder / source)]

    def mv(self, source: str, destination: str) -> None:
        self.contents[self._find_target(source, destination)] = self.contents.pop(str(self.folder / source))

    def rm(self, file_name: str) -> None:
        del self.contents[str(self.folder / file_name)]

    def _find_target(self, source: str, destination: str) -> str:
        target = self.folder / destination
        return str(target / PurePosixPath(source).name if str(target) in FOLDERS else target)


def is_archive_right(transcript: Transcript) -> bool:
    """Return whether the files are as they should be after the agent's calls, whichever they were."""
    files = Files()
    for _, call in transcript.enumerate_calls():
        tool: Any = getattr(files, call.tool, None)
        if tool is not None:  # the others only read
            try:
                tool(**call.arguments)
            except (KeyError, TypeError):
                continue  # as in the conversation, a call that fails changes nothing
    return files.contents == AFTER
