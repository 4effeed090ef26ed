"""The check of a speaker's moves: whether one is made, refused, or asked for again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.state import Move, MoveKind, PendingCall, PlannedCall, WorldStatus
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.transcript import Call
from arq_graph.nodes.agreement import AgreementOutcome
from arq_graph.nodes.argument_decisions import Argument
from arq_graph.nodes.confirmation import find_preamble_problem
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.proposed_calls import (
    Basis,
    DecisionContext,
    Objection,
    Proposal,
    explain_refusal,
    find_requested_arguments,
    parse_call,
)
from arq_graph.nodes.speaking.move_schema import ACT, SPEAK, THINK, WORLD_CALL
from arq_graph.nodes.speaking.policies import Policy, is_policy_on
from arq_graph.nodes.speaking.speech import find_recent_questions, find_task_messages
from arq_graph.nodes.tool_arguments import Problem, ToolSchema
from arq_graph.nodes.violations import PromptReferences, find_leaks, find_source_problem
from arq_graph.nodes.yes import has_question_mark
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json, split_words

MAX_RESULTS = 5
"""The most entries that a result may list before the policy `narrow_many_results` applies."""

MAX_THOUGHTS = 2
"""The most thoughts that may come before one move."""

NO_STEP_LEFT = "no step is left: speak"
HALF_SAID = "the request is only half said: ask how it goes on"
MAY_BE_A_TYPE = "it may be a name or a type, or fit elsewhere: ask which"


@dataclass(frozen=True)
class ProposedMove(Proposal):
    """A move that an answer proposes; an action in a world is a call of `WORLD_CALL`.

    Args:
        kind: Its kind.
        asks_customer: True if its text asks the customer something.
        waits_for_answer: True if it is an utterance in a task that doesn't end the task.
        speech: The model's answers about an utterance; None for a text that no model wrote.
    """

    kind: MoveKind = "speak"
    asks_customer: bool = False
    waits_for_answer: bool = False
    speech: Any = None


@dataclass(frozen=True)
class SpeakingRules:
    """The rules that all moves of a speaker have to follow."""

    policies: Mapping[str, Policy]
    is_task: bool
    max_steps: int
    max_questions: int
    inner_monologue: bool


class SpeakingContext(DecisionContext[ProposedMove]):
    """The state that a speaker's moves are checked against.

    Attributes:
        rules: The speaker's rules.
        references: The ids and names in the prompt.
        task_turn_id: The id of the message that began the turn, or the task.
        moves: The moves of the turn or task, to which the speaker adds the thoughts of this run.
        world: The state of the world, if there is one.
        newest_line: The id of the newest line of the conversation.
        moves_left: The number of moves that may still be made. In a chat only calls and actions count, in a task also
            utterances. The prompt calls it `steps_left`.
        recent_questions: The agent's last questions in a row.
        questions_left: The number of questions that may still follow them.
        long_result_id: The id of the newest result, if it lists too much.
        grounding: The texts and values that customer, tools and specification have given.
    """

    def __init__(
        self,
        gate: Gate,
        agreement_outcome: AgreementOutcome,
        rules: SpeakingRules,
        variables: Sequence[Mapping[str, Any]],
        references: PromptReferences,
    ) -> None:
        super().__init__(gate, agreement_outcome)
        self.rules = rules
        self.references = references
        conversation = gate.state.conversation
        self.task_turn_id = _find_task_turn_id(conversation)
        self.moves = gate.state.read_turn_records("moves", Move, self.task_turn_id)
        self.world = gate.state.read_record("world", WorldStatus)
        self.newest_line = conversation.lines[-1].id if conversation.lines else ""
        counted_kinds = (ACT, SPEAK) if rules.is_task else (ACT,)
        counted_moves = [move for move in self.moves if move.kind in counted_kinds]
        self.moves_left = max(0, rules.max_steps - len(counted_moves))
        self.recent_questions = find_recent_questions(conversation.messages)
        self.questions_left = max(0, rules.max_questions - len(self.recent_questions))
        self.long_result_id: str | None = None
        if is_policy_on("narrow_many_results", rules.policies) and _lists_too_much(conversation):
            self.long_result_id = conversation.current_turn_results[-1].id
        self.grounding = Grounding()
        self.grounding.add_text(gate.agent.profile)
        for variable in variables:
            self.grounding.add_text(as_json(variable["value"]))
        for line in conversation.lines:
            if line.speaker in ("customer", "tool"):
                self.grounding.add_text(line.text)

    @property
    def is_over(self) -> bool:
        """True if no call, action or utterance is left, or the world's task has ended."""
        return self.moves_left < 1 or bool(self.world and self.world.done)

    @property
    def new_thoughts(self) -> list[Move]:
        """The thoughts since the newest line of the conversation."""
        return [move for move in self.moves if move.kind == THINK and move.after_line == self.newest_line]

    @property
    def thoughts_left(self) -> int:
        """The number of thoughts that may still come before a move."""
        return MAX_THOUGHTS - len(self.new_thoughts)

    @property
    def needs_thought(self) -> bool:
        """True if a thought has to come first, as before every call and action of an inner monologue."""
        has_just_thought = bool(self.new_thoughts) and self.moves[-1].kind == THINK
        return self.rules.inner_monologue and not has_just_thought

    def describe_thoughts(self) -> list[dict[str, str]]:
        """Return the thoughts of this turn or task as the prompt shows them; those of this run have no `after`."""
        thoughts: list[dict[str, str]] = []
        for move in self.moves:
            if move.kind == THINK:
                thought = {"thought": move.text}
                if move.after_line != self.newest_line:
                    thought["after"] = move.after_line
                thought["observed"] = "OK"
                thoughts.append(thought)
        return thoughts


