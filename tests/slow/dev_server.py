"""`langgraph dev` with examples/server and the graphs of `served_graphs.py`, and a customer that talks to it."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langgraph_sdk import get_sync_client

from tests.slow.servers import find_free_port, run_server

ROOT = Path(__file__).parent.parent.parent
OFFLINE = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
}


@contextmanager
def serving(folder: Path, **settings: str) -> Iterator[str]:
    """Run the server and yield its address; its output goes to a file in the folder."""
    shutil.copytree(ROOT / "examples" / "server", folder, dirs_exist_ok=True)
    config = json.loads((folder / "langgraph.json").read_text())
    for name in ("careless", "blocking", "langchain_agent", "scripted", "handing_over"):
        config["graphs"][name] = f"{ROOT}/tests/slow/served_graphs.py:{name}"
    (folder / "langgraph.json").write_text(json.dumps(config))
    port = find_free_port()
    options = f"--no-browser --no-reload --port {port} --n-jobs-per-worker 4"
    command = [sys.executable, "-m", "langgraph_cli", "dev", *options.split()]
    environment = {**os.environ, **OFFLINE, **settings, "PYTHONPATH": str(ROOT)}
    with run_server(command, port, folder / "log", cwd=folder, env=environment) as url:
        yield url


class Customer:
    """A customer who talks to a graph over HTTP, on their own thread."""

    def __init__(self, url: str, graph: str = "desk") -> None:
        self.client = get_sync_client(url=url)
        self.graph = graph
        self.thread: str = self.client.threads.create()["thread_id"]

    def run(self, **options: Any) -> dict[str, Any]:
        state: dict[str, Any] = self.client.runs.wait(self.thread, self.graph, **options)
        return state

    def say(self, text: str, **channels: Any) -> dict[str, Any]:
        return self.run(input={**make_input(text), **channels})

    def resume(self, *decisions: Any) -> dict[str, Any]:
        return self.run(command={"resume": {"decisions": list(decisions)}})

    @property
    def pending_calls(self) -> list[Any]:
        """The calls that wait for an operator."""
        tasks = self.client.threads.get_state(self.thread)["tasks"]
        calls: list[Any] = []
        for task in tasks:
            for interrupt in task["interrupts"]:
                calls += interrupt["value"]["action_requests"]
        return calls


def make_input(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}
