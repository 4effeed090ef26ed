"""`arq-graph demo`: the shipped order desk in a conversation, and with simulated users."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from rich.rule import Rule
from rich.text import Text
from typer import Option

from arq_graph.cli import options
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import DialogueOptions, open_dialogue
from arq_graph.cli.evaluation import (
    read_reported_transcripts,
    require_complete,
    show_conversations,
    show_evaluation,
)
from arq_graph.cli.explain import LEGEND
from arq_graph.cli.model_choice import OFFLINE, ModelChoice, choose_model
from arq_graph.cli.report_view import format_count
from arq_graph.cli.run import read_customer_messages
from arq_graph.cli.screen import join_parts, safe_text, show, show_command, stdout_console
from arq_graph.cli.threads import DEFAULT_FILE
from arq_graph.cli.turn_view import customer_view, show_outcome
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones.evaluation.evaluate import evaluate
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.html_page import write_html
from arq_graph.milestones.reports.tables import BY_USER, build_tables

_ARMS = ["guided", "pre-act"]
_PAGE = DEFAULT_FILE.with_name("demo.html")
_FIGURES = (
    "A helpful customer says what is asked, a perturbed one doesn't have the ids at hand, an unhelpful one guesses "
    "wrongly. Progress rate: the mean share of the way there that was covered."
)


def demo(
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    evaluation: Annotated[
        bool | None,
        Option(
            "--evaluation/--no-evaluation",
            help="End with an evaluation on simulated users. Default: only with the offline model.",
        ),
    ] = None,
) -> None:
    """Watch the shipped order desk in a conversation, then with simulated users; needs no key."""
    folder = Path(str(files("arq_graph.examples.order_desk")))
    model_choice = choose_model(model, base_url, model_arg)
    _show_conversation(folder, model_choice)
    if evaluation is None and model_choice.spec != OFFLINE:
        remark = "Simulated users were left out, because they take many calls: --evaluation runs them."
        show(remark, style="dim")
    elif evaluation is not False:
        _show_evaluation(folder / "suite.yaml", model_choice)


def _show_conversation(folder: Path, model_choice: ModelChoice) -> None:
    settings = DialogueOptions(
        folder / "agent.yaml", model_choice, milestones_file=folder / "milestones.yaml"
    )
    with open_dialogue(settings, operator=approve_all) as dialogue:
        name = safe_text(dialogue.agent.name, "bold")
        show(join_parts(name, f" · {model_choice.name} · thread {dialogue.thread}"))
        show(dialogue.agent.profile.strip(), LEGEND, style="dim")
        messages = _show_messages(read_customer_messages(folder / "conversation.txt"))
        dialogue.run(messages, lambda outcome: show_outcome(outcome, dialogue.agent))
    show("", "Why did it say that?")
    show_command(["arq-graph", "explain"])
    show("Talk to it yourself:")
    show_command(["arq-graph", "chat", settings.agent_file, *settings.resume_options])


def _show_messages(messages: list[str]) -> Iterator[str]:
    """Yield each message after it is shown with the number of its turn."""
    for turn, message in enumerate(messages, start=1):
        show("", Rule(Text(f" {turn} "), align="left", style="dim"))
        show(customer_view(message))
        show("")
        yield message


def _show_evaluation(suite_file: Path, model_choice: ModelChoice) -> None:
    suite = Suite.from_yaml(suite_file)
    arms = load_arms(_ARMS, folder=suite_file.parent)
    customers = format_count(len(suite.scenarios), "simulated customer")
    show("", f"{customers}, each with the desk as {' and as '.join(_ARMS)}", style="bold")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.jsonl"
        with show_conversations(suite, arms, runs=1) as on_conversation:
            report = evaluate(
                suite, arms, model=model_choice.chat_model(), results=results, on_conversation=on_conversation
            )
        _PAGE.parent.mkdir(parents=True, exist_ok=True)
        transcripts = read_reported_transcripts(report, results)
        write_html(_PAGE, report, transcripts, title="The order desk and its simulated customers")
    show("")
    tables = [table for table in build_tables(report) if table.title == BY_USER]
    show_evaluation(report, tables, resume_hint="", is_verbose=True)
    require_complete([report], resume_hint="")
    show("", _FIGURES, style="dim")
    show("Every conversation, and where each of them stopped:")
    stdout_console().print(safe_text(f"  {_PAGE}", "bold"), soft_wrap=True)
    show("Run more conversations:")
    results = _PAGE.with_name("evaluation.jsonl")
    arm_names = ",".join(_ARMS)
    show_command(
        ["arq-graph", "evaluate", suite_file, "--arms", arm_names, "--runs", 3, "--results", results]
    )
