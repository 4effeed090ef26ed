"""Speech limited to dialogue acts: a household helper that may only say what its ten acts allow (ReSpAct, E.3).

python examples/household_acts.py                  # the offline model: no key needed, and any act will do for it
python examples/household_acts.py openai:gpt-4o
"""

from __future__ import annotations

import sys

from arq_graph import ReSpAct, create_respact_agent
from arq_graph.nodes.speaking.speech import HOUSEHOLD_ACTS

PLACES = {"mug": "in the cupboard", "kettle": "on the stove"}


def find_thing(thing: str) -> str:
    """Find out where a thing is.

    Args:
        thing: The thing, like mug.
    """
    return PLACES.get(thing, "it is nowhere to be seen")


def main(model: str = "offline") -> None:
    """Ask the helper something, and print what it said, with the act that it was."""
    helper = create_respact_agent(model, [find_thing], strategy=ReSpAct(dialogue_acts=HOUSEHOLD_ACTS))
    state = helper.invoke({"messages": [("user", "Where is the mug?")]})
    for move in state["moves"]:
        print(move["kind"], move["dialogue_act"] or "", move["text"])


if __name__ == "__main__":
    main(*sys.argv[1:2])
