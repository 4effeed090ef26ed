"""Calls that an answer proposes: how they are asked for, parsed, refused and recorded.

An answer chooses one of several options, each an object with a single property that names it. So no two options begin
with the same key, which OpenAI's strict mode demands, and a wrong answer is reported for the option that was chosen,
not for every option.
"""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, Union
from zlib import crc32

from pydantic import Discriminator, Tag, create_model

from arq_graph.agent.state import PendingCall, PlannedCall, ToolVerdict
from arq_graph.agent.tools import is_reserved_name
from arq_graph.nodes.agreement import AgreementOutcome
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.tool_arguments import Problem, ToolSchema
from arq_graph.nodes.turn_records import select_verdicts
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, respond
from arq_graph.reasoning.sections import as_json

FieldDefinition = tuple[Any, Any]
"""A field of a blueprint, for `create_model`."""

MAX_PENDING = 16
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
Basis = Literal[
    "this_request", "known", "another_request", "inferred", "ambiguous", "does_not_matter", "nobody"
]
"""What the value of an argument may rest on."""

_DOUBTS: dict[Basis, str] = {
    "another_request": "was stated for another request",
    "inferred": "is inferred",
}


class Objection(NamedTuple):
    """An objection of code to a model's answer, so that the model is asked again.

    Args:
        path: The path in the answer.
        reason: What is wrong there, and what to do.
        is_blocking: True if the answer must not be carried out; False if it may be, as the last candidate.
    """

    path: str
    reason: str
    is_blocking: bool = True


class StillWanted(ARQ, ABC):
    """The query about the calls that wait for the customer's yes."""

    still_wanted: list[str] | None = respond(
        "Ids in `awaiting_confirmation` of the calls that the customer, going by their last message, still wants or "
        "has not given up; they are asked about again. Null if nothing waits.",
        max_length=MAX_PENDING,
    )


# --- asking


def make_choice(question: str, options: Mapping[str, tuple[type[ARQ], str]]) -> FieldDefinition:
    """Return a field whose answer is one of several options: each has a name, a blueprint and a description."""
    choices: dict[str, Any] = {}
    for option, (blueprint, description) in options.items():
        field: Any = {option: (blueprint, respond(description))}
        choices[option] = create_model(f"{option}_chosen", __base__=InnerARQ, __doc__=description, **field)
    if len(choices) == 1:
        return next(iter(choices.values())), respond(question)
    tagged: list[Any] = [Annotated[choice, Tag(option)] for option, choice in choices.items()]
    return Union[tuple(tagged)], respond(  # noqa: UP007 - a type made at run time
        question, discriminator=Discriminator(_find_option)
    )


def read_choice(choice: Any) -> tuple[str, Any]:
    """Return the option that an answer chose, and the instance of its blueprint."""
    option = str(_find_option(choice))
    return option, getattr(choice, option)


def _find_option(choice: Any) -> Any:
    if isinstance(choice, Mapping):
        return next(iter(choice), None)
    return next(iter(getattr(type(choice), "model_fields", ())), None)


def make_call_options(
    tools: Iterable[ToolSchema],
    basis: type[ARQ],
    reserved: Collection[str],
    fields: Mapping[str, FieldDefinition] | None = None,
) -> dict[str, tuple[type[ARQ], str]]:
    """Return the options to call a tool, by the properties used for the tools, which aren't `reserved`.

    `basis` is asked before the value of each argument, `fields` after the arguments of each call.
    """
    options: dict[str, tuple[type[ARQ], str]] = {}
    for property_name, tool in map_properties(tools, reserved).items():
        call_fields: dict[str, Any] = {}
        if tool.arguments:
            call_fields["arguments"] = (tool.make_blueprint(basis), respond("Each of its arguments."))
        call_fields.update(fields or {})
        if not call_fields:
            call_fields["go_ahead"] = (
                Literal[True],
                respond("It takes no arguments: true makes the call."),
            )
        call = create_model(f"{tool.name}_call", __base__=InnerARQ, __doc__="The call.", **call_fields)
        options[property_name] = (call, f"A call of {tool.name}.")
    return options


def map_properties(tools: Iterable[ToolSchema], reserved: Collection[str]) -> dict[str, ToolSchema]:
    """Return the tools by the properties used for them in a blueprint, which aren't `reserved`."""
    return {get_property_name(tool.name, reserved): tool for tool in tools}


