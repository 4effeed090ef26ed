"""The server of the playground: the page, its events, and what the page asks for, as JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from ag_ui.core import RunAgentInput
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from arq_graph.errors import ArqGraphError, InputError, describe_first_error
from arq_graph.play.conversation import Conversation

# The style and the helpers are those of a report's page, which looks the same.
_FOLDERS: list[str | tuple[str, str]] = [("arq_graph.play", "page"), ("arq_graph.milestones.reports", "page")]

_POSITION = re.compile("[0-9]{1,9}")


class _Words(BaseModel):
    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class _Scenario(BaseModel):
    file: Annotated[str, Field(min_length=1, max_length=200)]
    name: Annotated[str, Field(min_length=1, max_length=200)]


def make_server(conversation: Conversation) -> Starlette:
    """Return the playground, without the gate in front of it."""
    endpoints = _Endpoints(conversation)
    routes = [
        Route("/events", endpoints.send_events),
        Route("/calls/{id}", endpoints.send_call),
        Route("/turns", endpoints.start_turn, methods=["POST"]),
        Route("/restart", endpoints.restart, methods=["POST"]),
        Route("/colleague", endpoints.write_as_colleague, methods=["POST"]),
        Route("/give-back", endpoints.give_back, methods=["POST"]),
        Route("/scenarios", endpoints.save_scenario, methods=["POST"]),
        Mount("/", StaticFiles(packages=_FOLDERS, html=True, follow_symlink=True)),
    ]

    @asynccontextmanager
    async def run(_: Starlette) -> AsyncIterator[None]:
        conversation.begin()
        watcher = asyncio.create_task(conversation.keep_up_to_date())
        yield
        watcher.cancel()

    handlers = {ArqGraphError: _explain, ValidationError: _explain}
    return Starlette(routes=routes, lifespan=run, exception_handlers=handlers)


class _Endpoints:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    async def send_events(self, request: Request) -> Response:
        """Send what follows the events that the page has; all, if these are of another conversation."""
        journal = self._conversation.journal
        position = request.query_params.get("after", "")
        after = 0
        if request.query_params.get("conversation") == journal.id and _POSITION.fullmatch(position):
            after = int(position)
        return JSONResponse({"conversation": journal.id, "entries": await journal.read(after)})

    async def send_call(self, request: Request) -> Response:
        call = self._conversation.calls.get(request.path_params["id"])
        if call is None:
            raise InputError("This call isn't stored any more: only those of the last turns are.")
        return JSONResponse(call)

    async def start_turn(self, request: Request) -> Response:
        self._conversation.start_turn(RunAgentInput.model_validate_json(await request.body()))
        return JSONResponse({})

    async def restart(self, _: Request) -> Response:
        self._conversation.restart()
        return JSONResponse({})

    async def write_as_colleague(self, request: Request) -> Response:
        words = _Words.model_validate_json(await request.body())
        await self._conversation.write_as_colleague(words.text)
        return JSONResponse({})

    async def give_back(self, _: Request) -> Response:
        await self._conversation.give_back()
        return JSONResponse({})

    async def save_scenario(self, request: Request) -> Response:
        scenario = _Scenario.model_validate_json(await request.body())
        path = await self._conversation.save(scenario.file, scenario.name)
        return JSONResponse({"command": f"arq-graph evaluate {path}"})


async def _explain(_: Request, error: Exception) -> Response:
    message = str(error)
    if isinstance(error, ValidationError):
        message = f"The request isn't valid: {describe_first_error(error)}"
    return JSONResponse({"error": message}, status_code=400)
