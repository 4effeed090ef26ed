"""`arq-graph demo`: the shipped order desk in a conversation, and with simulated users."""

from __future__ import annotations

import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from rich.rule import Rule
from rich.text import Text
from typer import Option

from arq_graph.cli import options
from arq_graph.cli.chat import approve_all
from arq_graph.cli.dialogue import DEFAULT_FILE, Setup, opened_dialogue
from arq_graph.cli.evaluation import conversing, require_all_run, said_in, show
from arq_graph.cli.run import read_customer_turns
from arq_graph.cli.screen import output, sentence, show_command, words
from arq_graph.cli.tables import counted
from arq_graph.cli.turn import LEGEND, customer_said, outcome_of
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones.evaluation.runner import evaluate
from arq_graph.milestones.evaluation.suite import Suite
from arq_graph.milestones.reports.html import write_html
from arq_graph.milestones.reports.tables import BY_USER, CUSTOMERS_GOAL, PROGRESS, tables_of

_TABLES = (CUSTOMERS_GOAL, BY_USER, PROGRESS)
_FIGURES = (
    "A helpful customer says what is asked, a perturbed one has no numbers, an unhelpful one guesses wrongly. "
    "Progress rate: the mean share of the way there that was covered. […] are 95% intervals."
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
    choice = options.choose_model(model, base_url, model_arg)
    _hold(Setup(folder / "agent.yaml", choice, milestones=folder / "milestones.yaml"))
    if evaluation is None and choice.spec != options.OFFLINE:
        said = "Simulated users were left out, because they take many calls: --evaluation runs them."
        output().print(words(said, "dim"))
    elif evaluation is not False:
        _evaluate(folder / "suite.yaml", choice, DEFAULT_FILE.with_name("demo.html"), ["guided", "pre-act"])


def _hold(setup: Setup) -> None:
    console = output()
    with opened_dialogue(setup, operator=approve_all) as dialogue:
        title = f" · {setup.choice.name} · thread {dialogue.thread}"
        console.print(sentence(words(dialogue.agent.name, "bold"), title))
        for line in (dialogue.agent.profile.strip(), LEGEND):
            console.print(words(line, "dim"))
        turns = read_customer_turns(setup.file.with_name("conversation.txt"))
        for turn, text in enumerate(turns, start=1):
            console.print()
            console.print(Rule(Text(f" {turn} "), align="left", style="dim"))
            console.print(customer_said(text))
            console.print()
            for part in outcome_of(dialogue.say(text), dialogue.agent):
                console.print(part)
        console.print()
        console.print(words("Why did it say that?"))
        show_command(console, "arq-graph", "explain")
        console.print(words("Talk to it yourself:"))
        show_command(console, "arq-graph", "chat", setup.file, *setup.options)


def _evaluate(suite_file: Path, choice: options.ModelChoice, page: Path, tried: list[str]) -> None:
    suite = Suite.from_yaml(suite_file)
    apps = load_arms(tried, folder=suite_file.parent)
    console = output()
    count = len(suite.scenarios)
    said = f"{counted(count, 'simulated customer')}, each with the desk as {' and as '.join(tried)}"
    console.print()
    console.print(words(said, "bold"))
    with tempfile.TemporaryDirectory() as kept:
        file = Path(kept) / "results.jsonl"
        with conversing(suite, apps, {}, "") as done:
            report = evaluate(suite, apps, model=choice.chat_model(), results=file, done=done)
        page.parent.mkdir(parents=True, exist_ok=True)
        write_html(page, report, said_in(report, file), title="The order desk and its simulated customers")
    console.print()
    show(report, (each for each in tables_of(report) if each.title in _TABLES), way_on="")
    require_all_run([report], way_on="")
    console.print()
    console.print(words(_FIGURES, "dim"))
    console.print(words("Every conversation, and where each of them stopped:"))
    console.print(words(f"  {page}", "bold"), soft_wrap=True)
    console.print(words("Run more conversations:"))
    again = ("--arms", ",".join(tried), "--runs", 3, "--results", page.with_name("evaluation.jsonl"))
    show_command(console, "arq-graph", "evaluate", suite_file, *again)
