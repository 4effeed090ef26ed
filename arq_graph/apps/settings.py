"""Settings of an agent's steps: one object for matching, revising and summarising, and one for each strategy.

The fields of a settings object are parameters of the node that it makes. A further strategy is one file with its node
(a subclass of `Strategy`) and one class here, whose name goes into `STRATEGIES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from langchain_core.embeddings import Embeddings

from arq_graph.agent.environment import Environment
from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, require_type
from arq_graph.nodes.agreement import Agrees
from arq_graph.nodes.guideline_matcher import KeepMatches
from arq_graph.nodes.judgement_schema import Judgement
from arq_graph.nodes.message_reviser import OnUnsatisfied
from arq_graph.nodes.message_schema import MessageBlueprint, ReplyChoice
from arq_graph.nodes.strategy import Strategy
from arq_graph.reasoning.reasoner import ModelLike

if TYPE_CHECKING:
    from arq_graph.nodes.history_summarizer import HistorySummarizer
    from arq_graph.nodes.speaking.move_schema import Setting
    from arq_graph.nodes.speaking.policies import Policy

StrategyName: TypeAlias = Literal["tools", "pre-act", "react", "respact"]


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """Settings that all steps share.

    Args:
        template: A replacement for the shipped prompt: a path, or a template's text.
        temperature: Sampling temperature, for models that take one and have none set; None: that of the step, or what
            a `Reasoner` has.
        timeout: Seconds that one model call may take, its retries included; None: 60, or what a `Reasoner` has.
        max_attempts: Invalid answers, of which the last is an error; None: 3, or what a `Reasoner` has.
    """

    node_class: ClassVar[str]
    """The node's class as `module:class`, which is loaded when an app is made with it."""

    template: str | Path | None = None
    temperature: float | None = None
    timeout: float | None = None
    max_attempts: int | None = None

    def make_node(self, model: ModelLike, agent: Agent, **options: Any) -> Any:
        """Make the node with these settings and further options."""
        node_class = resolve_name(self.node_class)
        return node_class(model, agent, **self.get_node_options(), **options)

    def get_node_options(self) -> dict[str, Any]:
        """Return the parameters of the node that these settings determine."""
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class Matching(StepSettings):
    """Settings of the guideline matcher, whose usual temperature is 0.15.

    Args:
        batch_size: Guidelines that one call judges; None: about 5 up to 100 guidelines, 10 from 200 on.
        max_judged: If the agent has more guidelines, each matching pass judges whole batches with about this many; see
            `GuidelineMatcher`. None: all.
        embeddings: LangChain embeddings that choose which guidelines are judged; None: their spelling is compared.
        keep_matches: `all` stores every judgement of a turn, `active` those that a later step or turn needs.
        judgement: What is asked about each guideline: `Judgement`, or a subclass with queries of your own.
    """

    node_class: ClassVar[str] = "arq_graph.nodes.guideline_matcher:GuidelineMatcher"
    batch_size: int | None = None
    max_judged: int | None = None
    embeddings: Embeddings | None = None
    keep_matches: KeepMatches = "all"
    judgement: type[Judgement] = Judgement


@dataclass(frozen=True, kw_only=True)
class Revising(StepSettings):
    """Settings of the message reviser or, for an agent whose replies are strict, of the reply chooser.

    The usual temperature is 0.1.

    Args:
        blueprint: What is asked: a subclass of `MessageBlueprint` (of `ReplyChoice`) with queries of your own; None:
            the shipped one.
        extra_revisions: How many more times the model is asked when code finds a violation.
        on_unsatisfied: When violations are left, `send_last` sends the last candidate, and `fallback` the agent's
            `fallback`; see `MessageReviser`. A strict agent sends its `otherwise` reply.
        stream: Write the reply to `stream_mode="custom"` while it is written, as `ReplyDelta` events.
    """

    node_class: ClassVar[str] = "arq_graph.nodes.message_reviser:MessageReviser"
    blueprint: type[MessageBlueprint | ReplyChoice] | None = None
    extra_revisions: int = 1
    on_unsatisfied: OnUnsatisfied = "send_last"
    stream: bool = False

    def make_node(self, model: ModelLike, agent: Agent, **options: Any) -> Any:
        """Make the reviser or, for an agent whose replies are strict, the reply chooser."""
        settings = self.get_node_options()
        if self.blueprint is None:
            del settings["blueprint"]
        if agent.composition != "strict":
            return resolve_name(self.node_class)(model, agent, **settings, **options)
        from arq_graph.nodes.reply_chooser import ReplyChooser

        del settings["on_unsatisfied"]
        return ReplyChooser(model, agent, **settings, **options)


@dataclass(frozen=True, kw_only=True)
class Summarizing(StepSettings):
    """Settings of the history summarizer, whose usual temperature is 0.1."""

    node_class: ClassVar[str] = "arq_graph.nodes.history_summarizer:HistorySummarizer"


