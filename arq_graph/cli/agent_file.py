"""`arq-graph check`, `prepare`, `graph` and `schema`: an agent's file without a conversation."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain_core.tools import BaseTool
from pydantic import BaseModel
from rich.console import RenderableType
from typer import Argument, BadParameter, Option

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.journey import Journey
from arq_graph.agent.preparation import needs_preparation
from arq_graph.agent.reply import Reply
from arq_graph.agent.spec import Agent, get_answers_path
from arq_graph.agent.tool_file import ToolFile
from arq_graph.apps.agents import create_guided_agent
from arq_graph.cli import options
from arq_graph.cli.journey_view import draw_journey
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.progress_display import StepDisplay
from arq_graph.cli.screen import join_parts, name_grid, note, safe_text, show, show_heading, warn
from arq_graph.cli.threads import load_last_turn, open_existing_threads
from arq_graph.cli.turn_view import guideline_text
from arq_graph.milestones.evaluation.suite_file import SuiteFile
from arq_graph.milestones.graph_file import MilestoneFile
from arq_graph.milestones.tool_schemas import get_tool_name
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.confirmation import format_example_question
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.yes import names_listed_yes
from arq_graph.reasoning.sections import as_json

_DESCRIPTION_LIMIT = 200
_EXAMPLES: dict[str, Any] = {
    "integer": 3,
    "number": 3.55,
    "boolean": True,
    "date": "2026-03-01",
    "date-time": "2026-03-01T12:30:00Z",
    "time": "12:30:00",
    "duration": "PT90M",
    "email": "a@example.com",
    "uri": "https://example.com/a",
    "uuid": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
}
"""By the type or format of a JSON schema, an example of its values."""
FILE_MODELS: dict[str, type[BaseModel]] = {
    "agent": Agent,
    "tools": ToolFile,
    "milestones": MilestoneFile,
    "suite": SuiteFile,
}


def check(agent: options.AgentFile) -> None:
    """Read an agent's file as a run would, and show what is in it."""
    spec = Agent.from_yaml(agent)
    create_guided_agent(ScriptedChatModel([]), spec)  # compiling asks no model
    show(spec.name, style="bold")
    show(spec.profile.strip(), style="dim")
    _show_section("Guidelines", {guideline.id: _guideline_lines(guideline) for guideline in spec.guidelines})
    _show_section("Journeys", {journey.id: _journey_lines(journey) for journey in spec.journeys})
    _show_section("Offers", {offer.id: _guideline_lines(offer.rule) for offer in spec.offers})
    _show_section("Tools", {name: _tool_lines(spec, tool) for name, tool in spec.toolbox.items()})
    _show_section("Glossary", {term.name: [term.description] for term in spec.glossary})
    _show_section("Variables", {variable.name: [variable.description] for variable in spec.variables})
    _show_section(f"Replies, {spec.composition}", {reply.id: _reply_lines(reply) for reply in spec.replies})
    knowledge_lines: dict[str, list[RenderableType]] = {}
    for number, knowledge in enumerate(spec.knowledge, start=1):
        limits = f"up to {knowledge.max_passages} passages, {knowledge.max_tokens:,} tokens, in {knowledge.timeout:g} s"
        knowledge_lines[f"{number} {knowledge.name}"] = [limits]
    _show_section("Knowledge", knowledge_lines)
    check_lines: dict[str, list[RenderableType]] = {}
    for number, check in enumerate(spec.checks, start=1):
        consequences = (
            f"{check.on}: {check.then} if it fails, {check.on_error} on an error, in {check.timeout:g} s"
        )
        check_lines[f"{number} {check.label}"] = [consequences]
    _show_section("Checks", check_lines)
    show("")
    for name, confirmation in spec.confirm.items():
        _warn_of_unstable_values(ToolSchema(spec.toolbox[name]))
        if confirmation.reply and not names_listed_yes(confirmation.reply, confirmation.yes):
            warn(
                f"confirm.{name}: `reply` names no answer that counts as a yes, so the customer isn't told how to "
                "agree: name one, such as 'yes', or list the one that it names under `yes`"
            )
    for journey in spec.journeys:
        _warn_of_available_tools(journey, spec.always_available)
    unprepared = sum(map(needs_preparation, spec.judged_rules))
    if unprepared:
        note(
            f"`arq-graph prepare {agent}` saves tokens: it asks once what never changes about a guideline. For "
            f"{unprepared} of {len(spec.judged_rules)} guidelines, this is still asked in every turn."
        )
    show(f"{agent} can be run.", style="green")


