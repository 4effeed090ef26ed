"""A report over many conversations: their records, their graphs, the figures, and its file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field, ValidationError
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.agent.notebook import render_table
from arq_graph.agent.regular_file import MAX_DATA_BYTES, read_regular_file
from arq_graph.errors import InputError, describe_first_error
from arq_graph.milestones.reports.main_table import RECORDED, build_main_table
from arq_graph.milestones.reports.paired import ComparedGroup, compare_arms, find_reference_arms
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    GraphRecord,
    Record,
    group_by,
)
from arq_graph.milestones.reports.rows import Row, make_row
from arq_graph.milestones.reports.summary import Summary, summarize
from arq_graph.milestones.reports.table_format import RecordsByArm
from arq_graph.milestones.reports.verdict import write_verdict
from arq_graph.reasoning.sections import clean


class ReportSummary(Record):
    """The figures over all conversations, by use case in alphabetical order, and by arm in the report's order."""

    overall: Summary
    use_cases: Mapping[str, Summary] = {}
    arms: Mapping[str, Summary] = {}


class Report(Record):
    """The measurements of many conversations; the JSON that `arq-graph score --json` writes.

    Args:
        schema_version: The version of this form, written as `schema`.
        stand_ins: The parts that fakes played, such as "the agent's model" or "the judge" for the offline model: such
            figures show that everything runs, and are no evidence.
        conversations: One record a conversation, in the order of the source.
        broken: The records that could not be scored.
        graphs: The graphs that were measured on, by name.
        missing: The number of conversations of an evaluation that were not finished, because its limit was reached.
        stopped: The limit that was reached, if some are missing.
    """

    # A file also holds the verdict and the summary, which are computed from the rest.
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
        """The figures; the JSON holds them, and those of a report that is read are computed anew."""
        use_cases = group_by(self.conversations, lambda record: record.use_case)
        arms = group_by(self.conversations, lambda record: record.arm)
        return ReportSummary(
            overall=summarize(self.conversations),
            use_cases={name: summarize(use_cases[name]) for name in sorted(use_cases)},
            arms={arm: summarize(records) for arm, records in arms.items()},
        )

    @cached_property
    def main_arms(self) -> RecordsByArm:
        """The conversations by arm, in the report's order, without ablations of another arm among them.

        Those that no arm of an evaluation ran are `recorded`.
        """
        arms = group_by(self.conversations, lambda record: record.arm or RECORDED)
        ablations = find_reference_arms(arms)
        return {arm: records for arm, records in arms.items() if arm not in ablations}

    @cached_property
    def arm_comparisons(self) -> Mapping[tuple[str, str], ComparedGroup]:
        """The differences between each two of the main arms; p is corrected for the number of pairs (Holm)."""
        return compare_arms(self.main_arms, combinations(self.main_arms, 2))

    @cached_property
    def verdict(self) -> tuple[str, ...]:
        """At most three sentences on what the figures show; the JSON holds them, too.

        Which arm completes more, by the paired differences of the arms; where conversations stop, and with which kind
        of simulated customer; and which rule is broken most often. What the figures don't decide is not said. If fakes
        took part (`stand_ins`), the sentences are no evidence, either.
        """
        return write_verdict(self.main_arms, self.arm_comparisons)

    @property
    def failed(self) -> tuple[BrokenConversation, ...]:
        """The records that could not be scored, without those that the run's budget cut off, which are missing."""
        return tuple(record for record in self.broken if record.ended != "budget")

    def to_rows(self) -> list[Row]:
        """Return one flat dict for each conversation, as in `pandas.DataFrame(report.to_rows())`.

        Those that could not be measured come last, with `is_measured` False. All rows have the same columns, and what
        isn't known is None. Columns have the names and meanings of the fields of a `ConversationRecord`, with lists as
        their lengths (`forbidden`, `wasted_calls`). `progress_at_least` and `progress_at_most` are the ends of the
        progress rate, 0 to 1, which are equal if it is decided; `goal_completed` and `goal_reached` are True, False, or
        None if undecided; `stopped_at` is the last milestone on the way of a conversation that missed the goal, and
        `seconds` the time that all turns took.
        """
        return [make_row(record) for record in (*self.conversations, *self.broken)]

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield "conversations", len(self.conversations)
        yield "arms", list(group_by(self.conversations, lambda record: record.arm))
        yield "broken", len(self.broken)

    def _repr_html_(self) -> str:
        """Return the figures of each arm as a notebook shows them."""
        table = build_main_table(self.main_arms)
        rows = [(row.name, *row.cells) for row in table.rows]
        notice = format_stand_in_notice(self.stand_ins) or ""
        return render_table(("", *table.columns), rows, (notice, *self.verdict, *table.notes))


def format_stand_in_notice(stand_ins: Sequence[str]) -> str | None:
    """Return the notice above figures in which fakes played a part; None if there were none."""
    if not stand_ins:
        return None
    verb = "was a fake"
    parts = stand_ins[0]
    if len(stand_ins) > 1:
        verb = "were fakes"
        parts = f"{', '.join(stand_ins[:-1])} and {stand_ins[-1]}"
    return f"No evidence: {parts} {verb}. These figures show that everything runs, not how good an agent is."


def write_report(path: str | Path, report: Report) -> None:
    """Write a report as JSON, atomically.

    Raises:
        InputError: It cannot be written there.
    """
    content: dict[str, Any] = {}
    for name, field in Report.model_fields.items():
        content[field.alias or name] = getattr(report, name)
    content["verdict"] = report.verdict
    content["summary"] = report.summary
    try:
        text = to_json(content, by_alias=True, indent=1).decode()
    except PydanticSerializationError:  # of a lone surrogate, which a transcript's names may hold
        values = to_jsonable_python(content, by_alias=True)
        text = clean(json.dumps(values, ensure_ascii=False, indent=1))
    write_atomically(path, text + "\n")


def read_report(path: str | Path) -> Report:
    """Read a report that `write_report` wrote.

    Raises:
        InputError: It can't be read, or isn't a report; the message names the file and the problem.
    """
    try:
        content = read_regular_file(path, MAX_DATA_BYTES)
        return Report.model_validate_json(content.decode("utf-8-sig"))
    except ValidationError as error:
        raise InputError(
            f"{path}: isn't a report of schema 1, as the option --json of a command writes them: "
            f"{describe_first_error(error)}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"the report {path} cannot be read: {reason}") from error
