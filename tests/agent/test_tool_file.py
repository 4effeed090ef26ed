"""Tools that a YAML file describes: the results of their calls, and mistakes in such a file."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool

from arq_graph import Agent
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import SpecError
from arq_graph.milestones.tool_schemas import get_argument_schemas

PAGE = (Path(__file__).parents[2] / "docs/tools.md").read_text(encoding="utf-8")
(BANK,) = re.findall(r"```yaml\n# bank_tools.yaml\n(.*?)```", PAGE, re.DOTALL)

ReadAgent = Callable[[str], Agent]


@pytest.fixture
def read(tmp_path: Path) -> ReadAgent:
    """Read an agent whose only tool is in a file of tools with the given text."""
    agent_file = tmp_path / "bank.yaml"
    agent_file.write_text("name: Bank\nprofile: You are a bank.\ntools:\n- bank_tools.yaml:send_money\n")

    def read_agent(tools: str) -> Agent:
        (tmp_path / "bank_tools.yaml").write_text(tools, encoding="utf-8")
        return Agent.from_yaml(agent_file)

    return read_agent


def make_call(**arguments: Any) -> Any:
    return {"type": "tool_call", "id": "1", "name": "send_money", "args": arguments}


def call(tool: BaseTool, **arguments: Any) -> tuple[str, Any]:
    message = tool.invoke(make_call(**arguments))
    assert isinstance(message, ToolMessage)
    return message.status, message.content


def test_the_first_case_that_fits_decides_the_result(read: ReadAgent) -> None:
    tool = read(BANK).toolbox["send_money"]
    sent = {"to": "P1", "amount": 20, "state": "sent", "note": "£20 sent: rent"}
    assert tool.invoke({"payee": "P1", "amount": 20, "reference": "rent"}) == sent
    assert tool.invoke({"payee": "P1", "amount": 20.0}) == sent | {"note": "£20 sent: "}
    assert tool.invoke({"payee": "P1", "amount": 500})["state"] == "waits for approval"
    assert call(tool, payee="P2", amount=500) == ("error", "The account of P2 is closed.")


async def test_a_described_tool_runs_in_async_runs(read: ReadAgent) -> None:
    message = await read(BANK).toolbox["send_money"].ainvoke(make_call(payee="P2", amount=1))
    assert (message.status, message.content) == ("error", "The account of P2 is closed.")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"payee": "P1", "amount": 5000}, "amount: 5000 is greater than the maximum of 1000"),
        ({"payee": "P1"}, "amount: it is required"),
        ({"payee": "P1", "amount": 1, "reference": None}, "reference: None is not of type 'string'"),
    ],
)
def test_a_call_with_invalid_arguments_fails(read: ReadAgent, arguments: Any, problem: str) -> None:
    assert call(read(BANK).toolbox["send_money"], **arguments) == ("error", problem)


def test_a_model_sees_the_schema_of_a_function_with_the_same_signature(read: ReadAgent) -> None:
    def send_money(payee: str, rush: bool = False) -> str:
        """Send money.

        Args:
            payee: Who gets it.
        """
        return f"{payee}{rush}"

    described = read(
        "send_money:\n  description: Send money.\n  returns: $payee\n  arguments:\n"
        "    payee: {type: string, description: Who gets it.}\n    rush: {type: boolean, default: false}\n"
    )
    written = Agent("B", "b", tools=[send_money])
    schemas = [get_argument_schemas(agent.toolbox.values()) for agent in (described, written)]
    assert str(schemas[0]) == str(schemas[1])


def test_an_edited_file_is_another_tool(read: ReadAgent) -> None:
    before = read(BANK).toolbox["send_money"]
    unchanged = read(BANK).toolbox["send_money"]
    after = read(BANK.replace("closed", "shut")).toolbox["send_money"]
    assert call(after, payee="P2", amount=1)[1] == "The account of P2 is shut."
    assert fingerprint(before) == fingerprint(unchanged) != fingerprint(after)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("send_money", "send_mony", "the file has no tool 'send_money'; did you mean `send_mony`"),
        (
            "description: Send",
            "descripton: Send",
            ":2: `send_money` has an unknown key `descripton`; did you mean",
        ),
        ("maximum", "maximun", ":5: `.*amount` has 'maximun', which is not a keyword of JSON Schema"),
        ("maximum: 1000", "maximum: much", ":5: `.*amount` is not a JSON Schema: 'much' is not of type"),
        ("{payee: P2}", "{paye: P2}", r":8: `.*cases\[0\]` names 'paye', which is not an argument"),
        ("£$amount", "£$amout", ":1: `send_money` names 'amout', which is not an argument"),
        ('default: ""', "default: 0", ":6: .*reference.default` .*: 0 is not of type 'string'"),
        ("    error:", "    eror:", r":9: `send_money.cases\[0\]` has an unknown key `eror`"),
        (BANK, "send_money: {description: d}", ":1: `send_money` must have either `returns` or `error`"),
    ],
)
def test_a_mistake_is_reported_with_its_line(read: ReadAgent, old: str, new: str, message: str) -> None:
    expected = rf"(?s)bank.yaml:4: `tools\[0\]` (names|cannot be used: ).*{message}"
    with pytest.raises(SpecError, match=expected):
        read(BANK.replace(old, new))


def test_a_broken_file_is_reported_once_however_often_it_is_named(read: ReadAgent) -> None:
    agent = read(BANK)
    assert agent.file
    agent.file.write_text("name: B\nprofile: P\ntools: [bank_tools.yaml:a, bank_tools.yaml:b]\n")
    with pytest.raises(SpecError) as caught:
        read("a: {}\nb: {description: B, returns: 1}\n")
    assert str(caught.value).count("`a.description` is missing") == 1


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml: the file of tools cannot be read: No such file"):
        Agent("Bank", "You are a bank.", tools=[f"{tmp_path}/nowhere.yaml:send_money"])
