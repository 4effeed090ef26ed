"""What a model that plays a user is asked before it speaks (ReSpAct, 3.4 and E.4), as queries in stages."""

from __future__ import annotations

from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify


class _Speaking(ARQ):
    """Say what the user says next."""

    what_the_agent_asked: list[str] = reinstate(
        "Each thing that the agent's last message asks, offers or reports, in a few words.", max_length=8
    )
    what_the_agent_got_wrong: str | None = query(
        "What in it is not what you want or said before? null if nothing."
    )
    what_is_open: list[str] = query(
        "Which of your wishes have not been dealt with, those included that you have not spoken of yet?",
        max_length=20,
    )
    message: str = respond("The one message that you send now; `Exit.` if `finished`.")
    finished: bool = respond(
        "Have all wishes been dealt with or given up and leave been taken, so that you say nothing more?"
    )
    one_message_of_the_user: bool = verify(
        "Is it a single message of the user, in the first person, without names of speakers, and not one that the "
        "agent would write?",
        must_be=True,
    )


class UserSpeaking(_Speaking):
    """Say what the user says next, of what it knows."""

    what_i_know_of_it: list[str] = query(
        "For each thing that was asked: what of `known` or `wishes` answers it, word for word? Or `unknown`.",
        max_length=8,
    )
    what_i_may_say: list[str] = query(
        "What of that is said now, as the rules, the kind of user and `now` have it?", max_length=8
    )
    tells_what_is_not_known: bool = verify(
        "Does the message claim a fact about you or your wishes that stands nowhere in `wishes` or `known`, and that "
        "`now` does not ask you to make up?",
        must_be=False,
    )


class IgnorantUserSpeaking(_Speaking):
    """Say what the user says next, who knows nothing of it."""

    what_seems_plausible: list[str] = query(
        "For each thing that was asked: what would somebody say who guesses?", max_length=8
    )
