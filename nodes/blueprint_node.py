"""A reasoning step as a LangGraph node: a blueprint, a prompt template, and what to do with the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from functools import cache, cached_property, partial
from inspect import isawaitable
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeAlias, TypedDict, TypeVar, Unpack

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import run_in_executor
from langchain_core.tools import StructuredTool

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, ReasoningError, require_count, require_type
from arq_graph.models.resolve import model_name
from arq_graph.nodes.channels import Node, StateView, Update, get_channel_types
from arq_graph.nodes.spec_sections import describe_agent
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.violations import PromptFacts
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blocks import text_block
from arq_graph.reasoning.blueprint import ARQ, Mode, dump_in_mode
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.derived import ResponseOnly
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.sections import section
from arq_graph.reasoning.steps import aperform_steps, perform_steps, run_awaitable
from arq_graph.reasoning.templates import PromptTemplate

PROMPTS = Path(__file__).parent / "prompts"
MIN_HISTORY_TOKENS = 100
_UNREAD = (
    "text and images reach a model, and images none whose profile says that it takes none. Replace the block by words "
    "before this step, or take a model that reads images. Later turns go on, and only name what was sent"
)

B = TypeVar("B", bound=ARQ)
Answers: TypeAlias = "Sequence[Answer[Any] | ReasoningError]"
UserFunction: TypeAlias = Callable[[], Any]
"""A function of the user's, sync or async, that a node's steps have run for them."""
Steps: TypeAlias = "Generator[Sequence[Question[Any]] | UserFunction, Any, Update]"


class Questions(list[Question[Any]]):
    """Questions about guidelines, and a function that makes the step's update if all of these match.

    While they wait for answers, a step after this one may be asked ahead about all that this update allows.
    """

    def __init__(
        self, questions: Iterable[Question[Any]], make_update_if_all_match: Callable[[], Update]
    ) -> None:
        super().__init__(questions)
        self.make_update_if_all_match = make_update_if_all_match


class NodeSettings(TypedDict, total=False):
    """Settings that the nodes of an agent share; `BlueprintNode` says what they mean."""

    template: str | Path | None
    mode: Mode | None
    temperature: float | None
    timeout: float | None
    max_attempts: int | None
    reads: Sequence[str] | Mapping[str, Any]
    max_history_tokens: int
    messages_key: str


class BlueprintNode(Node, Generic[B]):
    """Ask a blueprint about the conversation and write the answer to the state.

    The prompt is the template's block `head` as the system message, and the conversation followed by its
    block `tail` as the human message. Works in any `StateGraph`, sync and async, and by itself:
    `node.invoke({"messages": […]})`. The channels it reads and writes are named to LangGraph, so a graph that
    lacks one of them gets it.

    Args:
        model: A chat model, with fallbacks or configurable, too, a model string such as `openai:gpt-4o`, or a
            `Reasoner` set up by you, which several nodes may share: each asks under its own name. What is set here
            goes before what the `Reasoner` has.
        blueprint: What is asked.
        template: The prompt: a path, or the text of a Jinja2 template with the blocks `head` and `tail`.
        write: Channel names and how to make their values from the answer, e.g.
            `{"sentiment": lambda answer: answer.value.sentiment}`.
        reads: Further channels of the state that the template's tail is given by name (None where absent); a
            mapping names their types too.
        module: Name of the step in run names, tags and usage.
        mode: `arq` (all queries), `cot` (free reasoning, then the response) or `direct`.
        temperature: Sampling temperature, for models that take one and have none set.
        timeout: Seconds that one model call may take, its retries included; 60 unless a `Reasoner` says otherwise.
        max_attempts: Invalid answers, of which the last is an error; 3 unless a `Reasoner` says otherwise.
        max_history_tokens: Over it, the history in the prompt is cut to half.
        messages_key: Channel of the messages.

    Raises:
        InputError: `max_history_tokens` is below 100, or a `Reasoner` leaves out a query that this step does not ask.
        PromptError: The template cannot be read, lacks a block, or (when run, too) cannot be rendered.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds another type.
    """

    module = "blueprint"
    default_temperature: ClassVar[float | None] = None
    agent_state_channels: ClassVar[tuple[str, ...]] = ()
    """The channels of `AgentState` that it reads or writes besides the messages."""
    assumes_all_match: ClassVar[bool] = False
    """Whether, asked ahead, it is asked about all that could be; an answer holds if its guidelines do."""

    def __init__(
        self,
        model: ModelLike,
        blueprint: type[B],
        template: str | Path,
        *,
        write: Mapping[str, Callable[[Answer[B]], Any]] | None = None,
        reads: Sequence[str] | Mapping[str, Any] = (),
        module: str | None = None,
        mode: Mode | None = None,
        temperature: float | None = None,
        timeout: float | None = None,
        max_attempts: int | None = None,
        max_history_tokens: int = 16_000,
        messages_key: str = "messages",
    ) -> None:
        self.name = self.module = module or self.module
        self.reasoner = make_reasoner(
            *(model, self.module, self.default_temperature),
            mode=mode,
            temperature=temperature,
            timeout=timeout,
            max_attempts=max_attempts,
        )
        self.mode: Mode = self.reasoner.settings.mode
        self.blueprint = blueprint
        if derive := self.reasoner.settings.derive:
            derive.require_queries(*self.asks(blueprint))
        self.template = PromptTemplate(template, PROMPTS)
        self.messages_key = messages_key
        self._write = dict(write or {})
        self._reads = dict(reads) if isinstance(reads, Mapping) else dict.fromkeys(reads, Any)
        self._max_history_tokens = require_count(
            "max_history_tokens", max_history_tokens, minimum=MIN_HISTORY_TOKENS
        )
        self.declare_channels({**self.channels, messages_key: list[AnyMessage]})

    @classmethod
    def asks(cls, *own: type[ARQ]) -> list[type[ARQ]]:
        """Blueprints that hold every query of the step, with those of one's own."""
        return list(own)

    @property
    def channels(self) -> dict[str, Any]:
        """The channels this node reads or writes besides the messages, with their types."""
        return {
            **dict.fromkeys(self._write, Any),
            **self._reads,
            **get_channel_types(*self.agent_state_channels),
        }

    @cached_property
    def head(self) -> str:
        """What its prompts begin with, the same for the life of the node."""
        return self.template.render("head", {})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node on a state: a dict, a dataclass or a Pydantic model."""
        return run_node_steps(
            self.steps(self.view_state(input)), partial(self.reasoner.ask_all, config=config)
        )

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node on a state, without blocking."""
        ask = partial(self.reasoner.aask_all, config=config)
        return await arun_node_steps(self.steps(self.view_state(input)), ask)

    def view_state(self, input: Any, *, is_ahead: bool = False) -> StateView:
        """Its view of a state; with `is_ahead`, of one that other steps may still change."""
        agent: Agent | None = getattr(self, "agent", None)
        return StateView(input, self.messages_key, self.channels, agent.name if agent else "", is_ahead)

    def steps(self, state: StateView) -> Steps:
        """The node's logic: yield questions and receive their answers, return the update.

        It may also yield a function without arguments, sync or async, and receives what that returns or raises.

        Subclasses override this; it never touches a model, so sync and async share it.
        """
        extra = {name: state.get(name) for name in self._reads}
        prompt = self.build_prompt(self.read_conversation(state), extra)
        (answer,) = yield from self.ask_questions(Question(self.blueprint, prompt))
        return {name: make(answer) for name, make in self._write.items()}

    def ask_questions(
        self, *questions: Question[Any]
    ) -> Generator[Sequence[Question[Any]], Any, Sequence[Answer[Any]]]:
        """Ask questions at the same time, from `steps`: `answers = yield from self.ask_questions(first, second)`.

        Args:
            *questions: Each a blueprint with its prompt; none asks nothing.

        Returns:
            Their answers, in order.

        Raises:
            ReasoningError: A question led to no answer; of several, the first.
        """
        answers = (yield questions) if questions else ()
        for answer in answers:
            if isinstance(answer, ReasoningError):
                raise answer
        return answers

    def read_conversation(self, state: StateView) -> Conversation:
        """The thread's messages as numbered lines.

        Raises:
            InputError: Something in the message that the customer waits for an answer to cannot be shown to the model.
        """
        conversation = Conversation(state.messages, self._max_history_tokens, self.reasoner.takes_images)
        spoken = (line for line in reversed(conversation.lines) if line.speaker in ("customer", "agent"))
        last = next(spoken, None)
        if last and last.unsupported_attachments and last is conversation.last_customer_line:
            sent = f"{last.id} comes with a block of the kind {last.unsupported_attachments[0]!r}"
            reader = model_name(self.reasoner)
            raise InputError(f"{self.name}: {sent}, which cannot be shown to {reader}: {_UNREAD}")
        return conversation

    def build_prompt(
        self, conversation: Conversation, values: Mapping[str, Any], *, head: str | None = None
    ) -> list[BaseMessage]:
        """The messages to send: the head, and the conversation with the template's tail in blocks, which `.text` joins.

        Args:
            conversation: What was said, as numbered lines.
            values: What the tail is rendered with; `variables` among them stand in a section before the conversation.
            head: The system message, rendered already; None: the node's own.

        Raises:
            PromptError: The tail cannot be rendered with these values.
        """
        variables = values.get("variables")
        opening = f"{section(variables, 'variables')}\n<conversation>\n" if variables else "<conversation>\n"
        tail = self.template.render("tail", {"conversation": conversation, **values})
        closing = f"\n</conversation>\n{tail}" if tail else "\n</conversation>"
        content = [text_block(opening), *conversation.blocks, text_block(closing)]
        system = SystemMessage(self.head if head is None else head)
        return [system, HumanMessage(content)]  # type: ignore[arg-type]


