"""How an agent decides what to do next: one settings object for each strategy, and the names that stand for them.

A further strategy is one file with its node (a subclass of `Strategy`) and one class here; its name goes into
`STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from arq_graph.agent.environment import Environment
from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.confirmation import Agrees
from arq_graph.nodes.strategy import Strategy

if TYPE_CHECKING:
    from arq_graph.nodes.speaking.move_schema import Setting
    from arq_graph.nodes.speaking.policies import Policy

StrategyName: TypeAlias = Literal["tools", "pre-act", "react", "respact"]


@dataclass(frozen=True, kw_only=True)
class StrategySettings:
    """What all strategies can be set to.

    Args:
        agrees: What else is a yes to code's question than the shipped list has: a function of the customer's message
            and the question, sync or async, that returns True, False, or None to leave it to the list.
        template: A replacement for the shipped prompt: a path, or a template's text.
        temperature: Sampling temperature, for models that take one and have none set; None: 0.05, or what a
            `Reasoner` has.
        timeout: Seconds that one model call may take, its retries included; None: 60, or what a `Reasoner` has.
        max_attempts: Invalid answers, of which the last is an error; None: 3, or what a `Reasoner` has.
        max_history_tokens: Over it, the history in the prompt is cut to half.
    """

    name: ClassVar[str]
    """Name of its node in the graph."""
    made_by: ClassVar[str]
    """The node's class as `module:class`, which is loaded when an app is made with it."""
    writes_reply: ClassVar[bool] = True
    """Whether it says something itself, which a reviser may take for its draft."""

    agrees: Agrees | None = None
    template: str | Path | None = None
    temperature: float | None = None
    timeout: float | None = None
    max_attempts: int | None = None
    max_history_tokens: int = 16_000

    def node(self, model: Any, agent: Agent, *, draft: bool, **settings: Any) -> Strategy:
        """The node that decides; with `draft`, a reviser makes the reply of what it says."""
        if self.writes_reply:
            settings["draft"] = draft
        made: Strategy = resolve_name(self.made_by)(model, agent, **self.given(), **settings)
        return made

    def given(self) -> dict[str, Any]:
        """What the node is made with."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class ToolCalling(StrategySettings):
    """Decide on all tools that active guidelines grant at once (ARQ paper, 5.1.2).

    Args:
        max_rounds: How many times tools may be called in one turn.
        max_ahead: With `eager`, how many tools are asked about, at most, before it is known which are granted.
    """

    name: ClassVar[str] = "call_tools"
    made_by: ClassVar[str] = "arq_graph.nodes.tool_caller:ToolCaller"
    writes_reply: ClassVar[bool] = False
    max_rounds: int = 3
    max_ahead: int = 16


@dataclass(frozen=True, kw_only=True)
class PreAct(StrategySettings):
    """Plan every step, take the first, and refine the plan after each result (Pre-Act, 3.1).

    Args:
        max_steps: How many calls one turn may make; after them only the final answer is left.
    """

    name: ClassVar[str] = "plan"
    made_by: ClassVar[str] = "arq_graph.nodes.planner:PreActPlanner"
    max_steps: int = 8


@dataclass(frozen=True, kw_only=True)
class ReAct(PreAct):
    """Take a thought and an action at a time: what Pre-Act is held against, with the same settings."""

    made_by: ClassVar[str] = "arq_graph.nodes.planner:ReActPlanner"


@dataclass(frozen=True, kw_only=True)
class ReSpAct(StrategySettings):
    """Think, speak or act, one move at a time, under policies (ReSpAct, section 3).

    Args:
        policies: The rules that are switched on: names of shipped ones, policies of your own; None: all shipped ones.
        environment: A world to act in, beside tools or in their place; not beside guidelines.
        setting: In a `chat` speaking ends the turn; in a `task` an utterance waits in `interrupt()` for its answer.
            None: a task where there is a world. A task needs a checkpointer; not beside guidelines.
        dialogue_acts: What speech is limited to: acts, by name, with what each does; None: free.
        max_steps: How many calls one turn of a chat may make (8), or calls, actions and utterances a task (40).
        max_questions: How many questions may follow each other with nothing done in between; with 0 nothing is said
            in a task before the report that ends it.
        inner_monologue: Whether a thought comes before every call and action (B.3).
    """

    name: ClassVar[str] = "speak"
    made_by: ClassVar[str] = "arq_graph.nodes.speaking.speaker:Speaker"
    policies: Sequence[str | Policy] | None = None
    environment: Environment | None = None
    setting: Setting | None = None
    dialogue_acts: Mapping[str, str] | None = None
    max_steps: int | None = None
    max_questions: int = 3
    inner_monologue: bool = False

    @property
    def is_task(self) -> bool:
        """Whether an utterance waits for its answer."""
        return (self.setting or ("chat" if self.environment is None else "task")) == "task"

    def given(self) -> dict[str, Any]:
        """What the node is made with; the world is not in it, only whether there is one."""
        given = {**super().given(), "setting": "task" if self.is_task else "chat"}
        return {"in_world": given.pop("environment") is not None, **given}


STRATEGIES: Mapping[str, type[StrategySettings]] = {
    "tools": ToolCalling,
    "pre-act": PreAct,
    "react": ReAct,
    "respact": ReSpAct,
}


def strategy_of(strategy: str | StrategySettings) -> StrategySettings:
    """A strategy's settings: as they are given, or the shipped ones of a name."""
    if isinstance(strategy, StrategySettings):
        return strategy
    if strategy not in STRATEGIES:
        known = ", ".join(map(repr, STRATEGIES))
        near = suggestion(str(strategy), STRATEGIES)
        raise InputError(
            f"strategy is {strategy!r}{near}: give one of {known}, or settings such as PreAct(max_steps=4)"
        )
    return STRATEGIES[strategy]()
