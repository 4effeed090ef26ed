"""The tool caller's blueprint: what is asked about one candidate tool (ARQ paper, 5.1.2 and Appendix B).

Query keys are the paper's where they fit into the 64 characters that some providers allow for a property.
"""

from __future__ import annotations

from abc import ABC
from typing import Any

from pydantic import create_model

from arq_graph.nodes.choice import StillWanted, property_of
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond

CALL_FROM = 5
"""Lowest score at which a call may run (ARQ paper, Appendix B)."""

MAX_CALLS_PER_TOOL = 8


class Applicability(ARQ):
    """How much one call is called for; stands before the arguments."""

    applicability_rationale: str = query("Does this call need to be made now, and what for?")
    relevant_subtleties: str | None = query("Which of the subtleties matter to it? Null: none.")
    score: int = respond("How much the call is called for now, 1 to 10.", ge=1, le=10)


class Verdict(ARQ):
    """Whether the call is to be made; stands behind the arguments."""

    same_call_is_already_staged: bool = query("Does a result in `staged` come from this very call?")
    repeat_is_justified: bool = respond("If that call is staged: is there a reason to make it again?")
    should_run: bool = respond("Should it be made, as soon as every required argument is known?")


class Comparison(ARQ):
    """How the call compares with other tools; asked where the agent has several."""

    potentially_better_tool_rationale: str | None = query(
        "If another of `other_candidates` may fit better: how do they compare? Null: there is none."
    )
    potentially_better_tool_name: str | None = respond("The candidate that fits better; null if none does.")
    better_tool_should_run_in_tandem: bool | None = respond(
        "If one does: should both clearly run together? Else null."
    )


class CandidateTool(ARQ, ABC):
    """Which calls of this tool should be made now?"""

    subtleties_to_be_aware_of: str = query("What is easy to get wrong when using this tool here?")


class ToolBatch(ARQ, ABC):
    """Decide which tool calls to make now."""

    last_customer_message: str = reinstate(
        "The id of the customer's last message, and what it says in short."
    )
    most_recent_customer_inquiry_or_need: str = query("What does the customer need most recently?")
    most_recent_customer_inquiry_or_need_was_already_resolved: bool = query("Was it already resolved?")


def tool_blueprint(tool: ToolArguments, *, compared: bool = False, confirmed: bool = False) -> type[ARQ]:
    """What is asked about a tool, in a property named like it."""
    asked: Any = {tool_property(tool.name): (_candidate(tool, compared), respond(str(CandidateTool.__doc__)))}
    bases = (ToolBatch, StillWanted) if confirmed else (ToolBatch,)
    return create_model("ToolBatch", __base__=bases, __doc__=ToolBatch.__doc__, **asked)


def tool_property(tool: str) -> str:
    """The property that asks about a tool: its name, unless a query of the batch is called the same."""
    return property_of(tool, {*ToolBatch.model_fields, *StillWanted.model_fields})


def _candidate(tool: ToolArguments, compared: bool) -> type[ARQ]:
    # Fields of a class further right come first: how much the call is called for, its arguments, the verdict.
    parts: list[type[ARQ]] = [Verdict, Comparison] if compared else [Verdict]
    if tool.arguments:
        arguments = tool.blueprint()
        asked = (arguments, respond(str(arguments.__doc__)))
        parts.append(create_model(f"{tool.name}_call_arguments", __base__=ARQ, arguments=asked))
    parts.append(Applicability)
    call = create_model(f"{tool.name}_call", __base__=tuple(parts), __doc__="One call of this tool.")
    calls = respond("One entry per set of arguments; empty if none.", max_length=MAX_CALLS_PER_TOOL)
    return create_model(
        f"{tool.name}_candidate",
        __base__=CandidateTool,
        __doc__=CandidateTool.__doc__,
        tool_calls_for_candidate_tool=(list[call], calls),
    )
