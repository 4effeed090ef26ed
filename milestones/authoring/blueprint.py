"""What is asked to make a milestone graph of a workflow (Pre-Act, Appendix F)."""

from __future__ import annotations

from typing import Literal

from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify


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
