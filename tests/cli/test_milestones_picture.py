"""A milestone graph as a picture in the terminal: who follows its lines finds the dependencies."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from arq_graph.cli.milestone_picture import Row, picture, show_picture
from arq_graph.milestones import Milestone, MilestoneGraph, parse_yaml

GOES_DOWN = set("│├┤┼╭╮┬")
GOES_LEFT = set("─┤┼╯┴╮┬")
GOES_RIGHT = set("─├┼╰┴╭┬")


def led_to(rows: list[Row], at: int) -> set[str]:
    """Follow the lines that leave the milestone of a row, downwards, to the milestones where they end."""
    column = next(place for place, mark in enumerate(rows[at].lanes) if mark in "●○◆")
    if at + 1 == len(rows) or cell(rows[at + 1], column) == " ":
        return set()  # a dead end
    ways = {column}
    found: set[str] = set()
    for below in range(at + 1, len(rows)):
        row = rows[below]
        if row.milestone is not None:
            for way in sorted(ways):
                assert cell(row, way) in "│●○◆", rows
                if cell(row, way) != "│":
                    found.add(row.milestone)
                    ways.discard(way)
            continue
        if below == at + 1:
            ways |= sideways(row, column)
        ways = {way for way in ways if cell(row, way) in GOES_DOWN}
    assert not ways
    return found


def sideways(row: Row, column: int) -> set[int]:
    """Where a line that turns aside at a column goes down."""
    ends = set()
    for step, onward, back in ((2, GOES_RIGHT, GOES_LEFT), (-2, GOES_LEFT, GOES_RIGHT)):
        place = column
        while cell(row, place) in onward or (cell(row, place) == "│" and place != column):
            place += step
            if cell(row, place) in back - {"─"} and cell(row, place) in GOES_DOWN:
                ends.add(place)
    return ends


def cell(row: Row, place: int) -> str:
    return row.lanes[place] if 0 <= place < len(row.lanes) else " "


@st.composite
def graphs(draw: st.DrawFn) -> MilestoneGraph:
    size = draw(st.integers(1, 9))
    names = ["Start", *(f"m{number}" for number in range(size)), "End"]
    milestones = [Milestone("Start", "NFC")]
    for number, name in enumerate(names[1:], start=1):
        before = draw(st.lists(st.sampled_from(names[:number]), min_size=1, max_size=4, unique=True))
        type_ = draw(st.sampled_from(["FC", "NFC", "Aggregator"])) if name != "End" else "NFC"
        milestones.append(Milestone(name, type_, dependencies=tuple(before)))
    return MilestoneGraph(milestones)


@settings(max_examples=80)
@given(graphs())
def test_the_lines_of_the_picture_are_the_dependencies(graph: MilestoneGraph) -> None:
    rows = list(picture(graph))
    assert sorted(row.milestone for row in rows if row.milestone) == sorted(graph)
    for at, row in enumerate(rows):
        if row.milestone is not None:
            assert led_to(rows, at) == set(graph.successors(row.milestone)), "\n".join(
                each.lanes for each in rows
            )


CYCLE = """
- {name: Start, type: NFC}
- {name: a, type: FC, dependencies: [Start, b]}
- {name: b, type: FC, dependencies: [Start, a]}
- {name: own, type: FC, dependencies: [own]}
- {name: End, type: NFC, dependencies: [b]}
"""


def shown(graph: MilestoneGraph, *, width: int = 80, encoding: str = "utf-8") -> str:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, write_through=True)
    show_picture(graph, Console(file=stream, width=width, color_system=None))
    return written.getvalue().decode(encoding)


def test_the_way_back_of_a_cycle_is_named() -> None:
    rows = {row.milestone: row.back for row in picture(parse_yaml(CYCLE)) if row.milestone}
    assert rows == {"Start": (), "a": (), "b": ("a",), "own": ("own",), "End": ()}
    assert "b  any of 2  leads back to a" in shown(parse_yaml(CYCLE))


def test_a_terminal_without_lines_gets_plain_characters() -> None:
    assert shown(parse_yaml(CYCLE), encoding="ascii").splitlines()[:3] == [
        "o Start",
        "+-+",
        "* | a  any of 2",
    ]


def test_a_picture_that_is_too_wide_becomes_a_list() -> None:
    branches = [Milestone(f"b{number}", "FC") for number in range(40)]
    end = Milestone("End", "NFC", dependencies=tuple(each.name for each in branches), requires="all")
    graph = MilestoneGraph([Milestone("Start", "NFC"), *branches, end])
    lines = shown(graph).splitlines()
    assert len(lines) == 42
    assert lines[-1] == "○ End  all of 40"
    assert len(shown(graph, width=200).splitlines()) > 42


@pytest.mark.parametrize("text", ["milestones: []", "- {name: alone, type: FC}"])
def test_a_graph_without_ends_is_shown_as_it_is(text: str) -> None:
    assert shown(parse_yaml(text)).splitlines() == (["● alone"] if "alone" in text else [])