def _warn_of_available_tools(journey: Journey, always_available: Container[str]) -> None:
    """Warn of tools that can be called before their step is open, which then doesn't count for the step."""
    for step in journey.steps:
        for name in map(get_tool_name, step.tools):
            if name in always_available:
                warn(
                    f"journeys: the step {step.id!r} of {journey.id!r} unlocks {name}, but it is always available, so "
                    "that it may be called before its turn; remove it from the agent's `tools`"
                )


def _warn_of_unstable_values(tool: ToolSchema) -> None:
    """Warn if an example call of a tool could not be agreed to; an example that the tool refuses shows nothing."""
    arguments: dict[str, Any] = {}
    for argument in tool.arguments:
        if argument.required:
            arguments[argument.name] = _make_example(argument.inlined_schema)
    if tool.validate(arguments):
        return
    completed, problems = tool.complete(arguments)
    for problem in problems:
        warn(f"{tool.name} cannot be agreed to with values such as {as_json(completed)}: {problem.message}")


def _make_example(schema: Any) -> Any:
    """Return a value of a type, as a JSON schema says it."""
    if not isinstance(schema, Mapping):
        return "A"
    for keyword in ("default", "const"):
        if keyword in schema:
            return schema[keyword]
    if choices := schema.get("enum"):
        return choices[0]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _make_example(choices[0])
    kind, text_format = schema.get("type"), str(schema.get("format"))
    if kind == "array":
        return [_make_example(schema.get("items"))]
    if kind == "object":
        required = schema.get("required", ())
        return {name: _make_example(schema.get("properties", {}).get(name)) for name in required}
    if kind in ("integer", "number"):
        return schema.get("minimum", _EXAMPLES[kind])
    return _EXAMPLES.get(text_format, _EXAMPLES.get(str(kind), "A"))


def prepare(
    agent: options.AgentFile,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
) -> None:
    """Ask once what never changes about the guidelines, and save it beside the file."""
    model_choice = choose_model(model, base_url, model_arg)
    spec = Agent.from_yaml(agent)
    chat_model = model_choice.chat_model()
    with StepDisplay().show("asking about the guidelines"):
        prepared = spec.prepare(chat_model)
    open_ids = {guideline.id for guideline in spec.judged_rules if needs_preparation(guideline)}
    count = len(spec.judged_rules)
    if not open_ids:
        show(f"Nothing was left to ask: all {count} guidelines are prepared.")
        return
    for guideline in prepared.judged_rules:
        if guideline.id in open_ids:
            show(join_parts(safe_text(guideline.id, "cyan"), f"  {_describe_properties(guideline)}"))
    file = get_answers_path(prepared.file or agent)
    show(f"{len(open_ids)} of {count} guidelines were asked about; the answers are in {file}.")


def graph(
    agent: options.AgentFile,
    journey: Annotated[
        str | None, Option("--journey", metavar="ID", help="Print this journey of the agent instead.")
    ] = None,
    thread: Annotated[
        str | None, Option("--thread", "-t", metavar="ID", help="Mark how far the journey is in this thread.")
    ] = None,
    db: options.Database = None,
) -> None:
    """Print the agent's graph, or one of its journeys, as Mermaid."""
    if journey is not None:
        print(_draw_journey(Agent.from_yaml(agent), journey, thread, db), end="")
        return
    if thread is not None:
        raise BadParameter("--thread goes together with --journey: name the journey that is to be drawn")
    app = create_guided_agent(ScriptedChatModel([]), Agent.from_yaml(agent))  # drawing asks no model
    print(app.get_graph().draw_mermaid(), end="")


