"""A shop with one tool that needs a yes, of the customer's or of an operator's."""

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from tests.agreement.desk import THREAD
from tests.brain import act, brain, say


class Shop:
    """A shop with one tool that needs the customer's yes; `ran` are the arguments that its function got."""

    def __init__(
        self,
        args_schema: Any,
        proposed: dict[str, Any],
        *,
        strategy: Any = "tools",
        by: str = "customer",
        **fields: Any,
    ) -> None:
        self.ran: list[dict[str, Any]] = []

        def run(**arguments: Any) -> str:
            self.ran.append(arguments)
            return "done"

        fields = {"name": "pay", "description": "Pay.", **fields}
        self.tool = StructuredTool(args_schema=args_schema, func=run, **fields)
        moves = [act(self.tool.name, proposed), say("Fine.")]
        model = brain(
            {"G1": 9}, call={self.tool.name: proposed}, moves=moves, reply="Fine.", wants=lambda: True
        )
        self.app = self.open(self.tool, model, strategy, by)

    def open(self, tool: BaseTool, model: Any, strategy: Any, by: str) -> Any:
        self.agent = Agent(
            "Shop", "You help.", [Guideline("x", "pay", tools=[tool])], confirm={tool.name: by}
        )
        return create_guided_agent(
            model, self.agent, strategy=strategy, mode="direct", checkpointer=MemorySaver()
        )

    def say(self, text: Any) -> str:
        messages = self.app.invoke({"messages": [("user", text)]}, THREAD)["messages"]
        return str(messages[-1].text)

    def ask(self) -> str:
        """Let the shop ask, and return the line with the call."""
        return self.say("Pay, please.").split("\n")[-2]

    @property
    def problems(self) -> list[str]:
        verdicts = self.app.get_state(THREAD).values["tool_insights"]
        return [verdict["problem"] for verdict in verdicts]
