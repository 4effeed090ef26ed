"""Speaking: think, speak or act, one move at a time, under rules that code holds (ReSpAct, section 3)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from langchain_core.messages import BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Move
from arq_graph.errors import InputError, require_choice, require_count
from arq_graph.nodes.blueprint_node import Steps, UserFunction
from arq_graph.nodes.channels import Update
from arq_graph.nodes.confirmation import AgreementOutcome, ask_for_confirmation, make_call
from arq_graph.nodes.events import Spoke, Thought, ToolsDecided
from arq_graph.nodes.gate import Gate, get_active_scores
from arq_graph.nodes.proposed_calls import chosen as chosen_of
from arq_graph.nodes.proposed_calls import get_property_name, merge_insights
from arq_graph.nodes.speaking.move_schema import ACT, KINDS, SPEAK, THINK, Setting, move_blueprint
from arq_graph.nodes.speaking.moves import CheckedMove, SpeakingContext, SpeakingRules
from arq_graph.nodes.speaking.policies import Policy, ToolRules, policies_of
from arq_graph.nodes.speaking.speech import SPEECH, category_of
from arq_graph.nodes.spec_sections import describe_tool, describe_variables
from arq_graph.nodes.strategy import Strategy, StrategyOptions
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.reasoner import ModelLike


class Speaker(Strategy):
    """Make the next move: think, speak, or act with a tool or in a world; write it as a message, and to `moves`.

    Thoughts change nothing outside and are part of the run that they lead to. Whatever the model answers, code holds:
    a call that the customer has to agree to runs only after code's own question and their yes, and a call with a value
    that no customer message and no tool told is put to them in the same way; there are at most `max_questions` other
    questions with nothing done in between; nothing is said twice in a row. What is refused is asked for again within
    the reasoner's `max_candidates`; after that code says the agent's `fallback`. One run asks the model for at most
    two thoughts and a move.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`; those with
            `confirm` "customer" are the consequential ones.
        in_world: Whether there is a world to act in: `ActInWorld` takes its actions.
        setting: In a `chat`, speaking ends the turn. In a `task`, an utterance waits for its answer (in `Listen`)
            unless it ends the task.
        policies: The rules that are switched on: names of shipped ones, policies of your own; None: all shipped ones.
        dialogue_acts: What speech is limited to: acts, by name, with what each does; None: free.
        max_steps: How many calls one turn of a chat may make (8), or calls, actions and utterances a task (40).
        max_questions: How many questions may follow each other with nothing done in between; in a task, how many
            utterances that wait for an answer: with 0 nothing is said before the report that ends it.
        inner_monologue: Whether a thought comes before every call and action.
        draft: Keep an utterance in `moves`, where `MessageReviser` finds it as its draft, in place of sending it; in
            a chat.
        **settings: `reads` for the channels that policies look at; `agrees`, `template`, `temperature` (0.05) and the
            others, as for `ToolCaller`.

    Raises:
        InputError: A setting is out of its range, names a policy that does not exist, or has a draft in a task.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds another type.
    """

    module = "speaker"
    files = "speaker"
    agent_state_channels = (*Strategy.agent_state_channels, "moves", "world")
    example_blueprint = staticmethod(move_blueprint)

    def __init__(
        self,
        model: ModelLike,
        agent: Agent,
        *,
        in_world: bool = False,
        setting: Setting = "chat",
        policies: Sequence[str | Policy] | None = None,
        dialogue_acts: Mapping[str, str] | None = None,
        max_steps: int | None = None,
        max_questions: int = 3,
        inner_monologue: bool = False,
        draft: bool = False,
        **settings: Unpack[StrategyOptions],
    ) -> None:
        is_task = require_choice("setting", setting, Setting) == "task"
        usual = 40 if is_task else 8
        self.rules = SpeakingRules(
            policies=policies_of(policies),
            is_task=is_task,
            max_steps=require_count("max_steps", usual if max_steps is None else max_steps),
            max_questions=require_count("max_questions", max_questions, minimum=0),
            inner_monologue=inner_monologue,
        )
        if draft and (in_world or is_task):
            raise InputError(
                "an environment, or a task, is for an agent without guidelines: take them out of this one, or "
                "use create_respact_agent"
            )
        super().__init__(model, agent, **settings)
        if in_world and ACT in agent.toolbox:
            raise InputError(f"a tool is called {ACT!r}, as actions in the world are: rename it")
        self.draft = draft
        self.dialogue_acts = dict(dialogue_acts or {})
        self.blueprint = move_blueprint(
            list(self.tools.values()),
            in_world=in_world,
            setting=setting,
            policies=self.rules.policies,
            dialogue_acts=self.dialogue_acts,
        )
        self._by_key = {get_property_name(name, KINDS): tool for name, tool in self.tools.items()}
        self.head = self.render_head(
            guided=bool(agent.guidelines),
            in_world=in_world,
            setting=setting,
            asks=max_questions > 0,
            inner_monologue=inner_monologue,
            policies=[{"name": each.name, "rule": each.rule} for each in self.rules.policies.values()],
            dialogue_acts=self.dialogue_acts,
            tools=[describe_tool(agent, tool, key) for key, tool in self._by_key.items()],
        )

    def find_objection(self, gate: Gate, tool: str) -> Generator[UserFunction, Any, str]:
        """The policy that does not allow a tool now, with its rule."""
        rules = yield from ToolRules.of(self.rules.policies.values(), gate)
        return rules.find_objection(tool)

    def decide(self, gate: Gate, outcome: AgreementOutcome) -> Steps:
        """Think as often as it may, then speak or act."""
        conversation, variables = gate.conversation, describe_variables(self.agent, gate.state)
        active = get_active_scores(self.agent, gate.state)
        facts = self.collect_facts(conversation, variables, [*active, *self.tools, *outcome.pending])
        tool_rules = yield from ToolRules.of(self.rules.policies.values(), gate)
        context = SpeakingContext(gate, outcome, self.rules, tool_rules, variables, facts)

        def check(value: Any) -> list[Complaint]:
            key, said = chosen_of(value.move)
            context.still_wanted = getattr(value, "still_wanted", None) or ()
            # A request is whole once something was done for it.
            context.half_request = (
                getattr(value, "half_request", False) and not conversation.current_turn_results
            )
            if key == THINK:
                move = context.thought(said.thought)
            elif key == SPEAK:
                move = context.speech(said)
            elif key == ACT:
                move = context.action(said.action)
            else:
                move = context.call(self._by_key[key], said)
            if move.kind == "act" and context.owes_thought:
                move = replace(
                    move, refusals=(*move.refusals, ("", "no thought came before it: think first"))
                )
            context.checked.append(move)
            wrong = [*move.faults, *move.refusals]
            return [Complaint(type(value).__name__, f"move.{key}{place}", why) for place, why in wrong]

        while True:
            (answer,) = yield from self.ask_questions(
                self.make_question(conversation, self._tail(context), check)
            )
            move = context.checked[-1]
            if move.kind != THINK or move.refusals:
                return self._update(context, answer)
            thought = Move(turn=context.task, kind=THINK, text=move.text, after_line=context.after)
            context.moves.append(thought)
            gate.state.emit(Thought(text=move.text))

    def _tail(self, context: SpeakingContext) -> dict[str, Any]:
        gate, rules, world = context.gate, context.tool_rules, context.world
        unshown = {"agent", "turn", "message_hash", "steps"}
        counts = {
            "steps_left": context.steps_left,
            "thoughts_left": context.thoughts_left,
            "questions_left": context.questions_left,
        }
        further = {
            "too_many": [context.too_many] if context.too_many else [],
            "required_first": sorted(rules.required),
            "forbidden": {tool: policy.name for tool, policy in rules.forbidden.items()},
        }
        return {
            **self.describe_context(gate, context.outcome, counts, further, rules.find_objection),
            "thoughts": context.thoughts,
            "world": world and world.model_dump(mode="json", exclude=unshown, exclude_none=True),
        }

    def _update(self, context: SpeakingContext, answer: Answer[Any]) -> Update:
        """Make the last answer's move; where it cannot be made, say the fallback, or code's question alone."""
        made, waiting, state = context.checked[-1], context.waiting, context.gate.state
        if made.refusals:
            made = CheckedMove("" if waiting else self.agent.fallback)
        waiting = waiting if made.call is None else []
        decided = made.insights if made.call else ()
        insights = merge_insights(context.outcome, context.insights, decided, waiting, asks=made.asks)
        decisions = tuple(insights)
        faults = tuple(map(str, answer.complaints))
        labels: dict[str, Any] = {}
        agreements: Update = {}
        messages: list[BaseMessage] = []
        if made.call:
            messages.append(self.make_call_message([make_call(made.call.tool, made.call.arguments)]))
            state.emit(ToolsDecided(decisions=decisions))
        else:
            puts = bool(waiting)
            labels["category"] = category_of(made.speech, asks=made.asks or puts, puts=puts)
            if self.dialogue_acts and made.speech:
                labels["dialogue_act"] = made.speech.dialogue_act
            waits = self.rules.is_task and (puts or not getattr(made.speech, "ends_task", True))
            said = {**labels, "asks": made.asks or waits, "waits": waits}
            state.emit(Spoke(text=made.text, draft=self.draft, faults=faults, decisions=decisions, **said))
            if not self.draft:
                reply, agreements, asked = ask_for_confirmation(
                    self.agent, state, made.text, waiting, metadata={SPEECH: said}
                )
                messages.append(reply)
                state.emit(asked)
        after = context.after
        move = Move(
            turn=context.task, kind=made.kind, text=made.text, after_line=after, faults=faults, **labels
        )
        return {
            "moves": state.replace_records("moves", [*context.moves, move]),
            **agreements,
            **self.make_update(context.gate, insights, messages),
        }
