"""What goes wrong is said in one message, with an exit code that means something."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.shop import clerk, options, serving
from tests.reasoning.endpoint import Endpoint, refusal, status


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "nowhere.yaml"], "nowhere.yaml"),
        (["run", "{shop}", "-c", "nowhere.txt"], "nowhere.txt"),
        (["chat", "{shop}", "--model", "openai:gpt-4o"], "OPENAI_API_KEY"),
        (["chat", "{shop}", "--model", "nobody:nothing"], "nobody:nothing"),
        (["chat", "{shop}", "--thread", ""], "thread"),
        (["chat", "{shop}", "--db", "."], "--db"),
        (["chat", "{shop}", "--db", "{shop}"], "file of threads"),
        (["chat", "{shop}", "--db", "/proc/nothing/here.sqlite"], "--db"),
    ],
)
def test_a_wrong_input_ends_with_1_and_one_message(
    cli: Cli, shop: Path, arguments: list[str], said: str
) -> None:
    done = cli(*(argument.format(shop=shop) for argument in arguments))
    assert done.code == 1
    assert "error: " in done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.parametrize("arguments", [["chat"], ["nonsense"], ["demo", "--mode", "loud"], ["run", "a.yaml"]])
def test_a_wrong_command_line_ends_with_2(cli: Cli, arguments: list[str]) -> None:
    assert cli(*arguments).code == 2


@pytest.mark.parametrize("reply", [status(401, "bad key"), refusal("I will not")], ids=["key", "refusal"])
def test_no_answer_from_the_model_ends_with_3(cli: Cli, shop: Path, reply: object) -> None:
    with Endpoint(lambda _: reply) as endpoint:  # type: ignore[arg-type, return-value]
        done = cli("run", shop, "-c", "-", *options(endpoint), stdin="Hello")
    assert done.code == 3
    assert "error: " in done.err
    assert "During task" not in done.err


def test_a_module_that_fails_to_import_is_no_traceback(cli: Cli, shop: Path) -> None:
    shop.with_name("desk.py").write_text("import nothing_like_that\n")
    done = cli("check", shop)
    assert done.code == 1
    assert "nothing_like_that" in done.err
    assert "Traceback" not in done.err


def test_a_tool_that_ends_the_program_is_named_as_such(cli: Cli, shop: Path) -> None:
    tools = shop.with_name("desk.py")
    tools.write_text(tools.read_text().replace("    if order_id", "    raise SystemExit(7)\n    if order_id"))
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("run", shop, "-c", "-", *options(endpoint), stdin="Where is B-1?")
    assert done.code == 1
    assert "ended the program (exit code 7)" in done.words


def test_an_error_that_nobody_foresaw_is_no_bare_traceback(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(sqlite3, "connect", broken)
    done = cli("chat", shop)
    assert done.code == 1
    assert "the disk is on fire" in done.err
    assert "--debug" in done.err
    assert "Traceback" not in done.err


def test_a_reader_that_goes_away_is_told_in_a_line(shop: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "arq_graph.cli", "check", str(shop)],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["Whatever was reading the output has closed it."]


@pytest.mark.parametrize("command", [["chat"], ["score"], ["milestones", "check"]])
def test_every_command_tells_its_options(cli: Cli, command: list[str]) -> None:
    short, long = cli(*command, "-h"), cli(*command, "--help")
    assert (short.code, short.out) == (0, long.out)


def test_help_loads_no_library_that_takes_its_time() -> None:
    code = (
        "import sys\nfrom arq_graph.cli import main\ntry:\n    main(['--help'])\nfinally:\n"
        "    print(*sorted({'langgraph', 'langchain_core', 'langchain_openai', 'pydantic', 'networkx'} &"
        " set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
