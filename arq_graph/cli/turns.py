"""`arq-graph turns`: evaluate single turns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.apps.agents import create_guided_agent
from arq_graph.cli import options
from arq_graph.cli.input_files import read_tools
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.progress_display import progress_bar
from arq_graph.cli.report_view import figure_table, format_count, incomplete_exit, show_broken
from arq_graph.cli.screen import note, print_json, safe_text, show, stdout_console, warn
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.reports.table_format import format_number
from arq_graph.milestones.turn_level.turn_evaluation import evaluate_turns
from arq_graph.milestones.turn_level.turn_metrics import TurnMetrics, measure_similarity
from arq_graph.milestones.turn_level.turn_steps import TurnStep, read_steps

_MAX_PAIRS = 10
_AGENT_HELP = "Evaluate this agent, with --model, instead of the model alone."
_OUT_HELP = "Save every outcome here, one line per step; the same command continues where it stopped."
_NO_TOOLS = (
    "neither the records nor --tools name any tool: the model can only answer, and every step that is a tool call "
    "will be wrong; name them with --tools"
)


def turns(
    dataset: Annotated[
        Path,
        Argument(
            metavar="DATASET", help="Recorded conversations, as of OpenAI, Anthropic, LangChain or tau-bench."
        ),
    ],
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    agent: Annotated[Path | None, Option("--agent", metavar="AGENT.yaml", help=_AGENT_HELP)] = None,
    mode: options.ModeOption = "arq",
    tools: options.Tools = None,
    limit: Annotated[
        int | None, Option("--limit", "-n", min=1, metavar="N", help="Ask only the first N steps.")
    ] = None,
    concurrency: Annotated[
        int,
        options.declare_count(
            "--concurrency", "How many steps to ask at once, up to 64. Default: 4.", max=64
        ),
    ] = 4,
    out: Annotated[Path | None, options.declare_file("--out", _OUT_HELP)] = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate single turns: given the recorded history, is the next action the recorded one?

    At every step of a recorded conversation, the model or the agent is asked for its next action: a tool call or the
    final answer. No tool runs. With --out, the same command asks again about steps that ended in an error; the exit
    code is 1 if there are any.
    """
    known_tools = read_tools(agent, tools)
    steps, broken = read_steps(dataset, limit)
    if not steps:
        reason = f"; the first broken record: {broken[0].error}" if broken else ""
        raise InputError(f"the dataset holds no step: no message of an agent follows one of a user{reason}")
    if known_tools is None and not _has_tools(steps):
        warn(_NO_TOOLS)
    model_choice = choose_model(model, base_url, model_arg)
    subject: Any = model_choice.chat_model()
    name = model_choice.name
    agent_version = "none"
    if agent is not None:
        # The records of a customer's agreement are not in a recorded conversation: each call that needs an agreement
        # would be a question once more.
        spec = Agent.from_yaml(agent).replace(confirm={})
        subject = create_guided_agent(subject, spec, mode=mode, summary=None)
        known_tools = None  # the agent has its own
        name = f"{agent} ({mode}), {model_choice.name}"
        agent_version = f"{fingerprint(agent)}, {mode}"
    note(f"{name} · {len(steps)} steps")
    with progress_bar("steps", len(steps), "failed") as advance:
        evaluation = evaluate_turns(
            subject,
            dataset,
            tools=known_tools,
            limit=limit,
            results=out,
            depends_on={"the model": model_choice.name, "the agent": agent_version},
            on_step=lambda outcome: advance(outcome.error is not None),
            concurrency=concurrency,
        )
    if evaluation.resumed:
        note(f"{out} already held {format_count(evaluation.resumed, 'step')}, which were not asked again")
    show_broken(evaluation.broken, "read")
    metrics = evaluation.metrics
    if as_json:
        similarity = measure_similarity.__name__
        broken_records = [record.model_dump() for record in evaluation.broken]
        record = {"dataset": str(dataset), "asked": name, "similarity": similarity}
        print_json(record | {"metrics": metrics.model_dump(), "broken": broken_records})
    else:
        _show_metrics(name, metrics)
    if metrics.errors == metrics.steps:
        raise ReasoningError(f"every step ended in an error; the last: {evaluation.outcomes[-1].error}")
    if metrics.errors or evaluation.broken:
        raise incomplete_exit()


def _has_tools(steps: Sequence[TurnStep]) -> bool:
    transcripts = [step.transcript for step in steps]
    return any(transcript.tools or transcript.extra.get("tools") for transcript in transcripts)


def _show_metrics(name: str, metrics: TurnMetrics) -> None:
    steps = format_count(metrics.steps, "step")
    conversations = format_count(metrics.conversations, "conversation")
    stdout_console().print(safe_text(f"{steps} of {conversations} · {name}", "bold"), soft_wrap=True)
    calls, answers, matches = metrics.tool_calls, metrics.final_answers, metrics.parameter_match
    figures = (
        ("action recall", metrics.action_recall.rate, metrics.action_recall.n, "steps"),
        ("tool calls: precision", calls.precision, calls.predicted, "calls predicted"),
        ("tool calls: recall", calls.recall, calls.actual, "calls made"),
        ("tool calls: F1", calls.f1, calls.predicted + calls.actual, "both"),
        ("parameter match (full)", matches.rate, matches.n, "steps, tools right"),
        ("final answers: precision", answers.precision, answers.predicted, "answers predicted"),
        ("final answers: recall", answers.recall, answers.actual, "answers given"),
        ("final answers: F1", answers.f1, answers.predicted + answers.actual, "both"),
        ("answer similarity (words)", metrics.similarity.mean, metrics.similarity.n, "steps, both answers"),
    )
    rows = [(title, [format_number(value, ".3f"), f"{n:,}", unit]) for title, value, n, unit in figures]
    show(figure_table("figure", ["value", "n", "of"], rows))
    pairs = []
    for mistake in metrics.mistaken[:_MAX_PAIRS]:
        pairs.append((f"{mistake.truth} → {mistake.predicted}", [f"{mistake.count:,}"]))
    if pairs:
        show("", figure_table("Taken for another (truth → predicted)", ["n"], pairs))
