"""The arms that a name makes: guided agents in three modes, planners, speakers, LangChain's agent, your function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from arq_graph.agent.environment import Environment
from arq_graph.agent.modules import load
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.apps.agents import create_guided_agent, create_tool_agent
from arq_graph.apps.graph import collect_channels
from arq_graph.apps.settings import Matching, ReSpAct, Revising, StrategyName, resolve_strategy
from arq_graph.errors import InputError, SpecError, require_count, suggestion
from arq_graph.experiments.ablations import REFERENCES, ablation_of
from arq_graph.experiments.reflexion import Reflexion
from arq_graph.milestones.evaluation.arms import Arm, MakeApp, instructions_of
from arq_graph.milestones.evaluation.expectation import told_active
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.judgements import Judgement
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.speaking.speech import HOUSEHOLD_ACTS
from arq_graph.reasoning.blueprint import ARQ, Mode
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.reasoner import Reasoner, make_reasoner

Without = Mapping[str, ResponseOnly]
_NOTHING: Without = {}


def load_arms(names: list[str], *, folder: Path | None = None) -> dict[str, Arm]:
    """Look up, by name, what `evaluate` is to try.

    Args:
        names: Each one of `ARMS`; `arq -QUERY`, which is `arq` without a query; or `module:function`, a function of
            `(scenario, agent, model)` that makes an app, an app itself, or a blueprint with which `arq` is asked: a
            subclass of `MessageBlueprint` or `Judgement`. With `+reflexion` behind it, a function's app tries again
            after a failure, up to 3 times in all, or as often as `+reflexion:10` says.
        folder: Where modules are looked for before `sys.path`.

    Raises:
        InputError: There is none of a name, or a module cannot be imported.
    """
    return {name: _arm(name, folder) for name in names}


def _arm(name: str, folder: Path | None) -> Arm:
    if name in ARMS:
        return ARMS[name]
    if again := re.fullmatch(r"(.+)\+reflexion(?::(.*))?", name):
        arm, given = again.groups("3")
        trials = int(given) if given.isdecimal() else given
        trials = require_count(f"the number of trials after `+reflexion:` in the arm {name!r}", trials)
        return Reflexion(cast(MakeApp, _arm(arm, folder)), trials)
    if ablation := ablation_of(name):
        strategy, without = REFERENCES[ablation.reference], ablation.without
        if strategy == "tools":
            return _guided("arq", without=without)
        return _app(strategy, by_response=True, without=without)
    module, _, function = name.partition(":")
    if not function or module in ARMS:
        near = suggestion(name, [*ARMS, *(f"{each}+reflexion" for each in ARMS)])
        raise InputError(
            f"there is no arm {name!r}{near or '; there are ' + ', '.join(ARMS) + '.'} Write module:function for one "
            "of your own, NAME+reflexion for one that tries again, and 'arq -QUERY' for arq without a query"
        )
    found = _loaded(name, folder)
    is_blueprint = isinstance(found, type) and issubclass(found, ARQ)
    return partial(_guided("arq"), own=own_blueprint(name, folder)) if is_blueprint else cast(Arm, found)


def own_blueprint(name: str, folder: Path | None) -> type[ARQ]:
    """The blueprint "module:Class" with which `arq` can be asked.

    Raises:
        InputError: There is none, or it is for no step.
    """
    found = _loaded(name, folder)
    if not (isinstance(found, type) and issubclass(found, MessageBlueprint | Judgement)):
        raise InputError(
            f"{name!r} is not a blueprint for any step: make it a subclass of MessageBlueprint or of Judgement "
            "(from arq_graph.nodes)"
        )
    return found


def _loaded(name: str, folder: Path | None) -> object:
    try:
        return load(name, folder)
    except SpecError as error:
        raise InputError(f"the arm {error}") from error.__cause__


def _guided(mode: Mode, *, by_response: bool = True, without: Without = _NOTHING) -> MakeApp:
    """A guided agent in one mode; as it ships, code also checks the answers that only mode `arq` has."""

    def make(
        scenario: Any, agent: Any, model: Any, world: Any = None, own: Any = ARQ, matches_only: bool = False
    ) -> Any:
        spec = _calling(scenario, agent, world)
        models = _models(model, by_response, without)
        matching = Matching(judgement=own) if issubclass(own, Judgement) else Matching()
        revising = Revising(blueprint=own) if issubclass(own, MessageBlueprint) else Revising()
        if matches_only:
            reads = collect_channels(AgentState)
            return _matches(matching.make_node(models["matcher"], spec, mode=mode, reads=reads))
        return create_guided_agent(
            models, spec, mode=mode, matching=matching, revising=revising, checkpointer=InMemorySaver()
        )

    return make


def _models(model: Any, by_response: bool, without: Without) -> dict[str, Any]:
    """Whom the steps ask, by their keys in `create_guided_agent`."""
    asked = make_reasoner(model, "agent", derive=ResponseOnly()) if by_response else model
    models = dict.fromkeys(("matcher", "strategy", "message"), asked)
    lacking = {module: make_reasoner(asked, "agent", derive=derive) for module, derive in without.items()}
    return models | {module if module in models else "strategy": each for module, each in lacking.items()}


def _matches(matcher: GuidelineMatcher) -> Any:
    """The matcher alone, which says what is active instead of a reply."""

    def tell(state: AgentState) -> dict[str, Any]:
        active = (each["guideline"] for each in state["guideline_matches"] if each["active"])
        return {"messages": [AIMessage(told_active(active))]}

    graph = StateGraph(AgentState)
    graph.add_node("match", matcher)
    graph.add_node("tell", tell)
    graph.set_entry_point("match")
    graph.add_edge("match", "tell")
    return graph.compile(checkpointer=False)


def _app(
    strategy: StrategyName, *, by_response: bool = False, without: Without = _NOTHING, **speaking: Any
) -> MakeApp:
    """An agent of a strategy, guided or alone; in a world of texts one that acts, and speaks if it is a speaker."""

    def make(scenario: Scenario, agent: Agent | None, model: Any, world: Any = None) -> Any:
        settings = resolve_strategy(strategy)
        if isinstance(world, Environment) and strategy != "pre-act":
            spec = _required(scenario, agent)
            # Policies are about tools. Who may ask nothing is what ReSpAct is held against.
            silent: dict[str, Any] = {"max_questions": 0} if strategy == "react" else {}
            settings = ReSpAct(environment=world, policies=(), **silent, **speaking)
        else:
            spec = _calling(scenario, agent, world)
            settings = replace(settings, **speaking)
        models = _models(model, by_response, without)
        create: Any = create_guided_agent if spec.guidelines else create_tool_agent
        asked = models if spec.guidelines else models["strategy"]
        return create(asked, spec, strategy=settings, checkpointer=InMemorySaver())

    return make


def _create_agent(scenario: Scenario, agent: Agent | None, model: Any, world: Any = None) -> Any:
    try:
        from langchain.agents import create_agent
        from langchain.agents.middleware import ToolRetryMiddleware
    except ImportError as error:
        raise InputError(
            "the arm 'create_agent' is LangChain's, which is not installed: pip install \"arq_graph[providers]\""
        ) from error
    spec = _calling(scenario, agent, world)
    asked: Any = model.models[0] if isinstance(model, Reasoner) else model
    tools, told = list(spec.toolbox.values()), instructions_of(spec)
    # By itself it ends where a tool fails; the other arms tell the model of it, in these words.
    telling = ToolRetryMiddleware(
        max_retries=0, retry_on=(Exception,), on_failure=lambda error: f"{type(error).__name__}: {error}"
    )
    return create_agent(asked, tools, system_prompt=told, middleware=[telling], checkpointer=InMemorySaver())


_ZERO_SHOT = '{% extends "speaker.md" %}{% block examples %}{% endblock %}'

ARMS: Mapping[str, Callable[..., Any]] = {
    "guided": _guided("arq", by_response=False),
    "arq": _guided("arq"),
    "cot": _guided("cot"),
    "direct": _guided("direct"),
    "react": _app("react"),
    "pre-act": _app("pre-act"),
    "arq-pre-act": _app("pre-act", by_response=True),
    "respact": _app("respact"),
    "arq-respact": _app("respact", by_response=True),
    "respact-schema": _app("respact", dialogue_acts=HOUSEHOLD_ACTS),
    "inner-monologue": _app("respact", inner_monologue=True),
    "zero-shot": _app("respact", template=_ZERO_SHOT),
    "create_agent": _create_agent,
}


def _required(scenario: Scenario, agent: Agent | None) -> Agent:
    if agent is None:
        raise InputError(f"scenario {scenario.name!r} names no `agent`, which this arm is made of")
    return agent


def _calling(scenario: Scenario, agent: Agent | None, world: Any) -> Agent:
    if isinstance(world, Environment):
        raise InputError(
            f"the world of scenario {scenario.name!r} is acted in with texts, and this arm calls tools; react and "
            "respact act in it, and so do the arms of `--ablate speaker`"
        )
    return _required(scenario, agent)
