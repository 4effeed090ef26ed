"""The speaking agent: think, speak, act, as one compiled graph, in a chat or in a task (ReSpAct, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Checkpointer

from arq_graph.agent.environment import Environment
from arq_graph.agent.spec import Agent
from arq_graph.agent.spelling import suggestion
from arq_graph.agent.state import AgentState, WorldStatus
from arq_graph.agent.tools import ToolLike
from arq_graph.apps.specifying import without_guidelines
from arq_graph.errors import InputError
from arq_graph.nodes.approval import ApproveCalls
from arq_graph.nodes.channels import Reader
from arq_graph.nodes.routing import route_approved
from arq_graph.nodes.speaking.listening import Listen, route_moves
from arq_graph.nodes.speaking.moves import ACT, Setting
from arq_graph.nodes.speaking.policies import Policy
from arq_graph.nodes.speaking.speaker import Speaker
from arq_graph.nodes.speaking.world import ActInWorld
from arq_graph.nodes.tool_node import guarded_tools
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner

PROFILE = "You are a helpful agent. You work on what you are asked for, and ask when something is uncertain."
_INSTEAD = (
    "a speaker alone does not match: use create_guided_agent(model, agent), or put a GuidelineMatcher before the "
    "Speaker in a graph of your own"
)


def create_respact_agent(
    model: BaseChatModel | str | Reasoner,
    agent: Agent | Sequence[ToolLike] = (),
    *,
    environment: Environment | None = None,
    seed: int | None = None,
    setting: Setting | None = None,
    policies: Sequence[str | Policy] | None = None,
    dialogue_acts: str | Mapping[str, str] | None = None,
    consequential: Sequence[str] = (),
    agrees: Callable[[str], bool] | None = None,
    profile: str | None = None,
    mode: Mode | None = None,
    max_steps: int | None = None,
    max_thoughts: int = 2,
    max_questions: int = 3,
    max_results: int = 5,
    prompt: str | Path | None = None,
    max_history_tokens: int = 16_000,
    state_schema: type[AgentState] = AgentState,
    context_schema: type[Any] | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an agent that thinks, speaks and acts, one move at a time.

    In a chat, speaking ends the turn. In a task, an utterance waits in `interrupt()` for its answer, which joins the
    messages: resume with `Command(resume="the answer")`. The task ends with an utterance that says so, when the world
    says so, or when no step is left. No model is called to compile. `Speaker` says what code holds, whatever the model
    answers.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o` (`offline` needs no key), or a `Reasoner`.
        agent: A specification without guidelines, or its tools alone.
        environment: A world to act in, beside tools or in their place. Threads take turns in it.
        seed: What the world's `reset` is given.
        setting: `chat` or `task`; a task where there is a world, unless given.
        policies: The rules that are switched on: names of shipped ones, policies of your own; None: all shipped ones.
        dialogue_acts: What speech is limited to: `household`, or descriptions by name; None: free.
        consequential: Names of tools whose calls the customer has to agree to, beside those of `Agent.confirm`.
        agrees: Whether a message of the customer's is a plain yes: a plain function that gives True; None: the shipped
            one, which reads English in detail, and the plain words of some thirty languages.
        profile: Who the agent is, in words; only where `agent` is its tools.
        mode: `arq`, `cot` or `direct`; None is `arq`, or what a `Reasoner` was set to.
        max_steps: How many calls one turn of a chat may make (8), or calls, actions and utterances a task (40).
        max_thoughts: How many thoughts may come before one move.
        max_questions: How many questions may follow each other with nothing done in between; in a task, how many
            utterances that wait.
        max_results: From how many entries on a tool's result counts as too many.
        prompt: A replacement for the shipped prompt: a path or a template's text.
        max_history_tokens: Over it, the history in the prompt is cut to half.
        state_schema: `AgentState`, or a subclass with channels of your own; policies see them.
        context_schema: The run's context, as for `StateGraph`.
        checkpointer: Keeps threads, as for `compile`; a task needs one.
        store: As for `compile`.
        cache: As for `compile`.
        name: The graph's name; the agent's unless given.

    Raises:
        InputError: The agent has guidelines, a consequential tool does not exist, or a setting is out of its range.
        SpecError: A tool cannot be used.
        PromptError: The prompt cannot be read or rendered.
    """
    agent = _with_consequential(
        without_guidelines(agent, profile, name, otherwise=PROFILE, instead=_INSTEAD), consequential
    )
    chosen: Setting = setting if setting is not None else ("chat" if environment is None else "task")
    channels = get_type_hints(state_schema, include_extras=True)
    speaker = Speaker(
        model,
        agent,
        in_world=environment is not None,
        setting=chosen,
        policies=policies,
        dialogue_acts=dialogue_acts,
        agrees=agrees,
        max_steps=max_steps,
        max_thoughts=max_thoughts,
        max_questions=max_questions,
        max_results=max_results,
        mode=mode,
        max_history_tokens=max_history_tokens,
        reads={key: kind for key, kind in channels.items() if key != "messages"},
        **({} if prompt is None else {"template": prompt}),  # type: ignore[arg-type]
    )
    builder = StateGraph(state_schema, context_schema)
    builder.add_node("speak", speaker)
    behind = [END]
    if environment is None:
        builder.add_edge(START, "speak")
    else:
        world = ActInWorld(environment, seed=seed)
        builder.add_node(ACT, world)
        builder.add_edge(START, ACT)
        builder.add_conditional_edges(ACT, _route_acted(chosen), ["speak", END])
        behind.append(ACT)
    if agent.toolbox:
        builder.add_node("tools", guarded_tools(agent))
        builder.add_edge("tools", "speak")
        behind.append("tools")
    if agent.confirmed_by("operator"):
        builder.add_node("approve", ApproveCalls(agent))
        builder.add_conditional_edges("approve", route_approved(otherwise=["speak"]), ["tools", "speak"])
        behind.append("approve")
    if chosen == "task":
        builder.add_node("listen", Listen())
        builder.add_edge("listen", "speak")
        behind.append("listen")
    builder.add_conditional_edges("speak", route_moves(agent, otherwise=END), behind)
    return builder.compile(checkpointer, cache=cache, store=store, name=name or agent.name)


def _route_acted(setting: Setting) -> Any:
    """Route behind the world: a task that the world has ended is over; in a chat the customer is told."""

    def route(state: Any) -> str:
        world = Reader(state).record("world", WorldStatus)
        acted = getattr((state.get("messages") or [None])[-1], "type", "") == "tool"
        is_over = world is not None and world.done
        return END if setting == "task" and acted and is_over else "speak"

    route.__annotations__["state"] = AgentState
    return route


def _with_consequential(agent: Agent, names: Sequence[str]) -> Agent:
    """The same agent, with the calls of these tools confirmed by the customer."""
    if isinstance(names, str):
        raise InputError(f"consequential must be a list of tool names; write [{names!r}]")
    if unknown := [name for name in names if name not in agent.toolbox]:
        raise InputError(
            f"consequential names {unknown[0]!r}, which is no tool of this agent"
            + suggestion(str(unknown[0]), agent.toolbox)
        )
    if by_operator := [name for name in names if name in agent.confirmed_by("operator")]:
        raise InputError(
            f"{by_operator[0]!r} is confirmed by the operator (`Agent.confirm`): take it out of consequential, or out "
            "of confirm to have the customer asked"
        )
    if not names:
        return agent
    return agent.replace(confirm={**dict.fromkeys(names, "customer"), **agent.confirm})
