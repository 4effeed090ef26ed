"""`arq-graph milestones author`, `check` and `draw`: making a milestone file, and what is wrong with it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from arq_graph.milestones import Milestone, MilestoneGraph, dump_milestones, read_milestones
from tests.cli.shop import options
from tests.milestones.authored import REFUNDS, TOOLS, WORKFLOW
from tests.reasoning.endpoint import Endpoint, ok

SOUND = """\
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC}
- {name: Agreed, type: NFC, dependencies: [get_order]}
- {name: cancel, type: FC, tool: cancel_order, dependencies: [Agreed, get_order], requires: all}
- {name: End, type: NFC, dependencies: [cancel, Agreed]}
"""


@pytest.fixture
def file(folder: Path) -> Path:
    path = folder / "graph.yaml"
    path.write_text(SOUND)
    return path


def test_errors_and_warnings_stand_apart_each_with_its_line(cli, file):
    file.write_text(SOUND.replace("[cancel, Agreed]", "[cancel, Agred]") + "- {name: lost, type: FC}\n")
    result = cli("milestones", "check", file)
    assert result.code == 1
    errors, warnings = result.words.split("Warnings (1)")
    wrong = "'End' depends on 'Agred', which isn't a milestone; did you mean `Agreed`?"
    assert f"Errors (1) line 6 {wrong}" in errors
    assert "line 7 End cannot be reached from 'lost': a dead end" in warnings


def test_a_sound_file_passes_with_tools_as_names_definitions_or_schemas(cli, file):
    names = ["get_order", "cancel_order"]
    definitions = {"tools": [{"type": "function", "function": {"name": name}} for name in names]}
    for tools in (names, definitions, {name: {"type": "object"} for name in names}):
        Path("tools.json").write_text(json.dumps(tools))
        result = cli("milestones", "check", file, "--tools", "tools.json")
        assert result.code == 0
        assert "5 milestones: 2 FC, 3 NFC · 1 decided by a judge" in result.out
        assert "can be used to measure; its tools are the agent's" in result.words
        assert "Errors" not in result.out and "Warnings" not in result.out


def test_functions_are_not_looked_up_and_check_says_so(cli, file):
    file.write_text(
        SOUND.replace("{name: Agreed, type: NFC,", "{name: Agreed, type: NFC, state: 'shopp:ok',")
    )
    result = cli("milestones", "check", file)
    assert "1 function not looked up: only measuring imports them" in result.words


def draw(cli, text):
    """Return the lines that `draw` prints, without comments."""
    Path("graph.yaml").write_text(text)
    result = cli("milestones", "draw", "graph.yaml")
    assert result.code == 0, result.err
    return [line for line in result.out.splitlines() if not line.startswith("%%")]


def test_kinds_differ_in_shape_and_alternatives_are_dashed(cli, folder):
    text = SOUND.replace("[cancel, Agreed]", "[Both, get_order]")
    text += "- {name: Both, type: Aggregator, dependencies: [cancel, Agreed]}\n"
    assert [line.strip() for line in draw(cli, text)] == [
        "flowchart TD",
        'm0(("Start"))',
        'm1["get_order"]',
        'm2("Agreed")',
        'm3["cancel #40;cancel_order#41;"]',
        'm4(("End"))',
        'm5{{"Both"}}',
        "m0 --> m1",
        "m1 --> m2",
        "m2 --> m3",
        "m1 --> m3",
        "m5 -.-> m4",
        "m1 -.-> m4",
        "m3 --> m5",
        "m2 --> m5",
    ]


def test_optional_milestones_are_counted_and_drawn_as_such(cli, file):
    text = SOUND.replace("{name: Agreed,", "{name: Agreed, optional: true,")
    file.write_text(text)
    assert "3 NFC (1 optional)" in cli("milestones", "check", file).words
    assert '  m2("Agreed, optional")' in draw(cli, text)


def test_nothing_in_a_name_is_taken_for_mermaid(cli, folder):
    hostile_names = [
        '"]; click m0 "javascript:x"',
        "end\n  m0 --> m0",
        "`*bold*`",
        "1. one",
        "- x",
        "__a__",
        "<b>|{}",
    ]
    dependencies = {"Start": (), **dict.fromkeys(hostile_names, ()), "End": tuple(hostile_names)}
    graph = MilestoneGraph(
        [Milestone(name=name, type="NFC", dependencies=needs) for name, needs in dependencies.items()]
    )
    lines = draw(cli, dump_milestones(graph))
    label = r'[^"\[\](){}<>|`*\\]+'
    nodes = [line for line in lines if re.fullmatch(rf'  m\d+\(\(?"{label}"\)?\)', line)]
    arrows = [line for line in lines if re.fullmatch(r"  m\d+ (-->|-\.->) m\d+", line)]
    assert (len(nodes), len(arrows), len(lines)) == (9, 14, 24)


def test_nothing_in_a_file_drives_the_terminal(cli, file):
    file.write_text(SOUND + '- {name: "a\\x1b[31m\\u202e", type: FC, description: "\\x1b]0;x\\x07"}\n')
    for command in ("check", "draw"):
        result = cli("milestones", command, file)
        assert "\x1b[31m" not in result.out + result.err
        assert "\u202e" not in result.out + result.err


@pytest.fixture
def author(folder: Path) -> list[str]:
    """The options that name a workflow and tools."""
    (folder / "workflow.txt").write_text(WORKFLOW)
    (folder / "tools.json").write_text(json.dumps(TOOLS))
    options = "--workflow workflow.txt --tools tools.json --out graph.yaml"
    return ["milestones", "author", *options.split()]


def test_author_writes_a_graph_and_shows_the_next_step(cli, author):
    with Endpoint(lambda _: ok(REFUNDS)) as endpoint:
        result = cli(*author, *options(endpoint))
        messages = endpoint.requests[0].messages
    assert result.code == 0, result.err
    graph = read_milestones(Path("graph.yaml"), check=False)
    assert graph.is_unreviewed
    assert graph.generated_by == endpoint.model_name
    assert graph.get_milestone("refund").requires == "all"
    assert "arq-graph milestones draw graph.yaml" in result.out
    assert WORKFLOW in messages[-1]["content"]
