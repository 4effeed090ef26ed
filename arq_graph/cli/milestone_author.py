"""`arq-graph milestones author`: have a model make a milestone file of a workflow."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from arq_graph.cli.failures import note, warn
from arq_graph.cli.milestone_check import summary
from arq_graph.cli.milestone_file import check_new, write_whole
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import command, output, words
from arq_graph.cli.settings import OFFLINE, ModelChoice
from arq_graph.errors import InputError
from arq_graph.milestones.authoring.author import LONGEST_WORKFLOW, author_milestones
from arq_graph.reasoning.blueprint import Mode

_MOST_BYTES = 4 * LONGEST_WORKFLOW


def author_file(
    workflow: Path, tools: Any, choice: ModelChoice, out: Path, *, mode: Mode, force: bool
) -> None:
    """Make a milestone file of a workflow, and say how it is reviewed.

    Args:
        workflow: What the agent is to do, in words; `-` is standard input.
        tools: The agent's tools.
        choice: The model that is asked.
        out: The file to make.
        mode: `arq`, `cot` or `direct`.
        force: Whether a file that is there may be replaced.

    Raises:
        InputError: The workflow cannot be read, or the file not be made.
        ReasoningError: The model gave no sound graph.
    """
    check_new(out, force=force)
    text = _read(workflow)
    if choice.notice:
        note(choice.notice)
    with Progress().shown(f"asking {choice.name} for the milestones"):
        graph = author_milestones(text, tools, choice.spec, base_url=choice.base_url, mode=mode)
    check_new(out, force=force)  # it may have come into being meanwhile
    write_whole(out, graph.to_yaml())
    console = output()
    console.print(summary(graph))
    console.print()
    if choice.spec == OFFLINE:
        warn("the offline model only puts the tools in the order in which the workflow mentions them")
    console.print(
        words(
            f"Written to {out}. Nobody has reviewed it, so what it measures is doubtful: look it over, and then "
            "write `reviewed: {by: your name, date: today}` at its top. This draws it:"
        )
    )
    console.print(command("arq-graph", "milestones", "draw", out), soft_wrap=True)


def _read(workflow: Path) -> str:
    try:
        if str(workflow) == "-":
            content = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with workflow.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"the workflow {workflow} cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        if len(content) > _MOST_BYTES:  # cut off inside a character
            return content.decode("utf-8-sig", errors="replace")
        raise InputError(f"the workflow {workflow} is not UTF-8; save it as UTF-8") from None
