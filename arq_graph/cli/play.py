"""`arq-graph play`: talk to an agent on a page of this machine."""

from __future__ import annotations

import importlib.util
import socket
import webbrowser
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from typer import Argument, Option

from arq_graph.apps.agents import create_guided_agent
from arq_graph.cli import options
from arq_graph.cli.dialogue import StrategyOption
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.screen import note, show
from arq_graph.errors import InputError

_PACKAGES = ("starlette", "uvicorn", "watchfiles", "ag_ui")


def play(
    agent: Annotated[str, Argument(metavar="FILE", help="The agent's file, or module:object.")],
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    port: Annotated[
        int | None,
        Option("--port", min=1024, max=65535, metavar="N", help="The port. Default: a free one."),
    ] = None,
    no_open: Annotated[bool, Option("--no-open", help="Open no browser.")] = False,
) -> None:
    """Talk to an agent on a page of this machine, and see why it does what it does.

    The page shows guidelines, tools, journeys, and every prompt. When you edit the agent's file, or modules beside it,
    the conversation goes on with the new agent. Nobody but you can open the page. Ctrl-C ends it.
    """
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise InputError(f'arq-graph play needs {", ".join(missing)}: pip install "arq_graph[play]"')
    from uvicorn import Config, Server

    from arq_graph.play.agent_source import AgentSource
    from arq_graph.play.conversation import Conversation
    from arq_graph.play.gate import Gate
    from arq_graph.play.server import make_server

    model_choice = choose_model(model, base_url, model_arg)
    settings: dict[str, Any] = {"strategy": strategy, "mode": mode, "stream": True}
    make_app = partial(create_guided_agent, model_choice.chat_model(), **settings)
    conversation = Conversation(AgentSource(agent, milestones), make_app, model_choice.name)
    with _listen(port) as listener:
        bound_port = listener.getsockname()[1]
        gate = Gate(make_server(conversation), bound_port)
        address = f"http://127.0.0.1:{bound_port}/?token="
        show(conversation.agent.name, style="bold")
        print(f"  {address}{gate.token}", flush=True)
        note("The address is for you alone. Ctrl-C ends the playground.")
        if not no_open:
            webbrowser.open(address + gate.token_for_once)
        # The log of requests would have the token in it.
        logging: dict[str, Any] = {"log_level": "warning", "access_log": False}
        with suppress(KeyboardInterrupt):
            Server(Config(gate, ws="none", timeout_graceful_shutdown=3, **logging)).run(sockets=[listener])


def _listen(port: int | None) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", port or 0))
    except OSError as error:
        raise InputError(f"port {port} cannot be used: {error.strerror}; leave --port out") from error