def _draw_journey(agent: Agent, id: str, thread: str | None, db: Path | None) -> str:
    journey = agent.get_journey(id)
    if thread is None:
        return draw_journey(journey)
    with open_existing_threads(db) as threads:
        turn = load_last_turn(thread, threads, agent.name)
    states = {state.journey: state for state in turn.journeys}
    if id not in states:
        warn(f"the journey {id!r} has not begun in thread {thread!r}")
    return draw_journey(journey, states.get(id))


def schema(
    kind: Annotated[
        Literal["agent", "tools", "milestones", "suite"],
        Argument(metavar="KIND", help="The kind of file: agent, tools, milestones or suite."),
    ],
) -> None:
    """Print the JSON Schema of a kind of file, for completion and checks in an editor."""
    print(json.dumps(FILE_MODELS[kind].model_json_schema(), indent=2, ensure_ascii=False))


def _show_section(title: str, entries: Mapping[str, Sequence[RenderableType]]) -> None:
    if entries:
        show_heading(f"{title} ({len(entries)})")
        show(name_grid(entries.items()))


def _describe_repetition(guideline: Guideline) -> str:
    return "kept up" if guideline.continuous else "done once"


def _describe_properties(guideline: Guideline) -> str:
    trigger = "a tool's result can" if guideline.sensitive_to_tools else "no tool's result can"
    if guideline.action is None:
        return f"{trigger} call for it"
    return f"{_describe_repetition(guideline)}; {trigger} call for it"


def _guideline_lines(guideline: Guideline) -> list[RenderableType]:
    lines: list[RenderableType] = [guideline_text(guideline.condition_text, guideline.action)]
    remarks = " · ".join(_guideline_remarks(guideline))
    if remarks:
        lines.append(safe_text(remarks, "dim"))
    return lines


def _journey_lines(journey: Journey) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if journey.condition is not None:
        lines.append(guideline_text(journey.condition_rule.condition_text))
    for step in journey.steps:
        line = safe_text(step.describe())
        if step.tools:
            line.append_text(safe_text(f" · calls {', '.join(map(get_tool_name, step.tools))}", "dim"))
        lines.append(line)
    if journey.give_up:
        lines.append(safe_text(f"ends when {journey.give_up}", "dim"))
    return lines


def _guideline_remarks(guideline: Guideline) -> Iterator[str]:
    if guideline.tools:
        yield f"calls {', '.join(map(get_tool_name, guideline.tools))}"
    for relation in ("entails", "depends_on", "overrides"):
        targets = getattr(guideline, relation)
        if targets:
            yield f"{relation.replace('_', ' ')} {', '.join(targets)}"
    if guideline.priority:
        yield f"priority {guideline.priority}"
    if guideline.continuous is not None:
        yield _describe_repetition(guideline)


def _reply_lines(reply: Reply) -> list[RenderableType]:
    lines: list[RenderableType] = [safe_text(text) for text in reply.texts.values()]
    condition = "otherwise" if reply.otherwise else reply.when
    if condition:
        lines.append(safe_text(condition, "dim"))
    for name, field in reply.fields.items():
        sources = [source for source in (field.result, field.variable) if source]
        sources += [source for source in ("customer", "knowledge") if getattr(field, source)]
        lines.append(safe_text(f"{name}: {field.type} from {' or '.join(sources)}", "dim"))
    return lines


def _tool_lines(agent: Agent, tool: BaseTool) -> list[RenderableType]:
    arguments = []
    for argument in ToolSchema(tool).arguments:
        optional = "" if argument.required else "; optional"
        arguments.append(f"{argument.name} ({argument.type}{optional})")
    access = "always available"
    if tool.name not in agent.always_available:
        access = f"for {', '.join(agent.grants[tool.name])}"
    confirmation = agent.confirm.get(tool.name)
    if confirmation:
        access += f" · asks the {confirmation.by} first"
    lines: list[RenderableType] = [
        safe_text(tool.description, limit=_DESCRIPTION_LIMIT),
        safe_text(f"takes {', '.join(arguments) or 'nothing'}", "dim"),
        safe_text(access, "dim"),
    ]
    if confirmation and confirmation.by == "customer":
        lines.append(safe_text(f'asked as: "{format_example_question(agent, tool.name)}"', "dim"))
    return lines
