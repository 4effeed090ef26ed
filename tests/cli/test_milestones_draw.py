"""`arq-graph milestones draw`: a milestone graph as Mermaid."""

from __future__ import annotations

import re
from pathlib import Path

from arq_graph.milestones import Milestone, MilestoneGraph
from tests.cli.conftest import Cli

GRAPH = """
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
    assert [line.strip() for line in drawn(cli, GRAPH)] == [
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
