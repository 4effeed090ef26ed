"""`arq-graph prepare`: ask once what never changes about the guidelines."""

from __future__ import annotations

from rich.text import Text

from arq_graph.agent.spec import Agent, Guideline, prepared_path
from arq_graph.cli.failures import note, warn
from arq_graph.cli.options import AgentFile, BaseUrl, Model
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import entry, output, sentence, words
from arq_graph.cli.settings import OFFLINE, choose_model


def prepare(agent: AgentFile, model: Model = None, base_url: BaseUrl = None) -> None:
    """Ask once what never changes about the guidelines, and keep it beside the file."""
    choice = choose_model(model, base_url)
    unprepared = Agent.from_yaml(agent)
    if choice.notice:
        note(choice.notice)
    with Progress().shown("asking about the guidelines"):
        prepared = unprepared.prepare(choice.chat_model())
    console = output()
    pairs = list(zip(unprepared.guidelines, prepared.guidelines, strict=True))
    for before, after in pairs:
        console.print(entry("●" if _differs(before, after) else "○", "green", [_known(after)]))
    asked = sum(_differs(*pair) for pair in pairs)
    console.print()
    if not asked:
        console.print(words(f"Nothing was left to ask: all {len(pairs)} guidelines are settled."))
        return
    kept = f"kept in {prepared_path(prepared.file)}" if prepared.file else "not kept"
    console.print(words(f"{asked} of {len(pairs)} guidelines were asked about; the answers are {kept}."))
    if choice.spec == OFFLINE:
        warn(
            "the offline model goes by words alone: look the answers over, or delete them and ask a real model"
        )


def _differs(before: Guideline, after: Guideline) -> bool:
    return (before.continuous, before.sensitive_to_tools) != (after.continuous, after.sensitive_to_tools)


def _known(guideline: Guideline) -> Text:
    kept_up = "kept up" if guideline.continuous else "done once"
    tools = (
        "a tool's result can call for it" if guideline.sensitive_to_tools else "no tool's result calls for it"
    )
    return sentence(words(guideline.id, "cyan"), f"  {kept_up}; {tools}")
