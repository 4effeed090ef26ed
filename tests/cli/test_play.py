"""`arq-graph play`, before its page is open."""

import importlib.util
import socket
from typing import Any

import pytest

AGENT = "name: Desk\nprofile: You help.\n"


@pytest.fixture
def desk(folder: Any) -> Any:
    file = folder / "desk.yaml"
    file.write_text(AGENT)
    return file


def test_a_port_in_use_is_named(cli: Any, desk: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = cli("play", desk, "--model", "offline", "--no-open", "--port", str(port))
    assert (result.code, f"port {port} cannot be used: Address already in use" in result.words) == (1, True)


def test_the_missing_packages_are_named_with_their_extra(cli: Any, desk: Any, monkeypatch: Any) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "uvicorn" else find_spec(name)
    )
    result = cli("play", desk, "--model", "offline", "--no-open")
    assert result.code == 1
    assert 'arq-graph play needs uvicorn: pip install "arq_graph[play]"' in result.words


def test_an_object_of_a_module_must_be_an_agent(cli: Any, folder: Any) -> None:
    (folder / "desks.py").write_text("desk = {}")
    result = cli("play", "desks:desk", "--model", "offline", "--no-open")
    assert result.code == 1
    assert "desks:desk is a dict, not an Agent" in result.words
