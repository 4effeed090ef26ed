"""Mistakes are reported in one message, with an exit code that means something."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.shop import options
from tests.reasoning.endpoint import Endpoint, refusal, status

FILES = {
    "blank.txt": " \n\n",
    "odd.jsonl": '["user", "Hi"]\n7\n',
    "silent.json": '[{"role": "user", "content": "hello?"}]',
    "talk.json": '[{"role": "user", "content": "hello?"}, {"role": "assistant", "content": "Yes?"}]',
    "step.json": '[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]',
    "names.json": '["get_order"]',
    "nameless.json": "[1]",
    "ways.txt": "Look the order up.",
}
SCORE = "score talk.json --milestones milestones.yaml"
SOMEWHERE = "--base-url http://127.0.0.1:1/v1"
LOCAL = f"chat agent.yaml --model m {SOMEWHERE} --model-arg"
EVALUATE = "evaluate suite.yaml --model offline --arms"
AUTHOR = "milestones author --model offline --tools names.json --out"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("check agnt.yaml", "did you mean `agent.yaml`?"),
        ("check suite.yaml", "is not a valid agent file: it looks like a suite, which `arq-graph evaluate`"),
        ("chat agent.yaml --model gpt-4o", "set OPENAI_API_KEY."),
        (f"{LOCAL} reasoning_efort=low", "no argument 'reasoning_efort'; did you mean `reasoning_effort`"),
        (f"{LOCAL} temperature=hot", "made with temperature: temperature: Input should be a valid number"),
        (f"{LOCAL} api_key=k", "'api_key' is a secret"),
        (
            "simulate suite.yaml --model offline --model-arg seed=1",
            "OfflineChatModel knows no argument 'seed'",
        ),
        ("chat agent.yaml --db agent.yaml", "file of threads"),
        ("run agent.yaml -c blank.txt", "holds no message of a customer"),
        ("run agent.yaml -c odd.jsonl", "odd.jsonl is not JSON of texts or chat messages: Unsupported"),
        ("score gone.json --milestones milestones.yaml", "gone.json cannot be read"),
        (f"{SCORE} --json no/such/out.json", "cannot be written"),
        (f"{EVALUATE} guidde", "did you mean `guided`"),
        ("turns talk.json --tools names.json", "a name alone doesn't describe a tool"),
        ("turns silent.json", "holds no step"),
        (f"{AUTHOR} graph.yaml --workflow ways.txt", "the offline model cannot draft milestones"),
        (f"{AUTHOR} graph.yaml --workflow latin.txt", "not UTF-8"),
        (f"{AUTHOR} ways.txt --workflow ways.txt", "is there already"),
        (f"{AUTHOR} graph.yaml --workflow ways.txt --tools ways.txt", "not a list of tools (expected value"),
        (f"{AUTHOR} graph.yaml --workflow ways.txt --tools nameless.json", "a tool without a name"),
    ],
)
def test_a_wrong_input_ends_with_1_and_one_message_and_leaves_the_files_alone(cli, shop, line, message):
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("latin.txt").write_bytes(b"caf\xe9")
    before = {file: file.read_bytes() for file in shop.parent.iterdir()}
    result = cli(*line.split())
    assert (result.code, result.out) == (1, "")
    assert result.err.count("error: ") == 1
    assert message in result.words
    assert {file: file.read_bytes() for file in shop.parent.iterdir() if file.is_file()} == before


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "No such command"),
        ("prepare", "Missing argument"),
        ("schema poem", "'poem'"),
        ("score talk.json", "name what is to be reached"),
        ("turns t.json --agent a --tools t", "give one of them"),
        ("chat agent.yaml --model-arg low", "it must be written NAME=VALUE"),
        (f"chat agent.yaml {SOMEWHERE}", "but no model"),
        (f"{SCORE} --json talk.json", "must be different files"),
        (f"{SCORE} --milestones milestones=milestones.yaml", "write one as NAME=FILE"),
        (f"{EVALUATE} guided --results suite.yaml", "must be different files"),
        (f"{EVALUATE} guided --max-cost 1 --prices gpt-4o=2.5", "must be written MODEL=IN/OUT"),
    ],
)
def test_a_wrong_command_line_ends_with_2(cli, shop, line, message):
    Path("talk.json").write_text(FILES["talk.json"])
    result = cli(*line.split())
    assert (result.code, message in result.words) == (2, True), result.words


def test_no_answer_from_the_model_ends_with_3(cli, shop):
    with Endpoint(lambda _: refusal("I will not")) as endpoint:
        result = cli("run", shop, "-c", "-", *options(endpoint), stdin="Hello")
    assert result.code == 3
    assert "error: " in result.err
    assert "During task" not in result.err


def test_waiting_for_the_model_is_shown(cli, shop):
    with Endpoint(lambda _: status(503, "busy") if endpoint.calls == 1 else status(401, "no")) as endpoint:
        result = cli("run", shop, "-c", "-", *options(endpoint), stdin="Hello")
    assert "asking again in" in result.words


def test_a_tool_that_ends_the_program_is_named_as_such(served, shop):
    tools = shop.with_name("desk.py")
    tools.write_text(tools.read_text().replace("    if order_id", "    raise SystemExit(7)\n    if order_id"))
    result = served("run", shop, "-c", "-", stdin="Where is B-1?")
    assert result.code == 1
    assert "ended the program (exit code 7)" in result.words


def test_an_unexpected_error_has_a_traceback_only_with_debug(cli, shop, monkeypatch):
    import sqlite3

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is on fire")

    monkeypatch.setattr(sqlite3, "connect", broken)
    result = cli("chat", shop)
    assert result.code == 1
    assert "the disk is on fire" in result.err
    assert "--debug" in result.err
    assert "Traceback" not in result.err
    assert "Traceback" in cli("--debug", "chat", shop).err


def check_with_output_to(output: int, shop: Path) -> list[str]:
    """Return the errors of `check` if its output goes to a file descriptor that fails."""
    command = [sys.executable, "-m", "arq_graph", "check", str(shop)]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # as for most users
    result = subprocess.run(
        command, stdout=output, stderr=subprocess.PIPE, env=buffered, text=True, check=False
    )
    os.close(output)
    assert result.returncode == 1
    return [line for line in result.stderr.splitlines() if not line.startswith(" ")]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_reported_in_one_line(shop):
    lines = check_with_output_to(os.open("/dev/full", os.O_WRONLY), shop)
    assert lines == ["error: the disk is full: the output could not be written"]


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_it_without_a_word(shop):
    reading, writing = os.pipe()
    os.close(reading)
    assert check_with_output_to(writing, shop) == []


@pytest.mark.slow
def test_a_terminal_that_knows_ascii_alone_is_shown_the_rest_in_escapes(shop):
    command = [sys.executable, "-m", "arq_graph", "check", str(shop)]
    in_ascii = {**os.environ, "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, env=in_ascii, capture_output=True, text=True, check=True)
    assert "look the order up" in result.stdout
    assert "\\xb7" in result.stdout  # the dot between two notes


@pytest.mark.slow
def test_help_shows_the_options_without_types_and_loads_no_slow_library(cli):
    short, long = (cli("milestones", "check", option) for option in ("-h", "--help"))
    assert (short.code, short.out) == (0, long.out)
    assert "Usage: arq-graph" in short.out
    assert "<" not in short.out
    command = [sys.executable, "-X", "importtime", "-m", "arq_graph", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "typer" in loaded
    assert not loaded & {"langgraph", "langchain_core", "langchain_openai", "pydantic", "networkx"}
