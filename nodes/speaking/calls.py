"""What code decides about a call that the speaker wants to make: it runs, is refused, or is asked about first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.state import MoveKind, PlannedCall, ToolInsight
from arq_graph.nodes.argument_schema import Argument
from arq_graph.nodes.confirmation import Settled
from arq_graph.nodes.gate import Gate, Verdict
from arq_graph.nodes.speaking.grounds import PLACEHOLDERS, Grounds
from arq_graph.nodes.tool_arguments import Problem, ToolArguments
from arq_graph.nodes.violations import PromptFacts
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json

_PLACEHOLDER = re.compile(r"[\"'`]?\b(any|dontcare|don't care|no preference)\b", re.IGNORECASE)
_DOUBTFUL = {"another_request": "was stated for another request", "inferred": "is inferred"}
UNFOUNDED = "was told by no customer message and no tool"


@dataclass(frozen=True)
class Situation:
    """What a move is held against.

    Args:
        gate: The gate at this point of the turn.
        settled: What has come of the question that waited.
        steps_left: How many more steps there are.
        facts: What an utterance must not give away.
    """

    gate: Gate
    settled: Settled
    steps_left: int
    facts: PromptFacts

    @property
    def conversation(self) -> Conversation:
        """The thread."""
        return self.gate.conversation


@dataclass(frozen=True)
class JudgedMove:
    """What became of one answer's move.

    Args:
        kind: What it is.
        text: The thought, the utterance, or the action in a world.
        call: The tool call that it is, if it is one.
        refusals: Why it cannot be made; none if it can.
        faults: What is wrong with it that does not keep it from being made in the end.
        insights: What was decided about the call, or what the utterance asks for.
        asks: Whether it asks the customer something.
        speech: The answer's utterance with its labels, where it is one.
    """

    kind: MoveKind
    text: str = ""
    call: PlannedCall | None = None
    refusals: tuple[Complaint, ...] = ()
    faults: tuple[Complaint, ...] = ()
    insights: tuple[ToolInsight, ...] = ()
    asks: bool = False
    speech: Any = None


@dataclass(frozen=True)
class Rules:
    """What a move is held against besides the situation.

    Args:
        policies: Names of the policies that are switched on.
        forbidden: Names of the tools that a policy forbids now.
        required: Names of the tools that a policy requires and that were not called in this turn.
        is_half_said: Whether the customer's last message breaks off.
    """

    policies: Collection[str]
    forbidden: Collection[str] = ()
    required: Collection[str] = ()
    is_half_said: bool = False


@dataclass(frozen=True)
class CallJudge:
    """Holds calls of one tool against the gate, the rules, the tool's schema and what was said.

    Args:
        name: The blueprint's name, for complaints.
        key: The property of the move that calls the tool.
        tool: The tool.
        situation: The thread, the gate, and what waits for the customer.
        grounds: What was said and found.
        rules: The rules.
    """

    name: str
    key: str
    tool: ToolArguments
    situation: Situation
    grounds: Grounds
    rules: Rules

    def judge(self, chosen: Any) -> JudgedMove:
        """Decide on a call: what the gate says to it, with what the policies and the bounds of steps say."""
        arguments, problems, free = self._read(chosen)
        doubts = [] if problems else list(self._doubts(chosen, arguments, free))
        verdict = self.situation.gate.check(
            self.tool,
            arguments,
            problems,
            objection=self._objection(),
            doubt="; ".join(problem.message for problem in doubts),
        )
        insights = tuple(verdict.insights(self.situation.conversation.turn))
        if verdict.kind == "run":
            faults = [self._complaint("", "the request is only half said: ask how it goes on")]
            return JudgedMove(
                "act",
                self.tool.name,
                call=PlannedCall(tool=self.tool.name, arguments=arguments),
                faults=tuple(faults) if self.rules.is_half_said else (),
                insights=insights,
            )
        return JudgedMove(
            "act",
            self.tool.name,
            call=PlannedCall(tool=self.tool.name, arguments=arguments),
            refusals=tuple(self._complaint(*each) for each in _refusals(verdict)),
            insights=insights,
        )

    def _objection(self) -> str:
        tool = self.tool.name
        if self.situation.steps_left < 1:
            return "no step is left: speak"
        if tool in self.rules.forbidden:
            return f"a policy forbids {tool} now"
        if self.rules.required and tool not in self.rules.required:
            return f"a policy requires {', '.join(sorted(self.rules.required))} first"
        return ""

    def _read(self, chosen: Any) -> tuple[dict[str, Any], list[Problem], set[str]]:
        """The arguments, what is wrong with them, and the names of those the customer does not care about."""
        if not self.tool.arguments:
            return {}, self.tool.validate({}), set()
        arguments, problems = self.tool.read(chosen.arguments)
        special: dict[str, Problem] = {}
        free: set[str] = set()
        for argument in self.tool.arguments:
            decision = getattr(chosen.arguments, argument.key)
            if decision.basis == "does_not_matter" and "placeholder_for_dont_care" in self.rules.policies:
                free.add(argument.name)
                self._place(argument, arguments, special)
            elif decision.basis == "nobody" and argument.name in arguments:
                del arguments[argument.name]
                if argument.required:
                    special[argument.name] = Problem(argument, "missing", "nobody gave it")
            elif argument.required and _is_blank(arguments.get(argument.name)):
                special[argument.name] = Problem(argument, "missing", "an empty text is no value")
            elif decision.basis == "ambiguous" and "name_or_type" in self.rules.policies:
                asked = "it may be a name or a type, or fit elsewhere: ask which"
                special[argument.name] = Problem(argument, "invalid", asked)
        problems = [problem for problem in problems if _name(problem) not in {*free, *special}]
        known = {_name(problem) for problem in problems} | special.keys()
        new = [problem for problem in self.tool.validate(arguments) if _name(problem) not in known]
        return arguments, [*special.values(), *problems, *new], free

    def _place(self, argument: Argument, arguments: dict[str, Any], special: dict[str, Problem]) -> None:
        """Put the tool's own word for any value where the customer does not care; where they did care, ask."""
        given = arguments.pop(argument.name, None)
        placeholder = placeholder_of(argument, given) if self.grounds.said_any_will_do else None
        if placeholder is not None:
            arguments[argument.name] = placeholder
        elif argument.required:
            why = (
                "the tool needs a value"
                if self.grounds.said_any_will_do
                else "the customer has not said that it does not matter"
            )
            special[argument.name] = Problem(argument, "missing", why)

    def _doubts(
        self, chosen: Any, arguments: Mapping[str, Any], settled: Collection[str]
    ) -> Iterator[Problem]:
        """Values that the customer has to confirm before they are used."""
        unfounded = set(self.grounds.unfounded(self.tool.name, arguments))
        for argument in self.tool.arguments:
            name = argument.name
            if name not in arguments or name in settled or self._is_default(name, arguments[name]):
                continue
            basis = getattr(chosen.arguments, argument.key).basis
            why = _DOUBTFUL.get(basis) if "confirm_inferred" in self.rules.policies else None
            if name in unfounded or self._is_unsaid_switch(argument, arguments[name]):
                why = why or UNFOUNDED
            if why:
                yield Problem(argument, "doubtful", f"{_quoted(arguments[name])} {why}")

    def _is_default(self, name: str, value: Any) -> bool:
        return name in self.tool.defaults and self.tool.defaults[name] == value

    def _is_unsaid_switch(self, argument: Argument, value: Any) -> bool:
        """Whether a flag is turned against its default though the customer has said nothing like its name."""
        if not isinstance(value, bool) or argument.name not in self.tool.defaults:
            return False
        return not self.grounds.speaks_of(f"{argument.name} {argument.description}")

    def _complaint(self, place: str, message: str) -> Complaint:
        return Complaint(self.name, ".".join(part for part in ("move", self.key, place) if part), message)


