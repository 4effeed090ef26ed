"""A file of a hundred megabytes is scored in bounded memory, however it is laid out."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from arq_graph.milestones.reports.report import read_report
from tests.cli.score_files import GRAPH, chat

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="the system does not tell a process's memory"
    ),
]

SIZE = 100_000_000
MOST_MEMORY = 400_000_000

# Not `ru_maxrss`: a process begins with what the one that started it used at most, here pytest's own memory.
COMMAND = """
import sys
from pathlib import Path
from arq_graph.cli import main
try:
    main(sys.argv[1:])
finally:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(status["VmHWM"].split()[0], file=sys.stderr)
"""


def conversations(chance: random.Random) -> Iterator[str]:
    """Conversations of about twenty kilobytes each."""
    while True:
        tools = [chance.choice(["find", "buy", "ask"]) for _ in range(8)]
        record = chat(*tools)
        for message in record["messages"]:
            if message["role"] == "tool":
                message["content"] = "".join(chance.choices('abc "{[]}ü\n', k=2_000))
        yield json.dumps(record, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "before", "between", "after"), [("chats.json", "[", ", ", "]"), ("chats.jsonl", "", "\n", "\n")]
)
def test_a_hundred_megabytes_fit_into_bounded_memory(tmp_path, name, before, between, after):
    (tmp_path / "shop.yaml").write_text(GRAPH)
    count = write_large(tmp_path / name, before, between, after)
    done = subprocess.run(
        [
            *(sys.executable, "-c", COMMAND, "score", name, "--milestones", "shop.yaml"),
            *("--json", "out.json", "--html", "out.html"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kilobytes = int(done.stderr.split()[-1])
    print(f"{name}: {count:,} conversations, {kilobytes / 1000:,.0f} MB at most")
    assert kilobytes * 1024 < MOST_MEMORY
    assert len(read_report(tmp_path / "out.json").conversations) == count


def write_large(file: Path, before: str, between: str, after: str) -> int:
    count = size = 0
    with file.open("w", encoding="utf-8") as stream:
        stream.write(before)
        for record in conversations(random.Random(1)):
            stream.write(f"{between if count else ''}{record}")
            count += 1
            size += len(record)
            if size >= SIZE:
                break
        stream.write(after)
    return count