def check_thought(context: SpeakingContext, text: str) -> ProposedMove:
    """Check that there aren't too many thoughts, and that none comes twice."""
    earlier = [split_words(move.text) for move in context.moves if move.kind == THINK]
    reason: str | None = None
    if context.thoughts_left < 1:
        reason = f"{MAX_THOUGHTS} thoughts before a move are enough: speak or act"
    elif not text.strip():
        reason = "it is empty: speak or act"
    elif split_words(text) in earlier:
        reason = "this was thought before: speak or act"
    objections = (Objection("move.think.thought", reason),) if reason else ()
    return ProposedMove(text, kind=THINK, objections=objections)


def check_action(context: SpeakingContext, action: str) -> ProposedMove:
    """Check that the task isn't over; the world itself refuses what isn't possible in it."""
    objections: tuple[Objection, ...] = ()
    if context.is_over:
        reason = "the world's task has ended: speak" if context.moves_left else NO_STEP_LEFT
        objections = (Objection("move.act.action", reason),)
    call = PlannedCall(tool=WORLD_CALL, arguments={"action": action})
    return ProposedMove(action, call, kind=ACT, objections=objections)


def check_call(
    context: SpeakingContext, property_name: str, tool: ToolSchema, call: Any, *, is_half_request: bool
) -> ProposedMove:
    """Check a call with the gate, the policies and the limit of moves; `property_name` names it in the answer."""
    policies = context.rules.policies
    parsed = parse_call(tool, call)
    problems = list(parsed.problems)
    doubts = dict(parsed.doubts) if is_policy_on("confirm_inferred", policies) else {}
    for argument in tool.arguments:
        if argument.name not in parsed.arguments:
            continue
        value, basis = parsed.arguments[argument.name], parsed.basis_by_argument[argument.name]
        if basis == "ambiguous" and is_policy_on("name_or_type", policies):
            problems.append(Problem(argument, "invalid", MAY_BE_A_TYPE))
        if _is_invented(context, tool, argument, value, basis):
            doubt = f"{as_json(value)} isn't in any customer message or tool result"
            doubts.setdefault(argument.name, doubt)
    limit_refusal = None if context.moves_left else NO_STEP_LEFT
    doubt = "; ".join(doubts.values())
    check = context.gate.check(tool, parsed.arguments, problems, limit_refusal=limit_refusal, doubt=doubt)
    path = f"move.{property_name}"
    objections = explain_refusal(tool, check.verdicts, path, "your message")
    if is_half_request:
        objections.append(Objection(path, HALF_SAID, is_blocking=False))
    return ProposedMove(
        tool.name,
        PlannedCall(tool=tool.name, arguments=check.arguments),
        kind=ACT,
        objections=tuple(objections),
        verdicts=check.verdicts,
    )


def check_speech(
    context: SpeakingContext, speech: Any, *, still_wanted: Sequence[PendingCall], is_half_request: bool
) -> ProposedMove:
    """Check an utterance, and the calls that the generated confirmation question below it is about."""
    text = str(speech.utterance)
    to_confirm = context.find_verdicts_to_confirm(still_wanted)
    asks_customer = bool(speech.asks) or has_question_mark(text)
    has_question = asks_customer or bool(to_confirm)
    waits_for_answer = context.rules.is_task and not speech.ends_task
    path = "move.speak.utterance"
    objections = [Objection(path, leak) for leak in find_leaks(text, context.references)]
    if to_confirm:  # the limit of questions doesn't count for the generated one
        refusal = find_preamble_problem(text, to_confirm)
    else:
        counts_as_question = asks_customer or waits_for_answer
        refusal = _find_text_refusal(context, text, counts_as_question=counts_as_question)
    if refusal:
        objections.append(Objection(path, refusal))
    objections.extend(_find_missing_sources(context, speech))
    if waits_for_answer and context.is_over:
        reason = "no step is left: end the task, and say how far it got"
        objections.append(Objection("move.speak.ends_task", reason))
    required = context.gate.rules.describe_required()
    if required and not has_question:
        objections.append(Objection("move.speak", f"{required}; ask for what it lacks"))
    if not has_question:
        for reason in _find_statement_problems(context, speech, is_half_request):
            objections.append(Objection(path, reason, is_blocking=False))
    verdicts = find_requested_arguments(getattr(speech, "asks_for", ()), context.gate)
    verdicts += context.find_lost_calls(still_wanted)
    return ProposedMove(
        text,
        objections=tuple(objections),
        verdicts=tuple(verdicts),
        asks_customer=asks_customer,
        waits_for_answer=waits_for_answer,
        speech=speech,
    )


