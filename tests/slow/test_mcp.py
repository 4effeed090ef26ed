"""MCP: an agent's file names servers and their tools, and the commands work with them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, create_guided_agent
from arq_graph.cli import main
from arq_graph.errors import SpecError
from tests.slow.servers import find_free_port, run_server

pytest.importorskip("langchain_mcp_adapters", reason="langchain-mcp-adapters is not installed")
pytestmark = pytest.mark.slow

SERVER = """
import os, sys
from typing import Annotated
from mcp.server.fastmcp import Context, FastMCP
from mcp.types import ToolAnnotations
from pydantic import Field

server = FastMCP("orders", port=int(sys.argv[1]) if sys.argv[1:] else 0, log_level="ERROR")
Number = Annotated[str, Field(description="The number of the order, like ORD-1001.")]

@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def get_order(order_id: Number, context: Context) -> dict:
    "Look up an order."
    if order_id == "ORD-9999":
        raise ValueError("there is no such order")
    if order_id == "ORD-6666":
        os._exit(1)  # the server goes down
    request = context.request_context.request
    shop = request.headers["X-Shop"] if request else os.environ["SHOP"]
    return {"order_id": order_id, "status": "delayed", "shop": shop}

@server.tool()
def cancel_order(order_id: Number) -> str:
    "Cancel an order."
    return f"{order_id} is cancelled"

with open("starts.txt", "a") as starts:
    starts.write("started ")
server.run(transport="streamable-http" if sys.argv[1:] else "stdio")
"""
AGENT = """
name: Desk
profile: You help with orders.
mcp:
  orders: %s
guidelines:
- condition: the customer asks where an order is
  action: look the order up and tell its status
  tools: [mcp:orders/get_order]
- condition: the customer asks to cancel an order
  action: cancel the order
  tools: ["mcp:orders/cancel_order"]
confirm: {cancel_order: customer}
"""
SUITE = """
defaults: {agent: desk.yaml, milestones: goals.yaml}
scenarios:
- name: late order
  user:
    intents: [{request: "Hello, where is my order ORD-1001?"}]
"""
GOALS = """
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC, description: the order was looked up, dependencies: [Start]}
- {name: End, type: NFC, dependencies: [get_order]}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "orders.py").write_text(SERVER)
    command = f'{{command: "{sys.executable}", args: [orders.py], env: {{SHOP: "${{ARQ_TEST_SHOP}}"}}}}'
    (folder / "desk.yaml").write_text(AGENT % command)
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "goals.yaml").write_text(GOALS)
    return folder


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    port = find_free_port()
    with run_server([sys.executable, "orders.py", str(port)], port, folder / "log", cwd=folder) as url:
        yield f"{url}/mcp"


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with serving(folder) as address:
        yield address


@pytest.fixture(autouse=True)
def _shop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARQ_TEST_SHOP", "north")


def converse(agent: Agent, *texts: str) -> list[str]:
    """Return the texts of all messages of a conversation."""
    app: Any = create_guided_agent("offline", agent, checkpointer=MemorySaver())
    for text in texts:
        state = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
    return [message.text for message in state["messages"]]


def get_tool_message(state: Any) -> Any:
    (message,) = [message for message in state["messages"] if message.type == "tool"]
    return message


def get_tool_error(agent: Agent, order: str) -> str:
    app: Any = create_guided_agent("offline", agent)
    message = get_tool_message(app.invoke({"messages": [("user", f"Where is my order {order}?")]}))
    assert message.status == "error"
    return str(message.text)


def test_a_started_server_has_its_environment_and_its_calls_are_confirmed(folder: Path) -> None:
    agent = Agent.from_yaml(folder / "desk.yaml")
    assert set(agent.toolbox) == {"get_order", "cancel_order"}
    texts = converse(agent, "Where is my order ORD-1001?", "Please cancel my order ORD-1001.", "Yes, please.")
    assert any('"status": "delayed"' in text and '"shop": "north"' in text for text in texts)
    assert any(text.endswith("Reply yes to go ahead.") for text in texts)
    assert "ORD-1001 is cancelled" in texts


@pytest.mark.parametrize("path", ["", "/nothing"])
def test_a_new_project_asks_before_calls_of_a_server_s_tools_that_do_not_only_read(
    address: str,
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["init", "shop", "--from", f"mcp:{address}{path}", "--model", "offline"])
    if path:
        assert (ended.value.code, list(tmp_path.iterdir())) == (1, [])
        assert "gives no tools" in " ".join(capsys.readouterr().err.split())
        return
    agent = Agent.from_yaml(tmp_path / "shop" / "agent.yaml")
    assert (set(agent.toolbox), set(agent.confirm)) == ({"get_order", "cancel_order"}, {"cancel_order"})
    assert "arq_graph[cli,play,mcp]" in (tmp_path / "shop" / "pyproject.toml").read_text()


