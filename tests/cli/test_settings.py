"""Which model is asked: options, environment, `.env`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arq_graph.cli.env_file import load_env_file
from arq_graph.cli.settings import OFFLINE, choose_model
from arq_graph.errors import InputError
from tests.cli.conftest import Cli
from tests.cli.shop import clerk, serving
from tests.reasoning.endpoint import Endpoint


def test_without_anything_it_is_the_offline_model_and_one_is_told() -> None:
    choice = choose_model(None, None, {})
    assert choice.spec == OFFLINE
    assert "offline model" in choice.notice


def test_an_option_goes_before_the_environment() -> None:
    environ = {"ARQ_GRAPH_MODEL": "theirs", "ARQ_GRAPH_BASE_URL": "http://theirs/v1", "OPENAI_API_KEY": "k"}
    choice = choose_model("mine", "http://mine/v1", environ)
    assert (choice.spec, choice.base_url, choice.notice) == ("mine", "http://mine/v1", "")
    assert choose_model(None, None, environ).spec == "theirs"


def test_a_key_alone_asks_openai_and_says_so() -> None:
    choice = choose_model(None, None, {"OPENAI_API_KEY": "k"})
    assert choice.spec == "openai:gpt-4o"
    assert "OPENAI_API_KEY" in choice.notice


def test_the_offline_model_needs_no_endpoint_of_the_environment() -> None:
    environ = {"ARQ_GRAPH_BASE_URL": "http://theirs/v1"}
    assert choose_model(OFFLINE, None, environ).base_url is None


def test_settings_that_are_empty_are_none() -> None:
    assert choose_model("", "", {"ARQ_GRAPH_MODEL": " ", "OPENAI_API_KEY": ""}).spec == OFFLINE


def test_an_endpoint_without_a_model_is_refused() -> None:
    with pytest.raises(InputError, match="--model"):
        choose_model(None, None, {"ARQ_GRAPH_BASE_URL": "http://theirs/v1"})


def test_a_dotenv_file_chooses_the_model(cli: Cli, shop: Path) -> None:
    with Endpoint(serving(clerk())) as endpoint:
        Path(".env").write_text(
            f"# a local server\nexport ARQ_GRAPH_MODEL='{endpoint.model_name}'\n"
            f"ARQ_GRAPH_BASE_URL = {endpoint.base_url}  # this machine\n"
        )
        done = cli("run", shop, "-c", "-", stdin="Where is B-1?")
        assert endpoint.calls
    assert done.code == 0
    assert "offline" not in done.err


def test_a_dotenv_file_never_overrides_the_environment(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(".env").write_text("ARQ_GRAPH_MODEL=openai:expensive\n")
    monkeypatch.setenv("ARQ_GRAPH_MODEL", OFFLINE)
    assert cli("run", shop, "-c", "-", stdin="Hello").code == 0
    assert os.environ["ARQ_GRAPH_MODEL"] == OFFLINE


def test_a_line_that_sets_nothing_is_named_and_the_others_are_read(cli: Cli, shop: Path) -> None:
    Path(".env").write_text("this is prose\nARQ_GRAPH_MODEL=offline\n")
    done = cli("run", shop, "-c", "-", stdin="Hello")
    assert done.code == 0
    assert ".env:1" in done.err
    assert "key" not in done.err


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=b", "b"),
        ("A=", ""),
        ("  export A = b c  ", "b c"),
        ("A='b # c'", "b # c"),
        ('A="b" # c', "b"),
        ("A=b # c", "b"),
        ("A=b#c", "b#c"),
        ("A=#c", ""),
        ("A=$HOME `id` $(id)", "$HOME `id` $(id)"),
        ("A=b=c", "b=c"),
        ("A='it''s'", "it''s"),
        ('A="half', '"half'),
    ],
)
def test_a_setting_is_read_as_it_is_written(tmp_path: Path, line: str, value: str) -> None:
    file = tmp_path / ".env"
    file.write_text(f"\ufeff{line}\n", encoding="utf-8")
    environ: dict[str, str] = {}
    assert load_env_file(file, environ) == []
    assert environ == {"A": value}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_bytes(b"A=\xff\xfe")
    (unread,) = load_env_file(file, {})
    assert str(file) in unread
    assert load_env_file(tmp_path, {}) == []


@given(st.text())
def test_any_text_can_stand_in_the_file(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("env") / ".env"
    file.write_text(text, encoding="utf-8", errors="replace")
    environ: dict[str, str] = {"A": "kept"}
    load_env_file(file, environ)
    assert environ["A"] == "kept"
    for name, value in environ.items():
        assert name.isidentifier()
        assert "\0" not in value