def run_node_steps(steps: Generator[Any, Any, Update], ask: Callable[[Any], Any]) -> Update:
    """Run a node's steps: questions that they yield go to `ask`, functions are called."""

    def perform(request: Any) -> Any:
        if not callable(request):
            return ask(request)
        result = request()
        return run_awaitable(result) if isawaitable(result) else result

    return perform_steps(steps, perform)


async def arun_node_steps(steps: Generator[Any, Any, Update], ask: Callable[[Any], Awaitable[Any]]) -> Update:
    """Run a node's steps without blocking."""

    async def perform(request: Any) -> Any:
        if not callable(request):
            return await ask(request)
        # In a thread: a sync function of the user's may block, which a server's event loop refuses.
        result = await run_in_executor(None, request)
        return await result if isawaitable(result) else result

    return await aperform_steps(steps, perform)


class AgentNode(BlueprintNode[B]):
    """A step of an agent: its prompt begins with the agent's specification and worked examples (ARQ paper, 6.1.1).

    A subclass names its prompt and examples (`files`), the blueprint that examples fit, and a temperature.
    """

    files: ClassVar[str]
    example_blueprint: ClassVar[Callable[..., type[ARQ]]]
    at_most: ClassVar[Mapping[str, Any]] = {}
    """What `example_blueprint` is told to ask all that any agent is asked."""

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        blueprint: type[B],
        **settings: Unpack[NodeSettings],
    ) -> None:
        way = "make one with Agent(…), or read one with Agent.from_yaml(path)"
        self.agent = require_type("agent", agent, Agent, way)
        options: dict[str, Any] = {**settings}
        template = options.pop("template", None) or PROMPTS / f"{self.files}.md"
        super().__init__(model, blueprint, template, **options)

    @classmethod
    def asks(cls, *own: type[ARQ]) -> list[type[ARQ]]:
        """Blueprints that hold every query of the step, whatever the agent, with those of one's own."""
        shipped = [cls.example_blueprint(tools, **cls.at_most) for *_, tools in _examples(cls.files)]
        return [*(each for each in own if each is not ARQ), *shipped]

    def render_head(self, **values: Any) -> str:
        """The head with the agent's profile and glossary, the worked examples, and what else it shows."""
        settings = self.reasoner.settings
        examples = load_examples(self.files, self.example_blueprint, settings.mode, settings.derive)
        return self.template.render("head", {**describe_agent(self.agent), "examples": examples, **values})

    def collect_facts(
        self, conversation: Conversation, variables: Iterable[Mapping[str, Any]], sources: Iterable[str] = ()
    ) -> PromptFacts:
        """What its prompt held, to hold what it says against."""
        guidelines, ids = (
            self.agent.guidelines,
            [entry["id"] for entry in describe_agent(self.agent)["glossary"]],
        )
        terms = [
            text for term in self.agent.glossary for text in (term.name, term.description, *term.synonyms)
        ]
        return PromptFacts(
            conversation,
            {"P", *ids, *(variable["id"] for variable in variables), *sources},
            (*self.agent.toolbox, *(line.call["name"] for line in conversation.lines if line.call)),
            (*(each.id for each in guidelines), *(variable["name"] for variable in variables)),
            " ".join([self.agent.profile, *terms, *(each.action or "" for each in guidelines)]),
        )


