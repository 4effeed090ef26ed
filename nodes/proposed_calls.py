"""Calls that an answer proposes: how they are asked for, parsed, refused and recorded.

An answer chooses one of several options, each an object with a single property that names it. So no two options begin
with the same key, which OpenAI's strict mode demands, and a wrong answer is reported for the option that was chosen,
not for every option.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Discriminator, Tag, create_model

from arq_graph.agent.state import PlannedCall, ToolVerdict
from arq_graph.nodes.confirmation import AgreementOutcome
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.tool_arguments import Problem, ToolSchema
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, InnerARQ, respond
from arq_graph.reasoning.sections import as_json

Field = tuple[Any, Any]
"""A field of a blueprint, for `create_model`."""

Options = dict[str, tuple[type[ARQ], str]]
"""The options of a choice, by their keys: a blueprint, and what it stands for in words."""

Fault = tuple[str, str]
"""A path in an answer, and what is wrong there."""

MAX_PENDING = 16
_DOUBTS = {"another_request": "was stated for another request", "inferred": "is inferred"}


class StillWanted(ARQ, ABC):
    """What becomes of the calls that wait for the customer's yes."""

    still_wanted: list[str] | None = respond(
        "Ids in `awaiting_confirmation` of the calls that the customer, going by their last message, still wants or "
        "has not given up; they are asked about again. Null if nothing waits.",
        max_length=MAX_PENDING,
    )


# --- asking


def make_choice(question: str, options: Options) -> Field:
    """Return a field whose answer is one of several blueprints."""
    choices: dict[str, Any] = {}
    for key, (blueprint, words) in options.items():
        field: Any = {key: (blueprint, respond(words))}
        choices[key] = create_model(f"{key}_chosen", __base__=InnerARQ, __doc__=words, **field)
    if len(choices) == 1:
        return next(iter(choices.values())), respond(question)
    tagged: list[Any] = [Annotated[choice, Tag(key)] for key, choice in choices.items()]
    return reduce(or_, tagged), respond(question, discriminator=Discriminator(_find_key))


def read_choice(answer: Any) -> tuple[str, Any]:
    """Return the key of the option that an answer chose, and the option's answer."""
    key = str(_find_key(answer))
    return key, getattr(answer, key)


def _find_key(answer: Any) -> Any:
    if isinstance(answer, Mapping):
        return next(iter(answer), None)
    return next(iter(getattr(type(answer), "model_fields", ())), None)


def make_call_options(
    tools: Sequence[ToolSchema],
    basis: type[ARQ],
    reserved: Collection[str],
    fields: Mapping[str, Field] | None = None,
) -> Options:
    """Return the options to call a tool, by the properties that stand for the tools, which aren't `reserved`.

    `basis` is asked before each value of an argument, `fields` besides the arguments of each call.
    """
    options: Options = {}
    for tool in tools:
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
        options[get_property_name(tool.name, reserved)] = (call, f"A call of {tool.name}.")
    return options


def get_property_name(tool: str, reserved: Collection[str]) -> str:
    """Return the property that stands for a tool, which isn't reserved."""
    return f"tool_{tool}"[:64] if tool in reserved else tool


# --- reading


def parse_call(tool: ToolSchema, call: Any) -> tuple[dict[str, Any], list[Problem], dict[str, str]]:
    """Return a call's arguments, the problems with them, and by argument, why the customer has to confirm its value."""
    arguments, problems = tool.parse(getattr(call, "arguments", None))
    doubts: dict[str, str] = {}
    for argument in tool.arguments:
        if argument.name not in arguments:
            continue
        value = arguments[argument.name]
        basis = getattr(call.arguments, argument.property_name).basis
        if basis in _DOUBTS:
            doubts[argument.name] = f"{as_json(value)} {_DOUBTS[basis]}"
        is_blank = isinstance(value, str) and not value.strip()
        if basis == "nobody" or (is_blank and argument.required):
            del arguments[argument.name]
            problems = [problem for problem in problems if problem.argument != argument]
            if argument.required:
                problems.append(Problem(argument, "missing", "nobody gave it"))
    return arguments, problems, doubts


def find_requested_arguments(requests: Iterable[Any], gate: Gate) -> list[ToolVerdict]:
    """Return the insights about the arguments that an answer asks the customer for, of tools that can be called."""
    insights: list[ToolVerdict] = []
    for request in requests:
        if request.tool not in gate.granted:
            continue
        tool = gate.tools[request.tool]
        for argument in tool.arguments:
            if request.argument in (argument.name, argument.property_name):
                insights += gate.report_problems(tool, {}, [Problem(argument, "missing")])
    return insights


