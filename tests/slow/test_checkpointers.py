"""A conversation goes on in another process, whatever checkpointer keeps it, under strict msgpack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.slow.kept import DIED, SAVERS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
BEGUN = [
    [4, ["find_rental"], None],
    [8, ["find_rental"], "customer"],
    [12, ["cancel_rental"], None],
]
GONE_ON = [
    [16, ["find_rental"], None],  # the turn in which the process died: its call is not made again
    [18, [], "operator"],
    [21, ["find_rental", "refund_rental"], None],
    [25, ["find_rental"], "customer"],
    [29, ["cancel_rental"], None],
    [27, [], None],  # back to where the customer was asked, who now says no
    [29, [], None],
]


def told(step: str, saver: str, address: str, *, code: int = 0) -> list[Any]:
    """What a process told of its turns."""
    command = [sys.executable, "-m", "tests.slow.kept", step, saver, address]
    strict = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true"}
    done = subprocess.run(command, cwd=ROOT, env=strict, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, ""), done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("saver", SAVERS)
def test_a_conversation_outlives_its_process(
    saver: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    is_sqlite = saver.endswith("sqlite")
    address = str(tmp_path / "threads.sqlite") if is_sqlite else request.getfixturevalue("postgres")
    assert told("begin", saver, address, code=DIED) == BEGUN
    assert told("go_on", saver, address) == GONE_ON
