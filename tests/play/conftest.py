"""A playground of a small desk, in a folder of its own, with a scripted model behind it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

pytest.importorskip("starlette")
pytest.importorskip("watchfiles")

from starlette.testclient import TestClient

from arq_graph import create_guided_agent
from arq_graph.play.agent_source import AgentSource
from arq_graph.play.conversation import Conversation
from arq_graph.play.gate import Gate
from arq_graph.play.server import make_server
from tests.brain import brain

PORT = 8123
ADDRESS = f"http://127.0.0.1:{PORT}"
AGENT = """\
name: Parcel desk
profile: You help with parcels.
guidelines:
- {id: look-up, condition: they ask about a parcel, action: look it up, tools: [desk:find_parcel]}
- {id: person, condition: they want a person, action: hand the conversation over, tools: [hand_over]}
confirm: {find_parcel: CONFIRM}
"""
TOOLS = '''\
def find_parcel(number: str) -> str:
    """Find a parcel."""
    return f"{number} is on its way"
'''


class Playground:
    """The playground as a browser talks to it, once it has opened the address."""

    def __init__(self, client: TestClient, gate: Gate, folder: Path) -> None:
        self.client = client
        self.token = gate.token
        self.token_for_once = gate.token_for_once
        self.folder = folder
        self.conversation = ""
        self.entries: list[dict[str, Any]] = []

    def open(self) -> Any:
        return self.client.get("/", params={"token": self.token})

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.client.post(path, json=body or {}, headers={"Origin": ADDRESS} | headers)

    def read(self) -> list[dict[str, Any]]:
        """Read what is new, as the page does."""
        query = {"conversation": self.conversation, "after": len(self.entries)}
        answer = self.client.get("/events", params=query).json()
        if answer["conversation"] != self.conversation:
            self.conversation, self.entries = answer["conversation"], []
        self.entries += answer["entries"]
        return answer["entries"]

    def read_until(self, name: str) -> dict[str, Any]:
        """Read until the next event of that type or name, and return it."""
        for _ in range(60):
            for entry in self.read():
                if name in (entry["type"], entry.get("name")):
                    return entry
        raise AssertionError(f"no {name} in {[entry.get('name', entry['type']) for entry in self.entries]}")

    def get_value(self, name: str) -> Any:
        """Return the value of the last event with this name."""
        return [entry["value"] for entry in self.entries if entry.get("name") == name][-1]

    def begin(self, **fields: Any) -> None:
        """Begin a turn."""
        request = {"threadId": "", "runId": "", "state": {}, "messages": [], "tools": [], "context": []}
        assert self.post("/turns", request | {"forwardedProps": {}} | fields).status_code == 200

    def run(self, **fields: Any) -> dict[str, Any]:
        """Run a turn to its end, and return the event that ends it."""
        self.begin(**fields)
        for _ in range(60):
            for entry in self.read():
                if entry["type"] in ("RUN_FINISHED", "RUN_ERROR"):
                    return entry
        raise AssertionError("the turn doesn't end")

    def say(self, text: str, **props: Any) -> dict[str, Any]:
        message = {"id": str(uuid4()), "role": "user", "content": text}
        return self.run(messages=[message], forwardedProps=props)

    @property
    def reply(self) -> str:
        return "".join(entry["delta"] for entry in self.entries if entry["type"] == "TEXT_MESSAGE_CONTENT")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Playground]]:
    """Starts a playground; its model answers as `brain` is told."""
    clients: list[TestClient] = []

    def start(
        confirm: str = "none",
        agent: str = AGENT,
        tools: str = TOOLS,
        opens: bool = True,
        milestones: Path | None = None,
        **script: Any,
    ) -> Playground:
        lines = agent.replace("CONFIRM", confirm)
        if confirm == "none":
            lines = "\n".join(line for line in lines.splitlines() if not line.startswith("confirm")) + "\n"
        (tmp_path / "agent.yaml").write_text(lines)
        (tmp_path / "desk.py").write_text(tools)
        script = {"judge": {"look-up": 9}, "call": {"find_parcel": {"number": "P-1"}}} | script
        model = brain(**{"reply": "It is on its way."} | script)

        make_app = partial(create_guided_agent, model)
        conversation = Conversation(
            AgentSource(str(tmp_path / "agent.yaml"), milestones), make_app, "scripted"
        )
        gate = Gate(make_server(conversation), PORT)
        clients.append(TestClient(gate, base_url=ADDRESS))
        clients[-1].__enter__()
        playground = Playground(clients[-1], gate, tmp_path)
        if opens:
            playground.open()
            playground.read()
        return playground

    yield start
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def playground(start: Callable[..., Playground]) -> Playground:
    """A playground that is open in a browser."""
    return start()
