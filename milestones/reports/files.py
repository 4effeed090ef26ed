"""Reports in files: written whole or not at all, and read again with a word on what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.errors import InputError
from arq_graph.milestones.reports.report import SCHEMA, Report

_HOW = "`arq-graph score --json` writes one"
_WRONG_SHOWN = 3


def write_report(path: str | Path, report: Report) -> None:
    """Write a report as JSON; see `write_whole`.

    Raises:
        InputError: It cannot be written there.
    """
    write_whole(path, report.to_json() + "\n")


def write_whole(path: str | Path, text: str) -> None:
    """Write a text file so that it is there whole or as it was before, however the program ends.

    Args:
        path: The file. A device or pipe is written to as it is.
        text: What to write; lone surrogates become question marks.

    Raises:
        InputError: It cannot be written there.
    """
    try:
        write_atomically(Path(path), text.encode("utf-8", errors="replace"))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from error


def read_report(path: str | Path) -> Report:
    """Read a report that `write_report` wrote.

    Args:
        path: The file.

    Raises:
        InputError: It cannot be read, is not JSON, no report, or of another schema; the message names the file
            and what is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"the report {path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text, so it is no report; {_HOW}") from error
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        cut = " (cut off: the file ends in the middle)" if not text[error.pos :].strip() else ""
        raise InputError(f"{path}:{error.lineno}: is not JSON: {error.msg}{cut}; {_HOW}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is JSON that no report holds: {error}; {_HOW}") from error
    return _report(value, path)


def _report(value: Any, path: str | Path) -> Report:
    if not isinstance(value, dict) or not {"schema", "conversations", "summary"} <= value.keys():
        raise InputError(
            f"{path}: is no report: it must be an object with `schema`, `conversations` and `summary`; {_HOW}"
        )
    if value["schema"] != SCHEMA or isinstance(value["schema"], bool):
        raise InputError(
            f"{path}: is a report of schema {value['schema']!r}, and this version reads schema {SCHEMA}; "
            "score the conversations again with this version, or compare with the one that wrote it"
        )
    try:
        return Report.model_validate(value)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        listed = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in wrong[:_WRONG_SHOWN])
        more = f"; and {len(wrong) - _WRONG_SHOWN} more" if len(wrong) > _WRONG_SHOWN else ""
        raise InputError(f"{path}: is no whole report: {listed}{more}; {_HOW}") from error
