"""The speaker's blueprint: what is uncertain and worth a question, and one move (ReSpAct, section 3).

The move is one of several objects, each with a single property: `think`, `speak`, the name of the tool that is called,
or `act` in a world. So no two of them begin with the same key, which OpenAI's strict mode asks of a choice.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, cast

from pydantic import Discriminator, Tag, create_model

from arq_graph.nodes.message_schema import SourcedFact
from arq_graph.nodes.plans import AskedFor
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond

THINK, SPEAK, ACT = "think", "speak", "act"
KINDS = (THINK, SPEAK, ACT)

Setting = Literal["chat", "task"]


class ValueBasis(ARQ, ABC):
    """What a value rests on; stands before the value."""

    basis: Literal[
        "this_request", "known", "another_request", "inferred", "ambiguous", "does_not_matter", "nobody"
    ] = respond(
        "What the value rests on: stated for this request, known from a tool result, a variable or the profile, stated "
        "for another request, inferred, ambiguous (it may be a name or a type, or fit several arguments), the customer "
        "said that it does not matter, or nobody gave it."
    )


class Reflection(ARQ):
    """Think, which changes nothing outside."""

    thought: str = respond("What follows from the newest message or result, that was not thought before.")


class ThinkMove(ARQ):
    """Think."""

    think: Reflection = respond("A thought.")


class WorldAction(ARQ):
    """Act in the world."""

    action: str = respond("The action, letter by letter as `actions` has it where they are listed.")


class ActMove(ARQ):
    """Act."""

    act: WorldAction = respond("An action in the world.")


class NextMove(ARQ, ABC):
    """Make the next move: think, speak or act."""

    last_customer_message: str = reinstate("The customer's last message.")
    goal: str = query("What does the customer want in the end, and what of it is done?")
    known: str = query("What is known that the goal needs? Give ids.")
    uncertain: str | None = query("What is uncertain, and what harm would a wrong guess do? Null: nothing.")
    can_find_out: str | None = query("What of it can be found out by acting? Null: nothing.")
    question_is_worth_it: bool = query("Is there something left that is worth the customer's time to answer?")


@dataclass(frozen=True)
class MoveBlueprint:
    """The speaker's blueprint with the tools that its moves may call.

    Args:
        blueprint: What is asked.
        tools: Each tool by the property of the move that calls it.
    """

    blueprint: type[ARQ]
    tools: Mapping[str, ToolArguments]


def move_blueprint(
    tools: Sequence[ToolArguments],
    *,
    in_world: bool = False,
    setting: Setting = "chat",
    policies: Collection[str] = (),
    dialogue_acts: Collection[str] = (),
) -> MoveBlueprint:
    """What a speaker is asked.

    Args:
        tools: Every tool of the agent, so that the schema never changes.
        in_world: Whether there is a world to act in.
        setting: In a task, an utterance says whether it ends it.
        policies: Names of the policies that are switched on.
        dialogue_acts: The acts that speech is limited to; empty: free.
    """
    by_property = {property_of(tool.name): tool for tool in tools}
    speech: Any = _speech(tools, setting, policies, dialogue_acts)
    speak: dict[str, Any] = {SPEAK: (speech, respond("An utterance to the customer."))}
    moves: dict[str, type[ARQ]] = {
        THINK: ThinkMove,
        SPEAK: cast(type[ARQ], create_model("SpeakMove", __base__=ARQ, __doc__="Speak.", **speak)),
        **{key: _call_move(key, tool) for key, tool in by_property.items()},
    }
    if in_world:
        moves[ACT] = ActMove
    made = create_model("NextMove", __base__=NextMove, __doc__=NextMove.__doc__, move=_one_of(moves))
    return MoveBlueprint(cast(type[ARQ], made), by_property)


def property_of(tool: str) -> str:
    """The property of a move that calls a tool: its name, unless it is called like another move."""
    return f"tool_{tool}" if tool in KINDS else tool


def _speech(
    tools: Sequence[ToolArguments], setting: Setting, policies: Collection[str], acts: Collection[str]
) -> type[ARQ]:
    names: Any = tuple(tool.name for tool in tools)
    fields: dict[str, Any] = {}
    if acts:
        fields["dialogue_act"] = (Literal[tuple(acts)], respond("The one act that the utterance is."))
    if names:
        fields["asks_for"] = (
            list[AskedFor],
            respond("What it asks the customer for, so that a tool can be called; else empty."),
        )
    fields["utterance"] = (str, respond("The whole message to the customer, in free words."))
    if "attributes_from_calls" in policies:
        fields["facts"] = (list[SourcedFact], respond("Each fact that it states of a thing or an order."))
    if "decline_unserved" in policies:
        kind: Any = Literal[names] | None if names else None
        promise = create_model(
            "Promise",
            __base__=ARQ,
            __doc__="Something that the utterance offers or promises to do.",
            what=(str, respond("What.")),
            tool=(kind, respond("The tool that does it; null if none here does.")),
        )
        fields["promises"] = (list[promise], respond("Each thing that it offers or promises to do."))
    flags = {
        "asks": "Does it ask the customer for anything, with a question mark or without?",
        "mentions_failure": "Does it say that something failed or is not to be had?",
        "closes": "Does it follow on a goal that is reached, and offer more help or take leave?",
        "states_belief": "Does it say what you believe to be so, or likely, for the customer to confirm?",
        "offers_choice": "Does it ask to choose between things that are at hand now?",
    }
    fields |= {name: (bool, respond(question)) for name, question in flags.items()}
    if setting == "task":
        fields["ends_task"] = (
            bool,
            respond("Is the task done or impossible, so that nothing is left to do or to ask?"),
        )
    return create_model("Speech", __base__=ARQ, __doc__="Say something.", **fields)


def _one_of(moves: Mapping[str, type[ARQ]]) -> tuple[Any, Any]:
    tagged: list[Any] = [Annotated[move, Tag(key)] for key, move in moves.items()]
    choice: Any = reduce(or_, tagged)
    # Told apart by its one property, a move that is wrong is reported for itself alone, not for every tool.
    return choice, respond("The one move made now.", discriminator=Discriminator(_first_property))


def _first_property(move: Any) -> Any:
    fields = move if isinstance(move, Mapping) else getattr(type(move), "model_fields", {})
    return next(iter(fields), None)


def _call_move(key: str, tool: ToolArguments) -> type[ARQ]:
    fields: dict[str, Any] = {}
    if tool.arguments:
        fields["arguments"] = (
            tool.blueprint_with(ValueBasis, "move", "Spoken"),
            respond("Each of its arguments."),
        )
    fields["affirmed_in"] = (
        str | None,
        respond(
            "Id of the customer's message that agrees to exactly these arguments, after they were put to them; null if "
            "none does."
        ),
    )
    call = create_model(f"{tool.name}_move_call", __base__=ARQ, __doc__="The call.", **fields)
    asked: dict[str, Any] = {key: (call, respond(f"A call of {tool.name}."))}
    return create_model(f"{tool.name}_move", __base__=ARQ, __doc__="Call this tool.", **asked)
