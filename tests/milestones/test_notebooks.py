"""What a notebook shows of reports, graphs and agents."""

from xml.etree import ElementTree

import pytest

from arq_graph import Agent, Guideline
from arq_graph.milestones import Milestone, MilestoneGraph, compare
from tests.milestones.reported import report_goals
from tests.milestones.sample_report import (
    HOSTILE,
    NAME,
    hostile_report,
    make_sample_report,
    refund_graph,
    refund_talks,
)

SVG = "{http://www.w3.org/2000/svg}"


def render(shown: object) -> ElementTree.Element:
    """Return what a notebook shows, as parsed elements."""
    return ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")


def read_rows(element: ElementTree.Element) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in element.iter("tr")]


def test_a_report_is_a_table_of_its_arms_and_says_what_is_undecided():
    report = report_goals(True, False, None, None)
    rows = read_rows(render(report))
    assert rows == [
        ["", "n", "goal completion", "progress rate"],
        ["recorded", "4", "25% to 75%", "0.50 to 0.83"],
    ]


def test_a_graph_is_a_picture_from_start_to_end_with_an_arrow_for_each_dependency():
    graph = refund_graph()
    picture = render(graph)
    heights = {}
    for group in picture.iter(f"{SVG}g"):
        text, box = group.find(f"{SVG}text"), group.find(f"{SVG}rect")
        heights["".join(text.itertext())] = float(box.get("y"))
    assert list(heights) == [milestone.name for milestone in graph.milestones]
    assert all(heights[source] < heights[target] for source, target in graph.edges)
    assert len(list(picture.iter(f"{SVG}path"))) == graph.number_of_edges()
    [title] = [title.text for title in picture.iter(f"{SVG}title") if "find_by_number" in title.text]
    assert title == "find_by_number: The order is found by its number."


def test_an_agent_is_a_table_of_its_guidelines():
    guidelines = [Guideline("it rains", "offer an umbrella", id="rain"), Guideline(None, "be kind")]
    picture = render(Agent("Weather desk", "Kind.", guidelines))
    assert read_rows(picture) == [
        ["id", "when", "do", "tools"],
        ["rain", "it rains", "offer an umbrella", ""],
        ["G2", "always", "be kind", ""],
    ]


def test_names_and_texts_are_never_markup():
    milestones = [
        Milestone(name="Start", type="NFC"),
        Milestone(name=NAME, type="NFC", description=HOSTILE.replace("\ud800", "")),
        Milestone(name="End", type="NFC", dependencies=(NAME,)),
    ]
    agent = Agent("desk", "Kind.", [Guideline(NAME, NAME)])
    for shown in (hostile_report()[0], MilestoneGraph(milestones), agent):
        elements = {element.tag.removeprefix(SVG) for element in render(shown).iter()}
        assert not elements & {"script", "img"}


@pytest.mark.parametrize(
    "shown",
    [
        make_sample_report(refund_talks()),
        make_sample_report(refund_talks()).conversations[0],
        make_sample_report(refund_talks()).summary.overall,
        compare(report_goals(True), report_goals(False)),
        refund_graph(),
        refund_talks()[0],
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_what_people_print_is_short(shown):
    assert len(repr(shown)) < 250
    assert repr(shown).startswith(f"{type(shown).__name__}(")
