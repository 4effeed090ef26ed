"""Apps, users and scenarios for tests of conversations and evaluations."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from arq_graph import Agent, ScriptedChatModel
from arq_graph.milestones import Message, MilestoneGraph, Scenario, Suite, UserSpec

FIND_AND_BUY = MilestoneGraph.from_actions([{"name": "find", "kwargs": {}}, {"name": "buy", "kwargs": {}}])


class Says:
    """A user who says these things and leaves."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)

    async def aspeak(self, said: Sequence[Message]) -> str | None:
        return self.words.pop(0) if self.words else None


def deed(tool: str, number: int = 0, result: str = "done", /, **arguments: Any) -> list[BaseMessage]:
    """Return a call and its result."""
    call = {"name": tool, "args": arguments, "id": f"{tool}-{number}"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=call["id"], name=tool)]


class Answers:
    """An app without memory that answers each turn by a function of the messages so far."""

    def __init__(self, answer: Callable[[list[BaseMessage]], list[BaseMessage]]) -> None:
        self.answer = answer
        self.inputs: list[list[BaseMessage]] = []
        self.threads: list[str] = []

    def invoke(self, input: Any, config: Any = None, **settings: Any) -> Any:
        self.inputs.append(list(input["messages"]))
        self.threads.append(config["configurable"]["thread_id"])
        return {"messages": [*input["messages"], *self.answer(input["messages"])]}

    async def ainvoke(self, input: Any, config: Any = None, **settings: Any) -> Any:
        return self.invoke(input, config)


def buyer(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Find a lamp in the first turn, and buy it in the second."""
    turn = sum(message.type == "human" for message in messages)
    return [*deed("find" if turn == 1 else "buy", turn), AIMessage(f"That was turn {turn}.")]


def talker(messages: list[BaseMessage]) -> list[BaseMessage]:
    """Talk without doing anything."""
    return [AIMessage("I see.")]


def fail_to_connect() -> None:
    """Ask a model that cannot be reached."""

    def fail(call: Any) -> Any:
        raise ConnectionError("no way there")

    ScriptedChatModel(fail).invoke("hello")


def shopper(**fields: Any) -> UserSpec:
    return UserSpec.model_validate({"intents": ["I want a lamp.", "And buy it."], "closing": "", **fields})


def lamp(name: str = "lamp", **fields: Any) -> Scenario:
    return Scenario(**{"name": name, "user": shopper(), "milestones": FIND_AND_BUY, **fields})


def suite(*names: str, **fields: Any) -> Suite:
    return Suite(scenarios=tuple(lamp(name, **fields) for name in names or ("lamp",)), seed=1)


def find() -> str:
    """Find a lamp."""
    return "one lamp"


def buy() -> str:
    """Buy it."""
    return "bought"


def shop_agent(**fields: Any) -> Agent:
    return Agent("Shop", "A shop.", tools=[find, buy], **fields)
