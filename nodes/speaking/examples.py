"""A worked example for the speaker's prompt: something uncertain that is worth a question."""

from __future__ import annotations

from functools import cache

from langchain_core.tools import tool

from arq_graph.nodes.speaking.moves import move_blueprint
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.worked_examples import Example


@cache
def speaker_examples() -> tuple[Example, ...]:
    """A gate of two that fit, of which nobody said which one; the wrong one would let the goats out."""

    @tool
    def open_gate(gate: str) -> str:
        """Open a gate of the farm."""
        return gate

    answer = move_blueprint([ToolArguments(open_gate)]).blueprint.model_validate(
        {
            "last_customer_message": "Open the gate for the van, please.",
            "goal": "let the van in; nothing is done yet",
            "known": "T1: the yard has a north gate and a meadow gate, both wide enough",
            "uncertain": "Which gate. Behind the meadow gate are the goats; they would get out.",
            "can_find_out": None,
            "question_is_worth_it": True,
            "move": {
                "speak": {
                    "asks_for": [{"tool": "open_gate", "argument": "gate"}],
                    "utterance": "The van fits through the north gate and through the meadow gate, where the goats "
                    "are. Which one shall it be?",
                    "asks": True,
                    "mentions_failure": False,
                    "closes": False,
                    "states_belief": False,
                    "offers_choice": True,
                }
            },
        }
    )
    situation = {
        "conversation": [
            "M1 customer: Open the gate for the van, please.",
            "T1 list_gates(): north gate (wide), meadow gate (wide, goats), garden gate (narrow)",
        ],
        "tools": ["open_gate(gate)"],
    }
    return (Example(situation, answer),)
