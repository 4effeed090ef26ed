"""`arq-graph check`, `prepare`, `graph` and `schema`: an agent's file without a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from langchain_core.tools import BaseTool
from pydantic import BaseModel
from rich.text import Text
from typer import Argument

from arq_graph.agent.preparation import needs_preparation
from arq_graph.agent.spec import Agent, Guideline, get_answers_path
from arq_graph.agent.tool_file import ToolFile
from arq_graph.apps.agents import create_guided_agent
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.options import AgentFile, BaseUrl, Model, ModelArgs
from arq_graph.cli.progress_display import StepDisplay
from arq_graph.cli.screen import heading, join_parts, name_grid, safe_text, stdout_console, warn
from arq_graph.cli.turn_view import guideline_text
from arq_graph.milestones.evaluation.suite import SuiteFile
from arq_graph.milestones.graph_file import MilestoneFile
from arq_graph.milestones.tool_schemas import get_tool_name
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.confirmation import format_example_question
from arq_graph.nodes.tool_arguments import ToolArguments

_SHORT = 200
_SCHEMAS: dict[str, type[BaseModel]] = {
    "agent": Agent,
    "tools": ToolFile,
    "milestones": MilestoneFile,
    "suite": SuiteFile,
}


def check(agent: AgentFile) -> None:
    """Read an agent's file as a run would, and show what is in it."""
    read = Agent.from_yaml(agent)
    create_guided_agent(ScriptedChatModel([]), read)  # compiling asks no model
    console = stdout_console()
    console.print(safe_text(read.name, "bold"))
    console.print(safe_text(read.profile.strip(), "dim"))
    parts = {
        "Guidelines": [(guideline.id, list(_guideline(guideline))) for guideline in read.guidelines],
        "Tools": [(name, list(_tool(read, tool))) for name, tool in read.toolbox.items()],
        "Glossary": [(term.name, [safe_text(term.description)]) for term in read.glossary],
        "Variables": [(variable.name, [safe_text(variable.description)]) for variable in read.variables],
    }
    for title, rows in parts.items():
        if rows:
            console.print(heading(f"{title} ({len(rows)})"))
            console.print(name_grid(rows))
    console.print()
    if unprepared := sum(map(needs_preparation, read.guidelines)):
        warn(
            f"{unprepared} of {len(read.guidelines)} guidelines are unprepared: what never changes about them is asked "
            f"again in every turn; `arq-graph prepare {agent}` asks it once"
        )
    console.print(safe_text(f"{agent} can be run.", "green"))


def prepare(
    agent: AgentFile, model: Model = None, model_arg: ModelArgs = None, base_url: BaseUrl = None
) -> None:
    """Ask once what never changes about the guidelines, and save it beside the file."""
    choice = choose_model(model, base_url, model_arg)
    unprepared = Agent.from_yaml(agent)
    asked_model = choice.chat_model()
    with StepDisplay().show("asking about the guidelines"):
        prepared = unprepared.prepare(asked_model)
    console = stdout_console()
    pairs = zip(unprepared.guidelines, prepared.guidelines, strict=True)
    asked = [after for before, after in pairs if needs_preparation(before)]
    for each in asked:
        kept_up = "kept up" if each.continuous else "done once"
        tools = "a tool's result can" if each.sensitive_to_tools else "no tool's result can"
        console.print(join_parts(safe_text(each.id, "cyan"), f"  {kept_up}; {tools} call for it"))
    every = len(prepared.guidelines)
    if not asked:
        console.print(safe_text(f"Nothing was left to ask: all {every} guidelines are settled."))
        return
    kept = get_answers_path(prepared.file or agent)
    console.print(
        safe_text(f"{len(asked)} of {every} guidelines were asked about; the answers are in {kept}.")
    )


def graph(agent: AgentFile) -> None:
    """Print the agent's graph as Mermaid."""
    app = create_guided_agent(ScriptedChatModel([]), Agent.from_yaml(agent))  # drawing asks no model
    print(app.get_graph().draw_mermaid(), end="")


def schema(
    kind: Annotated[
        Literal["agent", "tools", "milestones", "suite"],
        Argument(help="The kind of file.", show_choices=True),
    ],
) -> None:
    """Print the JSON Schema of a kind of file, for completion and checks in an editor."""
    print(json.dumps(_SCHEMAS[kind].model_json_schema(), indent=2, ensure_ascii=False))


def _guideline(guideline: Guideline) -> Iterator[Text]:
    yield safe_text(guideline_text(guideline.condition_text, guideline.action))
    notes = [f"calls {', '.join(map(get_tool_name, guideline.tools))}"] if guideline.tools else []
    for relation in ("entails", "depends_on", "overrides"):
        targets = getattr(guideline, relation)
        notes += [f"{relation.replace('_', ' ')} {', '.join(targets)}"] if targets else []
    if guideline.priority:
        notes.append(f"priority {guideline.priority}")
    if guideline.continuous is not None:
        notes.append("kept up" if guideline.continuous else "done once")
    if notes:
        yield safe_text(" · ".join(notes), "dim")


def _tool(agent: Agent, tool: BaseTool) -> Iterator[Text]:
    listed = ", ".join(
        f"{each.name}: {each.type}" + ("" if each.required else ", optional")
        for each in ToolArguments(tool).arguments
    )
    yield safe_text(tool.description, limit=_SHORT)
    yield safe_text(f"takes {listed or 'nothing'}", "dim")
    confirmed = agent.confirm.get(tool.name)
    asks = f" · asks the {confirmed.by} first" if confirmed else ""
    granted = ", ".join(agent.grants[tool.name])
    always = "always available" if tool.name in agent.always_available else f"for {granted}"
    yield safe_text(f"{always}{asks}", "dim")
    if confirmed and confirmed.by == "customer":
        yield safe_text(f'asked as: "{format_example_question(agent, tool.name)}"', "dim")
