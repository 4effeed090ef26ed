"""Making a milestone graph of a workflow: a model drafts it, code checks it, and a person looks it over."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import InputError, UnsatisfiedError
from arq_graph.milestones.authoring.blueprint import MilestoneAuthoring
from arq_graph.milestones.authoring.drafted import Drafted, drafted
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.tool_schemas import argument_schemas, tool_name
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "milestone_author.md"
LONGEST_WORKFLOW = 200_000
MOST_COMPLAINTS = 20


def author_milestones(
    workflow: str,
    tools: Any,
    model: BaseChatModel | str,
    *,
    max_attempts: int = 3,
    mode: Mode = "arq",
    temperature: float | None = None,
    timeout: float = 180.0,
    base_url: str | None = None,
    template: str | Path = PROMPT,
    config: RunnableConfig | None = None,
) -> MilestoneGraph:
    """Have a model make a milestone graph of a workflow (Pre-Act, 4.3 and Appendix F).

    Code checks each draft: every FC is a tool, Start and End are there, no dependency is missing, End can be
    reached. What is wrong is told to the model, which drafts again. At most 2 `max_attempts` - 1 answers are
    asked for. The graph is marked as generated and not reviewed, and what only a judge can decide (its NFCs)
    has no `check`.

    Args:
        workflow: What the agent is to do, in words; at most 200,000 characters.
        tools: The agent's tools: names, LangChain tools, OpenAI tool definitions, or schemas by name.
        model: A chat model, or a string such as `openai:gpt-4o` or `offline`.
        max_attempts: Drafts that can be read to ask for until one is sound, and answers that cannot be read
            before the ask ends; 1 or more.
        mode: `arq`, `cot` or `direct`.
        temperature: 0 to 2; None leaves it to the model.
        timeout: Seconds that one answer may take.
        base_url: An OpenAI-compatible endpoint, where `model` is a string.
        template: A replacement for the shipped prompt.
        config: LangChain's configuration of the run.

    Raises:
        InputError: The workflow is empty or too long, or a setting is out of its range.
        ToolError: A tool has no name.
        UnsatisfiedError: No draft was sound; the message says what was wrong with the last one.
        ReasoningError: The model gave no valid answer.
    """
    authoring = _Authoring(workflow, tools, model, template)
    reasoner = _reasoner(model, max_attempts, mode, temperature, timeout, base_url)
    question = authoring.question
    return authoring.finished(
        reasoner.ask(question.blueprint, question.messages, check=question.check, config=config)
    )


async def aauthor_milestones(
    workflow: str,
    tools: Any,
    model: BaseChatModel | str,
    *,
    max_attempts: int = 3,
    mode: Mode = "arq",
    temperature: float | None = None,
    timeout: float = 180.0,
    base_url: str | None = None,
    template: str | Path = PROMPT,
    config: RunnableConfig | None = None,
) -> MilestoneGraph:
    """Have a model make a milestone graph of a workflow; all is as in `author_milestones`."""
    authoring = _Authoring(workflow, tools, model, template)
    reasoner = _reasoner(model, max_attempts, mode, temperature, timeout, base_url)
    question = authoring.question
    return authoring.finished(
        await reasoner.aask(question.blueprint, question.messages, check=question.check, config=config)
    )


def _reasoner(
    model: BaseChatModel | str,
    max_attempts: int,
    mode: Mode,
    temperature: float | None,
    timeout: float,
    base_url: str | None,
) -> Reasoner:
    return Reasoner(
        model,
        module="author",
        mode=mode,
        temperature=temperature,
        max_attempts=max_attempts,
        max_candidates=max_attempts,
        timeout=timeout,
        base_url=base_url,
    )


class _Authoring:
    """One graph in the making: what is asked, and the drafts so far."""

    def __init__(self, workflow: str, tools: Any, model: BaseChatModel | str, template: str | Path) -> None:
        if not workflow.strip():
            raise InputError("the workflow is empty: say in words what the agent is to do")
        if len(workflow) > LONGEST_WORKFLOW:
            raise InputError(
                f"the workflow has {len(workflow):,} characters; at most {LONGEST_WORKFLOW:,} are read"
            )
        shown = shown_tools(tools)
        self._workflow = workflow
        self._tools = [str(tool["name"]) for tool in shown]
        self._generated_by = model if isinstance(model, str) else _name_of(model)
        self._drafts: list[tuple[Drafted, int]] = []
        self.question = Question(
            MilestoneAuthoring, _messages(workflow, shown, template), check=self._complaints
        )

    def _complaints(self, answer: MilestoneAuthoring) -> list[Complaint]:
        draft = drafted(answer.milestones, workflow=self._workflow, tools=self._tools)
        self._drafts.append((draft, len(draft.doubts) + len(answer.unmet())))
        return [*draft.errors, *draft.doubts][:MOST_COMPLAINTS]

    def finished(self, answer: Answer[MilestoneAuthoring]) -> MilestoneGraph:
        """The best draft: one without errors, with the fewest doubts, the latest of those."""
        sound = [(doubts, -at, draft) for at, (draft, doubts) in enumerate(self._drafts) if not draft.errors]
        if not sound:
            said = "; ".join(error.message for error in self._drafts[-1][0].errors[:MOST_COMPLAINTS])
            raise UnsatisfiedError(
                f"author: none of {len(self._drafts)} drafts is a graph that can be measured on; the last: {said}. "
                "Raise max_attempts, take another model, or look at the texts in .attempts.",
                answer.attempts,
            )
        _, _, best = min(sound, key=lambda each: each[:2])
        assert best.graph is not None
        for doubt in best.doubts:
            warnings.warn(f"the generated graph: {doubt.message}", stacklevel=3)
        return MilestoneGraph(best.graph.milestones, generated_by=self._generated_by)


def _messages(workflow: str, tools: list[dict[str, Any]], template: str | Path) -> list[BaseMessage]:
    prompt = PromptTemplate(template, PROMPT.parent, needs=("head", "tail"))
    return [
        SystemMessage(prompt.render("head", {})),
        HumanMessage(prompt.render("tail", {"workflow": workflow, "tools": tools})),
    ]


def shown_tools(tools: Any) -> list[dict[str, Any]]:
    """Each tool as a prompt shows it: name, description and the names of its arguments.

    Args:
        tools: Names, LangChain tools, functions, OpenAI tool definitions, or schemas by name.

    Raises:
        ToolError: A tool has no name.
    """
    schemas = argument_schemas(tools)
    listed = {str(name): "" for name in tools} if isinstance(tools, Mapping) else {}
    if not isinstance(tools, Mapping):
        for tool in tools:
            listed.setdefault(tool_name(tool), _description(tool))
    return [
        {
            "name": name,
            "description": description,
            "arguments": list(schemas.get(name, {}).get("properties") or ()),
        }
        for name, description in listed.items()
    ]


def _description(tool: Any) -> str:
    if isinstance(tool, Mapping):
        definition = tool.get("function", tool)
        said = definition.get("description") if isinstance(definition, Mapping) else None
    else:
        said = None if isinstance(tool, str) else getattr(tool, "description", None) or tool.__doc__
    return said.strip() if isinstance(said, str) else ""


def _name_of(model: BaseChatModel) -> str:
    names = (getattr(model, field, None) for field in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name.strip()), type(model).__name__)
