"""What a judge is asked about each milestone (Pre-Act, 4.3 and Appendix H), as queries in stages."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import create_model

from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond

_REASON = "In one or two sentences: what was accomplished, or what went wrong?"
_QUOTE = (
    "What shows it, copied word for word from that one step: a few words or more, or the whole text where it is "
    "shorter; null if nothing is to be quoted."
)


class StateJudgement(ARQ):
    """Was the state or condition met, and at which step first?"""

    milestone: str = reinstate("The milestone's name and what it means, word for word.")
    dependencies_reached_at: str = query(
        "At which step was each of its dependencies reached, as far as it was?"
    )
    evidence: list[str] = query(
        "What in the conversation speaks for it or against it, said outright or implied? Each with its step.",
        max_length=6,
    )
    only_claimed_mixed_up_or_oversimplified: str | None = query(
        "Is any of it invented in part, taken from something else, only claimed, or put so simply that its meaning "
        "changed? What exactly?"
    )
    reason: str = respond(_REASON)
    step: int | None = respond(
        "Number of the first step that counts, as the rules say; null if there is none."
    )
    quote: str | None = respond(_QUOTE)
    achieved: bool | None = respond("Was it met? null: the conversation does not tell.")


class CallJudgement(ARQ):
    """Is one of the tool's calls that code saw genuine, and which is the first?"""

    milestone: str = reinstate("The milestone's name and what it means, word for word.")
    intent_of_the_calls: str = query(
        "Which intent of the user, stated or implicit, was each listed call to serve? Each with its step."
    )
    where_the_arguments_come_from: list[str] = query(
        "For each argument of each listed call: which step gave its value?", max_length=24
    )
    wrong_irrelevant_or_invented_arguments: list[str] = query(
        "Arguments that are wrong, in the wrong format, irrelevant to the intent, or given by nobody before: call's "
        "step, name, value.",
        max_length=12,
    )
    earlier_context_ignored: str | None = query(
        "What said or found before a call, such as a preference or a correction, does the call ignore?"
    )
    observation_misread: str | None = query(
        "What of a call's result did the agent misread, mix up or oversimplify in what it said or did next?"
    )
    reason: str = respond(_REASON)
    step: int | None = respond("Step of the first genuine call; null if there is none.")
    quote: str | None = respond(
        "What speaks against a call that is not genuine, copied word for word from any step; null if none is."
    )
    achieved: bool | None = respond(
        "Is one of the listed calls genuine? null: the conversation does not tell."
    )


@lru_cache(maxsize=512)
def batch_blueprint(kinds: tuple[tuple[str, bool], ...]) -> type[ARQ]:
    """One blueprint for several milestones: the intents once, then a required property for each.

    `kinds` are their ids, each with whether it is a call (an FC). The schema of equal batches is prepared once.
    """
    fields: dict[str, Any] = {
        "intent_of_the_conversation": (str, query("What does the user want, in one sentence?")),
        "implicit_intents": (
            list[str],
            query("What does the user want or agree to without saying it outright?", max_length=6),
        ),
    }
    for id, is_call in kinds:
        judgement = CallJudgement if is_call else StateJudgement
        fields[id] = (judgement, respond(str(judgement.__doc__)))
    return create_model("MilestoneJudgements", __base__=ARQ, __doc__="Judge each milestone.", **fields)