def get_property_name(tool: str, reserved: Collection[str]) -> str:
    """Return the property used for a tool: its name, unless that is reserved or isn't a valid property name.

    `get` stays `get`. `think`, if that is reserved, becomes `tool_think`; so a tool that is called `tool_think` gets a
    name with a checksum, and so does one such as `é`.
    """
    if _can_be_property(tool, reserved):
        may_be_anothers = tool.startswith("tool_") and not _can_be_property(
            tool.removeprefix("tool_"), reserved
        )
        if not may_be_anothers:
            return tool
    name = f"tool_{tool}"
    if _PROPERTY_NAME.fullmatch(name) and not tool.startswith("tool_"):
        return name
    return f"tool_{crc32(tool.encode()):08x}_{_OTHER_CHARACTERS.sub('_', tool)}"[:64]


def _can_be_property(tool: str, reserved: Collection[str]) -> bool:
    return tool not in reserved and not is_reserved_name(tool) and bool(_PROPERTY_NAME.fullmatch(tool))


# --- reading


@dataclass(frozen=True)
class ParsedCall:
    """A call in an answer.

    Args:
        arguments: Its arguments.
        problems: The problems with them.
        basis_by_argument: What each of them rests on.
        doubts: Why the customer has to confirm some of them, by argument.
    """

    arguments: dict[str, Any]
    problems: list[Problem]
    basis_by_argument: dict[str, Basis]
    doubts: dict[str, str]


def parse_call(tool: ToolSchema, call: Any) -> ParsedCall:
    """Return a call of a tool in an answer, without the values that nobody gave."""
    arguments, problems = tool.parse(getattr(call, "arguments", None))
    basis_by_argument: dict[str, Basis] = {}
    doubts: dict[str, str] = {}
    for argument in tool.arguments:
        if argument.name not in arguments:
            continue
        value = arguments[argument.name]
        basis: Basis = getattr(call.arguments, argument.property_name).basis
        is_blank = isinstance(value, str) and not value.strip()
        if basis == "nobody" or (is_blank and argument.required):
            del arguments[argument.name]
            problems = [problem for problem in problems if problem.argument != argument]
            if argument.required:
                problems.append(Problem(argument, "missing", "nobody gave it"))
            continue
        basis_by_argument[argument.name] = basis
        if basis in _DOUBTS:
            doubts[argument.name] = f"{as_json(value)} {_DOUBTS[basis]}"
    return ParsedCall(arguments, problems, basis_by_argument, doubts)


def find_requested_arguments(requests: Iterable[Any], gate: Gate) -> list[ToolVerdict]:
    """Return verdicts on the arguments that an answer asks the customer for, if their tools can be called."""
    verdicts: list[ToolVerdict] = []
    for request in requests:
        if request.tool not in gate.granted:
            continue
        tool = gate.tools[request.tool]
        for argument in tool.arguments:
            if request.argument in (argument.name, argument.property_name):
                verdicts += gate.report_problems(tool, {}, [Problem(argument, "missing")]).verdicts
    return verdicts


def explain_refusal(
    tool: ToolSchema, verdicts: Iterable[ToolVerdict], call_path: str, reply_phrase: str
) -> list[Objection]:
    """Return the objections to a call that the gate refuses; nothing if it doesn't.

    `call_path` is the call's path in the model's answer, `reply_phrase` names what the model says to the customer.
    """
    property_names = {argument.name: argument.property_name for argument in tool.arguments}
    objections: list[Objection] = []
    for verdict in verdicts:
        if verdict.kind == "confirm":
            reason = (
                f"{verdict.problem}; the call is noted, and the customer is asked to confirm it below {reply_phrase}. "
                f"Now write {reply_phrase}: what the customer should know before agreeing, and anything else to say, "
                "without a question; it may be empty"
            )
            objections.append(Objection(call_path, reason))
        elif verdict.kind == "declined":
            reason = f"{verdict.problem}: take another way, or say in {reply_phrase} what is not possible"
            objections.append(Objection(call_path, reason))
        elif verdict.kind != "run":
            path = f"{call_path}.arguments"
            if verdict.argument in property_names:
                path += f".{property_names[verdict.argument]}"
            details = f" ({verdict.problem})" if verdict.problem else ""
            reason = f"it is {verdict.kind}{details}: ask the customer for it in {reply_phrase}"
            objections.append(Objection(path, reason))
    return objections


