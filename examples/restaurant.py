"""A blueprint of your own: the restaurant choice that the ARQ paper opens with (section 4).

python examples/restaurant.py            # the offline model: no key needed, and no judgement either
python examples/restaurant.py openai:gpt-4o
"""

from __future__ import annotations

import sys

from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph import ARQ, Answer, Reasoner, query, reinstate, respond, verify


class Option(ARQ):
    """One restaurant."""

    name: str = respond("Its name.")
    fits: str = query("How does its menu fit the constraints?")


class Recommendation(ARQ):
    """Recommend one restaurant to the group."""

    diet: list[str] = reinstate("Every dietary constraint the group stated, word for word.")
    in_range: list[Option] = query("Which restaurants are open and in range, and how does each menu fit?")
    answer: str = respond("The recommendation, in one sentence.")
    fits_everyone: bool = verify("Does the answer respect every constraint above?", must_be=True)


PROMPT = [
    SystemMessage(
        "You help a group to find a place for dinner. Open and in range: Trattoria Sole (pasta, fish), "
        "Green Leaf (vegan bowls), Steakhouse Ox (meat only)."
    ),
    HumanMessage("We are three: Ana eats vegan, Ben has a nut allergy, Cem eats everything. Where do we go?"),
]


def recommend(model: str = "offline") -> Answer[Recommendation]:
    """Ask for a recommendation; a candidate that fails its own verification is asked for again."""
    return Reasoner(model).ask(Recommendation, PROMPT)


if __name__ == "__main__":
    answer = recommend(*sys.argv[1:2])
    print(answer.value.model_dump_json(indent=2))
    print(f"{len(answer.attempts)} answers asked for; verified: {answer.satisfied}")
