"""Show the progress and the results of `evaluate`, `experiment` and `demo`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from arq_graph.cli.progress_display import progress_bar
from arq_graph.cli.report_view import format_count, incomplete_exit, show_broken, show_report
from arq_graph.cli.screen import warn
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import Arm
from arq_graph.milestones.evaluation.evaluation_run import OnConversation
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.table_format import Table, make_table
from arq_graph.milestones.transcript import Result, Transcript

_ERRORS_ARE_NOT_REPEATED = (
    "--resume does not repeat a conversation that ended in an error: to ask the model again, delete its line from the "
    "results, or start with new results."
)


def format_resume_hint(results: Path) -> str:
    """Return how to continue a run whose conversations are saved in a file or folder."""
    return f"What ended is saved in {results}: the same command with --resume continues from there."


@contextmanager
def show_conversations(
    suite: Suite, arms: Mapping[str, Arm], runs: int, resume_hint: str = ""
) -> Iterator[OnConversation]:
    """Show a progress bar inside the block; yield a function to call after each conversation."""
    count = len(list(suite.plan_conversations(list(arms), runs)))
    with progress_bar("conversing", count, "went wrong", resume_hint) as advance:
        yield lambda _, outcome: advance(outcome.error is not None and outcome.ended != "limit")


def show_evaluation(
    report: Report, tables: Iterable[Table], resume_hint: str, *, suite: str = "", has_judge: bool = True
) -> None:
    """Print what could not be measured, the limit that ended the run, and the report.

    Args:
        report: What was measured.
        tables: Its tables.
        resume_hint: How to continue the run.
        suite: The suite's name, if there are several.
        has_judge: Whether a judge was asked.
    """
    show_broken(report.failed, "measured")
    if report.stopped:
        missing = format_count(report.missing, "conversation")
        if suite:
            missing += f" of {suite}"
        place = "Missing below" if report.conversations else "No conversation was finished. Missing"
        hint = _require_higher_limit(report.stopped, resume_hint)
        warn(f"{report.stopped}. {place}: {missing}. {hint}")
    if report.conversations:
        show_report(report, tables, suite=suite, has_judge=has_judge)


def _require_higher_limit(stopped: str, resume_hint: str) -> str:
    limit = stopped.partition(":")[0]
    if limit not in ("max_cost", "max_calls"):
        return resume_hint
    # The calls of the first run count too, so the same limit would stop the next one at once.
    hint = resume_hint.replace("--resume", f"--resume and a higher --{limit.replace('_', '-')}")
    return f"{hint} What was cut off is run again; a lower --concurrency cuts off less."


def require_complete(reports: Sequence[Report], resume_hint: str) -> None:
    """End the command with the exit code for incomplete results if a conversation failed or ended in an error.

    Raises:
        InputError: Nothing could be measured.
        Exit: Some conversations failed or ended in an error.
    """
    has_failed = any(report.failed for report in reports)
    conversations = [conversation for report in reports for conversation in report.conversations]
    if has_failed and not conversations:
        raise InputError("nothing could be measured")
    if not has_failed and not any(conversation.error for conversation in conversations):
        return
    can_resume = any(report.broken or report.missing for report in reports)
    if resume_hint and not can_resume:
        resume_hint = _ERRORS_ARE_NOT_REPEATED
    raise incomplete_exit(resume_hint)


def read_reported_transcripts(report: Report, results: Path) -> Iterator[Transcript]:
    """Yield the conversations of a report, in the order of the results file."""
    remaining_ids = {record.id for record in report.conversations}
    for record, transcript in read_results(results):
        if record.id in remaining_ids:
            remaining_ids.remove(record.id)  # of a conversation that was run twice, the first counts
            yield transcript


def make_exception_tables(report: Report, results: Path) -> list[Table]:
    """Return a table that counts by tool the exceptions of failed calls; none if no call failed.

    A world may raise an exception on purpose, or by mistake.
    """
    if not any(conversation.moves.get("invalid") for conversation in report.conversations):
        return []
    calls: Counter[str] = Counter()
    exceptions: Counter[tuple[str, str]] = Counter()
    for transcript in read_reported_transcripts(report, results):
        for event in transcript.measured_events:
            if not isinstance(event, Result):
                continue
            calls[event.tool] += 1
            exception = event.text.partition(":")[0]
            if event.failed and exception.isidentifier():
                exceptions[event.tool, exception] += 1
    if not exceptions:
        return []
    rows = {}
    for (tool, exception), count in sorted(exceptions.items()):
        rows[f"{tool}: {exception}"] = {"failed": f"{count:,} of {calls[tool]:,}"}
    return [make_table("exceptions of tools", ["failed"], rows)]
