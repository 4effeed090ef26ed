"""The check of a speaker's moves: whether one is made, refused, or asked for again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.state import Move, MoveKind, PlannedCall, WorldStatus
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.transcript import Call
from arq_graph.nodes.confirmation import AgreementOutcome, find_question_conflict
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.proposed_calls import (
    DecisionContext,
    Fault,
    Proposal,
    explain_refusal,
    find_requested_arguments,
    parse_call,
)
from arq_graph.nodes.speaking.move_schema import ACT, SPEAK, THINK
from arq_graph.nodes.speaking.policies import Policy
from arq_graph.nodes.speaking.speech import find_recent_questions, find_task_messages
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolSchema
from arq_graph.nodes.violations import PromptReferences, check_source, find_leaks
from arq_graph.nodes.yes import has_question_mark
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json, split_words

MAX_RESULTS = 5
"""How many entries a result may list before the policy `narrow_many_results` applies."""

MAX_THOUGHTS = 2
"""How many thoughts may come before one move."""

NO_STEP_LEFT = "no step is left: speak"
HALF_SAID = "the request is only half said: ask how it goes on"
MAY_BE_A_TYPE = "it may be a name or a type, or fit elsewhere: ask which"


@dataclass(frozen=True)
class ProposedMove(Proposal):
    """A move that an answer proposes.

    An action in a world is a call of `act`. `asks` says whether the move asks the customer something, `speech` is what
    the model said of an utterance.
    """

    kind: MoveKind = "speak"
    asks: bool = False
    speech: Any = None


@dataclass(frozen=True)
class SpeakingRules:
    """The rules that all moves of a speaker have to follow."""

    policies: Mapping[str, Policy]
    is_task: bool
    max_steps: int
    max_questions: int
    inner_monologue: bool = False


class SpeakingContext(DecisionContext[ProposedMove]):
    """The state that a speaker's moves are checked against.

    `task_turn_id` is the id of the message that began the turn, or the task; `moves` are its moves, with the thoughts
    of this run. `newest_line` is the id of the newest line of the conversation, `recent_questions` are the agent's last
    questions in a row, and `long_result` is the id of the newest result, if it lists too much.
    """

    def __init__(
        self,
        gate: Gate,
        outcome: AgreementOutcome,
        rules: SpeakingRules,
        variables: Sequence[Mapping[str, Any]],
        facts: PromptReferences,
    ) -> None:
        super().__init__(gate, outcome)
        self.rules = rules
        self.facts = facts
        self.conversation = gate.conversation
        self.task_turn_id = _find_task_turn(gate.conversation)
        self.moves = gate.state.read_turn_records("moves", Move, self.task_turn_id)
        self.world = gate.state.read_record("world", WorldStatus)
        lines = gate.conversation.lines
        self.newest_line = lines[-1].id if lines else ""
        steps = [move for move in self.moves if move.kind == ACT or (rules.is_task and move.kind == SPEAK)]
        self.steps_left = max(0, rules.max_steps - len(steps))
        self.recent_questions = find_recent_questions(gate.conversation.messages)
        self.questions_left = max(0, rules.max_questions - len(self.recent_questions))
        self.long_result = ""
        if "narrow_many_results" in rules.policies:
            self.long_result = _find_long_result(gate.conversation)
        self._grounding = Grounding()
        self._grounding.add_text(gate.agent.profile)
        for variable in variables:
            self._grounding.add_text(as_json(variable["value"]))
        for line in lines:
            if line.speaker in ("customer", "tool"):
                self._grounding.add_text(line.message.text)

    @property
    def is_over(self) -> bool:
        """Whether no step is left, or the world's task has ended."""
        return self.steps_left < 1 or bool(self.world and self.world.done)

    @property
    def thoughts_left(self) -> int:
        """How many thoughts may still come before a move."""
        new_thoughts = [
            move for move in self.moves if move.kind == THINK and move.after_line == self.newest_line
        ]
        return MAX_THOUGHTS - len(new_thoughts)

    @property
    def needs_thought(self) -> bool:
        """Whether a thought has to come first, as before every call and action of an inner monologue."""
        if not self.rules.inner_monologue:
            return False
        last = self.moves[-1] if self.moves else None
        return last is None or last.kind != THINK or last.after_line != self.newest_line

    def describe_thoughts(self) -> list[dict[str, str]]:
        """Return the thoughts of this turn or task as the prompt shows them; those of this run come after no line."""
        thoughts = []
        for move in self.moves:
            if move.kind == THINK:
                thought = {"thought": move.text}
                if move.after_line != self.newest_line:
                    thought["after"] = move.after_line
                thought["observed"] = "OK"
                thoughts.append(thought)
        return thoughts

    def check_thought(self, text: str) -> ProposedMove:
        """Check that there aren't too many thoughts, and that none comes twice."""
        earlier = [split_words(move.text) for move in self.moves if move.kind == THINK]
        refusals: tuple[Fault, ...] = ()
        if self.thoughts_left < 1:
            problem = f"{MAX_THOUGHTS} thoughts before a move are enough: speak or act"
            refusals = (("move.think.thought", problem),)
        elif not text.strip() or split_words(text) in earlier:
            refusals = (("move.think.thought", "this was thought before: speak or act"),)
        return ProposedMove(text, kind="think", refusals=refusals)

    def check_action(self, action: str) -> ProposedMove:
        """Check that the task isn't over; the world itself refuses what isn't possible in it."""
        refusals: tuple[Fault, ...] = ()
        if self.is_over:
            problem = "the world's task has ended: speak" if self.steps_left else NO_STEP_LEFT
            refusals = (("move.act.action", problem),)
        call = PlannedCall(tool=ACT, arguments={"action": action})
        return ProposedMove(action, call, kind="act", refusals=refusals)

    def check_call(self, key: str, tool: ToolSchema, call: Any, *, is_half_request: bool) -> ProposedMove:
        """Check a call with the gate, the policies and the limit of steps; `key` names it in the answer."""
        policies = self.rules.policies
        arguments, problems, doubts = parse_call(tool, call)
        if "confirm_inferred" not in policies:
            doubts = {}
        for argument in tool.arguments:
            if argument.name not in arguments:
                continue
            value = arguments[argument.name]
            basis = getattr(call.arguments, argument.property_name).basis
            if basis == "ambiguous" and "name_or_type" in policies:
                problems.append(Problem(argument, "invalid", MAY_BE_A_TYPE))
            if self._is_invented(tool, argument, value, basis):
                doubt = f"{as_json(value)} was told by no customer message and no tool"
                doubts.setdefault(argument.name, doubt)
        objection = NO_STEP_LEFT
        if self.steps_left:
            objection = self.gate.rules.find_objection(tool.name)
        doubt = "; ".join(doubts.values())
        verdict = self.gate.check(tool, arguments, problems, objection=objection, doubt=doubt)
        path = f"move.{key}"
        faults: list[Fault] = []
        if is_half_request:
            faults.append((path, HALF_SAID))
        return ProposedMove(
            tool.name,
            PlannedCall(tool=tool.name, arguments=arguments),
            kind="act",
            refusals=tuple(explain_refusal(tool, verdict, path, "your message")),
            faults=tuple(faults),
            insights=tuple(verdict),
        )

    def check_speech(
        self, speech: Any, *, still_wanted: Sequence[str], is_half_request: bool
    ) -> ProposedMove:
        """Check an utterance, with the calls that code asks for confirmation of below it."""
        text = str(speech.utterance)
        to_confirm = self.find_calls_to_confirm(still_wanted)
        asks = bool(speech.asks) or has_question_mark(text)
        is_question = asks or bool(to_confirm)
        refusals = [("move.speak.utterance", problem) for problem in find_leaks(text, self.facts)]
        ends_task = getattr(speech, "ends_task", None)
        problem: str | None
        if to_confirm:  # the limit of questions doesn't count for code's own
            problem = find_question_conflict(text, to_confirm)
        else:
            problem = self._find_text_problem(text, asks=asks or ends_task is False)
        if problem:
            refusals.append(("move.speak.utterance", problem))
        refusals += self._find_missing_sources(speech)
        if self.rules.is_task and self.is_over and not ends_task:
            problem = "no step is left: end the task, and say how far it got"
            refusals.append(("move.speak.ends_task", problem))
        required = self.gate.rules.describe_required()
        if required and not is_question:
            refusals.append(("move.speak", f"{required}; ask for what it lacks"))
        faults: list[Fault] = []
        if not is_question:
            faults = list(self._find_statement_faults(speech, is_half_request))
        return ProposedMove(
            text,
            refusals=tuple(refusals),
            faults=tuple(faults),
            insights=tuple(find_requested_arguments(getattr(speech, "asks_for", ()), self.gate)),
            asks=asks,
            speech=speech,
        )

    def _find_text_problem(self, text: str, *, asks: bool) -> str:
        """Return why a text can't be said now: it is empty, was just said, or asks too often; empty if it can."""
        if not text.strip():
            return "it is empty"
        own_texts = [line.message.text for line in self.conversation.lines if line.speaker == "agent"]
        last_text = own_texts[-1] if own_texts else ""
        if split_words(text) in map(split_words, [*self.recent_questions, last_text]):
            return "this was just said: act on the answer, ask otherwise, or say what is not possible"
        if asks and not self.rules.max_questions:
            end = "report, and end the task" if self.rules.is_task else "say how things stand"
            return f"nobody can be asked: act, or {end}"
        if asks and self.questions_left < 1:
            return f"{len(self.recent_questions)} questions in a row are enough: act, or say how things stand"
        return ""

    def _is_invented(self, tool: ToolSchema, argument: Argument, value: Any, basis: str) -> bool:
        """Return whether nobody gave a value, and it isn't a default of the tool's either.

        A text of several words without a digit may be put together of words that were given apart. Where the customer
        does not care, a value may be the tool's own: one of its choices, or a word of its description.
        """
        if argument.name in tool.defaults and tool.defaults[argument.name] == value:
            return False
        if isinstance(value, str) and not any(map(str.isdigit, value)):
            value = value.split()
        call = Call(tool.name, {argument.name: value})
        if not self._grounding.find_invented_arguments(call):
            return False
        if basis != "does_not_matter" or "placeholder_for_dont_care" not in self.rules.policies:
            return True
        choices = as_json(argument.choices or ())
        placeholders = Grounding()
        placeholders.add_text(f"{tool.base_tool.description} {argument.description} {choices}")
        return bool(placeholders.find_invented_arguments(call))

    def _find_missing_sources(self, speech: Any) -> Iterator[Fault]:
        for number, fact in enumerate(getattr(speech, "facts", ())):
            if problem := check_source(fact.source, self.facts):
                yield f"move.speak.facts[{number}]", f"{as_json(fact.fact)}: {problem}; or look it up"
        for number, promise in enumerate(getattr(speech, "promises", ())):
            if promise.tool is None:
                problem = f"no tool here does {as_json(promise.what)}: decline it"
                yield f"move.speak.promises[{number}]", problem

    def _find_statement_faults(self, speech: Any, is_half_request: bool) -> Iterator[Fault]:
        """Yield why a statement should have been a question; it is made all the same if it doesn't get better."""
        path, policies = "move.speak.utterance", self.rules.policies
        if self.long_result and not speech.choice_is_left_to_you:
            yield path, f"{self.long_result} holds too many: ask what narrows it down"
        is_empty = [classify_result(line) == "empty" for line in self.conversation.current_turn_results]
        if is_empty and is_empty[-1]:
            if is_empty.count(True) > 1 and "weigh_requirements" in policies:
                yield path, "nothing meets it all: ask which wish matters more"
            elif "widen_no_results" in policies:
                yield path, "nothing was found: ask what may be wider, or offer an alternative"
        if is_half_request:
            yield path, HALF_SAID


def _find_task_turn(conversation: Conversation) -> str:
    """Return the id of the message that began the turn, or the task."""
    messages = find_task_messages(conversation.messages)
    for line in conversation.lines:
        if messages and line.message is messages[0] and line.speaker == "customer":
            return line.turn_id
    return ""


def _find_long_result(conversation: Conversation) -> str:
    """Return the id of the newest result of this turn, if a JSON array in it is too long; else empty."""
    if not conversation.current_turn_results:
        return ""
    line = conversation.current_turn_results[-1]
    try:
        result = json.loads(line.message.text)
    except (ValueError, RecursionError):
        return ""
    values = result.values() if isinstance(result, dict) else [result]
    has_long_list = any(isinstance(value, list) and len(value) > MAX_RESULTS for value in values)
    return line.id if has_long_list else ""