def _find_text_refusal(context: SpeakingContext, text: str, *, counts_as_question: bool) -> str | None:
    """Return why a text can't be said now: it is empty, was just said, or asks too often; None if it can."""
    if not text.strip():
        return "it is empty"
    lines = context.gate.state.conversation.lines
    own_texts = [line.text for line in lines if line.speaker == "agent"]
    last_text = own_texts[-1] if own_texts else ""
    if split_words(text) in map(split_words, [*context.recent_questions, last_text]):
        return "this was just said: act on the answer, rephrase the question, or say what is not possible"
    if counts_as_question and not context.rules.max_questions:
        end = "report, and end the task" if context.rules.is_task else "report the current state"
        return f"nobody can be asked: act, or {end}"
    if counts_as_question and context.questions_left < 1:
        count = len(context.recent_questions)
        return f"{count} questions in a row are enough: act, or report the current state"
    return None


def _is_invented(
    context: SpeakingContext, tool: ToolSchema, argument: Argument, value: Any, basis: Basis
) -> bool:
    """Return True if a value is in no customer message and no tool result, and isn't a default of the tool.

    A text of several words without a digit may combine words from several places. Where the customer doesn't care, the
    value may come from the tool: one of its choices, or a word of its description.
    """
    if argument.name in tool.defaults and tool.defaults[argument.name] == value:
        return False
    if isinstance(value, str) and not any(map(str.isdigit, value)):
        value = value.split()  # `Grounding` checks each entry of a list by itself
    call = Call(tool.name, {argument.name: value})
    if not context.grounding.find_invented_arguments(call):
        return False
    if basis != "does_not_matter" or not is_policy_on("placeholder_for_dont_care", context.rules.policies):
        return True
    choices = as_json(argument.choices or ())
    placeholders = Grounding()
    placeholders.add_text(f"{tool.base_tool.description} {argument.description} {choices}")
    return bool(placeholders.find_invented_arguments(call))


def _find_missing_sources(context: SpeakingContext, speech: Any) -> Iterator[Objection]:
    for number, fact in enumerate(getattr(speech, "facts", ())):
        if problem := find_source_problem(fact.source, context.references):
            reason = f"{as_json(fact.fact)}: {problem}; or look it up"
            yield Objection(f"move.speak.facts[{number}]", reason)
    for number, promise in enumerate(getattr(speech, "promises", ())):
        if promise.tool is None:
            reason = f"no tool here does {as_json(promise.what)}: decline it"
            yield Objection(f"move.speak.promises[{number}]", reason)


def _find_statement_problems(context: SpeakingContext, speech: Any, is_half_request: bool) -> Iterator[str]:
    """Yield why a statement should have been a question; after the last candidate it is sent anyway."""
    policies = context.rules.policies
    if context.long_result_id and not speech.choice_is_left_to_you:
        yield f"{context.long_result_id} holds too many: ask what narrows it down"
    results = context.gate.state.conversation.current_turn_results
    empty_results = context.gate.empty_results
    if results and results[-1] in empty_results:
        if len(empty_results) > 1 and is_policy_on("weigh_requirements", policies):
            yield "nothing meets it all: ask which wish matters more"
        elif is_policy_on("widen_no_results", policies):
            yield "nothing was found: ask what may be wider, or offer an alternative"
    if is_half_request:
        yield HALF_SAID


def _find_task_turn_id(conversation: Conversation) -> str:
    """Return the id of the message that began the turn, or the task."""
    messages = find_task_messages(conversation.messages)
    for line in conversation.lines:
        if messages and line.message is messages[0] and line.speaker == "customer":
            return line.turn_id
    return ""


def _lists_too_much(conversation: Conversation) -> bool:
    """Return True if a JSON array in the newest result of this turn is too long."""
    if not conversation.current_turn_results:
        return False
    try:
        result = json.loads(conversation.current_turn_results[-1].text)
    except (ValueError, RecursionError):
        return False
    values = result.values() if isinstance(result, dict) else [result]
    return any(isinstance(value, list) and len(value) > MAX_RESULTS for value in values)
