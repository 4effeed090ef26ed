"""`arq-graph milestones check` and `draw`: what is wrong with a milestone file, and what it looks like."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from arq_graph.milestones import Milestone, MilestoneGraph
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
        ('["a"', "tools.json: no list of tools (EOF"),
        ("[1]", "a tool without a name"),
        ("[" * 100_000, "recursion limit"),
        (b"\xff\xfe", "no list of tools"),
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "graph.yaml: there is no such file"),
        (
            b"- {name: a, type: FCC}",
            "graph.yaml:1: `milestones[0].type` must be 'FC', 'NFC' or 'Aggregator'",
        ),
        (b"milestones: [a", "graph.yaml:"),
    ],
)
def test_a_file_that_is_no_milestone_file_is_named_with_its_line(
    cli: Cli, file: Path, content: bytes | None, said: str
) -> None:
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    done = cli("milestones", "check", file)
    assert done.code == 1
    assert said in done.words
    assert "Traceback" not in done.err


DRAWN = """
- {name: Start, type: NFC}
- {name: look_up, type: FC}
- {name: Asked, type: NFC, dependencies: [look_up]}
- {name: pay, type: FC, tool: pay_back, dependencies: [look_up, Asked], requires: all}
- {name: Both, type: Aggregator, dependencies: [pay, Asked]}
- {name: End, type: NFC, dependencies: [Both, look_up]}
"""


def drawn(cli: Cli, text: str) -> list[str]:
    Path("graph.yaml").write_text(text)
    done = cli("milestones", "draw", "graph.yaml")
    assert done.code == 0, done.err
    return [line for line in done.out.splitlines() if not line.startswith("%%")]


def test_kinds_differ_in_shape_and_alternatives_are_dashed(cli: Cli) -> None:
    assert [line.strip() for line in drawn(cli, DRAWN)] == [
        "flowchart TD",
        'm0(("Start"))',
        'm1["look_up"]',
        'm2("Asked")',
        'm3["pay #40;pay_back#41;"]',
        'm4{{"Both"}}',
        'm5(("End"))',
        "m0 --> m1",
        "m1 --> m2",
        "m1 --> m3",
        "m2 --> m3",
        "m3 --> m4",
        "m2 --> m4",
        "m4 -.-> m5",
        "m1 -.-> m5",
    ]


def test_nothing_in_a_name_is_taken_for_mermaid(cli: Cli) -> None:
    names = [
        '"]; click m0 "javascript:x"',
        "end\n  m0 --> m0",
        "`*bold*`",
        "1. one",
        "- x",
        "__a__",
        "<b>|{}",
    ]
    before = tuple(names)
    graph = MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            *(Milestone(name=name, type="NFC") for name in names),
            Milestone(name="End", type="NFC", dependencies=before),
        ]
    )
    lines = drawn(cli, graph.to_yaml())
    label = r'[^"\[\](){}<>|`*\\]+'
    nodes = [line for line in lines if re.fullmatch(rf'  m\d+\(\(?"{label}"\)?\)', line)]
    arrows = [line for line in lines if re.fullmatch(r"  m\d+ (-->|-\.->) m\d+", line)]
    assert (len(nodes), len(arrows), len(lines)) == (9, 14, 24)


ESCAPES = '- {name: "a\\x1b[31m\\u202e", type: FC, description: "\\x1b]0;x\\x07"}\n'


@pytest.mark.parametrize("command", ["check", "draw"])
def test_nothing_in_a_file_drives_the_terminal(cli: Cli, file: Path, command: str) -> None:
    file.write_text(SOUND + ESCAPES)
    done = cli("milestones", command, file)
    assert "\x1b[31m" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
