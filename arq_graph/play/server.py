"""The server of the playground: the page, its events, and what the page asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated

from ag_ui.core import RunAgentInput
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from arq_graph.errors import ArqGraphError, InputError, describe_first_error
from arq_graph.play.conversation import Conversation

_OWN = resources.files(__package__).joinpath("page")
_SHARED = resources.files("arq_graph.milestones.reports").joinpath("page")
_FILES = {
    "/": (_OWN / "index.html", "text/html"),
    "/play.css": (_OWN / "play.css", "text/css"),
    "/icon.svg": (_OWN / "icon.svg", "image/svg+xml"),
    "/play.js": (_OWN / "play.js", "text/javascript"),
    "/turns.js": (_OWN / "turns.js", "text/javascript"),
    "/inspector.js": (_OWN / "inspector.js", "text/javascript"),
    "/graph.js": (_OWN / "graph.js", "text/javascript"),
    # The page of a report has the same look.
    "/style.css": (_SHARED / "style.css", "text/css"),
    "/dom.js": (_SHARED / "dom.js", "text/javascript"),
}
"""By path, all files that are served, each with its type."""


class _Words(BaseModel):
    text: Annotated[str, Field(min_length=1, max_length=20_000)]


class _SavedScenario(BaseModel):
    file: Annotated[str, Field(min_length=1, max_length=200)]
    name: Annotated[str, Field(min_length=1, max_length=200)]


def make_server(conversation: Conversation) -> Starlette:
    """Return the playground, without the gate in front of it."""
    routes = [Route(path, _Endpoints.send_file) for path in _FILES]
    endpoints = _Endpoints(conversation)
    routes += [
        Route("/events", endpoints.send_events),
        Route("/calls/{id}", endpoints.send_call),
        Route("/turns", endpoints.start_turn, methods=["POST"]),
        Route("/restart", endpoints.restart, methods=["POST"]),
        Route("/colleague", endpoints.write_as_colleague, methods=["POST"]),
        Route("/give-back", endpoints.give_back, methods=["POST"]),
        Route("/scenarios", endpoints.save_scenario, methods=["POST"]),
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
    """What the page asks for; everything comes and goes as JSON."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @staticmethod
    async def send_file(request: Request) -> Response:
        file, media_type = _FILES[request.url.path]
        return Response(file.read_bytes(), media_type=media_type)

    async def send_events(self, request: Request) -> Response:
        """Send what follows the events that the page has; all, if these are of another conversation."""
        journal = self._conversation.journal
        position = request.query_params.get("after", "")
        after = 0
        if request.query_params.get("conversation") == journal.id and position.isdecimal():
            after = int(position)
        entries = await journal.read(after)
        return JSONResponse({"conversation": journal.id, "after": after, "entries": entries})

    async def send_call(self, request: Request) -> Response:
        call = self._conversation.recorder.get_call(request.path_params["id"])
        if call is None:
            raise InputError("This call isn't stored any more: only those of the last turns are.")
        return JSONResponse(call.model_dump(mode="json"))

    async def start_turn(self, request: Request) -> Response:
        self._conversation.start_turn(RunAgentInput.model_validate_json(await request.body()))
        return JSONResponse({}, status_code=202)

    async def restart(self, _: Request) -> Response:
        await self._conversation.restart()
        return JSONResponse({})

    async def write_as_colleague(self, request: Request) -> Response:
        words = _Words.model_validate_json(await request.body())
        await self._conversation.write_as_colleague(words.text)
        return JSONResponse({})

    async def give_back(self, _: Request) -> Response:
        await self._conversation.give_back()
        return JSONResponse({})

    async def save_scenario(self, request: Request) -> Response:
        scenario = _SavedScenario.model_validate_json(await request.body())
        path = await self._conversation.save(scenario.file, scenario.name)
        return JSONResponse({"command": f"arq-graph evaluate {path}"})


async def _explain(_: Request, error: Exception) -> Response:
    message = str(error)
    if isinstance(error, ValidationError):
        message = f"The request isn't valid: {describe_first_error(error)}"
    return JSONResponse({"error": message}, status_code=400)
