"""A page on which the reply grows while it is written: `python examples/front_end/serve.py [AGENT.yaml] [MODEL]`.

Without a model the offline one answers, which is no language model and is done at once; the page is then slowed down.
The server is the standard library's, for one machine: in production, send the same three events from your own, to
customers who are logged in, and with a checkpointer that outlives the process.
"""

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, create_guided_agent

HERE = Path(__file__).parent
LONGEST_MESSAGE = 10_000
# All that a customer may see. The other events, and the other fields of these, hold what is internal.
SHOWN = {
    "reply_delta": {"type", "revision", "text"},
    "reply_sent": {"type", "content"},
    "confirmation_asked": {"type", "id", "question"},
}


def run_turn(app: Any, request: dict[str, Any], pause: float = 0.0) -> Iterator[str]:
    """Run a turn, and yield what the page may see of it as server-sent events.

    A press of the button comes with the id of the question that it agrees to.
    """
    message = HumanMessage(request["text"])
    if question_id := request.get("question_id"):
        message.additional_kwargs["agrees_to"] = question_id
    thread = {"configurable": {"thread_id": request["thread"]}}
    for event in app.stream({"messages": [message]}, thread, stream_mode="custom"):
        if getattr(event, "type", None) in SHOWN:  # tools may write events of their own
            time.sleep(pause)
            yield f"data: {event.model_dump_json(include=SHOWN[event.type])}\n\n"


def make_server(app: Any, port: int = 0, pause: float = 0.0) -> ThreadingHTTPServer:
    """Return a server of the page; port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.begin("text/html; charset=utf-8")
            self.wfile.write((HERE / "page.html").read_bytes())

        def do_POST(self) -> None:
            length = min(int(self.headers.get("Content-Length", 0)), LONGEST_MESSAGE)
            request = json.loads(self.rfile.read(length))
            self.begin("text/event-stream")
            for event in run_turn(app, request, pause):
                self.wfile.write(event.encode())

        def begin(self, content_type: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Cache-Control", "no-store")
            self.end_headers()

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


def make_desk() -> Agent:
    """Return the order desk, which asks before it expedites an order."""
    file = HERE.parent / "order_desk" / "agent.yaml"
    return Agent.from_yaml(file).replace(confirm={"expedite_shipping": "customer"})


def main() -> None:
    """Serve an agent."""
    agent = Agent.from_yaml(sys.argv[1]) if sys.argv[1:] else make_desk()
    model = sys.argv[2] if sys.argv[2:] else "offline"
    app = create_guided_agent(model, agent, stream=True, checkpointer=MemorySaver())
    pause = 0.5 if model == "offline" else 0.0
    server = make_server(app, pause=pause)
    print(f"Open http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
