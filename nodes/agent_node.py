"""The base class of an agent's nodes, and functions that describe the agent in prompts, with ids to cite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack, get_origin

from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from arq_graph.agent.guideline import Guideline
from arq_graph.agent.record import Record
from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, require_type
from arq_graph.nodes.blueprint_node import PROMPTS, BlueprintNode
from arq_graph.nodes.events import ReplySent
from arq_graph.nodes.messages import make_agent_message
from arq_graph.nodes.node import get_channel_types
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.turn_records import read_passages
from arq_graph.reasoning.blueprint import ARQ, B, Mode, dump_in_mode
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.reasoner import ModelLike
from arq_graph.reasoning.sections import make_id


class NodeSettings(TypedDict, total=False):
    """The settings that the nodes of an agent share; see `BlueprintNode`."""

    template: str | Path | None
    mode: Mode | None
    temperature: float | None
    timeout: float | None
    max_attempts: int | None
    reads: Sequence[str] | Mapping[str, Any]
    history_tokens: int
    messages_key: str


class AgentNode(BlueprintNode[B]):
    """A step of an agent: its prompt begins with the agent's specification and worked examples (ARQ paper, 6.1.1).

    A subclass gives the name of its files in `prompts/` (a template and worked examples), the function that makes its
    blueprint, and a temperature.
    """

    prompt_name: ClassVar[str]
    make_example_blueprint: ClassVar[Callable[..., type[ARQ]]]
    """Makes the step's blueprint for the tools of a worked example."""
    full_blueprint_options: ClassVar[Mapping[str, Any]] = {}
    """Its options for the blueprint with all optional queries, which `list_blueprints` returns."""

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        blueprint: type[B] | None,
        **settings: Unpack[NodeSettings],
    ) -> None:
        advice = "make one with Agent(…), or read one with Agent.from_yaml(path)"
        self.agent = require_type("agent", agent, Agent, advice)
        self.agent_name = agent.name
        self.agent_fingerprint = agent.fingerprint
        if agent.checks:
            self.further_channels = {**self.further_channels, **get_channel_types("checks", "takeover")}
        options: dict[str, Any] = {**settings}
        template = options.pop("template", None) or PROMPTS / f"{self.prompt_name}.md"
        super().__init__(model, blueprint, template, **options)

    @classmethod
    def list_blueprints(cls, custom: type[ARQ] | None = None) -> list[type[ARQ]]:
        """Return blueprints that together have every query of the step, whatever the agent."""
        blueprints = super().list_blueprints(custom)
        for example in _read_examples(cls.prompt_name):
            blueprints.append(cls.make_example_blueprint(example["tools"], **cls.full_blueprint_options))
        return blueprints

    def render_head(self, **values: Any) -> str:
        """Render the head with the agent's profile and glossary, the worked examples, and these values."""
        settings = self.reasoner.settings
        examples = load_examples(
            self.prompt_name, self.make_example_blueprint, settings.mode, settings.derive
        )
        variables = describe_agent(self.agent) | {"examples": examples} | values
        return self.template.render("head", variables)

    def make_unreadable_reply(self, state: StateView) -> AIMessage:
        """Return the agent's reply to a message with something that the model can't be shown."""
        text = self.agent.unreadable
        state.emit(ReplySent(content=text, followed=(), satisfied=True))
        return make_agent_message(self.agent.name, text)

    def describe_turn(
        self, state: StateView, values: Mapping[str, Any], optional: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the sections that steps have in their prompts' tails: `variables`, `knowledge` and `now`.

        `now` has the line that began the turn, the `values`, and those `optional` values that aren't empty. A step that
        doesn't read `passages` gets no `knowledge`.
        """
        line = state.conversation.last_customer_line
        now: dict[str, Any] = {"turn": line.id if line else None}
        now.update(values)
        for name, entries in optional.items():
            if entries:
                now[name] = entries
        knowledge: list[dict[str, Any]] = []
        if "passages" in self.agent_state_channels:
            knowledge = describe_passages(self.agent, state)
        return {"variables": describe_variables(self.agent, state), "knowledge": knowledge, "now": now}


@cache
def load_examples(
    name: str, make_blueprint: Callable[..., type[ARQ]], mode: Mode, response_only: ResponseOnly | None
) -> list[dict[str, Any]]:
    """Return the worked examples of a data file as a mode's prompt shows them.

    In `arq` mode the prompt shows the filled queries, without those that are left out; in `cot` and `direct` only the
    response.
    """
    examples: list[dict[str, Any]] = []
    for example in _read_examples(name):
        blueprint = make_blueprint(example["tools"])
        if response_only:
            blueprint = response_only.derive(blueprint)
        answer = dump_in_mode(blueprint.model_validate(example["answer"]), mode)
        examples.append({"situation": example["situation"], "answer": answer})
    return examples


@cache
def _read_examples(name: str) -> list[dict[str, Any]]:
    """Read the examples of a data file, each with its situation, its answer and its tools."""
    import yaml  # imported here, so that the package's import is faster

    examples: list[dict[str, Any]] = yaml.safe_load((PROMPTS / f"{name}.yaml").read_text(encoding="utf-8"))
    for example in examples:
        tools: list[ToolSchema] = []
        for tool, schema in example.get("tools", {}).items():
            base_tool = StructuredTool(name=tool, description=tool, args_schema=schema, func=dict)
            tools.append(ToolSchema(base_tool))
        example["tools"] = tools
    return examples


def require_free_composition(agent: Agent) -> None:
    """Raise InputError if what a model writes can't be sent as it is, because the agent has replies to use."""
    if agent.composition != "free":
        raise InputError(
            f"agent {agent.name!r} has composition={agent.composition!r}, but here its model's words would be sent "
            "unrevised: give it a reviser, as create_guided_agent does, or take out `composition`"
        )


def describe_agent(agent: Agent) -> dict[str, Any]:
    """Describe the agent's profile and glossary, for the head of every prompt."""
    glossary: list[dict[str, Any]] = []
    for number, term in enumerate(agent.glossary, start=1):
        entry: dict[str, Any] = {
            "id": make_id("K", number),
            "name": term.name,
            "description": term.description,
        }
        if term.synonyms:
            entry["synonyms"] = list(term.synonyms)
        glossary.append(entry)
    profile = {"id": "P", "name": agent.name, "text": agent.profile}
    return {"profile": profile, "glossary": glossary, "has_knowledge": bool(agent.knowledge)}


def describe_guideline(guideline: Guideline) -> dict[str, Any]:
    """Describe a guideline, as all prompts do."""
    return {"id": guideline.id, "condition": guideline.condition_text, "action": guideline.action}


def describe_tool(agent: Agent, tool: ToolSchema, property_name: str = "") -> dict[str, Any]:
    """Describe a tool, with the guidelines that grant it, and the property name used for it in answers."""
    description: dict[str, Any] = {
        "name": tool.name,
        "description": tool.base_tool.description,
        "arguments": [argument.describe() for argument in tool.arguments],
        "granted_by": [describe_guideline(agent.get_guideline(id)) for id in agent.grants[tool.name]],
    }
    if tool.name in agent.get_confirmed_tools("customer"):
        description["needs_agreement"] = True
    if property_name and property_name != tool.name:
        description["key"] = property_name
    return description


def describe_variables(agent: Agent, state: StateView) -> list[dict[str, Any]]:
    """Describe the context variables that have a value in this thread or by default."""
    descriptions = {variable.name: variable.description for variable in agent.variables}
    entries: list[dict[str, Any]] = []
    for number, (name, value) in enumerate(get_variable_values(agent, state).items(), start=1):
        if value is None:
            continue
        entry: dict[str, Any] = {"id": make_id("V", number), "name": name}
        if name in descriptions:
            entry["description"] = descriptions[name]
        entry["value"] = value
        entries.append(entry)
    return entries


def describe_passages(agent: Agent, state: StateView) -> list[dict[str, Any]]:
    """Describe the passages that were found for this turn."""
    hidden = set(Record.model_fields)
    passages = read_passages(agent, state)
    return [passage.model_dump(exclude=hidden, exclude_defaults=True) for passage in passages]


def get_variable_values(agent: Agent, state: StateView) -> dict[str, Any]:
    """Return the context variables with this thread's values, or their defaults; None if they have neither."""
    defaults = {variable.name: variable.value for variable in agent.variables}
    return defaults | state.read_mapping("variables")


def build_callback_state(agent: Agent, state: StateView) -> Any:
    """Return the state that the developer's conditions and policies are called with: its variables have values.

    LangGraph leaves a channel out until something is written to it; the node's lists and dicts are then empty.
    """
    if not isinstance(state.raw, Mapping):
        return state.raw
    values: dict[str, Any] = {}
    for name, channel_type in state.channels.items():
        container = get_origin(channel_type) or channel_type
        if container in (list, dict):
            values[name] = container()
    values.update(state.raw)
    if agent.variables:
        values["variables"] = get_variable_values(agent, state)
    return values
