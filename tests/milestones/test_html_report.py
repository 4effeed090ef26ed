"""The page of a report: what it holds, that it asks for nothing, and that no words become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones import Milestone, MilestoneGraph, Report, score_transcripts, write_html
from tests.milestones.conversations import agent, called, conversation, user
from tests.milestones.sample_report import HOSTILE, NAME, hostile_report, made, refund_talks


class Page(HTMLParser):
    """What a browser would find in the page: its elements, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.source = text
        self.feed(text)
        self.data: Any = json.loads(self.text("data"))
        self.readable = [
            int(name.removeprefix("words-")) for name, _ in self.raw if name.startswith("words-")
        ]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] in ("script", "style", "title") and data.strip():
            self.raw.append((self.tags[-1][1].get("id") or self.tags[-1][0], data))

    def text(self, id: str) -> str:
        return "".join(text for name, text in self.raw if name == id)

    def conversation(self, index: int) -> dict[str, Any]:
        return json.loads(self.text(f"words-{index}"))

    def words(self, index: int) -> list[dict[str, Any]]:
        return self.conversation(index)["events"]

    def told(self, what: str) -> dict[str, Any]:
        return {one["name"]: one[what] for one in self.data["graphs"][0]["milestones"] if one[what]}

    def edges(self) -> dict[tuple[str, str], int]:
        graph = self.data["graphs"][0]
        names = [one["name"] for one in graph["milestones"]]
        return {(names[edge["ends"][0]], names[edge["ends"][1]]): edge["count"] for edge in graph["edges"]}


