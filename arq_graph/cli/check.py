"""`arq-graph check`: read an agent as a run would, and say what is in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

from langchain_core.tools import BaseTool
from rich.text import Text

from arq_graph.agent.spec import Agent, Guideline
from arq_graph.apps.guided import create_guided_agent
from arq_graph.cli.failures import warn
from arq_graph.cli.options import AgentFile
from arq_graph.cli.screen import output, printable, table, words
from arq_graph.cli.threads import when
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.confirmation import question_example
from arq_graph.nodes.spec_sections import condition_text
from arq_graph.nodes.tool_arguments import ToolArguments

_SHORT = 200
_RELATIONS = {"entails": "entails", "depends_on": "depends on", "overrides": "overrides"}


def check(agent: AgentFile) -> None:
    """Read an agent as a run would, and see what is in it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", UserWarning)
        read = Agent.from_yaml(agent)
        create_guided_agent(ScriptedChatModel([]), read)  # compiling asks no model
    console = output()
    console.print(words(read.name, "bold"))
    console.print(words(read.profile.strip(), "dim"))
    for title, rows in _parts(read):
        console.print()
        console.print(words(f"{title} ({len(rows)})", "bold"))
        console.print(table(rows))
    console.print()
    for remark in [str(each.message) for each in found if issubclass(each.category, UserWarning)]:
        warn(remark)
    for remark in _remarks(read, agent):
        warn(remark)
    console.print(words(f"{agent} can be run.", "green"))


def _parts(agent: Agent) -> Iterator[tuple[str, list[tuple[str, list[Text]]]]]:
    yield "Guidelines", [(guideline.id, list(_guideline(guideline))) for guideline in agent.guidelines]
    if agent.toolbox:
        yield "Tools", [(name, list(_tool(agent, tool))) for name, tool in agent.toolbox.items()]
    if agent.glossary:
        yield "Glossary", [(term.name, [words(term.description)]) for term in agent.glossary]
    if agent.variables:
        yield "Variables", [(variable.name, [words(variable.description)]) for variable in agent.variables]


def _guideline(guideline: Guideline) -> Iterator[Text]:
    yield words(f"{when(condition_text(guideline))}: {guideline.action}")
    notes = [f"calls {', '.join(_name(tool) for tool in guideline.tools)}"] if guideline.tools else []
    for relation, said in _RELATIONS.items():
        if targets := getattr(guideline, relation):
            notes.append(f"{said} {', '.join(targets)}")
    if guideline.priority:
        notes.append(f"priority {guideline.priority}")
    if guideline.continuous is not None:
        notes.append("kept up" if guideline.continuous else "done once")
    if notes:
        yield words(" · ".join(notes), "dim")


def _tool(agent: Agent, tool: BaseTool) -> Iterator[Text]:
    arguments = ToolArguments(tool).arguments
    listed = ", ".join(
        f"{each.name}: {each.type}" + ("" if each.required else ", optional") for each in arguments
    )
    yield words(printable(tool.description, _SHORT))
    yield words(f"takes {listed or 'nothing'}", "dim")
    granted = ", ".join(agent.grants[tool.name])
    confirmed = agent.confirm.get(tool.name)
    asks = f" · asks the {confirmed.by} first" if confirmed else ""
    always = "always available" if tool.name in agent.always_available else f"for {granted}"
    yield words(f"{always}{asks}", "dim")
    if confirmed and confirmed.by == "customer":
        yield words(f'asked as: "{question_example(agent, tool.name)}"', "dim")


def _remarks(agent: Agent, file: Path) -> Iterator[str]:
    if not agent.guidelines:
        yield "it has no guidelines: all it follows is its profile"
    if unprepared := [g.id for g in agent.guidelines if _is_unprepared(g)]:
        yield (
            f"{len(unprepared)} of {len(agent.guidelines)} guidelines are unprepared: what never changes about them "
            f"is asked again in every turn; `arq-graph prepare {file}` asks it once"
        )
    for name, tool in agent.toolbox.items():
        if getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None:
            yield f"tool {name!r} is async only: it cannot run in this program, only with ainvoke and astream"


def _is_unprepared(guideline: Guideline) -> bool:
    asks_about_results = isinstance(guideline.condition, str) and guideline.sensitive_to_tools is None
    return (guideline.continuous is None and guideline.action is not None) or asks_about_results


def _name(tool: object) -> str:
    return str(getattr(tool, "name", tool))
