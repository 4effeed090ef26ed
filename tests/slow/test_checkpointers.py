"""A conversation continues in another process with every checkpointer, under strict msgpack."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.slow.stored_conversation import EXIT_CODE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
FIRST_TURNS = [
    [4, ["find_rental"], None],
    [8, ["find_rental"], "customer"],
    [12, ["cancel_rental"], None],
]
RESUMED_TURNS = [
    [16, ["find_rental"], None],  # the turn in which the process died: its call is not made again
    [18, [], "operator"],
    [21, ["find_rental", "refund_rental"], None],
    [25, ["find_rental"], "customer"],
    [29, ["cancel_rental"], None],
    [27, [], None],  # from the checkpoint with the question to the customer, who now says no
    [29, [], None],
]


def run_step(step: str, saver: str, address: str, *, code: int = 0) -> list[Any]:
    command = [sys.executable, "-m", "tests.slow.stored_conversation", step, saver, address]
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, ""), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(("first", "second"), [("sqlite", "async sqlite"), ("async postgres", "postgres")])
def test_a_conversation_outlives_its_process(
    first: str, second: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The two checkpointers of a database, of which one is for async runs, have the same threads."""
    if first == "sqlite":
        address = str(tmp_path / "threads.sqlite")
    else:
        address = request.getfixturevalue("postgres")
    assert run_step("begin", first, address, code=EXIT_CODE) == FIRST_TURNS
    assert run_step("resume", second, address) == RESUMED_TURNS