# --- recording


@dataclass(frozen=True)
class Proposal:
    """The action that an answer proposes: a call, or a text.

    Args:
        text: The text.
        call: The call.
        objections: The objections of code to it.
        verdicts: The gate's verdicts on the call, or those on the arguments that the customer is asked for.
        still_wanted: The pending calls that the customer still wants, by this answer.
    """

    text: str = ""
    call: PlannedCall | None = None
    objections: tuple[Objection, ...] = ()
    verdicts: tuple[ToolVerdict, ...] = ()
    still_wanted: Sequence[PendingCall] = ()

    @property
    def is_refused(self) -> bool:
        """True if it must not be carried out."""
        return any(objection.is_blocking for objection in self.objections)

    @property
    def tool(self) -> str | None:
        """The tool that it calls."""
        return self.call.tool if self.call else None

    def make_complaints(self, blueprint: type[Any]) -> list[Complaint]:
        """Return the complaints that the model gets before it answers again: last, and so nearest, what must change."""
        objections = sorted(self.objections, key=lambda objection: objection.is_blocking)
        return [Complaint(blueprint.__name__, objection.path, objection.reason) for objection in objections]


P = TypeVar("P", bound=Proposal)


class DecisionContext(Generic[P]):
    """The state that the answers to a question are checked against, and their `proposals`, the newest last."""

    def __init__(self, gate: Gate, agreement_outcome: AgreementOutcome) -> None:
        self.gate = gate
        self.agreement_outcome = agreement_outcome
        self.proposals: list[P] = []

    @property
    def proposed_verdicts(self) -> list[ToolVerdict]:
        """The verdicts on everything that was proposed."""
        verdicts: list[ToolVerdict] = []
        for proposal in self.proposals:
            verdicts.extend(proposal.verdicts)
        return verdicts

    def find_verdicts_to_confirm(self, still_wanted: Iterable[PendingCall]) -> list[ToolVerdict]:
        """Return the verdicts on the calls that the generated confirmation question is about.

        They are the pending calls that are still wanted, and the newest one that was proposed of each tool.
        """
        verdicts = list(self.agreement_outcome.verdicts)
        verdicts += self.gate.recheck_pending_calls(still_wanted)
        to_confirm = select_verdicts(verdicts, "confirm")
        newest = {verdict.tool: verdict for verdict in select_verdicts(self.proposed_verdicts, "confirm")}
        to_confirm.extend(newest.values())
        return to_confirm

    def find_lost_calls(self, still_wanted: Iterable[PendingCall]) -> list[ToolVerdict]:
        """Return the verdicts on pending calls that are still wanted, but can't be made any more."""
        rechecked = self.gate.recheck_pending_calls(still_wanted)
        return select_verdicts(rechecked, "declined", "missing", "invalid")


def merge_verdicts(
    agreement_outcome: AgreementOutcome,
    proposed: Iterable[ToolVerdict],
    made: Collection[ToolVerdict],
    to_confirm: Collection[ToolVerdict],
    *,
    asks: bool,
) -> list[ToolVerdict]:
    """Return the verdicts to record: those on pending calls, on all `proposed` calls, and those `to_confirm`.

    Args:
        agreement_outcome: The outcome of the question that the customer has answered.
        proposed: The verdicts on everything that was proposed.
        made: Those on the calls that are made now.
        to_confirm: Those on the calls that the customer is asked about.
        asks: True if the reply asks the customer for missing and invalid arguments.
    """
    verdicts = [verdict for verdict in agreement_outcome.verdicts if verdict.kind != "confirm"]
    for verdict in proposed:
        if verdict in to_confirm:
            continue  # recorded below
        is_asked_for = asks and verdict.kind in ("missing", "invalid")
        if verdict not in made and not is_asked_for:
            # Neither made nor asked about: another proposal took its place.
            verdict = verdict.model_copy(update={"kind": "declined", "argument": None})
        verdicts.append(verdict)
    verdicts.extend(to_confirm)
    return verdicts
