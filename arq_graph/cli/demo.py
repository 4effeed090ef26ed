"""`arq-graph demo`: the shipped order desk in a conversation."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from arq_graph.cli.conversation_file import read_customer_turns
from arq_graph.cli.demo_evaluation import evaluate_demo, page_beside
from arq_graph.cli.explanation import LEGEND
from arq_graph.cli.opening import Setup, opened_dialogue
from arq_graph.cli.operator import approve_all
from arq_graph.cli.screen import command, output, sentence, words
from arq_graph.cli.settings import OFFLINE
from arq_graph.cli.turn_view import customer_said, heading, outcome_of

_STAND_IN = (
    "The offline model stands in for a real one, to show how the graph runs. It compares the stems of words, finds "
    "values by their shape, and says what stands between quotes in the guidelines and what the tools told."
)


def demo_folder() -> Path:
    """Where the order desk's files are."""
    return Path(str(files("arq_graph.examples.order_desk")))


def hold_demo(setup: Setup, *, evaluation: bool | None = None) -> None:
    """Hold the order desk's conversation, print every turn, and try the desk on simulated users.

    Args:
        setup: The order desk, and what to ask.
        evaluation: Whether to end with the evaluation; None: where the offline model answers, as it costs nothing.

    Raises:
        ArqGraphError: The thread, the model or a file cannot be used, or the model gives no answer.
    """
    _hold(setup)
    console = output()
    if evaluation is None and setup.choice.spec != OFFLINE:
        console.print(
            words("Not tried on simulated users, which takes many calls: --evaluation does it.", "dim")
        )
    elif evaluation is not False:
        guided = "guided" if setup.mode == "arq" else f"guided:{setup.mode}"
        console.print()
        evaluate_demo(
            setup.file.with_name("suite.yaml"), setup.choice, page_beside(setup.db), tried=(guided, "pre-act")
        )


def _hold(setup: Setup) -> None:
    console = output()
    with opened_dialogue(setup, operator=approve_all) as dialogue:
        title = f" · {setup.choice.name} · thread {dialogue.thread}"
        console.print(sentence(words(dialogue.agent.name, "bold"), title))
        console.print(words(dialogue.agent.profile.strip(), "dim"))
        console.print(words(LEGEND, "dim"))
        if setup.choice.spec == OFFLINE:
            console.print(words(_STAND_IN, "dim"))
        dialogue.finish()
        for text in read_customer_turns(setup.file.with_name("conversation.txt")):
            console.print()
            console.print(heading(len(dialogue.said()) + 1))
            console.print(customer_said(text))
            console.print()
            for part in outcome_of(dialogue.say(text), dialogue.agent):
                console.print(part)
        console.print()
        if dialogue.ways_on:
            console.print(words("Why did it say that?"))
            console.print(command("arq-graph", "explain", *setup.db_option), soft_wrap=True)
        console.print(words("Talk to it yourself:"))
        console.print(
            command("arq-graph", "chat", setup.file, *setup.db_option, *setup.graph_options), soft_wrap=True
        )
