"""Read the files of a data set, and write a suite that `arq-graph evaluate` runs."""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import StringConstraints, TypeAdapter, ValidationError

from arq_graph.errors import InputError
from arq_graph.milestones import suites

SHIPPED_SUITES = Path(suites.__file__).parent

NonEmptyText = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SkippedTask:
    """A task that the suite can't hold; the report says "2 skipped, because REASON"."""

    reason: str


def find_files(folder: Path, pattern: str, data_set: str) -> list[Path]:
    """Return the files of a name anywhere in a folder, sorted; InputError if there are none."""
    files = sorted(folder.rglob(pattern))
    if not files:
        raise InputError(f"{folder} has no {pattern}: give the unpacked folder of {data_set}")
    return files


def read_smallest(folder: Path, pattern: str, shape: Any, data_set: str) -> Any:
    """Return the content of the smallest file of a name, after checking that it has the shape.

    Keys that the shape doesn't name are kept.

    Raises:
        InputError: No file has that name, or the smallest isn't as published.
    """
    file = min(find_files(folder, pattern, data_set), key=lambda path: path.stat().st_size)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        TypeAdapter(shape).validate_python(content)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = "".join(f"[{key!r}]" for key in problem["loc"]) or "the whole file"
        raise InputError(
            f"{file}: {place}: {problem['msg']}; that is not as in {data_set}: unpack the data again"
        ) from None
    except ValueError as error:
        raise InputError(f"{file} isn't valid JSON: {error}") from None
    return content


def write_suite(
    out: Path,
    shipped_suite: str,
    scenarios: Iterable[dict[str, Any] | SkippedTask],
    limit: int,
    files: Mapping[str, Any],
) -> Path:
    """Copy a shipped suite into a new folder, with other scenarios and data, and return the suite's file.

    Args:
        out: The new folder.
        shipped_suite: The suite whose agent, world and milestones are used, such as `shop`.
        scenarios: Scenarios as they stand in a suite's file, or the reason why a task was skipped.
        limit: The number of scenarios to write, at most.
        files: Texts, or data to be written as JSON, by file name; read after the last scenario was made.

    Raises:
        InputError: The folder exists, the limit is below 1, or every task was skipped.
    """
    if limit < 1:
        raise InputError(f"the number of tasks must be at least 1, not {limit}")
    if out.exists():
        raise InputError(f"{out} exists: give a folder that is new")
    written: list[dict[str, Any]] = []
    skipped: Counter[str] = Counter()
    for scenario in scenarios:
        if isinstance(scenario, SkippedTask):
            skipped[scenario.reason] += 1
            continue
        written.append(scenario)
        if len(written) == limit:
            break
    report = "".join(f"\n{count} skipped, because {reason}" for reason, count in skipped.items())
    if not written:
        raise InputError(f"the data has no task that the suite {shipped_suite!r} can hold{report}")

    shutil.copytree(SHIPPED_SUITES / shipped_suite, out, ignore=shutil.ignore_patterns("__pycache__"))
    for name, data in files.items():
        text = data if isinstance(data, str) else json.dumps(data)
        (out / name).write_text(text, encoding="utf-8")
    suite = {"defaults": {"agent": "agent.yaml"}, "scenarios": written}
    suite_file = out / "suite.yaml"
    suite_file.write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    tasks = "1 task" if len(written) == 1 else f"{len(written)} tasks"
    _log.info("%s: %s written%s", suite_file, tasks, report)
    return suite_file
