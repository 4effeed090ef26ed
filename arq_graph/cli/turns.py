"""`arq-graph turns`: evaluate single turns."""

from __future__ import annotations

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
from arq_graph.cli.screen import note, print_json, safe_text, stdout_console, warn
from arq_graph.cli.tables import columns, counted, incomplete, show_broken
from arq_graph.errors import InputError, ReasoningError
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.reports.shown import number
from arq_graph.milestones.turn_level.evaluation import aevaluate_turns
from arq_graph.milestones.turn_level.metrics import TurnMetrics, lexical_similarity
from arq_graph.milestones.turn_level.steps import read_steps

_MOST_PAIRS = 10
_NO_TOOLS = (
    "neither the records nor --tools name any tool: the model can only answer, and every step that is a tool call "
    "will be wrong; name them with --tools"
)


def turns(
    dataset: Annotated[
        Path,
        Argument(
            metavar="DATASET",
            help="Recorded conversations: OpenAI or LangChain messages, tau-bench, Pre-Act, Glaive.",
        ),
    ],
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    agent: Annotated[
        Path | None,
        Option(metavar="AGENT.yaml", help="Evaluate this agent, with --model, instead of the model alone."),
    ] = None,
    mode: options.ModeOption = "arq",
    tools: options.Tools = None,
    limit: Annotated[
        int | None, Option("--limit", "-n", min=1, metavar="N", help="Ask only the first N steps.")
    ] = None,
    concurrency: Annotated[int, Option(min=1, max=64, help="How many steps to ask at once.")] = 4,
    out: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Save every outcome here, one line per step; the same command continues where it stopped.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Evaluate single turns: given the recorded history, is the next action the recorded one?

    At every step of a recorded conversation, the model or the agent is asked for its next action: a tool call or the
    final answer. No tool runs. With --out, the same command asks again about steps that ended in an error; the exit
    code is 1 if there are any.
    """
    known = read_tools(agent, tools)
    steps, broken = read_steps(dataset, limit)
    if not steps:
        said = f"; the first broken record: {broken[0].error}" if broken else ""
        raise InputError(f"the dataset holds no step: no message of an agent follows one of a user{said}")
    recorded = (step.transcript for step in steps)
    if known is None and not any(each.tools or each.extra.get("tools") for each in recorded):
        warn(_NO_TOOLS)
    choice = choose_model(model, base_url, model_arg)
    asked: Any = choice.chat_model()
    name, who = choice.name, "none"
    if agent is not None:
        # What a customer has agreed to stands in records, which a recorded conversation does not hold: each call that
        # waits for a yes would be a question once more.
        asked = create_guided_agent(asked, Agent.from_yaml(agent).replace(confirm={}), mode=mode)
        name, who = f"{agent} ({mode}), {choice.name}", f"{fingerprint(agent)}, {mode}"
    note(f"{name} · {len(steps)} steps")
    with progress_bar("steps", len(steps), "failed") as advance:
        evaluation = aevaluate_turns(
            asked,
            dataset,
            tools=known if agent is None else None,
            limit=limit,
            results=out,
            depends_on={"the model": choice.name, "the agent": who},
            on_step=lambda outcome: advance(outcome.error is not None),
            concurrency=concurrency,
        )
        found = run_in_loop(evaluation, "aevaluate_turns")
    if found.kept:
        note(f"{out} already held {counted(found.kept, 'step')}, which were not asked again")
    show_broken(found.broken, "read")
    if as_json:
        compared = {"dataset": str(dataset), "asked": name, "similarity": lexical_similarity.__name__}
        lost = [each.model_dump() for each in found.broken]
        print_json({**compared, "metrics": found.metrics.model_dump(), "broken": lost})
    else:
        _show(name, found.metrics)
    if found.metrics.errors == found.metrics.steps:
        raise ReasoningError(f"every step ended in an error; the last: {found.outcomes[-1].error}")
    if found.metrics.errors or found.broken:
        raise incomplete()


def _show(asked: str, metrics: TurnMetrics) -> None:
    console = stdout_console()
    said = f"{counted(metrics.steps, 'step')} of {counted(metrics.conversations, 'conversation')} · {asked}"
    console.print(safe_text(said, "bold"), soft_wrap=True)
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
    rows = ((name, [number(value, ".3f"), f"{n:,}", of]) for name, value, n, of in figures)
    console.print(columns("figure", ["value", "n", "of"], rows))
    pairs = [(f"{each.truth} → {each.predicted}", [f"{each.count:,}"]) for each in metrics.mistaken]
    if pairs:
        console.print()
        title = "Taken for another (truth → predicted)"
        console.print(columns(title, ["n"], pairs[:_MOST_PAIRS]))
