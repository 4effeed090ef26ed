"""Arms by name: guided agents in three modes, planners, speakers, LangChain's agent, and functions of yours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from arq_graph.agent.environment import Environment
from arq_graph.agent.modules import load_object
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import AgentState
from arq_graph.apps.agents import create_guided_agent, create_tool_agent
from arq_graph.apps.graph import collect_channels
from arq_graph.apps.settings import Matching, PreAct, ReAct, ReSpAct, Revising, StrategySettings
from arq_graph.errors import InputError, SpecError, require_count, suggestion
from arq_graph.experiments.ablations import parse_ablation
from arq_graph.experiments.reflexion import Reflexion
from arq_graph.milestones.evaluation.arms import AppFactory, Arm
from arq_graph.milestones.evaluation.expectation import format_active_guidelines
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.judgement_schema import Judgement
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.speaking.speech import HOUSEHOLD_ACTS
from arq_graph.reasoning.blueprint import ARQ, Mode
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.reasoner import ModelLike, Reasoner, make_reasoner

QueriesByStep = Mapping[str, tuple[str, ...]]
"""Names of queries, by the step that asks them."""

_STEPS = ("matcher", "strategy", "message")
_REFLEXION = re.compile(r"(?P<arm>.+)\+reflexion(?::(?P<trials>.*))?")
_ZERO_SHOT = '{% extends "speaker.md" %}{% block examples %}{% endblock %}'


def load_arms(names: list[str], *, folder: Path | None = None) -> dict[str, Arm]:
    """Return the arms that `evaluate` is to try, by name.

    Args:
        names: Each one of `ARMS`; `arq -QUERY`, which is `arq` without a query; or `module:function`, a function of
            `(scenario, agent, model)` that makes an app, an app itself, or a blueprint with which `arq` is asked: a
            subclass of `MessageBlueprint` or `Judgement`. With `+reflexion` after it, a function's app tries again
            after a failure, up to 3 times in all, or as often as `+reflexion:10` says.
        folder: Where modules are looked for before `sys.path`.

    Raises:
        InputError: No arm has one of the names, or a module cannot be imported.
    """
    return {name: _load_arm(name, folder) for name in names}


def load_blueprint(name: str, folder: Path | None) -> type[ARQ]:
    """Return the blueprint "module:Class", with which `arq` can be asked.

    Raises:
        InputError: It cannot be imported, or isn't a blueprint of the matcher or the reviser.
    """
    blueprint = _load_object(name, folder)
    if not (isinstance(blueprint, type) and issubclass(blueprint, MessageBlueprint | Judgement)):
        raise InputError(
            f"{name!r} is not a blueprint for any step: make it a subclass of MessageBlueprint or of Judgement "
            "(from arq_graph.nodes)"
        )
    return blueprint


@dataclass(frozen=True)
class GuidedArm:
    """An agent that follows its guidelines, in one mode.

    Args:
        mode: How every step is asked.
        response_only: Whether code reads the response of an answer alone, so that the modes differ only in what the
            model is asked to write. As the agent ships, code checks the queries of mode `arq`, too.
        without: Queries that are left out.
        blueprint: A subclass of `MessageBlueprint` or of `Judgement` that replaces the shipped one.
    """

    mode: Mode = "arq"
    response_only: bool = True
    without: QueriesByStep = field(default_factory=dict)
    blueprint: type[ARQ] | None = None

    def __call__(
        self,
        scenario: Scenario,
        agent: Agent | None,
        model: ModelLike,
        world: Any = None,
        matcher_only: bool = False,
    ) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Make the app; with `matcher_only`, one that replies which guidelines are active."""
        agent = _require_agent(scenario, agent, world)
        matching, revising = Matching(), Revising()
        if self.blueprint and issubclass(self.blueprint, Judgement):
            matching = Matching(judgement=self.blueprint)
        elif self.blueprint and issubclass(self.blueprint, MessageBlueprint):
            revising = Revising(blueprint=self.blueprint)
        models = _choose_models(model, self.response_only, self.without)
        if matcher_only:
            channels = collect_channels(AgentState)
            matcher = matching.make_node(models["matcher"], agent, mode=self.mode, reads=channels)
            return _compile_matcher(matcher)
        return create_guided_agent(
            models,
            agent,
            mode=self.mode,
            matching=matching,
            revising=revising,
            checkpointer=InMemorySaver(),
        )


@dataclass(frozen=True)
class StrategyArm:
    """An agent that acts by a strategy: guided if it has guidelines, else by the strategy alone.

    If the scenario's world is made of text, `respact` acts in it, and `react` is the same agent without questions.

    Args:
        strategy: Its settings.
        response_only: Whether code reads the response of an answer alone.
        without: Queries that are left out.
    """

    strategy: StrategySettings
    response_only: bool = False
    without: QueriesByStep = field(default_factory=dict)

    def __call__(
        self, scenario: Scenario, agent: Agent | None, model: ModelLike, world: Any = None
    ) -> CompiledStateGraph[Any, Any, Any, Any]:
        """Make the app."""
        strategy = self.strategy
        if isinstance(world, Environment) and isinstance(strategy, ReAct | ReSpAct):
            agent = _require_agent(scenario, agent)
            strategy = self._make_world_settings(world)
        else:
            agent = _require_agent(scenario, agent, world)
        models = _choose_models(model, self.response_only, self.without)
        if agent.rules:
            return create_guided_agent(models, agent, strategy=strategy, checkpointer=InMemorySaver())
        return create_tool_agent(models["strategy"], agent, strategy=strategy, checkpointer=InMemorySaver())

    def _make_world_settings(self, world: Environment) -> ReSpAct:
        """Return settings for a world of text, without policies, which are about tools."""
        if isinstance(self.strategy, ReSpAct):
            return replace(self.strategy, environment=world, policies=())
        return ReSpAct(environment=world, policies=(), max_questions=0)


