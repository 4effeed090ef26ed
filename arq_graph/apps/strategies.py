"""How an agent decides what to do next: one settings object for each strategy, and the names that stand for them.

A further strategy is one file with its node (a subclass of `Strategy`) and one class here; its name goes into
`STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from arq_graph.agent.environment import Environment
from arq_graph.agent.spec import Agent
from arq_graph.agent.spelling import suggestion
from arq_graph.errors import InputError
from arq_graph.nodes.confirmation import Agrees
from arq_graph.nodes.strategy import Strategy

if TYPE_CHECKING:
    from arq_graph.nodes.speaking.moves import Setting
    from arq_graph.nodes.speaking.policies import Policy

StrategyName: TypeAlias = Literal["tools", "pre-act", "react", "respact"]


@dataclass(frozen=True, kw_only=True)
class StrategySettings:
    """What all strategies can be set to.

    Args:
        agrees: What else is a yes to code's question than the shipped list has: a function of the customer's message
            and the question, sync or async, that returns True, False, or None to leave it to the list.
        template: A replacement for the shipped prompt: a path, or a template's text.
        temperature: Sampling temperature, for models that take one and have none set.
        max_history_tokens: Over it, the history in the prompt is cut to half.
    """

    name: ClassVar[str]
    """Name of its node in the graph."""

    agrees: Agrees | None = None
    template: str | Path | None = None
    temperature: float | None = 0.05
    max_history_tokens: int = 16_000

    def node(self, model: Any, agent: Agent, *, draft: bool, **settings: Any) -> Strategy:
        """The node that decides.

        Args:
            model: As every node takes it.
            agent: The specification.
            draft: Whether a reviser makes the reply of what the node says.
            **settings: `mode`, and `reads` for the channels that a policy may look at.
        """
        raise NotImplementedError

    def _shared(self) -> dict[str, Any]:
        template = {} if self.template is None else {"template": self.template}
        return {
            "agrees": self.agrees,
            "temperature": self.temperature,
            "max_history_tokens": self.max_history_tokens,
            **template,
        }


@dataclass(frozen=True, kw_only=True)
class ToolCalling(StrategySettings):
    """Decide on all tools that active guidelines grant at once (ARQ paper, 5.1.2).

    Args:
        tools_per_call: How many candidate tools one model call decides on.
        max_rounds: How many times tools may be called in one turn.
    """

    name: ClassVar[str] = "call_tools"
    tools_per_call: int = 1
    max_rounds: int = 3

    def node(self, model: Any, agent: Agent, *, draft: bool, **settings: Any) -> Strategy:
        """The tool caller."""
        from arq_graph.nodes.tool_caller import ToolCaller

        settings.pop("reads", None)
        return ToolCaller(
            model,
            agent,
            tools_per_call=self.tools_per_call,
            max_rounds=self.max_rounds,
            **self._shared(),
            **settings,
        )


@dataclass(frozen=True, kw_only=True)
class PreAct(StrategySettings):
    """Plan every step, take the first, and refine the plan after each result (Pre-Act, 3.1).

    Args:
        max_steps: How many calls one turn may make; after them only the final answer is left.
    """

    name: ClassVar[str] = "plan"
    max_steps: int = 8

    def node(self, model: Any, agent: Agent, *, draft: bool, **settings: Any) -> Strategy:
        """The planner."""
        from arq_graph.nodes.pre_act_planner import PreActPlanner

        settings.pop("reads", None)
        return PreActPlanner(
            model, agent, max_steps=self.max_steps, draft=draft, **self._shared(), **settings
        )


@dataclass(frozen=True, kw_only=True)
class ReAct(StrategySettings):
    """Take a thought and an action at a time: what Pre-Act is held against.

    Args:
        max_steps: How many calls one turn may make; after them only the final answer is left.
    """

    name: ClassVar[str] = "plan"
    max_steps: int = 8

    def node(self, model: Any, agent: Agent, *, draft: bool, **settings: Any) -> Strategy:
        """The planner without a plan."""
        from arq_graph.nodes.react_planner import ReActPlanner

        settings.pop("reads", None)
        return ReActPlanner(model, agent, max_steps=self.max_steps, draft=draft, **self._shared(), **settings)


@dataclass(frozen=True, kw_only=True)
class ReSpAct(StrategySettings):
    """Think, speak or act, one move at a time, under policies (ReSpAct, section 3).

    Args:
        policies: The rules that are switched on: names of shipped ones, policies of your own; None: all shipped ones.
        environment: A world to act in, beside tools or in their place; not beside guidelines.
        seed: What the world's `reset` is given.
        setting: In a `chat` speaking ends the turn; in a `task` an utterance waits in `interrupt()` for its answer.
            None: a task where there is a world. A task needs a checkpointer; not beside guidelines.
        dialogue_acts: What speech is limited to: `household`, or descriptions by name; None: free.
        max_steps: How many calls one turn of a chat may make (8), or calls, actions and utterances a task (40).
        max_thoughts: How many thoughts may come before one move.
        max_questions: How many questions may follow each other with nothing done in between.
        max_results: From how many entries on a tool's result counts as too many.
    """

    name: ClassVar[str] = "speak"
    policies: Sequence[str | Policy] | None = None
    environment: Environment | None = None
    seed: int | None = None
    setting: Setting | None = None
    dialogue_acts: str | Mapping[str, str] | None = None
    max_steps: int | None = None
    max_thoughts: int = 2
    max_questions: int = 3
    max_results: int = 5

    @property
    def is_task(self) -> bool:
        """Whether an utterance waits for its answer."""
        return (self.setting or ("chat" if self.environment is None else "task")) == "task"

    def node(self, model: Any, agent: Agent, *, draft: bool, **settings: Any) -> Strategy:
        """The speaker."""
        from arq_graph.nodes.speaking.speaker import Speaker

        if draft and (self.environment is not None or self.is_task):
            raise InputError(
                "an environment, or a task, is for an agent without guidelines: create_respact_agent"
            )
        return Speaker(
            model,
            agent,
            in_world=self.environment is not None,
            setting=self.setting or ("task" if self.is_task else "chat"),
            policies=self.policies,
            dialogue_acts=self.dialogue_acts,
            max_steps=self.max_steps,
            max_thoughts=self.max_thoughts,
            max_questions=self.max_questions,
            max_results=self.max_results,
            draft=draft,
            **self._shared(),
            **settings,
        )


STRATEGIES: Mapping[str, type[StrategySettings]] = {
    "tools": ToolCalling,
    "pre-act": PreAct,
    "react": ReAct,
    "respact": ReSpAct,
}


def strategy_of(strategy: str | StrategySettings) -> StrategySettings:
    """A strategy's settings: as they are given, or the shipped ones of a name.

    Raises:
        InputError: There is no strategy of that name.
    """
    if isinstance(strategy, StrategySettings):
        return strategy
    if strategy not in STRATEGIES:
        known = ", ".join(map(repr, STRATEGIES))
        near = suggestion(str(strategy), STRATEGIES)
        raise InputError(
            f"strategy is {strategy!r}{near}: give one of {known}, or settings such as PreAct(max_steps=4)"
        )
    return STRATEGIES[strategy]()
