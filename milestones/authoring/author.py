"""Making a milestone graph of a workflow: a model drafts it, code checks it, and a person looks it over."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import InputError, UnsatisfiedError
from arq_graph.milestones.authoring.blueprint import MilestoneAuthoring
from arq_graph.milestones.authoring.drafted import Drafted, drafted
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.tool_schemas import tool_definitions
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "milestone_author.md"
LONGEST_WORKFLOW = 200_000
MOST_COMPLAINTS = 20
_SECONDS = 180.0


def author_milestones(
    workflow: str,
    tools: Any,
    model: BaseChatModel | str,
    *,
    max_attempts: int = 3,
    mode: Mode = "arq",
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
        tools: The agent's tools: names, LangChain tools, functions, OpenAI tool definitions, or schemas by name.
        model: A chat model, or a string such as `openai:gpt-4o` or `offline`.
        max_attempts: Drafts that can be read to ask for until one is sound, and answers that cannot be read
            before the ask ends; 1 or more.
        mode: `arq`, `cot` or `direct`.
        base_url: An OpenAI-compatible endpoint, where `model` is a string.
        template: A replacement for the shipped prompt.
        config: LangChain's configuration of the run.

    Raises:
        InputError: The workflow is empty or too long, or a setting is out of its range.
        ToolError: A tool has no name.
        UnsatisfiedError: No draft was sound; the message says what was wrong with the last one.
        ReasoningError: The model gave no valid answer.
    """
    authoring = _Authoring(workflow, tools, model, template, max_attempts, mode, base_url)
    ask = authoring.reasoner.ask
    return authoring.finished(
        ask(MilestoneAuthoring, authoring.messages, check=authoring.complaints, config=config)
    )


async def aauthor_milestones(
    workflow: str,
    tools: Any,
    model: BaseChatModel | str,
    *,
    max_attempts: int = 3,
    mode: Mode = "arq",
    base_url: str | None = None,
    template: str | Path = PROMPT,
    config: RunnableConfig | None = None,
) -> MilestoneGraph:
    """Have a model make a milestone graph of a workflow; all is as in `author_milestones`."""
    authoring = _Authoring(workflow, tools, model, template, max_attempts, mode, base_url)
    ask = authoring.reasoner.aask
    return authoring.finished(
        await ask(MilestoneAuthoring, authoring.messages, check=authoring.complaints, config=config)
    )


class _Authoring:
    """One graph in the making: who is asked, and the drafts so far."""

    def __init__(
        self,
        workflow: str,
        tools: Any,
        model: BaseChatModel | str,
        template: str | Path,
        max_attempts: int,
        mode: Mode,
        base_url: str | None,
    ) -> None:
        if not workflow.strip():
            raise InputError("the workflow is empty: say in words what the agent is to do")
        if len(workflow) > LONGEST_WORKFLOW:
            raise InputError(
                f"the workflow has {len(workflow):,} characters; at most {LONGEST_WORKFLOW:,} are read"
            )
        self.reasoner = Reasoner(
            model,
            module="author",
            mode=mode,
            max_attempts=max_attempts,
            max_candidates=max_attempts,
            timeout=_SECONDS,
            base_url=base_url,
        )
        shown = [
            {
                "name": each["name"],
                "description": each.get("description", ""),
                "arguments": [*each.get("parameters", {}).get("properties", ())],
            }
            for each in tool_definitions(tools)
        ]
        prompt = PromptTemplate(template, PROMPT.parent, needs=("head", "tail"))
        tail = prompt.render("tail", {"workflow": workflow, "tools": shown})
        self.messages = [SystemMessage(prompt.render("head", {})), HumanMessage(tail)]
        self._workflow = workflow
        self._tools = [each["name"] for each in shown]
        self._generated_by = model if isinstance(model, str) else _name_of(model)
        self._drafts: list[tuple[int, Drafted]] = []

    def complaints(self, answer: MilestoneAuthoring) -> list[Complaint]:
        """What code has against a draft."""
        draft = drafted(answer.milestones, workflow=self._workflow, tools=self._tools)
        self._drafts.append((len(draft.doubts) + len(answer.unmet()), draft))
        return [*draft.errors, *draft.doubts][:MOST_COMPLAINTS]

    def finished(self, answer: Answer[MilestoneAuthoring]) -> MilestoneGraph:
        """The best draft: one without errors, with the fewest doubts, the latest of those."""
        sound = [each for each in reversed(self._drafts) if not each[1].errors]
        if not sound:
            said = "; ".join(error.message for error in self._drafts[-1][1].errors[:MOST_COMPLAINTS])
            raise UnsatisfiedError(
                f"author: none of {len(self._drafts)} drafts is a graph that can be measured on; the last: {said}. "
                "Raise max_attempts, take another model, or look at the texts in .attempts.",
                answer.attempts,
            )
        best = min(sound, key=lambda each: each[0])[1]
        for doubt in best.doubts:
            warnings.warn(f"the generated graph: {doubt.message}", stacklevel=3)
        return MilestoneGraph(best.milestones, generated_by=self._generated_by)


def _name_of(model: BaseChatModel) -> str:
    names = (getattr(model, field, None) for field in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name.strip()), type(model).__name__)
