"""Queries of your domain in the reply: a subclass of the message blueprint, each query lands in its stage.

python examples/domain_reply.py
"""

from __future__ import annotations

from typing import Literal

from langgraph.graph.state import CompiledStateGraph

from arq_graph import Agent, Guideline, Revising, create_guided_agent, query, verify
from arq_graph.nodes import MessageBlueprint


class ClinicReply(MessageBlueprint):
    """Write the clinic's next message to the patient."""

    urgency: Literal["emergency", "soon", "routine"] = query("How urgent is what the patient describes?")
    gives_no_diagnosis: bool = verify("Does the reply leave every diagnosis to the doctor?", must_be=True)


CLINIC = Agent(
    name="Clinic desk",
    profile="You are the front desk of a small clinic. You make appointments; you are no doctor.",
    guidelines=[
        Guideline(
            "the customer asks for an appointment",
            'offer an appointment and say "We will find a time for you."',
        ),
        Guideline(None, "never give a diagnosis"),
    ],
)


def app(model: str = "offline") -> CompiledStateGraph:
    """The guided agent with the clinic's reply blueprint."""
    return create_guided_agent(model, CLINIC, revising=Revising(blueprint=ClinicReply))


if __name__ == "__main__":
    state = app().invoke({"messages": [("user", "Hello, can I have an appointment for my knee?")]})
    print(state["messages"][-1].content)
    print(list(ClinicReply.response_schema()["properties"]))
