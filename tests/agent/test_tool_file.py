"""Tools that a YAML file describes: what their calls give, and what is wrong with such a file."""

from __future__ import annotations

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

PAGE = (Path(__file__).parents[2] / "docs/agent.md").read_text(encoding="utf-8")
(BANK,) = re.findall(r"```yaml\n# bank_tools.yaml\n(.*?)```", PAGE, re.DOTALL)

Reads = Callable[[str], Agent]


@pytest.fixture
def read(tmp_path: Path) -> Reads:
    """Reads an agent whose one tool stands in a file of tools."""
    agent = tmp_path / "bank.yaml"
    agent.write_text("name: Bank\nprofile: You are a bank.\ntools:\n- bank_tools.yaml:send_money\n")

    def reads(tools: str) -> Agent:
        (tmp_path / "bank_tools.yaml").write_text(tools, encoding="utf-8")
        return Agent.from_yaml(agent)

    return reads


def call(**arguments: Any) -> Any:
    return {"type": "tool_call", "id": "1", "name": "send_money", "args": arguments}


def result(tool: BaseTool, **arguments: Any) -> tuple[str, Any]:
    message = tool.invoke(call(**arguments))
    assert isinstance(message, ToolMessage)
    return message.status, message.content


def test_the_first_case_that_fits_says_what_a_call_gives(read: Reads) -> None:
    tool = read(BANK).toolbox["send_money"]
    sent = {"to": "P1", "amount": 20, "state": "sent", "note": "£20 sent: rent"}
    assert tool.invoke({"payee": "P1", "amount": 20, "reference": "rent"}) == sent
    assert tool.invoke({"payee": "P1", "amount": 20.0}) == sent | {"note": "£20 sent: "}
    assert tool.invoke({"payee": "P1", "amount": 500})["state"] == "waits for approval"
    assert result(tool, payee="P2", amount=500) == ("error", "The account of P2 is closed.")


async def test_a_described_tool_runs_in_async_runs(read: Reads) -> None:
    message = await read(BANK).toolbox["send_money"].ainvoke(call(payee="P2", amount=1))
    assert (message.status, message.content) == ("error", "The account of P2 is closed.")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"payee": "P1", "amount": 5000}, "amount: 5000 is greater than the maximum of 1000"),
        ({"payee": "P1"}, "amount: it is required"),
        ({"payee": "P1", "amount": 1, "reference": None}, "reference: None is not of type 'string'"),
    ],
)
def test_a_call_whose_arguments_do_not_fit_fails(read: Reads, arguments: Any, why: str) -> None:
    assert result(read(BANK).toolbox["send_money"], **arguments) == ("error", why)


def test_a_model_sees_it_as_a_function_of_the_same_signature(read: Reads) -> None:
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
    schemas = [
        get_argument_schemas(agent.toolbox.values())
        for agent in (described, Agent("B", "b", tools=[send_money]))
    ]
    assert str(schemas[0]) == str(schemas[1])


def test_an_edited_file_is_read_anew_and_is_another_tool(read: Reads) -> None:
    before, again, after = (
        read(text).toolbox["send_money"] for text in (BANK, BANK, BANK.replace("closed", "shut"))
    )
    assert result(after, payee="P2", amount=1)[1] == "The account of P2 is shut."
    assert fingerprint(before) == fingerprint(again) != fingerprint(after)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (
            BANK.replace("send_money", "send_mony"),
            "the file has no tool 'send_money'; did you mean `send_mony`",
        ),
        (
            BANK.replace("description: Send", "descripton: Send"),
            ":2: has an unknown key `descripton`; did you mean",
        ),
        (
            BANK.replace("maximum", "maximun"),
            ":5: `.*amount` has 'maximun', which .*; did you mean `maximum`",
        ),
        (
            BANK.replace("maximum: 1000", "maximum: much"),
            ":5: `.*amount` is no JSON Schema: 'much' is not of type",
        ),
        (
            BANK.replace("{payee: P2}", "{paye: P2}"),
            r":8: `.*cases\[0\]` names 'paye', .*; did you mean `payee`",
        ),
        (BANK.replace("£$amount", "£$amout"), ":1: `send_money` names 'amout', which is no argument"),
        (BANK.replace('default: ""', "default: 0"), ":6: .*reference.default` .*: 0 is not of type 'string'"),
        (BANK.replace("    error:", "    eror:"), ":9: has an unknown key `eror`"),
        ("send_money: {description: d}", ":1: `send_money` must have either `returns` or `error`"),
    ],
)
def test_what_is_wrong_with_the_file_is_told_with_its_line(read: Reads, tools: str, message: str) -> None:
    told = rf"(?s)bank.yaml:4: `tools\[0\]` (names|cannot be used: ).*{message}"
    with pytest.raises(SpecError, match=told):
        read(tools)


def test_a_broken_file_is_told_once_however_often_it_is_named(read: Reads) -> None:
    read(BANK).file.write_text("name: B\nprofile: P\ntools: [bank_tools.yaml:a, bank_tools.yaml:b]\n")
    with pytest.raises(SpecError) as error:
        read("a: {}\nb: {description: B, returns: 1}\n")
    assert str(error.value).count("`a.description` is missing") == 1


def test_a_file_of_tools_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml: the file of tools cannot be read: No such file"):
        Agent("Bank", "You are a bank.", tools=[f"{tmp_path}/nowhere.yaml:send_money"])
