"""The command line in a folder of its own, without any key, and a shop's agent to try it on."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.cli.florist import AGENT, ARMS, SUITE
from tests.cli.shop import clerk, make_endpoint_handler, options, write_shop
from tests.reasoning.endpoint import Endpoint


@dataclass(frozen=True)
class CommandResult:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def words(self) -> str:
        """Everything that was printed, without line breaks and frames, which depend on the width."""
        return " ".join(f"{self.out} {self.err}".replace("│", " ").split())


Cli = Callable[..., CommandResult]
[PROGRAM] = entry_points(group="console_scripts", name="arq-graph")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory, and an environment that says nothing about models."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(("OPENAI_", "ARQ_GRAPH_", "LANGGRAPH_")) or name in ("NO_COLOR", "FORCE_COLOR"):
            del os.environ[name]
    os.environ["COLUMNS"] = "100"
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command as the shell would."""

    def run(*arguments: str | Path, stdin: str = "") -> CommandResult:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            PROGRAM.load()([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return CommandResult(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def served(cli: Cli) -> Cli:
    """Run a command whose model is the shop's clerk."""

    def run(*arguments: str | Path, stdin: str = "", **changes: Any) -> CommandResult:
        with Endpoint(make_endpoint_handler(clerk(**changes))) as endpoint:
            return cli(*arguments, *options(endpoint), stdin=stdin)

    return run


@pytest.fixture
def shop(folder: Path) -> Path:
    """The shop's agent file, with its tools, milestones and suite beside it."""
    return write_shop(folder)


@pytest.fixture
def suite(folder: Path) -> Path:
    for name, text in {"agent.yaml": AGENT, "suite.yaml": SUITE, "arms.py": ARMS}.items():
        (folder / name).write_text(text)
    return folder / "suite.yaml"


@pytest.fixture
def run_experiment(cli, suite):
    """Run an experiment on the florist's suite, offline."""

    def run(*options: str | Path, record: str = "out", code: int = 0):
        result = cli("experiment", suite, "--model", "offline", "--record", record, *options)
        assert result.code == code, result.words
        return result

    return run
