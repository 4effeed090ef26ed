"""Calls as answers propose them: how they are asked for, read, put, refused and kept.

A choice is an object with a single property that names what is chosen. No two options begin with the same key, which
OpenAI's strict mode asks of a choice; and as they are told apart by that one property, an answer that is wrong is
reported for itself alone, not for every option.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag, create_model

from arq_graph.agent.state import PlannedCall, ToolInsight
from arq_graph.nodes.confirmation import AgreementOutcome
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.tool_arguments import Problem, ToolArguments
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, respond
from arq_graph.reasoning.sections import as_json

Field = tuple[Any, Any]
Fault = tuple[str, str]
"""A place in an answer, and what is wrong there."""

MAX_WAITING = 16
_DOUBTFUL = {"another_request": "was stated for another request", "inferred": "is inferred"}


class StillWanted(ARQ, ABC):
    """What becomes of the calls that wait for the customer's yes."""

    still_wanted: list[str] | None = respond(
        "Ids in `awaiting_confirmation` of the calls that the customer, going by their last message, still wants or "
        "has not given up; they are asked about again. Null if nothing waits.",
        max_length=MAX_WAITING,
    )


def one_of(question: str, options: Mapping[str, tuple[type[ARQ], str]]) -> Field:
    """A field whose answer is one of several blueprints, for `create_model`."""
    made = {}
    for key, (blueprint, words) in options.items():
        only: Any = {key: (blueprint, respond(words))}
        made[key] = create_model(f"{key}_chosen", __base__=InnerARQ, __doc__=words, **only)
    if len(made) == 1:
        return next(iter(made.values())), respond(question)
    tagged: list[Any] = [Annotated[option, Tag(key)] for key, option in made.items()]
    return reduce(or_, tagged), respond(question, discriminator=Discriminator(_property))


def chosen(answer: Any) -> tuple[str, Any]:
    """The property of the option that an answer chose, and what it says there."""
    key = str(_property(answer))
    return key, getattr(answer, key)


def _property(answer: Any) -> Any:
    fields = answer if isinstance(answer, Mapping) else getattr(type(answer), "model_fields", {})
    return next(iter(fields), None)


def call_options(
    tools: Sequence[ToolArguments],
    basis: type[ARQ],
    taken: Collection[str],
    further: Mapping[str, Field] | None = None,
) -> dict[str, tuple[type[ARQ], str]]:
    """An option for a call of each tool, by the property that stands for it."""
    options: dict[str, tuple[type[ARQ], str]] = {}
    for tool in tools:
        fields: dict[str, Any] = dict(further or {})
        if tool.arguments:
            fields = {"arguments": (tool.make_blueprint(basis), respond("Each of its arguments.")), **fields}
        if not fields:
            fields["go_ahead"] = (Literal[True], respond("It takes no arguments: true makes the call."))
        call = create_model(f"{tool.name}_call", __base__=InnerARQ, __doc__="The call.", **fields)
        options[get_property_name(tool.name, taken)] = (call, f"A call of {tool.name}.")
    return options


def get_property_name(tool: str, taken: Collection[str]) -> str:
    """The property that stands for a call of a tool."""
    return f"tool_{tool}"[:64] if tool in taken else tool


def read_call(tool: ToolArguments, said: Any) -> tuple[dict[str, Any], list[Problem], dict[str, str]]:
    """A call's arguments, what is wrong with them, and by argument what the customer is to confirm."""
    arguments, problems = tool.parse(getattr(said, "arguments", None))
    doubts: dict[str, str] = {}
    for argument in tool.arguments:
        if argument.name not in arguments:
            continue
        value, basis = arguments[argument.name], getattr(said.arguments, argument.key).basis
        if why := _DOUBTFUL.get(basis):
            doubts[argument.name] = f"{as_json(value)} {why}"
        is_blank = isinstance(value, str) and not value.strip()
        if basis == "nobody" or (is_blank and argument.required):
            del arguments[argument.name]
            problems = [each for each in problems if each.argument != argument]
            if argument.required:
                problems.append(Problem(argument, "missing", "nobody gave it"))
    return arguments, problems, doubts


def refusals(tool: ToolArguments, verdict: Sequence[ToolInsight], answer: str) -> Iterator[tuple[str, str]]:
    """Why a call is not made, as the model is told, each with its place below the call's property."""
    keys = {argument.name: f".arguments.{argument.key}" for argument in tool.arguments}
    for each in verdict:
        if each.kind == "confirm":
            yield (
                "",
                f"{each.problem}; the call is taken up as it is, and code puts it to the customer below {answer}. Now "
                f"give {answer} that stands above it: what they should know before agreeing, and what else there is to "
                "say, without a question; it may be empty",
            )
        elif each.kind == "declined":
            yield "", f"{each.problem}: take another way, or say in {answer} what is not possible"
        elif each.kind != "run":
            why = f" ({each.problem})" if each.problem else ""
            place = keys.get(each.argument or "", ".arguments")
            yield place, f"it is {each.kind}{why}: ask the customer for it in {answer}"


def asked_for(asked: Iterable[Any], gate: Gate) -> list[ToolInsight]:
    """The arguments that an answer asks the customer for, of tools that can be called."""
    return [
        insight
        for each in asked
        if each.tool in gate.granted
        for argument in gate.tools[each.tool].arguments
        if each.argument in (argument.name, argument.key)
        for insight in gate.report_problems(gate.tools[each.tool], {}, [Problem(argument, "missing")])
    ]


@dataclass(frozen=True)
class Proposal:
    """What an answer would do, make a call or say something, and what code says to it.

    For `refusals` it is not done, for `faults` it is asked for again. `insights` are what the gate said to the call, or
    what is asked of the customer.
    """

    text: str = ""
    call: PlannedCall | None = None
    refusals: tuple[Fault, ...] = ()
    faults: tuple[Fault, ...] = ()
    insights: tuple[ToolInsight, ...] = ()

    @property
    def tool(self) -> str | None:
        """The tool that it calls."""
        return self.call.tool if self.call else None


class DecisionContext:
    """What the answers to one question propose, the newest last; `still_wanted` is what it says of calls that wait."""

    def __init__(self, gate: Gate, outcome: AgreementOutcome) -> None:
        self.gate, self.outcome = gate, outcome
        self.checked: list[Any] = []
        self.still_wanted: Sequence[str] = ()

    @property
    def insights(self) -> list[ToolInsight]:
        """What is kept about everything that was proposed."""
        return [insight for each in self.checked for insight in each.insights]

    @property
    def waiting(self) -> list[ToolInsight]:
        """The calls that code puts to the customer below what is said: the newest version of each tool's."""
        again = [*self.outcome.insights, *self.outcome.ask_again(self.gate, self.still_wanted)]
        newest = {each.tool: each for each in self.insights if each.kind == "confirm"}
        return [*(each for each in again if each.kind == "confirm"), *newest.values()]


def merge_insights(
    outcome: AgreementOutcome,
    proposed: Iterable[ToolInsight],
    made: Sequence[ToolInsight],
    waiting: Sequence[ToolInsight],
    *,
    asks: bool,
) -> list[ToolInsight]:
    """What is kept about calls: of the one that is made, of those refused before it, and of what waits.

    Where a call is made after all, what was wrong with another one is no question to the customer.
    """
    found = [each for each in outcome.insights if each.kind != "confirm"]
    for insight in proposed:
        if insight in waiting:
            continue
        is_open = insight in made or (asks and insight.kind in ("missing", "invalid"))
        found.append(
            insight if is_open else insight.model_copy(update={"kind": "declined", "argument": None})
        )
    return [*found, *waiting]
