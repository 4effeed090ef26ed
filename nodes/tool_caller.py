"""Tool calling: which tools run now, with which arguments (ARQ paper, 5.1.2 and Appendix B).

Query keys are the paper's where they fit into the 64 characters that some providers allow for a property.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import Any, ClassVar, Unpack

from pydantic import create_model

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.errors import require_count
from arq_graph.nodes.blueprint_node import Steps
from arq_graph.nodes.confirmation import AgreementOutcome, make_call
from arq_graph.nodes.current_turn import count_tool_rounds
from arq_graph.nodes.events import ToolsDecided
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.proposed_calls import StillWanted, get_property_name
from arq_graph.nodes.spec_sections import describe_tool, describe_turn, describe_variables
from arq_graph.nodes.strategy import Strategy, StrategyOptions
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, query, reinstate, respond
from arq_graph.reasoning.reasoner import ModelLike

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


class CandidateTool(InnerARQ, ABC):
    """Which calls of this tool should be made now?"""

    subtleties_to_be_aware_of: str = query("What is easy to get wrong when using this tool here?")


class ToolBatch(ARQ, ABC):
    """Decide which tool calls to make now."""

    last_customer_message: str = reinstate(
        "The id of the customer's last message, and what it says in short."
    )
    most_recent_customer_inquiry_or_need: str = query("What does the customer need most recently?")
    most_recent_customer_inquiry_or_need_was_already_resolved: bool = query("Was it already resolved?")


def make_tool_blueprint(tool: ToolArguments, *, compared: bool = False, confirmed: bool = False) -> type[ARQ]:
    """What is asked about a tool, in a property named like it."""
    asked: Any = {tool_property(tool.name): (_candidate(tool, compared), respond(str(CandidateTool.__doc__)))}
    bases = (ToolBatch, StillWanted) if confirmed else (ToolBatch,)
    return create_model("ToolBatch", __base__=bases, __doc__=ToolBatch.__doc__, **asked)


def tool_property(tool: str) -> str:
    """The property that asks about a tool: its name, unless a query of the batch is called the same."""
    return get_property_name(tool, {*ToolBatch.model_fields, *StillWanted.model_fields})


def _candidate(tool: ToolArguments, compared: bool) -> type[ARQ]:
    # Fields of a class further right come first: how much the call is called for, its arguments, the verdict.
    parts: list[type[ARQ]] = [Verdict, Comparison] if compared else [Verdict]
    if tool.arguments:
        arguments = tool.make_blueprint()
        asked = (arguments, respond(str(arguments.__doc__)))
        parts.append(create_model(f"{tool.name}_call_arguments", __base__=InnerARQ, arguments=asked))
    parts.append(Applicability)
    call = create_model(f"{tool.name}_call", __base__=tuple(parts), __doc__="One call of this tool.")
    calls = respond("One entry per set of arguments; empty if none.", max_length=MAX_CALLS_PER_TOOL)
    return create_model(
        f"{tool.name}_candidate",
        __base__=CandidateTool,
        __doc__=CandidateTool.__doc__,
        tool_calls_for_candidate_tool=(list[call], calls),
    )


class ToolCaller(Strategy):
    """Decide on the tools that the active guidelines grant; write the calls as a message, and `tool_insights`.

    Every candidate tool is asked about in parallel. A call is made if it is called for, no other candidate fits
    better, and the gate lets it through. What it lacks becomes an insight, which the reply asks the customer about.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        max_rounds: How many times it may call tools in a turn; after that it proposes nothing.
        max_ahead: In `Parallel`, how many tools it is asked about before it is known which are granted, beginning with
            those that are always available or were proposed before. It is asked about others once they are granted.
            0 or more.
        **settings: `agrees`: a function of the customer's message and the question that says what else is a yes;
            `template`, `temperature` (the paper's 0.05), and the others of `BlueprintNode`.

    Raises:
        InputError: `max_rounds` is below 1, or `max_ahead` below 0. What running raises is said at `BlueprintNode`.
    """

    module = "tools"
    assumes_all_match = True
    files = "tool_caller"
    example_blueprint = staticmethod(lambda tools, **asked: make_tool_blueprint(*tools, **asked))
    at_most: ClassVar = {"compared": True}

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        max_rounds: int = 3,
        max_ahead: int = 16,
        **settings: Unpack[StrategyOptions],
    ) -> None:
        self.max_rounds = require_count("max_rounds", max_rounds)
        self.max_ahead = require_count("max_ahead", max_ahead, minimum=0)
        super().__init__(model, agent, **settings)
        compared, confirmed = len(self.tools) > 1, agent.confirmed_by("customer")
        self.blueprints = {
            name: make_tool_blueprint(tool, compared=compared, confirmed=name in confirmed)
            for name, tool in self.tools.items()
        }
        self.heads = {
            name: self.render_head(tools=[describe_tool(agent, each)]) for name, each in self.tools.items()
        }

    def decide(self, gate: Gate, outcome: AgreementOutcome) -> Steps:
        """Decide on every candidate tool."""
        if count_tool_rounds(gate.state) >= self.max_rounds:
            return self.make_update(gate, outcome.insights) if outcome.insights else {}
        wanted = {*gate.granted, *(call.tool for call in outcome.pending.values())}
        asked = [tool for name, tool in self.tools.items() if name in wanted]
        if gate.state.is_ahead:
            before = {each.tool for each in gate.state.read_records("tool_insights", ToolInsight)}
            likely = {*self.agent.always_available, *before}
            asked = sorted(asked, key=lambda tool: tool.name not in likely)[: self.max_ahead]
        answers = yield from self.ask_questions(*(self._question(tool.name, gate, outcome) for tool in asked))
        decided: list[ToolInsight] = [*outcome.insights]
        for tool, answer in zip(asked, answers, strict=True):
            decided += outcome.ask_again(gate, getattr(answer.value, "still_wanted", None) or ())
            if tool.name in gate.granted:
                decided += _decided(gate, tool, getattr(answer.value, tool_property(tool.name)))
        gate.state.emit(ToolsDecided(decisions=tuple(decided)))
        calls = [make_call(each.tool, each.arguments) for each in decided if each.kind == "run"]
        return self.make_update(gate, decided, [self.make_call_message(calls)] if calls else ())

    def _question(self, tool: str, gate: Gate, outcome: AgreementOutcome) -> Question[Any]:
        listed = {
            "other_candidates": [each for each in self.tools if each in gate.granted and each != tool],
            "staged": [line.id for line in gate.conversation.current_turn_results],
            "awaiting_confirmation": [each for each in outcome.describe_pending() if each["tool"] == tool],
        }
        granting = gate.granted.get(tool, ())
        told = {"candidates": [tool] if tool in gate.granted else [], "active": list(granting)}
        now = describe_turn(gate.conversation, told, listed)
        tail = {
            "variables": describe_variables(self.agent, gate.state),
            "now": now,
            "ahead": gate.state.is_ahead,
        }
        prompt = self.build_prompt(gate.conversation, tail, head=self.heads[tool])
        return Question(self.blueprints[tool], prompt, name=tool, guidelines=granting)


def _decided(gate: Gate, tool: ToolArguments, candidate: Any) -> Iterator[ToolInsight]:
    """Every proposed call of a tool; each candidate leaves a record, called or not."""
    if not candidate.tool_calls_for_candidate_tool:
        why = getattr(candidate, "subtleties_to_be_aware_of", "")
        yield gate.make_insight(tool, "declined", {}, "no call was proposed", rationale=why)
    proposed: set[str] = set()
    for proposal in candidate.tool_calls_for_candidate_tool:
        arguments, problems = tool.parse(getattr(proposal, "arguments", None))
        if why := _unwanted(gate, tool, proposal, invalid=bool(problems)):
            verdict = [gate.make_insight(tool, "declined", arguments, why)]
        elif tool.make_key(arguments) in proposed:
            verdict = [gate.make_insight(tool, "declined", arguments, "the same call was proposed twice")]
        else:
            justified = proposal.repeat_is_justified
            verdict = gate.check(tool, arguments, problems, repeat_is_justified=justified)
        proposed.add(tool.make_key(arguments))
        told = {"score": proposal.score, "rationale": getattr(proposal, "applicability_rationale", "")}
        yield from (each.model_copy(update=told) for each in verdict)


def _unwanted(gate: Gate, tool: ToolArguments, proposal: Any, *, invalid: bool) -> str:
    """Why the tool caller does not want a call (Appendix B); empty if it does."""
    better = getattr(proposal, "potentially_better_tool_name", None)
    if proposal.score < CALL_FROM:
        return f"score {proposal.score} is below {CALL_FROM}"
    if better in gate.granted and better != tool.name and not proposal.better_tool_should_run_in_tandem:
        return f"{better} fits better"
    return "" if proposal.should_run or invalid else "the model says that it should not run"
