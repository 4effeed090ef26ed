"""Speaking: think, speak or act, one move at a time, under rules that code enforces (ReSpAct, section 3)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from langchain_core.messages import AIMessage

from arq_graph.agent.record import Record
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Move, PlannedCall, ToolVerdict
from arq_graph.errors import InputError, require_choice, require_count, suggestion
from arq_graph.nodes.agent_node import (
    build_callback_state,
    describe_tool,
    describe_variables,
    require_free_composition,
)
from arq_graph.nodes.agreement import AgreementOutcome
from arq_graph.nodes.blueprint_node import DeferredCall, NodeSteps
from arq_graph.nodes.events import Spoke, Thought, ToolsDecided
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.grants import get_active_scores, get_granted_tools
from arq_graph.nodes.messages import make_tool_call
from arq_graph.nodes.node import Update
from arq_graph.nodes.proposed_calls import Objection, map_properties, merge_verdicts, read_choice
from arq_graph.nodes.speaking.move_schema import (
    ACT,
    KINDS,
    SPEAK,
    THINK,
    WORLD_CALL,
    Setting,
    make_move_blueprint,
)
from arq_graph.nodes.speaking.moves import (
    ProposedMove,
    SpeakingContext,
    SpeakingRules,
    check_action,
    check_call,
    check_speech,
    check_thought,
)
from arq_graph.nodes.speaking.policies import ByState, Policy, ToolRules, choose_policies
from arq_graph.nodes.speaking.speech import SPEECH, classify_speech, find_task_messages
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.strategy import Strategy, StrategyNodeSettings
from arq_graph.nodes.violations import collect_references
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.reasoner import ModelLike

DEFAULT_MAX_STEPS: Mapping[Setting, int] = {"chat": 8, "task": 40}


class Speaker(Strategy):
    """Make the next move: think, speak, or act with a tool or in a world; write it as a message, and to `moves`.

    Thoughts change nothing outside the agent; they are made in the same run as the move that follows them. Code
    enforces for all moves:

    - A call that the customer has to agree to runs only after the generated confirmation question and their yes. So
      does a call with a value that neither a customer message nor a tool gave.
    - There are at most `max_questions` other questions with nothing done in between.
    - Nothing is said twice in a row.

    A refused move is asked for again within the reasoner's `max_candidates`; after that, the agent says its `fallback`.
    One run asks the model for at most two thoughts and a move.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`; those with
            `confirm` "customer" are the consequential ones.
        in_world: True if there is a world to act in: `WorldActor` takes its actions.
        setting: In a `chat`, speaking ends the turn. In a `task`, an utterance waits for its answer (in `Listener`)
            unless it ends the task.
        policies: The rules that are switched on: names of shipped ones, policies of your own; None: all shipped ones.
        dialogue_acts: Dialogue acts that an utterance must be one of, by name, with descriptions; None: any.
        max_steps: How many calls one turn of a chat may make (8), or calls, actions and utterances a task (40).
        max_questions: How many questions may follow each other with nothing done in between; in a task, how many
            utterances that wait for an answer: with 0 nothing is said before the report that ends it.
        inner_monologue: True if a thought comes before every call and action.
        draft: Leave an utterance in `moves`, as the draft of `MessageReviser`, instead of sending it; only in a chat.
        **settings: `reads` for the channels that policies look at; `agrees`, `template`, `temperature` (0.05) and the
            others, as for `ToolCaller`.

    Raises:
        InputError: A setting is out of its range, names a policy that does not exist, or has a draft in a task.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds another type.
    """

    module = "speaker"
    prompt_name = "speaker"
    agent_state_channels = (*Strategy.agent_state_channels, "moves", "world")
    make_example_blueprint = staticmethod(make_move_blueprint)

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
        **settings: Unpack[StrategyNodeSettings],
    ) -> None:
        is_task = require_choice("setting", setting, Setting) == "task"
        if max_steps is None:
            max_steps = DEFAULT_MAX_STEPS[setting]
        self.rules = SpeakingRules(
            policies=choose_policies(policies),
            is_task=is_task,
            max_steps=require_count("max_steps", max_steps),
            max_questions=require_count("max_questions", max_questions, minimum=0),
            inner_monologue=inner_monologue,
        )
        if draft and (in_world or is_task):
            raise InputError(
                'draft=True works only with setting="chat" and in_world=False: in a task or a world the speaker sends '
                "its own utterances"
            )
        super().__init__(model, agent, **settings)
        if in_world and WORLD_CALL in agent.toolbox:
            raise InputError(f"a tool is called {WORLD_CALL!r}, as actions in the world are: rename it")
        self.sends_reply = not draft
        if self.sends_reply:
            require_free_composition(agent)
        self.dialogue_acts = dict(dialogue_acts or {})
        self.blueprint = make_move_blueprint(
            list(self.tools.values()),
            in_world=in_world,
            setting=setting,
            policies=self.rules.policies,
            dialogue_acts=self.dialogue_acts,
        )
        self._tools_by_property = map_properties(self.tools.values(), KINDS)
        rules = [{"name": policy.name, "rule": policy.rule} for policy in self.rules.policies.values()]
        self.head = self.render_head(
            guided=bool(agent.rules),
            in_world=in_world,
            setting=setting,
            asks=max_questions > 0,
            inner_monologue=inner_monologue,
            policies=rules,
            dialogue_acts=self.dialogue_acts,
            tools=[describe_tool(agent, tool, name) for name, tool in self._tools_by_property.items()],
        )

    def make_gate(self, state: StateView) -> Generator[DeferredCall, Any, Gate]:
        """Return the gate with the rules of the policies that apply now; yields the policies' functions.

        Raises:
            InputError: A function names a tool that the agent doesn't have.
        """
        callback_state = build_callback_state(self.agent, state)
        forbidden: dict[str, Policy] = {}
        required: dict[str, Policy] = {}
        for policy in self.rules.policies.values():
            forbidden_tools = yield from self._call_rule(policy, policy.forbids, callback_state)
            forbidden.update(dict.fromkeys(forbidden_tools, policy))
            required_tools = yield from self._call_rule(policy, policy.requires, callback_state)
            required.update(dict.fromkeys(required_tools, policy))
        called: set[str] = set()
        for message in find_task_messages(state.messages):
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    called.add(call["name"])
        callable_now = set(get_granted_tools(self.agent, state)).difference(called, forbidden)
        required = {tool: policy for tool, policy in required.items() if tool in callable_now}
        return Gate(self.agent, state, self.tools, ToolRules(forbidden, required))

    def _call_rule(
        self, policy: Policy, function: ByState | None, state: Any
    ) -> Generator[DeferredCall, Any, list[str]]:
        """Return the tools that a policy's function names for this state."""
        if function is None:
            return []
        tools = list((yield partial(function, state)))
        for tool in tools:
            if tool not in self.tools:
                hint = suggestion(str(tool), self.tools)
                raise InputError(
                    f"policy {policy.name!r} names {tool!r}, which isn't a tool of this agent{hint}"
                )
        return tools

    def decide(self, gate: Gate, agreement_outcome: AgreementOutcome) -> NodeSteps:
        """Think as often as it may, then speak or act."""
        state = gate.state
        variables = describe_variables(self.agent, state)
        citable_ids = set(get_active_scores(self.agent, state)).union(self.tools, agreement_outcome.pending)
        references = collect_references(self.agent, state, citable_ids)
        context = SpeakingContext(gate, agreement_outcome, self.rules, variables, references)
        review = partial(self._review, context=context)
        while True:
            sections = self._describe_move_context(context)
            answer, move = yield from self.ask_for_proposal(context, sections, review)
            if move.kind != THINK or move.is_refused:
                return (yield from self._make_move(context, answer, move))
            thought = Move(
                turn=context.task_turn_id, kind=THINK, text=move.text, after_line=context.newest_line
            )
            context.moves.append(thought)
            state.emit(Thought(text=move.text))

    def _review(self, next_move: Any, context: SpeakingContext) -> ProposedMove:
        """Return the move that an answer proposes, with code's objections."""
        option, chosen = read_choice(next_move.move)
        still_wanted = context.agreement_outcome.select_wanted_calls(next_move)
        # A request that something was done for is no longer half said.
        has_results = bool(context.gate.state.conversation.current_turn_results)
        is_half_request = getattr(next_move, "half_request", False) and not has_results
        if option == THINK:
            move = check_thought(context, chosen.thought)
        elif option == SPEAK:
            move = check_speech(context, chosen, still_wanted=still_wanted, is_half_request=is_half_request)
        elif option == WORLD_CALL:
            move = check_action(context, chosen.action)
        else:
            tool = self._tools_by_property[option]
            move = check_call(context, option, tool, chosen, is_half_request=is_half_request)
        objections = move.objections
        if move.kind == ACT and context.needs_thought:
            objections += (Objection(f"move.{option}", "no thought came before it: think first"),)
        return replace(move, objections=objections, still_wanted=still_wanted)

    def _describe_move_context(self, context: SpeakingContext) -> dict[str, Any]:
        rules = context.gate.rules
        counts = {
            "steps_left": context.moves_left,
            "thoughts_left": context.thoughts_left,
            "questions_left": context.questions_left,
        }
        long_results: list[str] = []
        if context.long_result_id:
            long_results.append(context.long_result_id)
        optional = {
            "too_many": long_results,
            "required_first": sorted(rules.required),
            "forbidden": {tool: policy.name for tool, policy in rules.forbidden.items()},
        }
        sections = self.describe_context(context, counts, optional)
        sections["thoughts"] = context.describe_thoughts()
        sections["world"] = None
        if context.world:
            hidden = Record.model_fields.keys() | {"steps"}
            sections["world"] = context.world.model_dump(mode="json", exclude=hidden, exclude_none=True)
        return sections

    def _make_move(self, context: SpeakingContext, answer: Answer[Any], move: ProposedMove) -> NodeSteps:
        """Return the update that makes a move.

        If it was refused, the reply is the confirmation question or the fallback.
        """
        to_confirm = context.find_verdicts_to_confirm(move.still_wanted)
        if move.is_refused:
            move = ProposedMove("" if to_confirm else self.agent.fallback)
        faults = tuple(map(str, answer.complaints))
        if move.call:
            return self._make_call(context, move, move.call, faults)
        return (yield from self._say(context, move, to_confirm, faults))

    def _make_call(
        self, context: SpeakingContext, move: ProposedMove, call: PlannedCall, faults: tuple[str, ...]
    ) -> Update:
        verdicts = merge_verdicts(
            context.agreement_outcome, context.proposed_verdicts, move.verdicts, (), asks=False
        )
        context.gate.state.emit(ToolsDecided(decisions=tuple(verdicts)))
        update = self.make_calls(context.gate, verdicts, [make_tool_call(call.tool, call.arguments)])
        return update | self._record_move(context, move, faults, {})

    def _say(
        self,
        context: SpeakingContext,
        move: ProposedMove,
        to_confirm: Sequence[ToolVerdict],
        faults: tuple[str, ...],
    ) -> NodeSteps:
        gate = context.gate
        asks_in_text = move.asks_customer
        verdicts = merge_verdicts(
            context.agreement_outcome, context.proposed_verdicts, (), to_confirm, asks=asks_in_text
        )
        confirms = bool(to_confirm)
        has_question = asks_in_text or confirms
        category = classify_speech(move.speech, asks=has_question, confirms=confirms)
        labels: dict[str, Any] = {"category": category}
        if self.dialogue_acts and move.speech:
            labels["dialogue_act"] = move.speech.dialogue_act
        waits_for_answer = move.waits_for_answer or (self.rules.is_task and confirms)
        note = labels | {"asks": asks_in_text, "waits": waits_for_answer}
        gate.state.emit(
            Spoke(
                text=move.text, draft=not self.sends_reply, faults=faults, decisions=tuple(verdicts), **note
            )
        )
        if self.sends_reply:
            update = yield from self.send_reply(
                gate, verdicts, move.text, to_confirm, metadata={SPEECH: note}
            )
        else:
            update = self.make_update(gate, verdicts)
        return update | self._record_move(context, move, faults, labels)

    def _record_move(
        self,
        context: SpeakingContext,
        move: ProposedMove,
        faults: tuple[str, ...],
        labels: Mapping[str, Any],
    ) -> Update:
        record = Move(
            turn=context.task_turn_id,
            kind=move.kind,
            text=move.text,
            after_line=context.newest_line,
            faults=faults,
            **labels,
        )
        moves = list(context.moves)
        moves.append(record)
        return {"moves": context.gate.state.build_channel_value("moves", moves)}