@cache
def load_examples(
    name: str, blueprint_of: Callable[..., type[ARQ]], mode: Mode, derive: ResponseOnly | None
) -> list[dict[str, Any]]:
    """The worked examples of a data file as a mode's prompt shows them; their tools make the answers' blueprint.

    In `arq` mode the prompt shows the filled queries, save those that are left out; in `cot` and `direct` the response
    alone.
    """
    examples = []
    for situation, answer, tools in _examples(name):
        blueprint = blueprint_of(tools)
        if derive:
            blueprint = derive.derive(blueprint)
        shown = dump_in_mode(blueprint.model_validate(answer), mode)
        examples.append({"situation": situation, "answer": shown})
    return examples


@cache
def _examples(name: str) -> list[tuple[Any, Any, list[ToolArguments]]]:
    """Each situation of a data file with its answer and its tools."""
    import yaml  # when it is used: importing is quicker

    def tool(name: str, schema: dict[str, Any]) -> ToolArguments:
        return ToolArguments(StructuredTool(name=name, description=name, args_schema=schema, func=dict))

    found = yaml.safe_load((PROMPTS / f"{name}.yaml").read_text(encoding="utf-8"))
    return [
        (each["situation"], each["answer"], [tool(*one) for one in each.get("tools", {}).items()])
        for each in found
    ]
