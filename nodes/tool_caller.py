"""Tool calling: which tools run now, with which arguments (ARQ paper, 5.1.2 and Appendix B)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Unpack

from langchain_core.language_models import BaseChatModel

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.blueprint_node import Steps, counted
from arq_graph.nodes.channels import emit
from arq_graph.nodes.confirmation import Settled, new_call
from arq_graph.nodes.events import ToolsDecided, cost_of
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.spec_sections import shown_tool, shown_variables
from arq_graph.nodes.strategy import Strategy, StrategyOptions
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.tool_schema import CALL_FROM, tool_blueprint, tool_property
from arq_graph.nodes.turns import rounds_of_turn
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.reasoner import Reasoner


class ToolCaller(Strategy):
    """Decide on the tools that the active guidelines grant; write the calls as a message, and `tool_insights`.

    Every candidate tool is asked about in parallel. A call is made if it is called for, no other candidate fits
    better, and the gate lets it through. What it lacks becomes an insight, which the reply asks the customer about.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        max_rounds: How many times it may call tools in a turn; after that it proposes nothing.
        **settings: `agrees`: what else is a yes of the customer's, a function of their message and the question;
            `template`, `temperature` (the paper's 0.05), and the others of `BlueprintNode`.

    Raises:
        InputError: `max_rounds` is below 1. What running raises is said at `BlueprintNode`.
    """

    module = "tools"
    files = "tool_caller"
    of_examples = staticmethod(lambda tools: tool_blueprint(*tools))

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        agent: Agent,
        *,
        max_rounds: int = 3,
        **settings: Unpack[StrategyOptions],
    ) -> None:
        self.max_rounds = counted("max_rounds", max_rounds)
        super().__init__(model, agent, **settings)
        compared, confirmed = len(self.tools) > 1, agent.confirmed_by("customer")
        self.blueprints = {
            name: tool_blueprint(tool, compared=compared, confirmed=name in confirmed)
            for name, tool in self.tools.items()
        }
        self.heads = {
            name: self.head_of(tools=[shown_tool(agent, each)]) for name, each in self.tools.items()
        }

    def decide(self, gate: Gate, settled: Settled) -> Steps:
        """Decide on every candidate tool."""
        if rounds_of_turn(gate.state.messages(), self.agent.name) >= self.max_rounds:
            return self.update(gate, settled.insights) if settled.insights else {}
        wanted = {*gate.granted, *(call.tool for call in settled.waiting.values())}
        asked = [tool for name, tool in self.tools.items() if name in wanted]
        answers = yield from self.asked(*(self._question(tool.name, gate, settled) for tool in asked))
        decided: list[ToolInsight] = [*settled.insights]
        for tool, answer in zip(asked, answers, strict=True):
            decided += settled.still_wanted(gate, getattr(answer.value, "still_wanted", None) or ())
            if tool.name in gate.granted:
                decided += _decided(gate, tool, getattr(answer.value, tool_property(tool.name)))
        emit(ToolsDecided(turn=gate.conversation.turn, decisions=tuple(decided), **cost_of(answers)))
        calls = [new_call(each.tool, each.arguments) for each in decided if each.kind == "run"]
        return self.update(gate, decided, [self.calling(calls)] if calls else ())

    def _question(self, tool: str, gate: Gate, settled: Settled) -> Question[Any]:
        conversation, last = gate.conversation, gate.conversation.last_customer_line
        listed = {
            "other_candidates": [each for each in self.tools if each in gate.granted and each != tool],
            "staged": [line.id for line in conversation.results],
            "awaiting_confirmation": [each for each in settled.shown() if each["tool"] == tool],
        }
        now = {
            "turn": last.id if last else None,
            "candidates": [tool] if tool in gate.granted else [],
            "active": list(gate.granted.get(tool, ())),
            **{name: value for name, value in listed.items() if value},
        }
        tail = {"variables": shown_variables(self.agent, gate.state), "now": now}
        prompt = self.prompt(conversation, tail, head=self.heads[tool])
        return Question(self.blueprints[tool], prompt, name=tool)


def _decided(gate: Gate, tool: ToolArguments, candidate: Any) -> Iterator[ToolInsight]:
    """Every proposed call of a tool; each candidate leaves a record, called or not."""
    if not candidate.tool_calls_for_candidate_tool:
        why = getattr(candidate, "subtleties_to_be_aware_of", "")
        yield gate.insight(tool, "declined", {}, "no call was proposed", rationale=why)
    proposed: set[str] = set()
    for proposal in candidate.tool_calls_for_candidate_tool:
        arguments, problems = tool.read(getattr(proposal, "arguments", None))
        if why := _unwanted(gate, tool, proposal, invalid=bool(problems)):
            verdict = [gate.insight(tool, "declined", arguments, why)]
        elif tool.key(arguments) in proposed:
            verdict = [gate.insight(tool, "declined", arguments, "the same call was proposed twice")]
        else:
            justified = proposal.repeat_is_justified
            verdict = gate.check(tool, arguments, problems, repeat_is_justified=justified)
        proposed.add(tool.key(arguments))
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
