"""`arq-graph milestones check` and `draw`: what is wrong with a milestone file, and what it looks like."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

SOUND = """\
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: Agreed, type: NFC, dependencies: [get_order]}
- {name: cancel, type: FC, tool: cancel_order, dependencies: [Agreed, get_order], requires: all}
- {name: End, type: NFC, dependencies: [cancel, Agreed]}
"""

# As published files are: a cycle of two, a join misspelled, descriptions unquoted, an FC named differently.
PUBLISHED = """\
milestones:
- name: Start
  type: NFC
  description: Begins: nothing is known
- name: getOrder
  type: FC
  description: The order's "details"
  dependencies: [Start]
- name: Ask Reason
  type: NFC
  description: Why: in the customer's words
  dependencies: [getOrder, Offer]
- name: Offer
  type: NFC
  description: Offer a credit: 10%
  dependencies: [getOrder, Ask Reason]
- name: All Done
  type: Aggrigator
  description: [sic] both
  dependencies: [Ask Reason, Offer]
- name: End
  type: NFC
  dependencies: [All Done]
"""


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "graph.yaml"
    path.write_text(SOUND)
    return path


def test_a_sound_file_is_said_to_be_one(cli: Cli, file: Path) -> None:
    done = cli("milestones", "check", file)
    assert done.code == 0
    assert "5 milestones: 2 FC, 3 NFC · 1 decided by a judge" in done.out
    assert "can be measured on" in done.words
    assert "Errors" not in done.out and "Warnings" not in done.out


def test_errors_and_warnings_stand_apart_each_with_its_line(cli: Cli, file: Path) -> None:
    file.write_text(SOUND.replace("[cancel, Agreed]", "[cancel, Agred]") + "- {name: lost, type: FC}\n")
    done = cli("milestones", "check", file)
    assert done.code == 1
    errors, warnings = done.words.split("Warnings (1)")
    assert (
        "Errors (1) line 6 'End' depends on 'Agred', which is no milestone; did you mean `Agreed`?" in errors
    )
    assert "line 7 End cannot be reached from 'lost': a dead end" in warnings


@pytest.mark.parametrize(
    "tools",
    [
        ["get_order", "cancel_order"],
        {
            "tools": [
                {"type": "function", "function": {"name": name}} for name in ("get_order", "cancel_order")
            ]
        },
        {"get_order": {"type": "object"}, "cancel_order": {}},
        [{"name": "get_order"}, {"name": "cancel_order"}],
    ],
)
def test_tools_come_as_names_definitions_or_schemas(cli: Cli, file: Path, tools: object) -> None:
    Path("tools.json").write_text(json.dumps(tools))
    done = cli("milestones", "check", file, "--tools", "tools.json")
    assert done.code == 0
    assert "its tools are the agent's" in done.words


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "tools.json: the tools cannot be read"),
        ('["a"', "tools.json:1: not JSON"),
        ('"a"', "no list of tools"),
        ("[1]", "a tool without a name"),
        ('[{"function": "x"}]', "a tool without a name"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_a_file_of_tools_that_cannot_be_used_is_named(
    cli: Cli, file: Path, content: str | bytes | None, said: str
) -> None:
    if content is not None:
        Path("tools.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    done = cli("milestones", "check", file, "--tools", "tools.json")
    assert done.code == 1
    assert said in done.words


def test_tools_named_twice_are_wrong_usage(cli: Cli, shop: Path, file: Path) -> None:
    done = cli("milestones", "check", file, "--agent", shop, "--tools", "tools.json")
    assert done.code == 2


@pytest.mark.parametrize("command", ["check", "draw"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "graph.yaml: there is no such file"),
        (
            b"- {name: a, type: FCC}",
            "graph.yaml:1: `milestones[0].type` must be 'FC', 'NFC' or 'Aggregator'",
        ),
        (b"\xff", "graph.yaml:1: is not UTF-8"),
        (b"milestones: [a", "graph.yaml:"),
    ],
)
def test_a_file_that_is_no_milestone_file_is_named_with_its_line(
    cli: Cli, file: Path, command: str, content: bytes | None, said: str
) -> None:
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    done = cli("milestones", command, file)
    assert done.code == 1
    assert said in done.words
    assert "Traceback" not in done.err


def test_draw_prints_mermaid_and_nothing_else(cli: Cli, file: Path) -> None:
    done = cli("milestones", "draw", file)
    assert done.code == 0
    assert done.out.startswith("flowchart TD\n")
    assert "m3 -.-> m4" in done.out
    assert done.err == ""


def program(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path("bin") / "mmdc"
    file.parent.mkdir()
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", str(file.parent.resolve()) + os.pathsep + os.environ["PATH"])


ESCAPES = '- {name: "a\\x1b[31m\\u202e", type: FC, description: "\\x1b]0;x\\x07"}\n'


@pytest.mark.parametrize("command", ["check", "draw"])
def test_nothing_in_a_file_drives_the_terminal(cli: Cli, file: Path, command: str) -> None:
    file.write_text(SOUND + ESCAPES)
    done = cli("milestones", command, file)
    assert "\x1b[31m" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
