"""A reasoning step as a LangGraph node: asks a blueprint with a prompt template, and writes the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import isawaitable
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor

from arq_graph.errors import InputError, ReasoningError, require_count
from arq_graph.models.resolve import get_model_name
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.state_view import StateView
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import ARQ, B, Mode
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.sections import section
from arq_graph.reasoning.steps import aperform_steps, perform_steps, run_awaitable
from arq_graph.reasoning.templates import PromptTemplate

PROMPTS = Path(__file__).parent / "prompts"
MIN_HISTORY_TOKENS = 100
_UNSUPPORTED = (
    "nodes send a model text, and images unless its profile excludes them. Replace the block with text "
    "before this step, or use a model that reads images. In later turns the block is left out, and its kind is named"
)

DeferredCall: TypeAlias = Callable[[], Any] | Runnable[None, Any]
"""A function, sync or async, that a node yields to have it called off the event loop: it may block. A Runnable, which
tells sync and async runs apart, is invoked with None."""


@dataclass(frozen=True)
class QuestionBatch:
    """Questions that a node yields to have them asked at the same time.

    The node receives their answers in order, with a `ReasoningError` in place of each one that failed.

    Args:
        questions: The questions.
        make_optimistic_update: Makes the node's update as if all guidelines that the questions are about matched. While
            the questions wait for answers, `Parallel` asks optimistic nodes with this update applied.
    """

    questions: Sequence[Question[Any]]
    make_optimistic_update: Callable[[], Update] | None = None


NodeSteps: TypeAlias = Generator[QuestionBatch | DeferredCall, Any, Update]


class BlueprintNode(Node, Generic[B]):
    """Ask a blueprint about the conversation and write the answer to the state.

    The prompt is the template's block `head` as the system message, and the conversation followed by its
    block `tail` as the human message. The node works in any `StateGraph`, sync and async, and by itself:
    `node.invoke({"messages": […]})`. It declares the channels that it reads and writes to LangGraph, so a graph that
    lacks one of them gets it.

    Args:
        model: A chat model, which may have fallbacks or be configurable, a model string such as `openai:gpt-4o`, or a
            `Reasoner` set up by you, which several nodes may share: each asks under its own name. Settings given here
            take precedence over the `Reasoner`'s.
        blueprint: The blueprint that is asked; None for a subclass that chooses one itself.
        template: The prompt: a path, or the text of a Jinja2 template with the blocks `head` and `tail`.
        write: Channel names with functions that make their values from the answer, e.g.
            `{"sentiment": lambda answer: answer.value.sentiment}`.
        reads: Further channels of the state, which the template's tail gets by name (None if absent); a mapping gives
            their types too.
        module: Name of the node in run names, tags and usage.
        mode: `arq` (all queries), `cot` (free reasoning, then the response) or `direct`.
        temperature: Sampling temperature, for models that take one and have none set.
        timeout: Seconds that one model call may take, its retries included; 60 unless a `Reasoner` says otherwise.
        max_attempts: Number of invalid answers after which the step fails; 3 unless a `Reasoner` says otherwise.
        history_tokens: How long the history in the prompt may be, in tokens, about 4 characters each. A longer one is
            cut to half of it, unless a `HistorySummarizer` has summarised its beginning.
        messages_key: Channel of the messages.

    Raises:
        InputError: `history_tokens` is below 100, or a `Reasoner` leaves out a query that this step does not ask.
        PromptError: The template cannot be read, lacks a block, or (when run, too) cannot be rendered.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds another type.
    """

    blueprint: type[B]
    module = "blueprint"
    agent_name = ""
    """Name of the agent whose records the node reads and writes; "" if it belongs to none."""
    agent_fingerprint = ""
    default_temperature: ClassVar[float | None] = None
    agent_state_channels: ClassVar[tuple[str, ...]] = ()
    """The channels of `AgentState` that the node reads or writes besides the messages."""
    further_channels: Mapping[str, Any] = {}
    """The channels, with their types, that a subclass reads by its settings; set it before `__init__`."""
    is_optimistic: ClassVar[bool] = False
    """If asked speculatively, ask as if all guidelines matched that are being judged at that time."""

    def __init__(
        self,
        model: ModelLike,
        blueprint: type[B] | None,
        template: str | Path,
        *,
        write: Mapping[str, Callable[[Answer[B]], Any]] | None = None,
        reads: Sequence[str] | Mapping[str, Any] = (),
        module: str | None = None,
        mode: Mode | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        max_attempts: int | None = None,
        history_tokens: int = 16_000,
        messages_key: str = "messages",
    ) -> None:
        self.name = self.module = module or self.module
        self.reasoner = make_reasoner(
            model,
            self.module,
            self.default_temperature,
            mode=mode,
            temperature=temperature,
            timeout=timeout,
            max_attempts=max_attempts,
        )
        self.mode: Mode = self.reasoner.settings.mode
        if blueprint is not None:
            self.blueprint = blueprint
        if derive := self.reasoner.settings.derive:
            derive.require_queries(*self.list_blueprints(blueprint))
        self.template = PromptTemplate(template, PROMPTS)
        self.messages_key = messages_key
        self._shows_images = self.reasoner.takes_images
        self._write = dict(write or {})
        self._reads = dict(reads) if isinstance(reads, Mapping) else dict.fromkeys(reads, Any)
        self._history_tokens = require_count("history_tokens", history_tokens, minimum=MIN_HISTORY_TOKENS)
        self.declare_channels(self.channels | {messages_key: list[AnyMessage]})

    @classmethod
    def list_blueprints(cls, custom: type[ARQ] | None = None) -> list[type[ARQ]]:
        """Return blueprints that together have every query of the step, also those of a custom blueprint."""
        return [custom] if custom else []

    @cached_property
    def channels(self) -> dict[str, Any]:
        """The channels that this node reads or writes besides the messages, with their types."""
        channels: dict[str, Any] = dict.fromkeys(self._write, Any)
        channels.update(self._reads)
        channels.update(self.further_channels)
        channels.update(get_channel_types(*self.agent_state_channels, "summaries"))
        return channels

    @cached_property
    def head(self) -> str:
        """The beginning of its prompts, the same for the life of the node."""
        return self.template.render("head", {})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node on a state: a dict, a dataclass or a Pydantic model."""

        def ask(batch: QuestionBatch) -> list[Answer[Any] | ReasoningError]:
            return self.reasoner.ask_all(batch.questions, config=config)

        return run_steps(self.steps(self.view_state(input)), ask)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node on a state, without blocking."""

        async def ask(batch: QuestionBatch) -> list[Answer[Any] | ReasoningError]:
            return await self.reasoner.aask_all(batch.questions, config=config)

        return await arun_steps(self.steps(self.view_state(input)), ask)

    def view_state(self, input: Any, *, is_speculative: bool = False) -> StateView:
        """Return the node's view of a state; with `is_speculative`, of one that other nodes may still change."""
        return StateView(
            input,
            self.messages_key,
            self.channels,
            self.agent_name,
            is_speculative,
            history_tokens=self._history_tokens,
            shows_images=self._shows_images,
            agent_fingerprint=self.agent_fingerprint,
        )

    def steps(self, state: StateView) -> NodeSteps:
        """Yield questions, receive their answers, and return the update.

        It may also yield a function without arguments, sync or async, and receive its result or its exception.

        Subclasses override this. It never touches a model, so sync and async share it.
        """
        self.check_attachments(state)
        values = {name: state.get(name) for name in self._reads}
        prompt = self.build_prompt(state.conversation, values)
        (answer,) = yield from self.ask_questions(Question(self.blueprint, prompt))
        return {name: make_value(answer) for name, make_value in self._write.items()}

    def ask_questions(
        self, *questions: Question[Any]
    ) -> Generator[QuestionBatch, Any, Sequence[Answer[Any]]]:
        """Ask questions at the same time, from `steps`: `answers = yield from self.ask_questions(first, second)`.

        Args:
            *questions: Blueprints with their prompts; may be none.

        Returns:
            Their answers, in order.

        Raises:
            ReasoningError: A question got no answer; if several did, the error of the first.
        """
        if not questions:
            return ()
        answers: Sequence[Answer[Any]] = yield QuestionBatch(questions)
        for answer in answers:
            if isinstance(answer, ReasoningError):
                raise answer
        return answers

    def is_same_question(self, speculative: Question[Any], question: Question[Any]) -> bool:
        """Return True if the answer to a question that was asked speculatively answers this one, too."""
        return speculative.messages == question.messages

    def check_attachments(self, state: StateView) -> None:
        """Check that the model can be shown the message that waits for a reply.

        Raises:
            InputError: The customer's last message has an attachment that the model can't be shown, and has no reply.
        """
        if line := state.conversation.unreadable_line:
            kind = line.list_unsupported(shows_images=self._shows_images)[0]
            raise InputError(
                f"{self.name}: {line.id} comes with a block of the kind {kind!r}, which "
                f"cannot be shown to {get_model_name(self.reasoner)}: {_UNSUPPORTED}"
            )

    def build_prompt(
        self,
        conversation: Conversation,
        values: Mapping[str, Any],
        *,
        head: str | None = None,
        shown: Sequence[int] | None = None,
    ) -> list[BaseMessage]:
        """Return the messages to send: the head, then the conversation and the template's tail in blocks.

        Args:
            conversation: The conversation as numbered lines.
            values: Variables of the tail; `variables` among them get a section of their own before the conversation.
            head: The rendered system message; None: the node's own.
            shown: The indices of the lines to show; None: those that the conversation shows.

        Raises:
            PromptError: The tail cannot be rendered with these values.
        """
        opening = "<conversation>\n"
        if conversation.summary:
            opening = f"{conversation.summary.text}\n{opening}"
        if variables := values.get("variables"):
            opening = f"{section(variables, 'variables')}\n{opening}"
        closing = "\n</conversation>"
        if tail := self.template.render("tail", {"conversation": conversation, **values}):
            closing = f"{closing}\n{tail}"
        content: list[str | dict[str, Any]] = [{"type": "text", "text": opening}]
        content.extend(conversation.blocks if shown is None else conversation.render(shown))
        content.append({"type": "text", "text": closing})
        if head is None:
            head = self.head
        message = HumanMessage("")
        message.content = content  # not validated, which would copy all blocks for each prompt
        return [SystemMessage(head), message]


def run_steps(steps: Generator[Any, Any, Update], ask: Callable[[Any], Any]) -> Update:
    """Run a node to its update: pass each batch of questions to `ask`, and call the functions."""

    def perform(request: Any) -> Any:
        if isinstance(request, Runnable):
            return request.invoke(None)
        if not callable(request):
            return ask(request)
        result = request()
        return run_awaitable(result) if isawaitable(result) else result

    return perform_steps(steps, perform)


async def arun_steps(steps: Generator[Any, Any, Update], ask: Callable[[Any], Awaitable[Any]]) -> Update:
    """Run a node to its update without blocking."""

    async def perform(request: Any) -> Any:
        if isinstance(request, Runnable):
            return await request.ainvoke(None)
        if not callable(request):
            return await ask(request)
        # In a thread: a sync function of the developer's may block, which a server's event loop refuses.
        result = await run_in_executor(None, request)
        return await result if isawaitable(result) else result

    return await aperform_steps(steps, perform)
