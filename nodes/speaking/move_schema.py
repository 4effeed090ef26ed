"""The speaker's blueprint: what is uncertain and worth a question, and one move (ReSpAct, section 3).

The move is one of several objects, each with a single property: `think`, `speak`, the name of the tool that is called,
or `act` in a world. So no two of them begin with the same key, which OpenAI's strict mode asks of a choice.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import create_model

from arq_graph.nodes.message_schema import SourcedFact
from arq_graph.nodes.plan_schema import AskedFor
from arq_graph.nodes.proposed_calls import StillWanted, call_options, one_of
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


class WorldAction(ARQ):
    """Act in the world."""

    action: str = respond("The action, letter by letter as `actions` has it where they are listed.")


class HalfRequest(ARQ, ABC):
    """Whether there is a request yet; asked where a policy rests on it."""

    half_request: bool = respond(
        "Does the customer's last message break off, so that what they want is only half said?"
    )


class NextMove(ARQ, ABC):
    """Make the next move: think, speak or act."""

    last_customer_message: str = reinstate("The customer's last message.")
    goal: str = query("What does the customer want in the end, and what of it is done?")
    known: str = query("What is known that the goal needs? Give ids.")
    uncertain: str | None = query("What is uncertain, and what harm would a wrong guess do? Null: nothing.")
    can_find_out: str | None = query("What of it can be found out by acting? Null: nothing.")
    question_is_worth_it: bool = query("Is there something left that is worth the customer's time to answer?")


def move_blueprint(
    tools: Sequence[ToolArguments],
    *,
    in_world: bool = False,
    setting: Setting = "chat",
    policies: Collection[str] = (),
    dialogue_acts: Collection[str] = (),
) -> type[ARQ]:
    """What a speaker is asked, with every tool of the agent, so that the schema never changes."""
    moves: dict[str, tuple[type[ARQ], str]] = {
        THINK: (Reflection, "A thought."),
        SPEAK: (_speech(tools, setting, policies, dialogue_acts), "An utterance to the customer."),
        **call_options(tools, ValueBasis, KINDS),
    }
    if in_world:
        moves[ACT] = (WorldAction, "An action in the world.")
    # Fields of a class further right come first.
    bases: tuple[type[ARQ], ...] = (StillWanted,) if tools else ()
    bases = (NextMove, *bases, *((HalfRequest,) if "complete_half_requests" in policies else ()))
    move: Any = one_of("The one move made now.", moves)
    return create_model("NextMove", __base__=bases, __doc__=NextMove.__doc__, move=move)


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
    flags = {}
    if "narrow_many_results" in policies:
        flags["choice_is_left_to_you"] = "Has the customer left the choice among what was found to you?"
    flags |= {
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
