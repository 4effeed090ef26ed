"""The speaker's blueprint: what is uncertain and worth a question, and one move (ReSpAct, section 3).

The move is one of several objects, each with a single property: `think`, `speak`, the name of the tool that is called,
or `act` in a world. So no two of them begin with the same key, which OpenAI's strict mode asks of a choice.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Sequence
from typing import Any, Final, Literal

from pydantic import create_model

from arq_graph.nodes.message_schema import SourcedFact
from arq_graph.nodes.plan_schema import AskedFor
from arq_graph.nodes.proposed_calls import Basis, StillWanted, make_call_options, make_choice
from arq_graph.nodes.speaking.policies import is_policy_on
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.blueprint import ARQ, combine_blueprints, query, reinstate, respond

THINK: Final = "think"
SPEAK: Final = "speak"
ACT: Final = "act"
KINDS = (THINK, SPEAK, ACT)
"""The kinds of moves; a call of a tool and an action in a world are both of the kind `act`."""

WORLD_CALL = "act"
"""Name of the call that takes an action in a world, and of the node that takes it."""

Setting = Literal["chat", "task"]


class ValueBasis(ARQ, ABC):
    """The query about the source of a value, asked before the value."""

    basis: Basis = respond(
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
    """The query about an unfinished request; asked if a policy depends on it."""

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


def make_move_blueprint(
    tools: Sequence[ToolSchema],
    *,
    in_world: bool = False,
    setting: Setting = "chat",
    policies: Collection[str] = (),
    dialogue_acts: Collection[str] = (),
) -> type[ARQ]:
    """Return the blueprint of a move, with every tool of the agent, so that the schema never changes."""
    options: dict[str, tuple[type[ARQ], str]] = {
        THINK: (Reflection, "A thought."),
        SPEAK: (_make_speech(tools, setting, policies, dialogue_acts), "An utterance to the customer."),
    }
    options.update(make_call_options(tools, ValueBasis, KINDS))
    if in_world:
        options[WORLD_CALL] = (WorldAction, "An action in the world.")
    parts: list[type[ARQ]] = []
    if is_policy_on("complete_half_requests", policies):
        parts.append(HalfRequest)
    if tools:
        parts.append(StillWanted)
    parts.append(NextMove)
    move = make_choice("The one move made now.", options)
    return combine_blueprints("NextMove", NextMove.__doc__, *parts, move=move)


def _make_speech(
    tools: Sequence[ToolSchema], setting: Setting, policies: Collection[str], acts: Collection[str]
) -> type[ARQ]:
    names: Any = tuple(tool.name for tool in tools)
    fields: dict[str, Any] = {}
    if acts:
        fields["dialogue_act"] = (Literal[tuple(acts)], respond("The one act that the utterance is."))
    if names:
        question = "What it asks the customer for, so that a tool can be called; else empty."
        fields["asks_for"] = (list[AskedFor], respond(question))
    fields["utterance"] = (str, respond("The whole message to the customer, in free words."))
    if is_policy_on("attributes_from_calls", policies):
        fields["facts"] = (list[SourcedFact], respond("Each fact that it states of a thing or an order."))
    if is_policy_on("decline_unserved", policies):
        tool_type: Any = Literal[names] | None if names else None
        promise = create_model(
            "Promise",
            __base__=ARQ,
            __doc__="Something that the utterance offers or promises to do.",
            what=(str, respond("What.")),
            tool=(tool_type, respond("The tool that does it; null if none here does.")),
        )
        fields["promises"] = (list[promise], respond("Each thing that it offers or promises to do."))
    questions = {
        "asks": "Does it ask the customer for anything, with a question mark or without?",
        "mentions_failure": "Does it say that something failed or is not to be had?",
        "closes": "Does it follow on a goal that is reached, and offer more help or take leave?",
        "states_belief": "Does it say what you believe to be so, or likely, for the customer to confirm?",
        "offers_choice": "Does it ask to choose between things that are at hand now?",
    }
    if is_policy_on("narrow_many_results", policies):
        question = "Has the customer left the choice among what was found to you?"
        fields["choice_is_left_to_you"] = (bool, respond(question))
    for name, question in questions.items():
        fields[name] = (bool, respond(question))
    if setting == "task":
        question = "Is the task done or impossible, so that nothing is left to do or to ask?"
        fields["ends_task"] = (bool, respond(question))
    return create_model("Speech", __base__=ARQ, __doc__="Say something.", **fields)
