"""Making a milestone graph of a workflow: a model drafts it, code checks it, and a person looks it over."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
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
MOST_COMPLAINTS = 20
_SECONDS = 180.0


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
    """Have a model make a milestone graph of a workflow (Pre-Act, 4.3 and Appendix F).

    Code checks each draft: every FC is a tool, Start and End are there, no dependency is missing, End can be
    reached. What is wrong is told to the model, which drafts again; at most five answers are asked for. The graph
    is marked as generated and not reviewed, and what only a judge can decide (its NFCs) has no `check`. The last
    draft without errors is taken, and each doubt about it is a warning.

    Args:
        workflow: What the agent is to do, in words.
        tools: The agent's tools: names, LangChain tools, functions, OpenAI tool definitions, or schemas by name.
        model: A chat model, a string such as `openai:gpt-4o`, or a `Reasoner` set up by you; the offline model cannot
            draft.

    Raises:
        InputError: The workflow is empty, or the model is none.
        ToolError: A tool has no name.
        UnsatisfiedError: No draft was sound; the message says what was wrong with the last one.
        ReasoningError: The model gave no valid answer.
    """
    if not workflow.strip():
        raise InputError("the workflow is empty: say in words what the agent is to do")
    shown = [
        {
            "name": each["name"],
            "description": each.get("description", ""),
            "arguments": [*each.get("parameters", {}).get("properties", ())],
        }
        for each in get_tool_definitions(tools)
    ]
    names = [each["name"] for each in shown]
    drafts: list[tuple[tuple[Milestone, ...], list[Complaint], list[Complaint]]] = []

    def check(answer: MilestoneAuthoring) -> list[Complaint]:
        drafts.append(_checked(answer.milestones, names))
        return [*drafts[-1][1], *drafts[-1][2]][:MOST_COMPLAINTS]

    prompt = PromptTemplate(PROMPT, PROMPT.parent)
    tail = prompt.render("tail", {"workflow": workflow, "tools": shown})
    messages = [SystemMessage(prompt.render("head", {})), HumanMessage(tail)]
    reasoner = make_reasoner(model, "author", timeout=_SECONDS)
    answer = reasoner.ask(MilestoneAuthoring, messages, check=check)
    sound = [(milestones, doubts) for milestones, errors, doubts in drafts if not errors]
    if not sound:
        said = "; ".join(error.message for error in drafts[-1][1][:MOST_COMPLAINTS])
        raise UnsatisfiedError(
            f"author: no draft is a graph that can be measured on; the last: {said}. Take another model, or "
            "look at the texts in .attempts.",
            answer.attempts,
        )
    milestones, doubts = sound[-1]
    for doubt in doubts:
        warnings.warn(f"the generated graph: {doubt.message}", stacklevel=2)
    return MilestoneGraph(milestones, generated_by=get_model_name(model))


def _checked(
    drafts: Sequence[MilestoneDraft], tools: Sequence[str]
) -> tuple[tuple[Milestone, ...], list[Complaint], list[Complaint]]:
    """The milestones of a draft, the reason why it cannot be measured on, and doubts about it."""
    names = [_one_line(draft.name) for draft in drafts]

    def complaint(name: str | None, message: str) -> Complaint:
        place = f"milestones[{names.index(name)}]" if name in names else "milestones"
        return Complaint("MilestoneAuthoring", place, message)

    if "" in names:
        return (), [complaint("", "its name is empty")], []
    milestones = tuple(map(_milestone, drafts))
    try:
        graph = MilestoneGraph(milestones)
    except SpecError as error:
        return milestones, [complaint(None, str(error))], []
    found = check_milestones(graph, tools)
    errors = [complaint(each.milestone, each.message) for each in found.errors]
    errors += [complaint(*each) for each in _misnamed(graph, tools)]
    doubts = [complaint(each.milestone, each.message) for each in found.warnings]
    return milestones, errors, doubts


def _milestone(draft: MilestoneDraft) -> Milestone:
    name = _one_line(draft.name)
    tool = _one_line(draft.tool or "") or None
    dependencies = dict.fromkeys(map(_one_line, draft.dependencies))  # one listed twice counts once
    return Milestone(
        name=name,
        type=draft.type,
        description=clean(draft.description).strip(),
        dependencies=tuple(dependencies),
        **({"requires": draft.requires} if draft.requires and len(dependencies) > 1 else {}),
        tool=tool if draft.type == "FC" and tool != name else None,
    )


def _one_line(text: str) -> str:
    return " ".join(clean(text).split())


def _misnamed(graph: MilestoneGraph, tools: Sequence[str]) -> Iterator[tuple[str, str]]:
    """An FC has the name of its tool, unless another FC has it (Pre-Act, Appendix F)."""
    for each in graph.milestones:
        if each.tool in tools and each.tool not in graph:
            yield (
                each.name,
                f"an FC is named exactly as its tool: name it {each.tool!r}, and set `tool` to null",
            )
        if each.name in tools and each.type != "FC" and each.name != START:
            yield each.name, f"{each.name!r} is the name of a tool: make it an FC, or name it otherwise"