async def test_a_server_at_an_address_serves_async_runs_and_its_errors_are_results(
    folder: Path, address: str
) -> None:
    server = f'{{url: "{address}", headers: {{X-Shop: "the ${{ARQ_TEST_SHOP}}"}}}}'
    (folder / "far.yaml").write_text(AGENT % server)
    app: Any = create_guided_agent("offline", Agent.from_yaml(folder / "far.yaml"))
    for order, status in (("ORD-1001", "success"), ("ORD-9999", "error")):
        state = await app.ainvoke({"messages": [("user", f"Where is my order {order}?")]})
        result = get_tool_message(state)
        assert result.status == status
        assert status == "error" or '"shop": "the north"' in result.text


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["chat", "desk.yaml"], "delayed"),
        (["evaluate", "suite.yaml", "--results", "results.jsonl"], "No evidence"),
    ],
    ids=["chat", "evaluate"],
)
def test_a_command_works_with_the_tools_of_a_server(folder: Path, arguments: list[str], output: str) -> None:
    command = [sys.executable, "-m", "arq_graph", *arguments]
    text = "Where is my order ORD-1001?\n/quit\n"
    done = subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert output in done.stdout
    if arguments[0] == "evaluate":
        assert '"goal_completed": true' in (folder / "results.jsonl").read_text()


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(401)

    def log_message(self, *args: object) -> None:
        pass


def test_the_result_of_a_call_to_a_failed_server_hides_its_address(folder: Path) -> None:
    agent = Agent.from_yaml(folder / "desk.yaml")
    assert get_tool_error(agent, "ORD-6666") == "the MCP server 'orders' gave no result: Connection closed"
    with serving(folder) as address:
        (folder / "dying.yaml").write_text(AGENT % f'{{url: "{address}?key=secret", timeout: 2}}')
        agent = Agent.from_yaml(folder / "dying.yaml")
        assert "Waited 2.0 seconds" in get_tool_error(agent, "ORD-6666")
        text = get_tool_error(agent, "ORD-1001")
        assert text.endswith("gave no result: All connection attempts failed")
        with ThreadingHTTPServer(("127.0.0.1", urlsplit(address).port or 0), Refusing) as refusing:
            Thread(target=refusing.serve_forever, daemon=True).start()
            assert get_tool_error(agent, "ORD-1001").endswith("gave no result: 401 Unauthorized")
            refusing.shutdown()


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("{command: python-not-there, args: [x]}", r"\(python-not-there x\) gives no tools: .*No such file"),
        ('{command: "python x.py"}', r"\('python x.py'\) .*; .* do its arguments stand in `args`"),
        ('{url: "http://127.0.0.1:9/mcp"}', r"9/mcp\) gives no tools: All connection attempts"),
        ('{url: "http://127.0.0.1:PORT/mpc"}', r"\(http://127.0.0.1:[0-9]+/mpc\) .* is its path right"),
        ('{url: "http://x", headers: {A: "${ARQ_NOT_SET}"}}', "variable ARQ_NOT_SET, which is not set"),
        ("{}", "has a `command` or a `url`, and not both"),
    ],
)
def test_the_error_about_a_server_without_tools_names_its_line(
    tmp_path: Path, address: str, server: str, message: str
) -> None:
    (tmp_path / "desk.yaml").write_text(AGENT % server.replace("PORT", str(urlsplit(address).port)))
    with pytest.raises(SpecError, match=message) as raised:
        Agent.from_yaml(tmp_path / "desk.yaml")
    assert str(raised.value).startswith(f"{tmp_path}/desk.yaml:5: ")
    assert "\n" not in str(raised.value)


def test_a_server_starts_once_for_all_tools_and_again_when_the_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text("print('no server')\nopen('starts.txt', 'a').write('started ')")
    (tmp_path / "desk.yaml").write_text(AGENT % f"{{command: {sys.executable}, args: [orders.py]}}")
    with pytest.raises(SpecError, match="gives no tools"):
        Agent.from_yaml(tmp_path / "desk.yaml")
    assert (tmp_path / "starts.txt").read_text() == "started "
    (tmp_path / "orders.py").write_text(SERVER)
    assert set(Agent.from_yaml(tmp_path / "desk.yaml").toolbox) == {"get_order", "cancel_order"}
    assert (tmp_path / "starts.txt").read_text() == "started started "


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ("mcp:orders/get_ordr", "no tool 'get_ordr'; did you mean `get_order`"),
        ("mcp:order/get_order", "no server 'order'; did you mean `orders`"),
    ],
)
def test_the_error_about_a_misspelt_name_suggests_the_right_one(
    folder: Path, tool: str, message: str
) -> None:
    text = (folder / "desk.yaml").read_text()
    (folder / "misspelt.yaml").write_text(text.replace("mcp:orders/get_order", tool))
    with pytest.raises(SpecError, match=message) as raised:
        Agent.from_yaml(folder / "misspelt.yaml")
    assert "misspelt.yaml:9:" in str(raised.value)