def page_of(report: Report, talks: Any = (), **settings: Any) -> Page:
    """The page that is written of a report."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        write_html(file, report, talks, **settings)
        return Page(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page():
    talks = refund_talks()
    return page_of(made(talks), talks, title="Refunds & more")


def test_each_milestone_says_how_many_reached_it_and_how_many_stopped_there(page):
    reached = {"Start": 4, "find_by_number": 3, "find_by_mail": 1, "refund": 2, "Comforted": 2}
    assert page.told("reached") == {**reached, "Both": 2, "End": 2}
    # The kettle reached the end, and something forbidden happened.
    assert page.told("stopped") == {"find_by_number": 1, "Start": 1, "End": 1}
    assert page.told("stopped") == page.data["summary"]["overall"]["stops"]
    assert page.told("possibly") == {"Pleased": 2}
    assert (page.data["graphs"][0]["conversations"], page.data["graphs"][0]["completed"]) == (4, 1)


def test_where_the_goal_is_undecided_nobody_is_said_to_have_stopped():
    graph = MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            Milestone(name="look", type="FC", dependencies=("Start",)),
            Milestone(name="Pleased", type="NFC", dependencies=("look",)),
            Milestone(name="End", type="NFC", dependencies=("Pleased",)),
        ]
    )
    talks = [conversation(user("hello"), called("look"), user("fine"))]
    page = page_of(made(talks, graph), talks)
    assert page.data["conversations"][0]["status"] == "undecided"
    assert page.told("stopped") == {}
    assert page.told("possibly") == {"Pleased": 1, "End": 1}


def test_each_edge_says_how_many_went_along_it_and_of_alternatives_the_first_is_the_way(page):
    assert page.edges() == {
        ("Start", "find_by_number"): 3,
        ("Start", "find_by_mail"): 1,
        ("Start", "Comforted"): 2,
        ("find_by_number", "refund"): 2,
        ("find_by_mail", "refund"): 0,
        ("refund", "Pleased"): 0,
        ("refund", "Both"): 2,
        ("Comforted", "Both"): 2,
        ("Both", "End"): 2,
    }
    talks = [conversation(called("find_by_mail"), called("find_by_number"), called("refund"))]
    edges = page_of(made(talks), talks).edges()
    assert (edges["find_by_mail", "refund"], edges["find_by_number", "refund"]) == (1, 0)


def test_a_conversation_is_there_to_read_event_by_event(page):
    said, call, result, *_ = page.words(0)
    assert said == {"speaker": "user", "text": "My mug broke, order 17"}
    assert call == {"tool": "find_by_number", "arguments": [["number", "17"]]}
    assert (result["text"], result["call"]) == ('{"order": 17, "status": "delivered"}', 2)
    mug, lamp, kettle, _ = page.data["conversations"]
    assert {one["name"]: one["step"] for one in mug["reached"]} == {
        "Start": 0,
        "find_by_number": 2,
        "Comforted": 4,
        "refund": 5,
        "Both": 5,
        "End": 5,
    }
    assert mug["status"] == "completed"
    assert lamp["repeated_calls"] == [4]
    assert lamp["invented_arguments"] == {"6": ["number"]}
    assert kettle["forbidden"][0]["step"] == 6
    # Instructions that many share are there once; of the same id, each has its own words.
    assert page.data["instructions"] == ["Be kind."]
    assert [page.conversation(index).get("instructions") for index in range(4)] == [0, 0, None, None]
    assert [row["id"] for row in page.data["conversations"]] == ["mug", "lamp", "kettle", "lamp"]
    assert page.words(1)[0]["text"] == "My lamp, my mail is a@b.example"
    assert page.words(3)[0]["text"] == "Are you there?"


def test_what_does_not_fit_the_report_is_refused_and_leaves_the_old_page(tmp_path):
    file, talks = tmp_path / "report.html", refund_talks()
    write_html(file, made(talks), talks)
    before = file.read_bytes()
    with pytest.raises(InputError, match="conversation 0 of the report is 'mug' with 6 events"):
        write_html(file, made(talks), talks[1:])
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_where_not_all_can_be_read_those_that_went_wrong_can():
    mug, lamp, kettle, _ = refund_talks()
    talks = [mug] * 600 + [lamp, kettle]
    page = page_of(made(talks), talks)
    assert page.readable == [*range(498), 600, 601]
    assert (page.data["readable"], len(page.data["conversations"])) == (500, 602)
    page = page_of(made(refund_talks()), [mug, None, None, refund_talks()[3]])
    assert (page.readable, len(page.data["conversations"])) == ([0, 3], 4)


def test_a_long_text_is_cut_and_what_a_ceiling_left_out_is_told(page):
    talks = [conversation(user("x" * 4_100))]
    cut = page_of(made(talks, missing=7, stopped="max_calls (40) is reached"), talks)
    assert cut.words(0)[0]["text"] == ["x" * 4_000, 100]
    assert (cut.data["missing"], cut.data["stopped"]) == (7, "max_calls (40) is reached")
    assert (page.data["missing"], page.data["stopped"]) == (0, None)


def shown(text: str) -> str:
    """What the page shows of a text: what hides or turns a line as its number, half a character as a mark."""
    hidden = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
    plain = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub(hidden, lambda found: f"\\u{ord(found[0]):04x}", plain)


def test_no_words_become_markup():
    page, plain = (
        page_of(*hostile_report(), title=HOSTILE),
        page_of(made(refund_talks()[:1]), refund_talks()[:1]),
    )
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert "window.harmed" in page.source
    argument = [shown(HOSTILE), shown(json.dumps(HOSTILE, ensure_ascii=False))]
    assert page.words(0)[1]["arguments"][0] == argument
    assert page.data["graphs"][0]["name"] == shown(NAME)
    assert "\u202e" not in page.source
    assert "\\u202e" in page.words(0)[0]["text"]


@given(st.text(st.characters()), st.text())
@example("a < b </script x><!-- \u2028", "&lt;")
@settings(max_examples=30)
def test_embedded_words_are_the_same_words_and_cannot_end_their_script(said, answer):
    talks = [conversation(user(said), agent(answer))]
    page = page_of(made(talks), talks)
    assert [one["text"] for one in page.words(0)] == [shown(said), shown(answer)]
    embedded = page.source[page.source.index('id="words-0"') :].partition(">")[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(embedded)


def test_only_the_pages_own_script_and_style_may_run_and_they_ask_for_nothing(page):
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.text(kind).encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    for tag, attrs in page.tags:
        assert not {"src", "href", "srcset", "action"} & attrs.keys(), tag
        assert not [name for name in attrs if name.startswith("on")], tag
    script, style = page.text("script"), page.text("style")
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document.write|eval\(|Function\(|fetch\(|XMLHttp|import\(",
        script,
    )
    assert not re.search(r"@import|url\(|@font-face", style)
    addresses = re.findall(r"https?://[^\s\"']+", script + style)
    assert addresses == ["http://www.w3.org/2000/svg"]  # a name, not an address


def test_what_the_customer_came_for_and_what_a_stand_in_did_is_told(page):
    assert page.data["stand_in"] is None
    about = {"arq_graph": {"record": {"goal": "refund"}}}
    talks = [
        conversation(called("find_by_mail"), called(tool), id=tool, extra=about)
        for tool in ("refund", "apologise")
    ]
    found = page_of(made(talks, stand_ins=("the judge",)), talks)
    assert "the judge was a stand-in" in found.data["stand_in"]
    assert [one["goal_reached"] for one in found.data["conversations"]] == [True, False]
    assert found.data["summary"]["overall"]["goal_reached"]["count"] == 1


@st.composite
def graphs(draw: st.DrawFn) -> MilestoneGraph:
    names = [f"m{number}" for number in range(draw(st.integers(1, 12)))]
    some = st.lists(st.sampled_from(["Start", *names]), max_size=3, unique=True)
    steps = [Milestone(name=name, type="FC", dependencies=tuple(draw(some))) for name in names]
    end = Milestone(name="End", type="NFC", dependencies=(draw(st.sampled_from(names)),))
    return MilestoneGraph([Milestone(name="Start", type="NFC"), *draw(st.permutations(steps)), end])


@given(graphs())
@settings(max_examples=30)
def test_every_layout_has_room_for_each_milestone_and_a_bend_in_each_layer_between(graph):
    assume(not graph.check().errors)
    [drawn] = page_of(score_transcripts([], graph).report()).data["graphs"]
    places = [one["at"] for one in drawn["milestones"]]
    rows: dict[int, list[float]] = {}
    for layer, place in places:
        rows.setdefault(layer, []).append(place)
        assert 0 <= layer < drawn["layers"]
        assert -0.001 <= place <= drawn["breadth"]
    for row in rows.values():
        assert all(right - left > 0.99 for left, right in pairwise(sorted(row)))
    for edge in drawn["edges"]:
        first, last = (places[end][0] for end in edge["ends"])
        between = range(first + 1, last) if first < last else range(first - 1, last, -1)
        assert [layer for layer, _ in edge["bends"]] == list(between)


def test_layers_run_from_start_to_end_a_cycle_runs_back_and_no_lines_cross_without_need():
    ways = {"b": "Start", "c": "Start y", "a": "Start", "x": "b c", "y": "c", "z": "b"}
    steps = [Milestone(name=name, type="FC", dependencies=tuple(way.split())) for name, way in ways.items()]
    end = Milestone(name="End", type="NFC", dependencies=("x", "y", "z", "a"))
    graph = MilestoneGraph([Milestone(name="Start", type="NFC"), *steps, end])
    [drawn] = page_of(score_transcripts([], graph).report()).data["graphs"]
    at = {one["name"]: one["at"] for one in drawn["milestones"]}
    layers = {name: layer for name, (layer, _) in at.items()}
    assert layers == {"Start": 0, "a": 1, "b": 1, "c": 1, "x": 2, "y": 2, "z": 2, "End": 3}
    found = sorted("xyz", key=lambda name: at[name][1])
    assert found == (list("zxy") if at["b"][1] < at["c"][1] else list("yxz"))
