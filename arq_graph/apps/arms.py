"""The arms that a name makes: guided agents in the three modes, planners, LangChain's own agent, or your function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from arq_graph.agent.modules import load
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.apps.guided import create_guided_agent, create_preact_agent
from arq_graph.apps.strategies import StrategyName
from arq_graph.errors import InputError, SpecError, suggestion
from arq_graph.milestones.evaluation.arms import Arm, MakeApp, instructions_of
from arq_graph.milestones.evaluation.expectation import told_active
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner


def arms(names: list[str], *, folder: Path | None = None) -> dict[str, Arm]:
    """Look up, by name, what `evaluate` is to try.

    Args:
        names: Each one of `ARMS`; or `module:function`, a function of `(scenario, agent, model)` that makes an app,
            or an app itself.
        folder: Where modules are looked for before `sys.path`.

    Raises:
        InputError: There is none of a name, or a module cannot be imported.
    """
    return {name: _arm(name, folder) for name in names}


def _arm(name: str, folder: Path | None) -> Arm:
    if name in ARMS:
        return ARMS[name]
    module, _, function = name.partition(":")
    if not function or module in ARMS:
        raise InputError(
            f"there is no arm {name!r}{suggestion(name, ARMS)}; there are {', '.join(ARMS)}, and module:function "
            "for one of your own"
        )
    try:
        return cast(Arm, load(name, folder))
    except SpecError as error:
        raise InputError(f"the arm {error}") from error.__cause__


def _app(strategy: StrategyName, mode: Mode | None = None) -> MakeApp:
    """An agent of a strategy: guided, or alone where there are no guidelines and it can speak by itself."""

    def make(scenario: Scenario, agent: Agent | None, model: Any) -> Any:
        spec = _required(scenario, agent)
        if scenario.matches_only:
            if strategy != "tools":
                raise InputError(
                    f"scenario {scenario.name!r} expects guidelines to be active, which only a guided arm matches"
                )
            return _matcher(model, spec, mode)
        is_guided = strategy == "tools" or bool(spec.guidelines)
        create: Any = create_guided_agent if is_guided else create_preact_agent
        return create(model, spec, strategy=strategy, mode=mode, checkpointer=InMemorySaver())

    return make


def _matcher(model: Any, agent: Agent, mode: Mode | None) -> Any:
    """The matcher alone, which says what is active instead of a reply."""

    def tell(state: AgentState) -> dict[str, Any]:
        active = (each["guideline"] for each in state["guideline_matches"] if each["active"])
        return {"messages": [AIMessage(told_active(active))]}

    graph = StateGraph(AgentState)
    graph.add_node("match", GuidelineMatcher(model, agent, mode=mode))
    graph.add_node("tell", tell)
    graph.set_entry_point("match")
    graph.add_edge("match", "tell")
    return graph.compile()


def _create_agent(scenario: Scenario, agent: Agent | None, model: Any) -> Any:
    try:
        from langchain.agents import create_agent
    except ImportError as error:
        raise InputError(
            "the arm 'create_agent' is LangChain's, which is not installed: pip install \"arq_graph[providers]\""
        ) from error
    spec = _required(scenario, agent)
    asked: Any = model.models[0] if isinstance(model, Reasoner) else model
    tools, told = list(spec.toolbox.values()), instructions_of(spec)
    return create_agent(asked, tools, system_prompt=told, checkpointer=InMemorySaver())


ARMS: Mapping[str, Callable[[Scenario, Agent | None, Any], Any]] = {
    "guided": _app("tools", "arq"),
    "guided:cot": _app("tools", "cot"),
    "guided:direct": _app("tools", "direct"),
    "react": _app("react"),
    "pre-act": _app("pre-act"),
    "respact": _app("respact"),
    "create_agent": _create_agent,
}


def _required(scenario: Scenario, agent: Agent | None) -> Agent:
    if agent is None:
        raise InputError(f"scenario {scenario.name!r} names no `agent`, which this arm is made of")
    return agent