def placeholder_of(argument: Argument, given: Any) -> Any:
    """The word that a tool takes for any value: one of its choices, or one that its description names."""
    choices = (argument.schema or {}).get("enum")
    if choices:
        return next((c for c in choices if isinstance(c, str) and c.casefold() in PLACEHOLDERS), None)
    if (argument.schema or {}).get("type") != "string":
        return None
    if isinstance(given, str) and given.casefold() in PLACEHOLDERS:
        return given
    named = _PLACEHOLDER.search(argument.description)
    return named[1] if named else None


def _refusals(verdict: Verdict) -> Iterator[tuple[str, str]]:
    if verdict.kind == "confirm":
        yield (
            "",
            f"{verdict.reason}: code puts this call to the customer below your message. Speak now: what else there is "
            "to say, without a question; it may be empty",
        )
    elif verdict.kind == "declined":
        yield "", f"{verdict.reason}: take another way, or say what is not possible"
    yield from map(_wanted, verdict.problems)


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _wanted(problem: Problem) -> tuple[str, str]:
    place = f"arguments.{problem.argument.key}" if problem.argument else "arguments"
    why = f" ({problem.message})" if problem.message else ""
    return place, f"it is {problem.kind}{why}: ask the customer for it"


def _name(problem: Problem) -> str | None:
    return problem.argument.name if problem.argument else None


def _quoted(value: Any) -> str:
    text = as_json(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
