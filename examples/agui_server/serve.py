"""An agent behind AG-UI: `python examples/agui_server/serve.py [PORT] [AGENT.yaml] [MODEL]`.

Without a model the offline one answers, which is no language model. Point a front end at it, such as AG-UI's own
`new HttpAgent({url: "http://127.0.0.1:8000/"})`. It needs `pip install "arq_graph[agui]" starlette uvicorn`. In
production, take a checkpointer that outlives the process, and check that a thread is that of the user who names it.
"""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from ag_ui.core import RunAgentInput
from ag_ui.encoder import EventEncoder
from langgraph.checkpoint.memory import MemorySaver
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from arq_graph import Agent, create_guided_agent
from arq_graph.agui import agui_events


def make_server(app: Any) -> Starlette:
    """Return a server that runs a turn for each request."""

    async def run_turn(request: Request) -> Response:
        try:
            run_input = RunAgentInput.model_validate_json(await request.body())
        except ValidationError as error:
            return PlainTextResponse(str(error), status_code=422)
        encoder = EventEncoder()

        async def encode_events() -> AsyncIterator[str]:
            async for event in agui_events(app, run_input, durability="sync"):
                yield encoder.encode(event)

        return StreamingResponse(encode_events(), media_type=encoder.get_content_type())

    return Starlette(routes=[Route("/", run_turn, methods=["POST"])])


def make_desk() -> Agent:
    """Return the order desk, which asks before it expedites an order."""
    file = Path(__file__).parents[1] / "order_desk" / "agent.yaml"
    return Agent.from_yaml(file).replace(confirm={"expedite_shipping": "customer"})


def main() -> None:
    """Serve an agent."""
    port = int(sys.argv[1]) if sys.argv[1:] else 8000
    agent = Agent.from_yaml(sys.argv[2]) if sys.argv[2:] else make_desk()
    model = sys.argv[3] if sys.argv[3:] else "offline"
    app = create_guided_agent(model, agent, stream=True, checkpointer=MemorySaver())
    uvicorn.run(make_server(app), port=port)


if __name__ == "__main__":
    main()
