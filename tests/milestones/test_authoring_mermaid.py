"""Milestone graphs as Mermaid text."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.milestones import Milestone, MilestoneGraph
from arq_graph.milestones.authoring.mermaid import mermaid

GRAPH = """
- {name: Start, type: NFC}
- {name: look_up, type: FC}
- {name: Asked, type: NFC, dependencies: [look_up]}
- {name: pay, type: FC, tool: pay_back, dependencies: [look_up, Asked], requires: all}
- {name: Both, type: Aggregator, dependencies: [pay, Asked]}
- {name: End, type: NFC, dependencies: [Both, look_up]}
"""


def test_kinds_differ_in_shape_and_alternatives_are_dashed():
    lines = [line.strip() for line in mermaid(MilestoneGraph.parse_yaml(GRAPH)).splitlines()]
    assert lines[0] == "flowchart TD"
    assert 'm0(("Start"))' in lines
    assert 'm1["look_up"]' in lines
    assert 'm2("Asked")' in lines
    assert 'm3["pay #40;pay_back#41;"]' in lines
    assert 'm4{{"Both"}}' in lines
    arrows = [line for line in lines if re.match(r"m\d+ -", line)]
    assert arrows == [
        "m0 --> m1",
        "m1 --> m2",
        "m1 --> m3",
        "m2 --> m3",
        "m3 --> m4",
        "m2 --> m4",
        "m4 -.-> m5",
        "m1 -.-> m5",
    ]


LABEL = r'[^"\[\](){}<>|`*\\]+'
NODE = rf'  m\d+(\["{LABEL}"\]|\("{LABEL}"\)|\(\("{LABEL}"\)\)|\{{\{{"{LABEL}"\}}\}})'
ARROW = r"  m\d+ (-->|-\.->) m\d+"


@settings(max_examples=100)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name.strip())
        | st.sampled_from(
            ['"]; click m0 "javascript:x"', "end\n  m0 --> m0", "`*bold*`", "1. one", "- x", "__a__"]
        ),
        min_size=1,
        max_size=4,
        unique=True,
    ).filter(lambda names: not {"Start", "End"} & set(names))
)
def test_nothing_in_a_name_is_taken_for_mermaid(names):
    graph = MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            *(Milestone(name=name, type="NFC") for name in names),
            Milestone(name="End", type="NFC", dependencies=tuple(names)),
        ]
    )
    lines = mermaid(graph).removesuffix("\n").split("\n")
    drawn = [line for line in lines[1:] if not line.startswith("%%")]
    assert len(drawn) == len(names) + 2 + 2 * len(names)
    for line in drawn:
        assert re.fullmatch(NODE, line) or re.fullmatch(ARROW, line), line


def test_a_dependency_that_is_missing_is_not_drawn():
    text = mermaid(
        MilestoneGraph.parse_yaml("- {name: Start, type: NFC}\n- {name: a, type: FC, dependencies: [b]}")
    )
    assert "-->" not in text
