"""The example's server of AG-UI in a process of its own, asked over HTTP, its events read with AG-UI's own types."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.servers import find_free_port, run_server

pytest.importorskip("ag_ui")
pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

import httpx
from ag_ui.core import BaseEvent, Event, RunAgentInput
from pydantic import TypeAdapter

from tests.agui.client import Client

pytestmark = pytest.mark.slow

SERVE = Path(__file__).parents[2] / "examples" / "agui_server" / "serve.py"
EVENT: Any = TypeAdapter(Event)


class HttpClient(Client):
    """A client whose app is the address of a server."""

    async def open_stream(self, request: RunAgentInput) -> AsyncIterator[BaseEvent]:
        body = request.model_dump_json(by_alias=True)
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30) as http,
            http.stream("POST", self.app, content=body, headers=headers) as response,
        ):
            assert response.headers["content-type"].startswith("text/event-stream")
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield EVENT.validate_json(line.removeprefix("data: "))


async def test_a_conversation_with_the_order_desk_over_http(tmp_path: Path) -> None:
    port = find_free_port()
    with run_server([sys.executable, str(SERVE), str(port)], port, tmp_path / "log") as address:
        client = HttpClient(address)
        assert await client.say("Hello, where is my order ORD-1002?") == "RUN_FINISHED"
        assert [role for role, _ in client.transcript] == ["user", "call", "tool", "assistant"]
        await client.say("Yes, please, expedited shipping!")
        (question,) = client.custom
        question_id = question.value["id"]  # type: ignore[attr-defined]
        await client.run(forwarded_props={"agrees_to": question_id})
        assert "now goes out with expedited shipping" in client.transcript[-1][1]
        async with httpx.AsyncClient(trust_env=False) as http:
            assert (await http.post(address, content="{}")).status_code == 422
