"""Drafting the milestone graph of a workflow: a model drafts it, code checks it, and a person reviews it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph.errors import InputError, SpecError, UnsatisfiedError
from arq_graph.milestones.findings import check_milestones
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import START, Milestone
from arq_graph.milestones.tool_schemas import get_tool_definitions
from arq_graph.models.resolve import get_model_name
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.sections import clean
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "milestone_author.md"
MAX_COMPLAINTS = 20
TIMEOUT_SECONDS = 180.0


class MilestoneDraft(ARQ):
    """One milestone. Start and End are milestones too."""

    workflow_words: str = reinstate(
        "The words of the workflow that this milestone comes from, as they stand there; empty for Start."
    )
    dependency_rationale: str = query(
        "What must have happened just before it? Where that is several things: do the workflow's words make them "
        "alternatives, of which one is enough, or are all of them needed?"
    )
    name: str = respond(
        "Its name, used only once. An FC is named exactly as its tool; an NFC by a short phrase.",
        min_length=1,
        max_length=200,
    )
    type: Literal["FC", "NFC"] = respond(
        "FC: a tool is called. NFC: a condition, a checkpoint, a contextual note or a transition of the workflow."
    )
    tool: str | None = respond(
        "The tool, for an FC that cannot have the tool's name because another milestone has it; else null."
    )
    description: str = respond(
        "What it means, in one sentence that tells when it is reached.", max_length=2_000
    )
    dependencies: list[str] = respond(
        "Names of the milestones that come directly before it; none for Start.", max_length=200
    )
    requires: Literal["any", "all"] | None = respond(
        "Is any one of its dependencies enough, or are all of them needed? null for fewer than two.",
        when=lambda draft: len(draft.dependencies) > 1,
    )


class MilestoneAuthoring(ARQ):
    """The milestone graph of a workflow."""

    goal: str = reinstate("What the workflow is there to reach, in its own words.")
    tool_names: list[str] = reinstate("The name of every tool, letter by letter.")
    conditions: list[str] = query("On which conditions does the workflow branch?")
    checkpoints: list[str] = query("Which states does a conversation pass through that no tool call shows?")
    notes: list[str] = query("Which contextual notes decide what may happen, and when?")
    transitions: list[str] = query("What leads from one part of the workflow to another, and to its end?")
    alternatives: list[str] = query(
        "Where do several ways lead to the same point, so that any of them is enough?"
    )
    joint_requirements: list[str] = query("Where must several things all have happened before the next one?")
    milestones: list[MilestoneDraft] = respond(
        "Every milestone, from Start to End, in the order of the workflow.", min_length=2, max_length=200
    )
    every_tool_has_its_exact_name: bool = verify(
        "Is every FC named as its tool, letter by letter, or does its `tool` say which one it is?",
        must_be=True,
    )
    every_way_leads_to_the_end: bool = verify(
        "Does every branch of the workflow lead from Start to End?", must_be=True
    )
    requires_follows_the_workflow: bool = verify(
        "Wherever there are several dependencies: does `requires` follow the workflow's words?", must_be=True
    )


def author_milestones(workflow: str, tools: Any, model: ModelLike) -> MilestoneGraph:
    """Have a model draft the milestone graph of a workflow (Pre-Act, 4.3 and Appendix F).

    Code checks each draft: every FC is a tool, Start and End are there, no dependency is missing, End can be
    reached. The model gets the complaints and drafts again; at most five answers are asked for. The graph
    is marked as generated and not reviewed, and its NFCs have no `check`: only a judge can decide them. The last
    draft without errors is taken, and each doubt about it is a warning.

    Args:
        workflow: The task of the agent, in words.
        tools: The agent's tools: names, LangChain tools, functions, OpenAI tool definitions, or schemas by name.
        model: A chat model, a string such as `openai:gpt-4o`, or a `Reasoner` set up by you; the offline model cannot
            draft.

    Raises:
        InputError: The workflow is empty, or the model isn't one.
        ToolError: A tool has no name.
        UnsatisfiedError: Every draft had errors; the message lists those of the last one.
        ReasoningError: The model gave no valid answer.
    """
    if not workflow.strip():
        raise InputError("the workflow is empty: say in words what the agent is to do")
    definitions = get_tool_definitions(tools)
    tool_names = [definition["name"] for definition in definitions]
    drafts: list[_CheckedDraft] = []

    def check(answer: MilestoneAuthoring) -> list[Complaint]:
        draft = _check_draft(answer.milestones, tool_names)
        drafts.append(draft)
        return (draft.errors + draft.doubts)[:MAX_COMPLAINTS]

    prompt = PromptTemplate(PROMPT, PROMPT.parent)
    tail = prompt.render("tail", {"workflow": workflow, "tools": list(map(_describe_tool, definitions))})
    messages = [SystemMessage(prompt.render("head", {})), HumanMessage(tail)]
    reasoner = make_reasoner(model, "author", timeout=TIMEOUT_SECONDS)
    answer = reasoner.ask(MilestoneAuthoring, messages, check=check)
    draft = next((draft for draft in reversed(drafts) if not draft.errors), None)
    if draft is None:
        errors = "; ".join(error.message for error in drafts[-1].errors[:MAX_COMPLAINTS])
        raise UnsatisfiedError(
            f"author: no draft is a graph that can be measured on; the last: {errors}. Take another model, or "
            "look at the texts in .attempts.",
            answer.attempts,
        )
    for doubt in draft.doubts:
        warnings.warn(f"the generated graph: {doubt.message}", stacklevel=2)
    return MilestoneGraph(draft.milestones, generated_by=get_model_name(model))


def _describe_tool(definition: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": definition["name"],
        "description": definition.get("description", ""),
        "arguments": list(definition.get("parameters", {}).get("properties", ())),
    }


@dataclass(frozen=True)
class _CheckedDraft:
    """The milestones of a draft, the reasons why nothing can be measured on them, and doubts about them."""

    milestones: tuple[Milestone, ...]
    errors: list[Complaint]
    doubts: list[Complaint]


def _check_draft(drafts: Sequence[MilestoneDraft], tool_names: Sequence[str]) -> _CheckedDraft:
    names = [_to_one_line(draft.name) for draft in drafts]

    def complain(name: str | None, message: str) -> Complaint:
        place = f"milestones[{names.index(name)}]" if name in names else "milestones"
        return Complaint("MilestoneAuthoring", place, message)

    if "" in names:
        return _CheckedDraft((), [complain("", "its name is empty")], [])
    milestones = tuple(map(_make_milestone, drafts))
    try:
        graph = MilestoneGraph(milestones)
    except SpecError as error:
        return _CheckedDraft(milestones, [complain(None, str(error))], [])
    draft = _CheckedDraft(milestones, [], [])
    for finding in check_milestones(graph, tool_names):
        complaints = draft.errors if finding.severity == "error" else draft.doubts
        complaints.append(complain(finding.milestone, finding.message))
    for name, message in _find_wrong_names(graph, tool_names):
        draft.errors.append(complain(name, message))
    return draft


def _make_milestone(draft: MilestoneDraft) -> Milestone:
    fields: dict[str, Any] = {
        "name": _to_one_line(draft.name),
        "type": draft.type,
        "description": clean(draft.description).strip(),
        # A dependency that is listed twice counts once.
        "dependencies": tuple(dict.fromkeys(map(_to_one_line, draft.dependencies))),
    }
    if draft.requires and len(fields["dependencies"]) > 1:
        fields["requires"] = draft.requires
    tool = _to_one_line(draft.tool or "")
    if tool and draft.type == "FC" and tool != fields["name"]:
        fields["tool"] = tool
    return Milestone(**fields)


def _to_one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _find_wrong_names(graph: MilestoneGraph, tool_names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield milestones with wrong names: an FC is named as its tool, unless another FC is (Pre-Act, Appendix F)."""
    for milestone in graph.milestones:
        name, tool = milestone.name, milestone.tool
        if tool in tool_names and tool not in graph:
            yield name, f"an FC is named exactly as its tool: name it {tool!r}, and set `tool` to null"
        if name in tool_names and milestone.type != "FC" and name != START:
            yield name, f"{name!r} is the name of a tool: make it an FC, or name it otherwise"
