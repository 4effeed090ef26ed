"""Tool calling: which tools run now, with which arguments (ARQ paper, 5.1.2 and Appendix B).

Query keys are the paper's where they fit into the 64 characters that some providers allow for a property.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, Unpack

from pydantic import create_model

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolVerdict
from arq_graph.errors import require_count
from arq_graph.nodes.agent_node import describe_tool
from arq_graph.nodes.agreement import AgreementOutcome
from arq_graph.nodes.blueprint_node import NodeSteps
from arq_graph.nodes.events import ToolsDecided
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import count_tool_rounds, list_ids, make_tool_call
from arq_graph.nodes.proposed_calls import StillWanted, get_property_name
from arq_graph.nodes.strategy import Strategy, StrategyNodeSettings
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.turn_records import select_verdicts
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, combine_blueprints, query, reinstate, respond
from arq_graph.reasoning.reasoner import ModelLike

MIN_CALL_SCORE = 5
"""Lowest score at which a call may run (ARQ paper, Appendix B)."""

MAX_CALLS_PER_TOOL = 8


class Applicability(ARQ):
    """The need for one call; asked before the arguments."""

    applicability_rationale: str = query("Does this call need to be made now, and what for?")
    relevant_subtleties: str | None = query("Which of the subtleties matter to it? Null: none.")
    score: int = respond("How much the call is called for now, 1 to 10.", ge=1, le=10)


class CallDecision(ARQ):
    """The decision to make the call; asked after the arguments."""

    same_call_is_already_staged: bool = query("Does a result in `staged` come from this very call?")
    repeat_is_justified: bool = respond("If that call is staged: is there a reason to make it again?")
    should_run: bool = respond("Should it be made, as soon as every required argument is known?")


class Comparison(ARQ):
    """The comparison of the call with other tools; asked if the agent has several."""

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


_RESERVED_NAMES = ToolBatch.model_fields.keys() | StillWanted.model_fields.keys()


def make_tool_blueprint(
    tool: ToolSchema, *, with_comparison: bool = False, with_pending_calls: bool = False
) -> type[ARQ]:
    """Return the blueprint that asks about a tool, in a property with its name.

    `with_comparison` adds a comparison with other tools, `with_pending_calls` the query about pending calls.
    """
    arguments: type[ARQ] | None = None
    if tool.arguments:
        description = f"Each argument; below a score of {MIN_CALL_SCORE}, none needs to be given."
        arguments = tool.make_blueprint(description=description)
    return _make_tool_blueprint(tool.name, arguments, with_comparison, with_pending_calls)


@lru_cache(maxsize=256)  # making a class takes long, and the next agent may have the same tool
def _make_tool_blueprint(
    tool: str, arguments: type[ARQ] | None, with_comparison: bool, with_pending_calls: bool
) -> type[ARQ]:
    candidate: Any = (
        _make_candidate(tool, arguments, with_comparison),
        respond(str(CandidateTool.__doc__)),
    )
    fields = {get_property_name(tool, _RESERVED_NAMES): candidate}
    parts = (StillWanted, ToolBatch) if with_pending_calls else (ToolBatch,)
    return combine_blueprints("ToolBatch", ToolBatch.__doc__, *parts, **fields)


def _make_candidate(tool: str, arguments: type[ARQ] | None, with_comparison: bool) -> type[ARQ]:
    parts: list[type[ARQ]] = [Applicability]
    if arguments:
        field = (arguments, respond(str(arguments.__doc__)))
        parts.append(create_model(f"{tool}_call_arguments", __base__=InnerARQ, arguments=field))
    if with_comparison:
        parts.append(Comparison)
    parts.append(CallDecision)
    call: Any = combine_blueprints(f"{tool}_call", "One call of this tool.", *parts)
    calls = respond("One entry per set of arguments; empty if none.", max_length=MAX_CALLS_PER_TOOL)
    return create_model(
        f"{tool}_candidate",
        __base__=CandidateTool,
        __doc__=CandidateTool.__doc__,
        tool_calls_for_candidate_tool=(list[call], calls),
    )


class ToolCaller(Strategy):
    """Decide on the tools that the active guidelines grant; write the calls as a message, and `tool_insights`.

    All candidate tools are asked about in parallel. A call is made if it is needed, no other candidate fits better, and
    the gate accepts it. The reply asks the customer for missing arguments.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        max_rounds: How many times it may call tools in a turn; after that it proposes nothing.
        max_speculative_tools: In `Parallel`, how many tools it is asked about before it is known which are granted,
            beginning with those that are always available or were proposed before. It is asked about others once they
            are granted. 0 or more.
        **settings: `agrees`: a function of the customer's message and the question that accepts further answers as a
            yes, besides the shipped list; `template`, `temperature` (the paper's 0.05), and the others of
            `BlueprintNode`.

    Raises:
        InputError: `max_rounds` is below 1, or `max_speculative_tools` below 0. `BlueprintNode` lists what running
            raises.
    """

    module = "tools"
    prompt_name = "tool_caller"
    is_optimistic = True
    full_blueprint_options: ClassVar = {"with_comparison": True}

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        max_rounds: int = 3,
        max_speculative_tools: int = 16,
        **settings: Unpack[StrategyNodeSettings],
    ) -> None:
        self.max_rounds = require_count("max_rounds", max_rounds)
        self.max_speculative_tools = require_count("max_speculative_tools", max_speculative_tools, minimum=0)
        super().__init__(model, agent, **settings)
        self.blueprints: dict[str, type[ARQ]] = {}
        self.heads: dict[str, str] = {}
        for name, tool in self.tools.items():
            self.blueprints[name] = make_tool_blueprint(
                tool,
                with_comparison=len(self.tools) > 1,
                with_pending_calls=name in agent.get_confirmed_tools("customer"),
            )
            property_name = get_property_name(name, _RESERVED_NAMES)
            self.heads[name] = self.render_head(tools=[describe_tool(agent, tool, property_name)])

    @staticmethod
    def make_example_blueprint(tools: Sequence[ToolSchema], *, with_comparison: bool = False) -> type[ARQ]:
        """Return the blueprint of a worked example, which is about one tool."""
        (tool,) = tools
        return make_tool_blueprint(tool, with_comparison=with_comparison)

    def is_same_question(self, speculative: Question[Any], question: Question[Any]) -> bool:
        """Return whether the tool is granted by exactly those guidelines that the speculative question named."""
        return speculative.guidelines == question.guidelines

    def decide(self, gate: Gate, agreement_outcome: AgreementOutcome) -> NodeSteps:
        """Ask about every candidate tool, and make the calls that pass the gate."""
        verdicts = list(agreement_outcome.verdicts)
        if count_tool_rounds(gate.state) >= self.max_rounds:
            return self.make_update(gate, verdicts) if verdicts else {}
        tools = self._choose_tools(gate, agreement_outcome)
        questions = [self._make_tool_question(tool.name, gate, agreement_outcome) for tool in tools]
        answers = yield from self.ask_questions(*questions)
        for tool, answer in zip(tools, answers, strict=True):
            still_wanted = agreement_outcome.select_wanted_calls(answer.value)
            verdicts += gate.recheck_pending_calls(still_wanted)
            if tool.name in gate.granted:
                candidate = getattr(answer.value, get_property_name(tool.name, _RESERVED_NAMES))
                verdicts += _check_candidate(gate, tool, candidate)
        gate.state.emit(ToolsDecided(decisions=tuple(verdicts)))
        runs = select_verdicts(verdicts, "run")
        if not runs:
            return self.make_update(gate, verdicts)
        calls = [make_tool_call(run.tool, run.arguments) for run in runs]
        return self.make_calls(gate, verdicts, calls)

    def _choose_tools(self, gate: Gate, agreement_outcome: AgreementOutcome) -> list[ToolSchema]:
        """Return the tools to ask about: those that may be called, and those of pending calls."""
        names = set(gate.granted)
        for call in agreement_outcome.pending.values():
            names.add(call.tool)
        tools = [tool for name, tool in self.tools.items() if name in names]
        if not gate.state.is_speculative:
            return tools
        # Any tool may turn out to be granted. Those that probably will come first.
        likely_names = set(self.agent.always_available)
        for verdict in gate.state.read_records("tool_insights", ToolVerdict):
            likely_names.add(verdict.tool)
        tools.sort(key=lambda tool: tool.name not in likely_names)
        return tools[: self.max_speculative_tools]

    def _make_tool_question(
        self, tool: str, gate: Gate, agreement_outcome: AgreementOutcome
    ) -> Question[Any]:
        granted_by = gate.granted.get(tool, ())
        candidates = [tool] if tool in gate.granted else []
        values = {"candidates": candidates, "active": list(granted_by)}
        others = [name for name in self.tools if name in gate.granted and name != tool]
        pending = [call for call in agreement_outcome.describe_pending() if call["tool"] == tool]
        optional = {
            "other_candidates": others,
            "staged": list_ids(gate.state.conversation.current_turn_results),
            "awaiting_confirmation": pending,
        }
        sections = self.describe_turn(gate.state, values, optional)
        sections["is_speculative"] = gate.state.is_speculative
        prompt = self.build_prompt(gate.state.conversation, sections, head=self.heads[tool])
        return Question(self.blueprints[tool], prompt, name=tool, guidelines=granted_by)


def _check_candidate(gate: Gate, tool: ToolSchema, candidate: Any) -> list[ToolVerdict]:
    """Return the verdicts on the proposed calls of a tool; if there are none, one that says so."""
    calls = candidate.tool_calls_for_candidate_tool
    if not calls:
        reason = getattr(candidate, "subtleties_to_be_aware_of", "")
        check = gate.make_check(tool, "declined", {}, "no call was proposed")
        return list(check.annotate(rationale=reason).verdicts)
    verdicts: list[ToolVerdict] = []
    proposed_identities: set[str] = set()
    for call in calls:
        arguments, problems = tool.parse(getattr(call, "arguments", None))
        identity = tool.make_call_identity(arguments)
        if refusal := _find_model_refusal(gate, tool, call, has_problems=bool(problems)):
            check = gate.make_check(tool, "declined", arguments, refusal)
        elif identity in proposed_identities:
            check = gate.make_check(tool, "declined", arguments, "the same call was proposed twice")
        else:
            is_justified = call.repeat_is_justified
            check = gate.check(tool, arguments, problems, repeat_is_justified=is_justified)
        proposed_identities.add(identity)
        rationale = getattr(call, "applicability_rationale", "")
        verdicts += check.annotate(score=call.score, rationale=rationale).verdicts
    return verdicts


def _find_model_refusal(gate: Gate, tool: ToolSchema, call: Any, *, has_problems: bool) -> str | None:
    """Return why the model itself doesn't want a call that it proposed (Appendix B); None if it does."""
    if call.score < MIN_CALL_SCORE:
        return f"score {call.score} is below {MIN_CALL_SCORE}"
    better_tool = getattr(call, "potentially_better_tool_name", None)
    has_better_tool = better_tool in gate.granted and better_tool != tool.name
    if has_better_tool and not call.better_tool_should_run_in_tandem:
        return f"{better_tool} fits better"
    # Models also answer False if an argument is missing. The customer is asked for it then.
    if not call.should_run and not has_problems:
        return "the model says that it should not run"
    return None