def create_agent_arm(
    scenario: Scenario, agent: Agent | None, model: ModelLike, world: Any = None
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make an agent of LangChain's `create_agent`, whose system prompt lists all guidelines."""
    try:
        from langchain.agents import create_agent
        from langchain.agents.middleware import ToolRetryMiddleware
    except ImportError as error:
        raise InputError(
            "the arm 'create_agent' is LangChain's, which is not installed: pip install \"arq_graph[providers]\""
        ) from error
    agent = _require_agent(scenario, agent, world)
    chat_model: Any = model.models[0] if isinstance(model, Reasoner) else model
    # By itself it ends where a tool fails; the other arms report the failure to the model in these words.
    report_failures = ToolRetryMiddleware(
        max_retries=0, retry_on=(Exception,), on_failure=lambda error: f"{type(error).__name__}: {error}"
    )
    return create_agent(
        chat_model,
        list(agent.toolbox.values()),
        system_prompt=agent.describe_instructions(),
        middleware=[report_failures],
        checkpointer=InMemorySaver(),
    )


ARMS: Mapping[str, AppFactory] = {
    "guided": GuidedArm(response_only=False),
    "arq": GuidedArm("arq"),
    "cot": GuidedArm("cot"),
    "direct": GuidedArm("direct"),
    "react": StrategyArm(ReAct()),
    "pre-act": StrategyArm(PreAct()),
    "arq-pre-act": StrategyArm(PreAct(), response_only=True),
    "respact": StrategyArm(ReSpAct()),
    "arq-respact": StrategyArm(ReSpAct(), response_only=True),
    "respact-schema": StrategyArm(ReSpAct(dialogue_acts=HOUSEHOLD_ACTS)),
    "inner-monologue": StrategyArm(ReSpAct(inner_monologue=True)),
    "zero-shot": StrategyArm(ReSpAct(template=_ZERO_SHOT)),
    "create_agent": create_agent_arm,
}


def _load_arm(name: str, folder: Path | None) -> Arm:
    if name in ARMS:
        return ARMS[name]
    if match := _REFLEXION.fullmatch(name):
        return _load_reflexion(match, folder)
    if ablation := parse_ablation(name):
        reference: Any = ARMS[ablation.reference]
        return cast(Arm, replace(reference, without=ablation.without))
    module, _, attribute = name.partition(":")
    if not attribute or module in ARMS:
        names = list(ARMS)
        names.extend(f"{arm}+reflexion" for arm in ARMS)
        similar = suggestion(name, names) or f"; there are {', '.join(ARMS)}."
        raise InputError(
            f"there is no arm {name!r}{similar} Write module:function for one of your own, NAME+reflexion for one "
            "that tries again, and 'arq -QUERY' for arq without a query"
        )
    value = _load_object(name, folder)
    if isinstance(value, type) and issubclass(value, ARQ):
        return GuidedArm(blueprint=load_blueprint(name, folder))
    return cast(Arm, value)


def _load_reflexion(match: re.Match[str], folder: Path | None) -> Reflexion:
    trials: Any = match.groupdict(default="3")["trials"]
    if trials.isdecimal():
        trials = int(trials)
    trials = require_count(f"the number of trials after `+reflexion:` in the arm {match[0]!r}", trials)
    return Reflexion(cast(AppFactory, _load_arm(match["arm"], folder)), trials)


def _load_object(name: str, folder: Path | None) -> object:
    try:
        return load_object(name, folder)
    except SpecError as error:
        raise InputError(f"the arm {error}") from error.__cause__


def _choose_models(model: ModelLike, response_only: bool, without: QueriesByStep) -> dict[str, ModelLike]:
    """Return the model of each step, by the keys that `create_guided_agent` takes."""
    if response_only:
        model = make_reasoner(model, "agent", derive=ResponseOnly())
    models = dict.fromkeys(_STEPS, model)
    for step, queries in without.items():
        # A strategy's node is named after what it does: planner, speaker, tools.
        key = step if step in _STEPS else "strategy"
        models[key] = make_reasoner(model, "agent", derive=ResponseOnly(without=queries))
    return models


def _compile_matcher(matcher: GuidelineMatcher) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile an app that only matches, and replies which guidelines are active."""

    def report_active(state: AgentState) -> dict[str, Any]:
        active = [match["guideline"] for match in state["guideline_matches"] if match["active"]]
        return {"messages": [AIMessage(format_active_guidelines(active))]}

    graph = StateGraph(AgentState)
    graph.add_node("match", matcher)
    graph.add_node("report_active", report_active)
    graph.add_edge(START, "match")
    graph.add_edge("match", "report_active")
    graph.add_edge("report_active", END)
    return graph.compile(checkpointer=False)


def _require_agent(scenario: Scenario, agent: Agent | None, world: Any = None) -> Agent:
    """Return the agent, for an arm that calls tools; it cannot act in a world of text."""
    if isinstance(world, Environment):
        raise InputError(
            f"the world of scenario {scenario.name!r} is acted in with texts, and this arm calls tools; react and "
            "respact act in it, and so do the arms of `--ablate speaker`"
        )
    if agent is None:
        raise InputError(f"scenario {scenario.name!r} names no `agent`, which this arm is made of")
    return agent