def explain_refusal(
    tool: ToolSchema, verdict: Sequence[ToolVerdict], call_path: str, answer: str
) -> list[Fault]:
    """Return why the gate refuses a call, for the model; nothing if it doesn't.

    `call_path` is the call's path in the model's answer, `answer` names what the model says to the customer.
    """
    keys = {argument.name: argument.property_name for argument in tool.arguments}
    faults: list[Fault] = []
    for insight in verdict:
        if insight.kind == "confirm":
            reason = (
                f"{insight.problem}; the call is taken up as it is, and code puts it to the customer below {answer}. "
                f"Now give {answer} that stands above it: what they should know before agreeing, and what else there "
                "is to say, without a question; it may be empty"
            )
            faults.append((call_path, reason))
        elif insight.kind == "declined":
            reason = f"{insight.problem}: take another way, or say in {answer} what is not possible"
            faults.append((call_path, reason))
        elif insight.kind != "run":
            path = f"{call_path}.arguments"
            if insight.argument in keys:
                path += f".{keys[insight.argument]}"
            details = f" ({insight.problem})" if insight.problem else ""
            faults.append((path, f"it is {insight.kind}{details}: ask the customer for it in {answer}"))
    return faults


# --- recording


@dataclass(frozen=True)
class Proposal:
    """What one answer proposes to do, make a call or say something, and what code objects.

    A proposal with `refusals` is not carried out. For `faults` another one is asked for, but it may be carried out.
    `insights` are the gate's verdict on the call, or what the customer is asked for.
    """

    text: str = ""
    call: PlannedCall | None = None
    refusals: tuple[Fault, ...] = ()
    faults: tuple[Fault, ...] = ()
    insights: tuple[ToolVerdict, ...] = ()
    still_wanted: Sequence[str] = ()
    """Ids of the pending calls that the customer still wants, by this answer."""

    @property
    def tool(self) -> str | None:
        """The tool that it calls."""
        return self.call.tool if self.call else None

    def make_complaints(self, blueprint: type[Any]) -> list[Complaint]:
        """Return what the model is told before it answers again."""
        return [
            Complaint(blueprint.__name__, path, problem) for path, problem in (*self.faults, *self.refusals)
        ]


P = TypeVar("P", bound=Proposal)


class DecisionContext(Generic[P]):
    """The state that the answers to a question are checked against, and their `proposals`, the newest last."""

    def __init__(self, gate: Gate, outcome: AgreementOutcome) -> None:
        self.gate = gate
        self.outcome = outcome
        self.proposals: list[P] = []

    @property
    def insights(self) -> list[ToolVerdict]:
        """The insights about everything that was proposed."""
        return [insight for proposal in self.proposals for insight in proposal.insights]

    def find_calls_to_confirm(self, still_wanted: Sequence[str]) -> list[ToolVerdict]:
        """Return the calls that code asks the customer about: the pending ones that are still wanted, by their ids, and
        the newest one that was proposed of each tool."""
        pending = [call for id, call in self.outcome.pending.items() if id in still_wanted]
        asked_again = [*self.outcome.insights, *self.gate.recheck_pending_calls(pending)]
        calls = [insight for insight in asked_again if insight.kind == "confirm"]
        newest = {insight.tool: insight for insight in self.insights if insight.kind == "confirm"}
        return [*calls, *newest.values()]


def merge_insights(
    outcome: AgreementOutcome,
    proposed: Iterable[ToolVerdict],
    call_insights: Collection[ToolVerdict],
    to_confirm: Collection[ToolVerdict],
    *,
    asks: bool,
) -> list[ToolVerdict]:
    """Return the insights to record: about the calls that are made, refused, and asked about.

    Proposed calls that are neither made nor asked about count as declined. So do missing and invalid arguments, unless
    the reply `asks` the customer for them.
    """
    insights = [insight for insight in outcome.insights if insight.kind != "confirm"]
    for insight in proposed:
        if insight in to_confirm:
            continue
        is_asked_for = asks and insight.kind in ("missing", "invalid")
        if not is_asked_for and insight not in call_insights:
            insight = insight.model_copy(update={"kind": "declined", "argument": None})
        insights.append(insight)
    insights.extend(to_confirm)
    return insights
