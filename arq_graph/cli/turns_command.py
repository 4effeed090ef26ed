"""`arq-graph turns`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arq_graph.cli.failures import reported
from arq_graph.cli.options import AsJson, BaseUrl, Debug, Model, ModeOption, choice_of, loading


def turns(
    dataset: Annotated[
        Path,
        typer.Argument(
            metavar="DATASET",
            help="Recorded conversations: OpenAI or LangChain messages, tau-bench, Pre-Act, Glaive.",
        ),
    ],
    model: Model = None,
    base_url: BaseUrl = None,
    agent: Annotated[
        Path | None,
        typer.Option(
            metavar="AGENT.yaml", help="Evaluate this agent, on --model, instead of the model alone."
        ),
    ] = None,
    mode: ModeOption = "arq",
    predictions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Ask nothing: compare the actions of a JSON Lines file, {"id", "step", "calls" or "answer"} a line. '
            "`step` counts, from 1 in each conversation, the agent's messages with words or calls after the user's "
            "first; `id` is the conversation's, or where it has none its number in the file, from 0.",
        ),
    ] = None,
    tools: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The model's tools, a JSON list of OpenAI definitions. Else those of the records.",
        ),
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help="The dataset's format. Else each record is recognised.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, metavar="N", help="The first N steps only.")
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, max=64, help="How many steps to ask at once.")] = 4,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep every outcome here, a line a step; the same command goes on where it stopped.",
        ),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Evaluate single turns: is each next action the recorded one, given the true history?

    At every step of a recorded conversation the model or the agent is asked for its next action: a tool call or the
    final answer. No tool runs. A step that failed with an error is asked again by the same command with --out.
    """
    if predictions is not None and (given := [o for o, v in (("--agent", agent), ("--out", out)) if v]):
        raise typer.BadParameter(f"--predictions asks nothing: leave {given[0]} out")
    if agent is not None and tools is not None:
        raise typer.BadParameter("an agent has its own tools: leave --tools out")
    with reported(debug):
        choice = choice_of(model, base_url)
        with loading():
            from arq_graph.cli.turns import Asked, Evaluated, evaluate
        evaluate(
            Evaluated(dataset, format, limit, out, as_json),
            predictions if predictions is not None else Asked(choice, agent, mode, tools, concurrency),
        )
