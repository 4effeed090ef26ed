"""The blueprints of the reply: in the model's words, or chosen among prepared ones (ARQ paper, 5.1.3 and Appendix C).

The query keys are the paper's where they fit into the 64 characters that some providers allow for a property.
Subclass `MessageBlueprint` or `ReplyChoice` to add queries of your domain; each is placed in its stage.
"""

from __future__ import annotations

from abc import ABC
from typing import Literal

from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify


class ContextEvaluation(ARQ, defer_build=True):
    """What the customer needs, and what is here to help."""

    most_recent_customer_inquiries_or_needs: str = query("What does the customer ask or need now?")
    parts_of_the_context_with_information_on_these_needs: str = query("Which ids bear on it?")
    topics_with_sufficient_information_to_help: str = query("What is known well enough to help with?")
    what_i_do_not_have_enough_information_to_help_with: str = query("What is not known here?")
    was_i_given_specific_information_on_how_to_address_these_needs: bool = query(
        "Do the guidelines tell how?"
    )
    should_i_tell_the_customer_i_cannot_help_with_some_needs: bool = respond("Must the reply say so?")


class Insight(ARQ, defer_build=True):
    """What the reply has to respect that no instruction says."""

    insight: str = respond("What to respect.")
    source: str | None = respond("Id of what it comes from.")


class InstructionEvaluation(ARQ, defer_build=True):
    """How a guideline or an insight is followed."""

    instruction: str = respond("Its id, or the insight.")
    evaluation: str = respond("How does the reply follow it?")
    data_available: str = respond("Is the data it needs here? Give ids.")


class SourcedFact(ARQ, defer_build=True):
    """A fact that the reply states."""

    fact: str = respond("The fact.")
    source: str | None = respond("Id of where this prompt says so.")


class OfferedService(ARQ, defer_build=True):
    """A service that the reply offers."""

    service: str = respond("The service.")
    source: str | None = respond("Id of where this prompt offers it.")


class BrokenInstruction(ARQ, defer_build=True):
    """A guideline or an insight that the reply does not follow."""

    instruction: str = respond("Its id, or the insight.")
    forbids: bool = respond("Does it forbid something?")
    reason: Literal["prioritization", "missing_data", "customer_request", "awaits_agreement", "none"] = (
        respond("Why is it not followed?")
    )
    rationale: str = respond("In a few words.")


class MessageRevision(ARQ, defer_build=True):
    """One version of the reply, and its check."""

    revision_number: int = query("From 1.", ge=1)
    content: str = respond("The whole reply; empty: the draft as it stands.")
    followed: list[str] = respond("Ids of the guidelines it follows.")
    factual_information_provided: list[SourcedFact] = verify("Every fact it states.")
    offered_services: list[OfferedService] = verify("Every service it offers.")
    instructions_broken: list[BrokenInstruction] = verify("Every instruction it does not follow.")
    is_repeat_message: bool = verify("Does it repeat an earlier message of the agent?")


class MessageContext(ARQ, ABC):
    """The leading queries of every reply."""

    last_message_of_customer: str | None = reinstate("Verbatim.")
    context_evaluation: ContextEvaluation = query("What is needed, and what is here?")
    insights: list[Insight] = query("At most three; often none.", max_length=3)
    evaluation_for_each_instruction: list[InstructionEvaluation] = query(
        "Each active guideline and each insight."
    )


class MessageBlueprint(MessageContext):
    """Write the agent's next message to the customer."""

    revisions: list[MessageRevision] = respond(
        "One, and further ones while a check fails. The last one is sent.",
        min_length=1,
        max_length=5,
    )


class ReplyFit(ARQ, defer_build=True):
    """The fit of a prepared reply."""

    reply: str = respond("Its id.")
    values: str = respond("Where is the value of each of its fields? Give ids, or say that it is not here.")
    fits: bool = respond("Does it say what has to be said now, and nothing that is wrong here?")


class FieldValue(ARQ, defer_build=True):
    """The value of a field of a prepared reply."""

    field: str = respond("The field's name.")
    value: str = respond("The whole value, copied exactly.")
    source: str = respond("Id of the tool result, variable or message that has it.")


class ChosenReply(ARQ, defer_build=True):
    """A prepared reply, and the values of its fields."""

    reply: str = respond("Its id.")
    values: list[FieldValue] = respond("One for each of its fields.")


class ReplyChoice(MessageContext):
    """Choose the prepared replies that make up the agent's next message to the customer."""

    evaluation_for_each_reply: list[ReplyFit] = query("Each reply that could be part of the message.")
    language: str = respond("The code of the customer's language, such as en.")
    replies: list[ChosenReply] = respond(
        "In their order; usually one, the fewest that say it all.", max_length=5
    )
    followed: list[str] = respond("Ids of the guidelines that the message follows.")
    is_every_reply_right: bool = verify(
        "Is each chosen reply, with its values, called for and true here?", must_be=True
    )
