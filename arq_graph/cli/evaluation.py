"""Prepare a run of `evaluate`, `experiment`, `simulate` or `demo`, and show its progress and its results."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from typer import BadParameter

from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.progress_display import progress_bar
from arq_graph.cli.report_view import (
    EXCEPTIONS,
    format_count,
    incomplete_exit,
    list_names,
    show_broken,
    show_report,
)
from arq_graph.cli.screen import note, warn
from arq_graph.errors import InputError, SpecError, suggestion
from arq_graph.experiments.ablations import parse_ablation
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones.evaluation.arms import Arm, Arms, read_world_outcome
from arq_graph.milestones.evaluation.evaluation_run import OnConversation
from arq_graph.milestones.evaluation.results import read_results
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.table_format import Table, make_table
from arq_graph.milestones.transcript import MODEL_ROLES, Result, Transcript
from arq_graph.milestones.users.user_spec import KINDS
from arq_graph.models.resolve import is_offline

_ERRORS_ARE_NOT_REPEATED = (
    "--resume does not repeat a conversation that ended in an error: to ask the model again, delete its line from the "
    "results, or start with new results."
)


@dataclass(frozen=True)
class EvaluationModels:
    """The models of an evaluation, and their names as they are shown, by `model`, `user_model` and `judge`.

    Users and judges are optional; `votes` says how often the judge is asked.
    """

    by_role: Mapping[str, BaseChatModel]
    names: Mapping[str, str]
    votes: int = 1

    @property
    def has_judge(self) -> bool:
        """True if a judge is asked."""
        return "judge" in self.by_role

    @property
    def settings(self) -> dict[str, Any]:
        """The models as arguments of `aevaluate`."""
        depends_on = {MODEL_ROLES[role]: name for role, name in self.names.items()}
        settings: dict[str, Any] = {**self.by_role, "depends_on": depends_on}
        if self.has_judge:
            settings["judge"] = LLMJudge(self.by_role["judge"], votes=self.votes)
            if self.votes > 1:
                depends_on["the judge's votes"] = str(self.votes)
        return settings


def choose_models(
    model: str | None,
    model_args: Sequence[str] | None,
    user_model: str | None,
    judge: str | None,
    votes: int,
    base_url: str | None,
) -> EvaluationModels:
    """Choose the models that the options name."""
    if votes > 1 and not judge:
        raise BadParameter("--votes says how often to ask the judge: name one with --judge")
    choices = {"model": choose_model(model, base_url, model_args)}
    for role, name in {"user_model": user_model, "judge": judge}.items():
        if name:
            choices[role] = choose_model(name, base_url)
    models = {role: choice.chat_model() for role, choice in choices.items()}
    names = {role: choice.name for role, choice in choices.items()}
    return EvaluationModels(models, names, votes)


def parse_prices(text: str | None, max_cost: float | None) -> dict[str, tuple[float, float]]:
    """Return the prices of a million input and output tokens by model: those of --prices, which --max-cost needs."""
    if max_cost is not None and not (text and max_cost > 0):
        raise BadParameter("--max-cost needs --prices, such as --prices gpt-4o=2.5/10, and more than 0")
    prices: dict[str, tuple[float, float]] = {}
    if not text:
        return prices
    for entry in text.split(","):
        match = re.fullmatch(r"(.+)=(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", entry.strip())
        if match is None:
            raise BadParameter(f"--prices {entry}: it must be written MODEL=IN/OUT, such as gpt-4o=2.5/10")
        prices[match[1]] = (float(match[2]), float(match[3]))
    return prices


def filter_scenarios(suites: Mapping[Path, Suite], names: Sequence[str]) -> dict[Path, Suite]:
    """Keep the scenarios of some categories and kinds of users; a suite without any is left out, with a note.

    Raises:
        InputError: A name is neither a category nor a kind of user, or no scenario is left.
    """
    scenarios = chain.from_iterable(suite.scenarios for suite in suites.values())
    use_cases = {scenario.use_case for scenario in scenarios if scenario.use_case}
    kinds = [name for name in names if name in KINDS and name not in use_cases]
    categories = [name for name in names if name not in kinds]
    for category in categories:
        if category not in use_cases:
            known_names = sorted(use_cases) + list(KINDS)
            hint = suggestion(category, known_names) or f"; there are {list_names(known_names)}"
            raise InputError(f"there is no category (`use_case`) and no kind of user {category!r}{hint}")
    filtered = {}
    for file, suite in suites.items():
        selected = []
        for scenario in suite.scenarios:
            has_category = not categories or scenario.use_case in categories
            if has_category and (not kinds or scenario.user_kind in kinds):
                selected.append(scenario)
        if selected:
            filtered[file] = suite.replace(scenarios=selected)
        else:
            note(f"{suite.name} is left out: it has no scenario of {', '.join(names)}.")
    if not filtered:
        raise InputError(f"no scenario is left: --only {','.join(names)} fits none")
    return filtered


def prepare_arms(
    suite: Suite, names: list[str], folder: Path, model: BaseChatModel
) -> tuple[Suite, dict[str, Arm]]:
    """Load the arms and try to make each of them; return them with the scenarios that all of them can play.

    Modules of the user's own are looked for in the folder.

    Raises:
        InputError: A world or an arm would fail in each scenario of a kind, so that no run is worth its cost.
    """
    loaded = load_arms(names, folder=folder)
    arms = Arms(loaded, model)
    suite = arms.select_comparable(suite)
    examples = _choose_examples(suite)
    for scenario in examples:
        # A mistake in a world is not the arm's, so the world is checked first. Nothing has happened in it.
        read_world_outcome(scenario.make_world(suite.seed))
    for name, scenario in product(loaded, examples):
        try:
            arms.prepare_app(PlannedConversation(name, scenario, 1, suite.seed))
        except (InputError, SpecError) as error:
            raise InputError(f"the arm {name!r} cannot be tried on {suite.name!r}: {error}") from error
        except (Exception, SystemExit):
            continue  # the user's own code, which may fail in one conversation alone
    note_limitations(model, names, suite.scenarios)
    return suite, loaded


def _choose_examples(suite: Suite) -> list[Scenario]:
    """Return the first scenario of each kind of setup: with or without an agent, by world, for the matcher alone."""
    examples: dict[tuple[bool, int, bool], Scenario] = {}
    for scenario in suite.scenarios:
        setup = (scenario.agent is None, id(scenario.unbound_world_factory), scenario.matcher_only)
        examples.setdefault(setup, scenario)
    return list(examples.values())


def note_limitations(model: BaseChatModel, arms: Sequence[str], scenarios: Sequence[Scenario]) -> None:
    """Print what the offline model can't do with these arms, and how many conversations share their tools."""
    # LangChain would log that a conversation's limit of calls was reached, and the report says so, too.
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)
    if is_offline(model) and "create_agent" in arms:
        note("The offline model never calls a tool that is bound to it: the arm create_agent can only talk.")
    shared_count = 0
    for scenario in scenarios:
        if scenario.user and scenario.agent and scenario.world is None:
            shared_count += 1
    if shared_count:
        note(
            f"{format_count(shared_count, 'scenario')} without a `world`: their conversations share the agent's own "
            "tools, and see what others have changed."
        )


def describe_ablations(arms: Iterable[str]) -> dict[str, str]:
    """Return the steps that lack queries by the arms in which they do."""
    steps = {}
    for arm in arms:
        ablation = parse_ablation(arm)
        if ablation:
            steps[arm] = " and ".join(ablation.without)
    return steps


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
        yield lambda _, conversation: advance(
            conversation.error is not None and conversation.ended != "budget"
        )


def show_evaluation(
    report: Report,
    tables: Iterable[Table],
    resume_hint: str,
    *,
    is_verbose: bool,
    suite: str = "",
    has_judge: bool = True,
) -> None:
    """Print what could not be measured, the limit that ended the run, and the report.

    The suite's name is needed if there are several; `has_judge` says whether a judge was asked.
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
        show_report(report, tables, is_verbose=is_verbose, suite=suite, has_judge=has_judge)


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
    conversations = list(chain.from_iterable(report.conversations for report in reports))
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
    return [make_table(EXCEPTIONS, ["failed"], rows)]
