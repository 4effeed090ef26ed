"""An answer's move, held against how things stand: it is made, refused, or asked for again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.state import Move, MoveKind, PlannedCall, WorldStatus
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.transcript import Call
from arq_graph.nodes.confirmation import AgreementOutcome, find_question_conflict
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.proposed_calls import DecisionContext, Fault, Proposal, asked_for, read_call, refusals
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.nodes.speaking.policies import Policy, ToolRules
from arq_graph.nodes.speaking.speech import questions_in_a_row, task_messages
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolArguments
from arq_graph.nodes.violations import PromptFacts, check_source, find_leaks, split_words
from arq_graph.nodes.yes import has_question_mark
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json

MAX_RESULTS = 5
"""How many entries of a result are not too many."""

MAX_THOUGHTS = 2
"""How many thoughts may come before one move."""

NO_STEP_LEFT = "no step is left: speak"
HALF_SAID = "the request is only half said: ask how it goes on"
MAY_BE_A_TYPE = "it may be a name or a type, or fit elsewhere: ask which"


@dataclass(frozen=True)
class CheckedMove(Proposal):
    """A move, whether it asks something, and what the model said of an utterance; `act` in a world is a call."""

    kind: MoveKind = "speak"
    asks: bool = False
    speech: Any = None


@dataclass(frozen=True)
class SpeakingRules:
    """What all moves of a speaker are held to."""

    policies: Mapping[str, Policy]
    is_task: bool
    max_steps: int
    max_questions: int
    inner_monologue: bool = False


class SpeakingContext(DecisionContext):
    """How things stand before a move, and what happened in this run of the node.

    `moves` are those of the turn or task, which message `task` began, with the thoughts of this run; `after` is the id
    of the newest line of the conversation; `asked` the agent's last questions in a row; `too_many` is the id of the
    newest result where it lists more than it should; `half_request` is what the newest answer says beside its move.
    """

    def __init__(
        self,
        gate: Gate,
        outcome: AgreementOutcome,
        rules: SpeakingRules,
        tool_rules: ToolRules,
        variables: list[dict[str, Any]],
        facts: PromptFacts,
    ) -> None:
        super().__init__(gate, outcome)
        self.rules, self.tool_rules, self.facts = rules, tool_rules, facts
        state, conversation = gate.state, gate.conversation
        task = next(iter(task_messages(conversation.messages)), None)
        customers = (line for line in conversation.lines if line.speaker == "customer")
        self.task = next((line.turn for line in customers if line.message is task), "")
        self.moves = state.read_turn_records("moves", Move, self.task)
        self.after = conversation.lines[-1].id if conversation.lines else ""
        steps = ("act", "speak") if rules.is_task else ("act",)
        self.steps_left = max(0, rules.max_steps - sum(move.kind in steps for move in self.moves))
        self.asked = questions_in_a_row(conversation.messages)
        self.questions_left = max(0, rules.max_questions - len(self.asked))
        self.too_many = _too_many_in(conversation) if "narrow_many_results" in rules.policies else ""
        self.world = state.read_record("world", WorldStatus)
        self.grounding = Grounding()
        said = [line.message.text for line in conversation.lines if line.speaker in ("customer", "tool")]
        for text in (gate.agent.profile, *(as_json(each["value"]) for each in variables), *said):
            self.grounding.add_text(text)
        self.half_request = False

    @property
    def is_over(self) -> bool:
        """Whether no step is left, or the world's task has ended."""
        return self.steps_left < 1 or bool(self.world and self.world.done)

    @property
    def thoughts(self) -> list[dict[str, str]]:
        """The thoughts of this turn or task, as the prompt shows them; those of this run come after nothing new."""
        thoughts = [(move.text, move.after_line) for move in self.moves if move.kind == "think"]
        return [
            {"thought": text, **({"after": after} if after != self.after else {}), "observed": "OK"}
            for text, after in thoughts
        ]

    @property
    def thoughts_left(self) -> int:
        """How many thoughts may still come before a move."""
        return MAX_THOUGHTS - sum("after" not in thought for thought in self.thoughts)

    @property
    def owes_thought(self) -> bool:
        """Whether a thought has to come first, as before every act of an inner monologue."""
        thought = self.moves and self.moves[-1].kind == "think" and self.moves[-1].after_line == self.after
        return self.rules.inner_monologue and not thought

    def thought(self, text: str) -> CheckedMove:
        """A thought: there are not too many, and none comes twice."""
        wrong = ""
        if self.thoughts_left < 1:
            wrong = f"{MAX_THOUGHTS} thoughts before a move are enough: speak or act"
        elif not text.strip() or split_words(text) in [
            split_words(each["thought"]) for each in self.thoughts
        ]:
            wrong = "this was thought before: speak or act"
        return CheckedMove(text, kind="think", refusals=((".thought", wrong),) if wrong else ())

    def action(self, action: str) -> CheckedMove:
        """An action in the world, which says itself what it refuses."""
        wrong = "the world's task has ended: speak" if self.steps_left else NO_STEP_LEFT
        call = PlannedCall(tool=ACT, arguments={"action": action})
        refused = ((".action", wrong),) if self.is_over else ()
        return CheckedMove(action, call, kind="act", refusals=refused)

    def call(self, tool: ToolArguments, said: Any) -> CheckedMove:
        """A call: what the gate says to it, with what the policies and the bound of steps say."""
        arguments, problems, inferred = read_call(tool, said)
        doubts = inferred if "confirm_inferred" in self.rules.policies else {}
        for argument in tool.arguments:
            if argument.name not in arguments:
                continue
            value, basis = arguments[argument.name], getattr(said.arguments, argument.key).basis
            if basis == "ambiguous" and "name_or_type" in self.rules.policies:
                problems.append(Problem(argument, "invalid", MAY_BE_A_TYPE))
            if self._is_untold(tool, argument, value, basis):
                untold = f"{as_json(value)} was told by no customer message and no tool"
                doubts.setdefault(argument.name, untold)
        verdict = self.gate.check(
            tool,
            arguments,
            problems,
            objection=self.tool_rules.find_objection(tool.name) if self.steps_left else NO_STEP_LEFT,
            doubt="; ".join(doubts.values()),
        )
        return CheckedMove(
            tool.name,
            PlannedCall(tool=tool.name, arguments=arguments),
            kind="act",
            refusals=tuple(refusals(tool, verdict, "your message")),
            faults=(("", HALF_SAID),) if self.half_request else (),
            insights=tuple(verdict),
        )

    def speech(self, said: Any) -> CheckedMove:
        """An utterance, with the calls that code puts to the customer below it."""
        text, waiting = str(said.utterance), self.waiting
        asks = bool(said.asks) or has_question_mark(text)
        ends = getattr(said, "ends_task", None)
        refused = [(".utterance", why) for why in find_leaks(text, self.facts)]
        unsayable = self._unsayable(text, asks=asks or ends is False)
        # No bound of questions stands in the way of code's own.
        if why := find_question_conflict(text, waiting) if waiting else unsayable:
            refused.append((".utterance", why))
        refused += self._unsourced(said)
        if self.rules.is_task and self.is_over and not ends:
            refused.append((".ends_task", "no step is left: end the task, and say how far it got"))
        if not (asks or waiting) and (owed := self.tool_rules.owed()):
            refused.append(("", f"{owed}; ask for what it lacks"))
        return CheckedMove(
            text,
            refusals=tuple(refused),
            faults=() if asks or waiting else tuple(self._faults(said)),
            insights=tuple(asked_for(getattr(said, "asks_for", ()), self.gate)),
            asks=asks,
            speech=said,
        )

    def _unsayable(self, text: str, *, asks: bool) -> str:
        """Why a text cannot be said now: it is empty, was just said, or asks too often; empty if it can."""
        lines = reversed(self.gate.conversation.lines)
        last = next((each.message.text for each in lines if each.speaker == "agent"), "")
        if not text.strip():
            return "it is empty"
        if split_words(text) in map(split_words, [*self.asked, last]):
            return "this was just said: act on the answer, ask otherwise, or say what is not possible"
        if asks and not self.rules.max_questions:
            end = "report, and end the task" if self.rules.is_task else "say how things stand"
            return f"nobody can be asked: act, or {end}"
        if asks and self.questions_left < 1:
            return f"{len(self.asked)} questions in a row are enough: act, or say how things stand"
        return ""

    def _is_untold(self, tool: ToolArguments, argument: Argument, value: Any, basis: str) -> bool:
        """Whether nobody told the agent a value, which is no default of the tool's.

        A text of several words without a digit may be put together of words that were told apart. Where the customer
        does not care, a value may be the tool's own: one of its choices, or a word of its description.
        """
        is_words = isinstance(value, str) and not any(map(str.isdigit, value))
        call = Call(tool.name, {argument.name: value.split() if is_words else value})
        is_default = argument.name in tool.defaults and tool.defaults[argument.name] == value
        if is_default or not self.grounding.find_invented_arguments(call):
            return False
        if basis != "does_not_matter" or "placeholder_for_dont_care" not in self.rules.policies:
            return True
        own, choices = Grounding(), as_json((argument.schema or {}).get("enum", ()))
        own.add_text(f"{tool.tool.description} {argument.description} {choices}")
        return bool(own.find_invented_arguments(call))

    def _unsourced(self, said: Any) -> Iterator[Fault]:
        for number, stated in enumerate(getattr(said, "facts", ())):
            if why := check_source(stated.source, self.facts):
                yield f".facts[{number}]", f"{as_json(stated.fact)}: {why}; or look it up"
        for number, promise in enumerate(getattr(said, "promises", ())):
            if promise.tool is None:
                yield f".promises[{number}]", f"no tool here does {as_json(promise.what)}: decline it"

    def _faults(self, said: Any) -> Iterator[Fault]:
        """What a statement is asked again for, and said all the same if it does not get better."""
        if self.too_many and not said.choice_is_left_to_you:
            yield ".utterance", f"{self.too_many} holds too many: ask what narrows it down"
        empty = [classify_result(line) == "empty" for line in self.gate.conversation.current_turn_results]
        if any(empty[-1:]):
            if sum(empty) > 1 and "weigh_requirements" in self.rules.policies:
                yield ".utterance", "nothing meets it all: ask which wish matters more"
            elif "widen_no_results" in self.rules.policies:
                yield ".utterance", "nothing was found: ask what may be wider, or offer an alternative"
        if self.half_request:
            yield ".utterance", HALF_SAID


def _too_many_in(conversation: Conversation) -> str:
    """The id of the newest result of this turn, where a JSON array in it is too long; else empty."""
    for line in conversation.current_turn_results[-1:]:
        with suppress(ValueError, RecursionError):  # no JSON
            result = json.loads(line.message.text)
            inside = result.values() if isinstance(result, dict) else [result]
            if any(isinstance(each, list) and len(each) > MAX_RESULTS for each in inside):
                return line.id
    return ""
