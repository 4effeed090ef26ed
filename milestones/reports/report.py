"""A report over many conversations: their records, the graphs they were measured on, the figures; and its file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field, ValidationError

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.errors import InputError
from arq_graph.milestones.reports.comparison import ArmComparison, compare_arms
from arq_graph.milestones.reports.figures import Summary, summarize
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    GraphRecord,
    Record,
    grouped,
)
from arq_graph.reasoning.sections import clean

_WRONG_SHOWN = 3


class ReportSummary(Record):
    """The figures over all conversations, and over each group of them.

    Use cases are in alphabetical order, the arms and kinds of users of an evaluation in the report's;
    `comparisons` are of each arm with each one after it, or with the one that it leaves something out of.
    """

    overall: Summary
    use_cases: Mapping[str, Summary] = {}
    arms: Mapping[str, Summary] = {}
    arms_by_user: Mapping[str, Mapping[str, Summary]] = {}
    comparisons: tuple[ArmComparison, ...] = ()


class Report(Record):
    """What was measured over many conversations; the JSON that `arq-graph score --json` writes.

    Args:
        schema_version: The version of this form, written as `schema`.
        stand_ins: What a stand-in did in place of a model or a person, such as "the agent's model" or "the judge":
            such figures show that everything runs, and are no evidence. Empty: nothing.
        conversations: One record a conversation, in the order of the source.
        broken: The records that could not be scored.
        graphs: The graphs that were measured on, by name.
        missing: How many conversations of an evaluation were not finished, because its limit was reached.
        stopped: What was reached, where they are missing.
    """

    # A file also holds the summary, which is computed from the rest.
    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    schema_version: Literal[1] = Field(default=1, alias="schema")
    stand_ins: tuple[str, ...] = ()
    conversations: tuple[ConversationRecord, ...]
    broken: tuple[BrokenConversation, ...] = ()
    graphs: Mapping[str, GraphRecord] = {}
    missing: int = 0
    stopped: str | None = None

    @cached_property
    def summary(self) -> ReportSummary:
        """The figures; the JSON holds them, and they are computed anew from the conversations of one that is read."""
        arms = grouped(self.conversations, attrgetter("arm"))
        return ReportSummary(
            overall=summarize(self.conversations),
            use_cases=dict(sorted(_summaries(self.conversations, "use_case").items())),
            arms={name: summarize(group) for name, group in arms.items()},
            arms_by_user={name: _summaries(group, "user") for name, group in arms.items()},
            comparisons=compare_arms(arms),
        )

    @property
    def failed(self) -> tuple[BrokenConversation, ...]:
        """The records that could not be scored; what a limit cut off is missing, and none of them."""
        return tuple(one for one in self.broken if one.ended != "limit")


def _summaries(records: Iterable[ConversationRecord], what: str) -> dict[str, Summary]:
    return {name: summarize(group) for name, group in grouped(records, attrgetter(what)).items()}


def stand_in_notice(stand_ins: Sequence[str]) -> str | None:
    """What is said above figures that a stand-in had a part in; None where none had."""
    if not stand_ins:
        return None
    listed = " and ".join(filter(None, [", ".join(stand_ins[:-1]), stand_ins[-1]]))
    was = "was a stand-in" if len(stand_ins) == 1 else "were stand-ins"
    return f"No evidence: {listed} {was}. These figures show that everything runs, not how good an agent is."


def write_report(path: str | Path, report: Report) -> None:
    """Write a report as JSON; the file is there whole or as it was before.

    Raises:
        InputError: It cannot be written there.
    """
    held = report.model_dump(mode="json", by_alias=True)
    held["summary"] = report.summary.model_dump(mode="json")
    # Pydantic cannot write a lone surrogate, which a transcript's names may hold.
    write_atomically(path, clean(json.dumps(held, ensure_ascii=False, indent=1)) + "\n")


def read_report(path: str | Path) -> Report:
    """Read a report that `write_report` wrote.

    Raises:
        InputError: It cannot be read, is not JSON, or no report; the message names the file and what is wrong.
    """
    try:
        return Report.model_validate_json(Path(path).read_text(encoding="utf-8-sig"))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
        told = [": ".join(filter(None, (".".join(map(str, one["loc"])), one["msg"]))) for one in wrong]
        raise InputError(
            f"{path}: is no report of schema 1, as the option --json of a command writes them: "
            f"{'; '.join(told[:_WRONG_SHOWN])}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"the report {path} cannot be read: {why}") from error