@dataclass(frozen=True, kw_only=True)
class StrategySettings(StepSettings):
    """Settings that all strategies share; the usual temperature is 0.05.

    Args:
        agrees: What else is a yes to code's question than the shipped list has: a function of the customer's message
            and the question, sync or async, that returns True, False, or None to leave it to the list.
    """

    node_name: ClassVar[str]
    """Name of the node in the graph."""
    writes_reply: ClassVar[bool] = True
    """Whether it writes a reply itself, which may be a reviser's draft."""

    agrees: Agrees | None = None

    def make_node(self, model: ModelLike, agent: Agent, *, draft: bool = False, **options: Any) -> Strategy:
        """Make the node; with `draft`, what it writes is the draft of a reviser."""
        if self.writes_reply:
            options["draft"] = draft
        node: Strategy = super().make_node(model, agent, **options)
        return node


@dataclass(frozen=True, kw_only=True)
class ToolCalling(StrategySettings):
    """Decide on all tools that active guidelines grant at once (ARQ paper, 5.1.2).

    Args:
        max_rounds: How many times tools may be called in one turn.
        max_speculative_tools: With `eager`, how many tools are asked about, at most, before it is known which are
            granted.
    """

    node_name: ClassVar[str] = "call_tools"
    node_class: ClassVar[str] = "arq_graph.nodes.tool_caller:ToolCaller"
    writes_reply: ClassVar[bool] = False
    max_rounds: int = 3
    max_speculative_tools: int = 16


@dataclass(frozen=True, kw_only=True)
class PreAct(StrategySettings):
    """Plan every step, take the first, and refine the plan after each result (Pre-Act, 3.1).

    Args:
        max_steps: How many calls one turn may make; after them only the final answer is left.
    """

    node_name: ClassVar[str] = "plan"
    node_class: ClassVar[str] = "arq_graph.nodes.planner:PreActPlanner"
    max_steps: int = 8


@dataclass(frozen=True, kw_only=True)
class ReAct(PreAct):
    """Take a thought and an action at a time: what Pre-Act is compared with, with the same settings."""

    node_class: ClassVar[str] = "arq_graph.nodes.planner:ReActPlanner"


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

    node_name: ClassVar[str] = "speak"
    node_class: ClassVar[str] = "arq_graph.nodes.speaking.speaker:Speaker"
    policies: Sequence[str | Policy] | None = None
    environment: Environment | None = None
    setting: Setting | None = None
    dialogue_acts: Mapping[str, str] | None = None
    max_steps: int | None = None
    max_questions: int = 3
    inner_monologue: bool = False

    @property
    def is_task(self) -> bool:
        """True if an utterance waits for its answer."""
        if self.setting is None:
            return self.environment is not None
        return self.setting == "task"

    def make_node(self, model: ModelLike, agent: Agent, *, draft: bool = False, **options: Any) -> Strategy:
        """Make the speaker; with `draft`, its utterances are drafts of a reviser.

        Raises:
            InputError: An agent with a reviser has an environment or a task.
        """
        if draft and (self.environment is not None or self.is_task):
            raise InputError(
                "an environment, or a task, is for an agent without guidelines: take them out of this one, or "
                "use create_respact_agent"
            )
        return super().make_node(model, agent, draft=draft, **options)

    def get_node_options(self) -> dict[str, Any]:
        """Return the parameters of the speaker, which knows whether there is a world, and not the world."""
        options = super().get_node_options()
        environment = options.pop("environment")
        options["in_world"] = environment is not None
        options["setting"] = self.setting or ("task" if self.is_task else "chat")
        return options


STRATEGIES: Mapping[str, type[StrategySettings]] = {
    "tools": ToolCalling,
    "pre-act": PreAct,
    "react": ReAct,
    "respact": ReSpAct,
}


def resolve_strategy(strategy: str | StrategySettings) -> StrategySettings:
    """Return settings as they are, or the default settings of a strategy's name.

    Raises:
        InputError: No strategy has this name.
    """
    if isinstance(strategy, StrategySettings):
        return strategy
    if strategy not in STRATEGIES:
        names = ", ".join(map(repr, STRATEGIES))
        raise InputError(
            f"strategy is {strategy!r}: give one of {names}, or settings such as PreAct(max_steps=4)"
        )
    return STRATEGIES[strategy]()


def require_settings(name: str, settings: object, kind: type[StepSettings]) -> None:
    """Check that a parameter has settings of the kind that it takes; otherwise raise InputError."""
    require_type(name, settings, kind, f"give settings such as {kind.__name__}(timeout=20)")


def make_summarizer(
    summary: Summarizing | None, model: ModelLike, agent: Agent, **options: Any
) -> HistorySummarizer | None:
    """Make the history summarizer, or return None if nothing is to be summarised.

    Raises:
        InputError: `summary` isn't settings, or a setting is out of its range.
    """
    if summary is None:
        return None
    advice = "give settings such as Summarizing(timeout=20), or None for no summary"
    require_type("summary", summary, Summarizing, advice)
    node: HistorySummarizer = summary.make_node(model, agent, **options)
    return node
