"""Speaking: think, speak or act, one move at a time, under rules that code enforces (ReSpAct, section 3)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from langchain_core.messages import AIMessage, BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Move, ToolVerdict
from arq_graph.errors import InputError, require_choice, require_count, suggestion
from arq_graph.nodes.agent_node import build_callback_state, describe_tool, describe_variables
from arq_graph.nodes.blueprint_node import NodeRequests, UserFunction
from arq_graph.nodes.channels import Update
from arq_graph.nodes.confirmation import AgreementOutcome, ask_for_confirmation, make_call
from arq_graph.nodes.events import Spoke, Thought, ToolsDecided
from arq_graph.nodes.gate import Gate, ToolRules, get_active_scores
from arq_graph.nodes.messages import make_agent_message
from arq_graph.nodes.proposed_calls import get_property_name, merge_insights, read_choice
from arq_graph.nodes.speaking.move_schema import ACT, KINDS, SPEAK, THINK, Setting, make_move_blueprint
from arq_graph.nodes.speaking.moves import ProposedMove, SpeakingContext, SpeakingRules
from arq_graph.nodes.speaking.policies import ByState, Policy, choose_policies
from arq_graph.nodes.speaking.speech import SPEECH, classify_speech, find_task_messages
from arq_graph.nodes.strategy import Strategy, StrategyNodeSettings
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.violations import collect_references
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.reasoner import ModelLike


class Speaker(Strategy):
    """Make the next move: think, speak, or act with a tool or in a world; write it as a message, and to `moves`.

    Thoughts change nothing outside and are part of the run that they lead to. Code enforces for all moves:

    - A call that the customer has to agree to runs only after code's own question and their yes. So does a call with a
      value that neither a customer message nor a tool gave.
    - There are at most `max_questions` other questions with nothing done in between.
    - Nothing is said twice in a row.

    A refused move is asked for again within the reasoner's `max_candidates`; after that, code says the agent's
    `fallback`. One run asks the model for at most two thoughts and a move.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`; those with
            `confirm` "customer" are the consequential ones.
        in_world: Whether there is a world to act in: `WorldActor` takes its actions.
        setting: In a `chat`, speaking ends the turn. In a `task`, an utterance waits for its answer (in `Listener`)
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
            max_steps = 40 if is_task else 8
        self.rules = SpeakingRules(
            policies=choose_policies(policies),
            is_task=is_task,
            max_steps=require_count("max_steps", max_steps),
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
        self.blueprint = make_move_blueprint(
            list(self.tools.values()),
            in_world=in_world,
            setting=setting,
            policies=self.rules.policies,
            dialogue_acts=self.dialogue_acts,
        )
        self._tools_by_key: dict[str, ToolSchema] = {}
        for name, tool in self.tools.items():
            self._tools_by_key[get_property_name(name, KINDS)] = tool
        rules = [{"name": policy.name, "rule": policy.rule} for policy in self.rules.policies.values()]
        self.head = self.render_head(
            guided=bool(agent.guidelines),
            in_world=in_world,
            setting=setting,
            asks=max_questions > 0,
            inner_monologue=inner_monologue,
            policies=rules,
            dialogue_acts=self.dialogue_acts,
            tools=[describe_tool(agent, tool, key) for key, tool in self._tools_by_key.items()],
        )

    def evaluate_policies(self, gate: Gate) -> Generator[UserFunction, Any, ToolRules]:
        """Return the rules that apply now; yields the policies' functions.

        Raises:
            InputError: A function names a tool that the agent doesn't have.
        """
        state = build_callback_state(self.agent, gate.state)
        forbidden: dict[str, Policy] = {}
        required: dict[str, Policy] = {}
        for policy in self.rules.policies.values():
            forbidden_tools = yield from self._name_tools(policy, policy.forbids, state)
            forbidden.update(dict.fromkeys(forbidden_tools, policy))
            required_tools = yield from self._name_tools(policy, policy.requires, state)
            required.update(dict.fromkeys(required_tools, policy))
        called: set[str] = set()
        for message in find_task_messages(gate.state.messages):
            if isinstance(message, AIMessage):
                called.update(call["name"] for call in message.tool_calls)
        callable_now = set(gate.granted).difference(called, forbidden)
        required = {tool: policy for tool, policy in required.items() if tool in callable_now}
        return ToolRules(forbidden, required)

    def _name_tools(
        self, policy: Policy, function: ByState | None, state: Any
    ) -> Generator[UserFunction, Any, list[str]]:
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

    def decide(self, gate: Gate, outcome: AgreementOutcome) -> NodeRequests:
        """Think as often as it may, then speak or act."""
        variables = describe_variables(self.agent, gate.state)
        sources = [*get_active_scores(self.agent, gate.state), *self.tools, *outcome.pending]
        facts = collect_references(self.agent, gate.conversation, variables, sources)
        context = SpeakingContext(gate, outcome, self.rules, variables, facts)
        review = partial(self._review, context=context)
        while True:
            question = self.make_question(context, self._describe_move_context(context), review)
            (answer,) = yield from self.ask_questions(question)
            move = context.proposals[-1]
            if move.kind != THINK or move.refusals:
                return self._make_move(context, answer)
            thought = Move(
                turn=context.task_turn_id, kind=THINK, text=move.text, after_line=context.newest_line
            )
            context.moves.append(thought)
            gate.state.emit(Thought(text=move.text))

    def _review(self, value: Any, context: SpeakingContext) -> ProposedMove:
        """Return the move that an answer proposes, and what code objects."""
        key, answer = read_choice(value.move)
        still_wanted = getattr(value, "still_wanted", None) or ()
        # A request is whole once something was done for it.
        has_results = bool(context.conversation.current_turn_results)
        is_half_request = getattr(value, "half_request", False) and not has_results
        if key == THINK:
            move = context.check_thought(answer.thought)
        elif key == SPEAK:
            move = context.check_speech(answer, still_wanted=still_wanted, is_half_request=is_half_request)
        elif key == ACT:
            move = context.check_action(answer.action)
        else:
            tool = self._tools_by_key[key]
            move = context.check_call(key, tool, answer, is_half_request=is_half_request)
        refusals = move.refusals
        if move.kind == "act" and context.needs_thought:
            refusals = (*refusals, (f"move.{key}", "no thought came before it: think first"))
        return replace(move, refusals=refusals, still_wanted=still_wanted)

    def _describe_move_context(self, context: SpeakingContext) -> dict[str, Any]:
        rules, world = context.gate.rules, context.world
        counts = {
            "steps_left": context.steps_left,
            "thoughts_left": context.thoughts_left,
            "questions_left": context.questions_left,
        }
        lists = {
            "too_many": [context.long_result] if context.long_result else [],
            "required_first": sorted(rules.required),
            "forbidden": {tool: policy.name for tool, policy in rules.forbidden.items()},
        }
        sections = self.describe_context(context.gate, context.outcome, counts, lists)
        sections["thoughts"] = context.describe_thoughts()
        sections["world"] = None
        if world:
            hidden = {"agent", "turn", "message_hash", "steps"}
            sections["world"] = world.model_dump(mode="json", exclude=hidden, exclude_none=True)
        return sections

    def _make_move(self, context: SpeakingContext, answer: Answer[Any]) -> Update:
        """Return the update that makes the last move; instead of a refused one, the fallback or code's question."""
        state, move = context.gate.state, context.proposals[-1]
        to_confirm = context.find_calls_to_confirm(move.still_wanted)
        if move.refusals:
            move = ProposedMove("" if to_confirm else self.agent.fallback)
        call_insights: Sequence[ToolVerdict] = ()
        if move.call:
            call_insights, to_confirm = move.insights, []
        decisions = merge_insights(
            context.outcome, context.insights, call_insights, to_confirm, asks=move.asks
        )
        faults = tuple(map(str, answer.complaints))
        labels: dict[str, Any] = {}
        update: Update = {}
        messages: list[BaseMessage] = []
        if move.call:
            call = make_call(move.call.tool, move.call.arguments)
            messages.append(make_agent_message(self.agent.name, tool_calls=[call]))
            state.emit(ToolsDecided(decisions=tuple(decisions)))
        else:
            confirms = bool(to_confirm)
            labels = self._label_speech(move, confirms=confirms)
            waits = self.rules.is_task and (confirms or not getattr(move.speech, "ends_task", True))
            note = {**labels, "asks": move.asks or waits, "waits": waits}
            event = Spoke(text=move.text, draft=self.draft, faults=faults, decisions=tuple(decisions), **note)
            state.emit(event)
            if not self.draft:
                reply, update, question_event = ask_for_confirmation(
                    self.agent, state, move.text, to_confirm, metadata={SPEECH: note}
                )
                messages.append(reply)
                state.emit(question_event)
        record = Move(
            turn=context.task_turn_id,
            kind=move.kind,
            text=move.text,
            after_line=context.newest_line,
            faults=faults,
            **labels,
        )
        update["moves"] = state.replace_records("moves", [*context.moves, record])
        return {**update, **self.make_update(context.gate, decisions, messages)}

    def _label_speech(self, move: ProposedMove, *, confirms: bool) -> dict[str, Any]:
        labels: dict[str, Any] = {
            "category": classify_speech(move.speech, asks=move.asks or confirms, confirms=confirms)
        }
        if self.dialogue_acts and move.speech:
            labels["dialogue_act"] = move.speech.dialogue_act
        return labels
