"""Which model is asked: options, environment, `.env`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shop import clerk, make_endpoint_handler, options
from tests.reasoning.endpoint import Endpoint


def test_a_dotenv_file_chooses_the_model_and_overrides_and_expands_nothing(cli, shop, monkeypatch, caplog):
    monkeypatch.setenv("MINE", "of the environment")
    with Endpoint(make_endpoint_handler(clerk())) as endpoint:
        Path(".env").write_text(
            f"# a local server\nexport ARQ_GRAPH_MODEL='{endpoint.model_name}'\nthis is prose\n"
            f"ARQ_GRAPH_BASE_URL = {endpoint.base_url}  # this machine\nA=$(id)\nMINE=x\n"
        )
        result = cli("run", shop, "-c", "-", stdin="Where is B-1?")
        assert endpoint.calls
    assert result.code == 0
    assert "offline" not in result.err
    assert (os.environ["A"], os.environ["MINE"]) == ("$(id)", "of the environment")
    assert "could not parse" in caplog.text


def test_an_address_from_a_dotenv_file_never_meets_a_key_of_the_environment_in_silence(
    cli, shop, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "of the environment")
    Path(".env").write_text("ARQ_GRAPH_BASE_URL=http://127.0.0.1:9/v1\nARQ_GRAPH_MODEL=offline\n")
    assert "the OPENAI_API_KEY of your environment will be sent there" in cli("check", shop).words


@pytest.mark.parametrize(
    ("environ", "options", "message"),
    [
        ({"ARQ_GRAPH_BASE_URL": "http://127.0.0.1:9/v1"}, [], "--model"),
        ({"ARQ_GRAPH_BASE_URL": "127.0.0.1:9"}, ["--model", "m"], "must begin with http"),
        ({"ARQ_GRAPH_MODEL": "openai:gpt-4o"}, ["--model", "offline"], "offline model"),
        ({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, [], "asking openai:gpt-4o"),
    ],
)
def test_the_choice_of_the_model_is_shown(cli, shop, monkeypatch, environ, options, message):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert message in cli("chat", shop, *options).words


def test_arguments_of_the_model_reach_each_call_as_text_or_json(cli, shop):
    settings = ["reasoning_effort=low", "temperature=0.5", 'model_kwargs={"seed": 7}']
    arguments = [word for setting in settings for word in ("--model-arg", setting)]
    with Endpoint(make_endpoint_handler(clerk())) as endpoint:
        result = cli("run", shop, "-c", "-", *options(endpoint), *arguments, stdin="Where is B-1?")
    assert result.code == 0
    expected = {"reasoning_effort": "low", "temperature": 0.5, "seed": 7}
    assert all(expected.items() <= request.body.items() for request in endpoint.requests)
    assert '(reasoning_effort="low", temperature=0.5' in result.words


def test_an_installation_without_the_extra_names_the_package_that_is_missing(folder):
    without_typer = "import sys; sys.modules['typer'] = None; from arq_graph.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", without_typer], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == 'error: arq-graph needs the package typer: pip install "arq_graph[cli]"\n'
