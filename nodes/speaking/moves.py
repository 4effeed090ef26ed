"""An answer's move, held against how things stand: it is made, refused, or asked for again."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph.agent.state import Move, MoveKind, PlannedCall, ToolInsight, WorldStatus
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.transcript import Call
from arq_graph.nodes.confirmation import Settled, asks_beside
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.proposed_calls import (
    ReadCall,
    asked_for,
    calls_to_put,
    quoted,
    read_call,
    refusals,
)
from arq_graph.nodes.speaking.policies import ToolRules
from arq_graph.nodes.tool_arguments import Argument, Problem, ToolArguments
from arq_graph.nodes.turns import outcome_of
from arq_graph.nodes.violations import PromptFacts, leaks, no_source, repeats
from arq_graph.nodes.yes import asks as asks_something
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json

MAX_SHOWN = 60
"""How many of a world's actions a complaint lists."""

HALF_SAID = "the request is only half said: ask how it goes on"

Fault = tuple[str, str]
"""A place below the move's property, and what is wrong there."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class CheckedMove:
    """What became of one answer's move: for `refusals` it cannot be made, for `faults` it is asked for again.

    `insights` are what the gate said to a call, or what an utterance asks for.
    """

    kind: MoveKind
    text: str = ""
    call: PlannedCall | None = None
    refusals: tuple[Fault, ...] = ()
    faults: tuple[Fault, ...] = ()
    insights: tuple[ToolInsight, ...] = ()
    asks: bool = False
    speech: Any = None


@dataclass
class Situation:
    """How things stand before a move, and what happened in this run of the node.

    `moves` are those of the turn or task, which message `task` began; `asked` the agent's last questions in a row;
    `too_many` is the id of the newest result where it lists more than it should. `half_request` and `still_wanted` are
    what the newest answer says beside its move.
    """

    gate: Gate
    settled: Settled
    variables: list[dict[str, Any]]
    policies: Collection[str]
    rules: ToolRules
    facts: PromptFacts
    grounding: Grounding
    asked: Sequence[str]
    questions_left: int
    max_thoughts: int
    steps_left: int
    moves: Sequence[Move]
    task: str
    is_task: bool
    too_many: str
    world: WorldStatus | None
    thoughts: list[str] = field(default_factory=list)
    answers: list[Answer[Any]] = field(default_factory=list)
    checked: list[CheckedMove] = field(default_factory=list)
    still_wanted: Sequence[str] = ()
    half_request: bool = False

    @property
    def is_over(self) -> bool:
        """Whether no step is left, or the world's task has ended."""
        return self.steps_left < 1 or bool(self.world and self.world.done)

    @property
    def earlier_thoughts(self) -> list[Move]:
        """The thoughts of this turn or task, before this run."""
        return [move for move in self.moves if move.kind == "think"]

    @property
    def insights(self) -> list[ToolInsight]:
        """What the gate said to every call so far, and what utterances ask for."""
        return [insight for move in self.checked for insight in move.insights]

    @property
    def waiting(self) -> list[ToolInsight]:
        """The calls that code puts to the customer below what is said."""
        return calls_to_put(self.gate, self.settled, self.still_wanted, self.insights)

    def thought(self, text: str) -> CheckedMove:
        """A thought: there are not too many, and none comes twice."""
        earlier = [*(move.text for move in self.earlier_thoughts), *self.thoughts]
        wrong = ""
        if len(self.thoughts) >= self.max_thoughts:
            wrong = f"{self.max_thoughts} thoughts before a move are enough: speak or act"
        elif not text.strip() or _plain(text) in map(_plain, earlier):
            wrong = "this was thought before: speak or act"
        return CheckedMove("think", text, refusals=((".thought", wrong),) if wrong else ())

    def action(self, action: str) -> CheckedMove:
        """An action in the world: it is possible, as far as the world tells."""
        action, wrong = action.strip(), ""
        allowed = self.world.actions if self.world else None
        if self.steps_left < 1:
            wrong = "no step is left: speak"
        elif self.world is None or self.world.done:
            wrong = "the world's task has ended: speak"
        elif not action:
            wrong = "it is empty"
        elif allowed is not None and action not in allowed:
            same = [each for each in allowed if _plain(each) == _plain(action)]
            if len(same) == 1:
                return CheckedMove("act", same[0])
            wrong = f"it cannot be done now; what can: {', '.join(allowed[:MAX_SHOWN]) or 'nothing'}"
        return CheckedMove("act", action, refusals=((".action", wrong),) if wrong else ())

    def call(self, tool: ToolArguments, said: Any) -> CheckedMove:
        """A call: what the gate says to it, with what the policies and the bound of steps say."""
        read = read_call(tool, said)
        own = set(self._settle(tool, said, read))
        doubts = {name: why for name, why in self._untold(tool, read.arguments) if name not in own}
        if "confirm_inferred" in self.policies:
            doubts |= read.doubts
        verdict = self.gate.check(
            tool,
            read.arguments,
            read.problems,
            objection=self.rules.objection(tool.name) if self.steps_left else "no step is left: speak",
            doubt="; ".join(doubts.values()),
        )
        return CheckedMove(
            "act",
            tool.name,
            call=PlannedCall(tool=tool.name, arguments=read.arguments),
            refusals=tuple(refusals(tool, verdict, "your message")),
            faults=(("", HALF_SAID),) if self.half_request else (),
            insights=tuple(verdict),
        )

    def speech(self, said: Any) -> CheckedMove:
        """An utterance, with the calls that code puts to the customer below it."""
        text, waiting = str(said.utterance), self.waiting
        asks = bool(said.asks) or asks_something(text)
        ends = getattr(said, "ends_task", None)
        refused = [(".utterance", why) for why in leaks(text, self.facts)]
        if waiting:  # code's own question: no bound of questions stands in its way
            refused += [(".utterance", why) for why in filter(None, [asks_beside(text, waiting)])]
        elif why := self._unsayable(text, asks=asks or ends is False):
            refused.append((".utterance", why))
        refused += self._unsourced(said)
        if self.is_task and self.is_over and not ends:
            refused.append((".ends_task", "no step is left: end the task, and say how far it got"))
        if not (asks or waiting) and (owed := self.rules.owed()):
            refused.append(("", f"{owed}; ask for what it lacks"))
        return CheckedMove(
            "speak",
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
        if _plain(text) in map(_plain, [*self.asked, last]):
            return "this was just said: act on the answer, ask otherwise, or say what is not possible"
        if asks and self.questions_left < 1:
            return f"{len(self.asked)} questions in a row are enough: act, or say how things stand"
        return ""

    def _settle(self, tool: ToolArguments, said: Any, read: ReadCall) -> Iterator[str]:
        """Settle what the customer does not care about, and what may be a name or a type; yields what may stand."""
        for argument in tool.arguments:
            name, basis = argument.name, getattr(said.arguments, argument.key).basis
            wrong = None
            if name not in read.arguments:
                continue
            if basis == "ambiguous" and "name_or_type" in self.policies:
                wrong = Problem(
                    argument, "invalid", "it may be a name or a type, or fit elsewhere: ask which"
                )
            elif basis == "does_not_matter" and "placeholder_for_dont_care" in self.policies:
                if _is_own_word(tool, argument, read.arguments[name]):
                    yield name
                    continue
                del read.arguments[name]
                if argument.required:
                    wrong = Problem(argument, "missing", "the tool needs a value, and has no word for any")
            if wrong:
                read.problems[:] = [*(each for each in read.problems if each.argument != argument), wrong]

    def _untold(self, tool: ToolArguments, arguments: Mapping[str, Any]) -> Iterator[Fault]:
        """The arguments with a value that nobody told the agent.

        A text of several words without a digit may be put together of words that were told apart.
        """
        for name, value in arguments.items():
            is_words = isinstance(value, str) and not any(map(str.isdigit, value))
            told_apart = value.split() if is_words else value
            is_default = name in tool.defaults and tool.defaults[name] == value
            if not is_default and self.grounding.invented(Call(tool.name, {name: told_apart})):
                yield name, f"{quoted(value)} was told by no customer message and no tool"

    def _unsourced(self, said: Any) -> Iterator[Fault]:
        for number, stated in enumerate(getattr(said, "facts", ())):
            if why := no_source(stated.source, self.facts):
                yield f".facts[{number}]", f"{as_json(stated.fact)}: {why}; or look it up"
        for number, promise in enumerate(getattr(said, "promises", ())):
            if promise.tool is None:
                yield f".promises[{number}]", f"no tool here does {as_json(promise.what)}: decline it"

    def _faults(self, said: Any) -> Iterator[Fault]:
        """What a statement is asked again for, and said all the same if it does not get better."""
        if repeats(said.utterance, self.gate.conversation):
            yield ".utterance", "an earlier message says exactly this"
        if self.too_many and not said.choice_is_left_to_you:
            yield ".utterance", f"{self.too_many} holds too many: ask what narrows it down"
        empty = [outcome_of(line) == "empty" for line in self.gate.conversation.results]
        if any(empty[-1:]):
            if sum(empty) > 1 and "weigh_requirements" in self.policies:
                yield ".utterance", "nothing meets it all: ask which wish matters more"
            elif "widen_no_results" in self.policies:
                yield ".utterance", "nothing was found: ask what may be wider, or offer an alternative"
        if self.half_request:
            yield ".utterance", HALF_SAID


def _is_own_word(tool: ToolArguments, argument: Argument, value: Any) -> bool:
    """Whether a value is one of the tool's own: among its choices, its default, or named in its description."""
    if value in (argument.schema or {}).get("enum", ()) or tool.defaults.get(argument.name) == value:
        return True
    named = rf"(?<!\w){re.escape(value)}(?!\w)" if isinstance(value, str) and value else r"(?!)"
    return re.search(named, f"{argument.description}\n{tool.tool.description}", re.IGNORECASE) is not None


def _plain(text: str) -> list[str]:
    """The words of a text, without case and punctuation."""
    return _WORD.findall(text.casefold())


def too_many_in(conversation: Conversation, limit: int) -> str:
    """The id of the newest result of this turn, where a JSON array in it is longer than a limit; else empty."""
    line = conversation.results[-1] if conversation.results else None
    return line.id if line and _entries(line.message.text) > limit else ""


def _entries(text: str) -> int:
    try:
        result = json.loads(text)
    except (ValueError, RecursionError):
        return 0
    inside = list(result.values()) if isinstance(result, dict) else [result]
    return max((len(each) for each in inside if isinstance(each, list)), default=0)
