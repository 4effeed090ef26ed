"""The page of a report: what it holds, that it asks for nothing, and that no words become markup."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones import (
    Report,
    check_milestones,
    parse_milestones,
    score_transcripts,
    write_html,
)
from tests.milestones.conversations import called, conversation, user
from tests.milestones.golden_cases import make_case
from tests.milestones.reported import make_shop_graph, make_talk
from tests.milestones.sample_report import HOSTILE, NAME, hostile_report, make_sample_report, refund_talks


class Page(HTMLParser):
    """What a browser would find in the page: its elements, and the text of scripts and styles by id or tag."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.source = source
        self.feed(source)
        self.data: Any = json.loads(self.texts["data"])
        self.graph = self.data["graphs"][0]

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        tag, attrs = self.tags[-1] if self.tags else ("", {})
        if tag in ("script", "style") and data.strip():
            name = attrs.get("id") or tag
            self.texts[name] = self.texts.get(name, "") + data

    def conversation(self, index: int) -> dict[str, Any]:
        return json.loads(self.texts[f"words-{index}"])

    def readable(self) -> list[int]:
        return [int(number) for number in re.findall(r'id="words-(\d+)"', self.source)]

    def told(self, what: str) -> dict[str, Any]:
        return {one["name"]: one[what] for one in self.graph["milestones"] if one[what]}

    def edges(self) -> dict[str, int]:
        names = [one["name"] for one in self.graph["milestones"]]
        return {" > ".join(names[end] for end in edge["ends"]): edge["count"] for edge in self.graph["edges"]}


def page_of(report: Report, talks: Any = (), **settings: Any) -> Page:
    """The page that is written of a report."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        write_html(file, report, talks, **settings)
        return Page(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page():
    talks = refund_talks()
    return page_of(make_sample_report(talks), talks)


def test_each_milestone_says_how_many_reached_it_and_how_many_stopped_there(page):
    reached = {"Start": 4, "find_by_number": 3, "find_by_mail": 1, "refund": 2, "Comforted": 2}
    assert page.told("reached") == {**reached, "Both": 2, "End": 2}
    # The kettle reached the end, and something forbidden happened.
    assert page.told("stopped") == {"find_by_number": 1, "Start": 1, "End": 1}
    assert page.told("stopped") == page.data["summary"]["overall"]["stops"]
    assert page.told("possibly") == {"Pleased": 2}
    assert (page.graph["conversations"], page.graph["completed"]) == (4, 1)


def test_what_a_table_s_notes_say_is_true_of_what_is_rounded_and_of_worlds_without_success():
    once = conversation(user("hi"), called("find"), called("find"), id="0")
    report = score_transcripts(make_shop_graph(), [once, *(make_talk(str(n)) for n in range(1, 40))]).report()
    *others, last = report.conversations
    last = last.model_copy(update={"goal_completed": False, "outcome": {"success": False}})
    shown = page_of(report.model_copy(update={"conversations": (*others, last)})).source
    assert re.search(r"repeated an earlier one\W[^0-9]*&lt;0\.1<", shown)
    assert "0 everywhere: something forbidden." in shown
    assert (
        "Those at End reached it, but something forbidden happened, or the world says that it was no" in shown
    )


def test_each_edge_says_how_many_went_along_it_and_of_alternatives_the_first_is_the_way(page):
    assert page.edges() == {
        "Start > find_by_number": 3,
        "Start > find_by_mail": 1,
        "Start > Comforted": 2,
        "find_by_number > refund": 2,
        "find_by_mail > refund": 0,
        "refund > Pleased": 0,
        "refund > Both": 2,
        "Comforted > Both": 2,
        "Both > End": 2,
    }
    talks = [conversation(called("find_by_mail"), called("find_by_number"), called("refund"))]
    edges = page_of(make_sample_report(talks), talks).edges()
    assert (edges["find_by_mail > refund"], edges["find_by_number > refund"]) == (1, 0)


def test_a_conversation_is_there_to_read_event_by_event(page):
    said, call, result, *_ = page.conversation(0)["events"]
    assert said == {"speaker": "user", "text": "My mug broke, order 17"}
    assert call == {"tool": "find_by_number", "arguments": [["number", "17"]]}
    assert (result["text"], result["call"]) == ('{\n  "order": 17,\n  "status": "delivered"\n}', 2)
    mug, lamp, kettle, _ = page.data["conversations"]
    assert [(one["name"], one["step"]) for one in mug["reached"]][1:3] == [
        ("find_by_number", 2),
        ("Comforted", 4),
    ]
    assert [one["status"] for one in page.data["conversations"]] == ["completed"] + 3 * ["missed"]
    assert (lamp["repeated_calls"], lamp["invented_arguments"]["6"]) == ([4], ["number"])
    assert kettle["forbidden"][0]["step"] == 6
    # Instructions that many share are there once; of the same id, each has its own words.
    assert page.data["instructions"] == {"0": "Be kind."}
    assert [page.conversation(index).get("instructions") for index in range(4)] == [0, 0, None, None]
    assert [row["id"] for row in page.data["conversations"]] == ["mug", "lamp", "kettle", "lamp"]
    assert page.conversation(3)["events"][0]["text"] == "Are you there?"


def test_words_of_another_conversation_are_refused_and_leave_the_old_page(tmp_path):
    file, talks = tmp_path / "report.html", refund_talks()
    file.write_text("old")
    with pytest.raises(InputError, match="'mug' with 6 events isn't a conversation of the report"):
        write_html(file, make_sample_report(talks[1:]), talks)
    assert [(one, one.read_text()) for one in tmp_path.iterdir()] == [(file, "old")]


def test_where_not_all_can_be_read_those_that_went_wrong_can_and_it_is_told_where_the_others_are():
    mug, lamp, kettle, other = (replace(talk, source="talks.jsonl") for talk in refund_talks())
    long = replace(mug, events=(*mug.events, *user("語" * 4_000) * 160), id="long")
    talks = [replace(long, source="long.jsonl")] * 12 + [lamp, kettle]
    page = page_of(make_sample_report(talks), talks)
    # One takes nearly 2 MB, of which there is room for 20; whatever completes the goal has to wait.
    assert page.readable() == [*range(10), 12, 13]
    assert (page.data["readable"], page.data["elsewhere"]) == (12, ["long.jsonl", "talks.jsonl"])
    assert len(page.data["conversations"]) == 14
    page = page_of(make_sample_report([mug, lamp, kettle, other]), [other, mug])
    assert (page.readable(), page.data["elsewhere"]) == ([0, 3], [])


def test_a_long_text_is_cut_and_what_a_limit_or_a_stand_in_did_is_told():
    talks = [conversation(user("x" * 4_100))]
    about = {"missing": 7, "stopped": "max_calls (40) is reached", "stand_ins": ("the judge",)}
    page = page_of(make_sample_report(talks, **about), talks)
    assert page.conversation(0)["events"][0]["text"].startswith("x" * 4_000 + "… 100 more characters")
    assert (page.data["missing"], page.data["stopped"]) == (7, "max_calls (40) is reached")
    assert "the judge was a stand-in" in page.data["stand_in"]


def shown(text: str) -> str:
    """What the page shows of a text: what hides or turns a line as its number, half a character as a mark."""
    hidden = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
    plain = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub(hidden, lambda found: f"\\u{ord(found[0]):04x}", plain)


def test_no_words_become_markup():
    page = page_of(*hostile_report(), title=HOSTILE)
    plain = page_of(make_sample_report(refund_talks()[:1]), refund_talks()[:1])
    tags, expected = (Counter(tag for tag, _ in each.tags) for each in (page, plain))
    assert (tags.keys(), tags["script"]) == (expected.keys(), expected["script"])
    assert "window.harmed" in page.source
    said, call, *_ = page.conversation(0)["events"]
    assert call["arguments"][0] == [shown(HOSTILE), shown(json.dumps(HOSTILE, ensure_ascii=False))]
    assert page.graph["name"] == shown(NAME)
    assert said["text"] == shown(HOSTILE)
    assert "\u202e" not in page.source
    assert not set("<>&\u2028") & set(page.texts["words-0"])


def test_only_the_pages_own_script_and_style_may_run_and_they_ask_for_nothing(page):
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert "default-src 'none'" in policy
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.texts[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    for tag, attrs in page.tags:
        assert not {"src", "href", "srcset", "action"} & attrs.keys(), tag
        assert not [name for name in attrs if name.startswith("on")], tag


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_every_layout_has_room_for_each_milestone_and_a_bend_in_each_layer_between(seed):
    graph = parse_milestones(json.dumps(make_case(seed)[0]))
    assume(not check_milestones(graph).errors)
    drawn = page_of(score_transcripts(graph, []).report()).graph
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
    graph = parse_milestones("""
- {name: Start, type: NFC}
- {name: b, type: FC}
- {name: c, type: FC, dependencies: [Start, y]}
- {name: a, type: FC}
- {name: x, type: FC, dependencies: [b, c]}
- {name: y, type: FC, dependencies: [c]}
- {name: z, type: FC, dependencies: [b]}
- {name: v, type: FC, dependencies: [x]}
- {name: w, type: FC, dependencies: [v]}
- {name: End, type: NFC, dependencies: [x, y, z, a]}
""")
    at = page_of(score_transcripts(graph, []).report()).told("at")
    layers = {name: layer for name, (layer, _) in at.items()}
    assert layers == {"Start": 0, "a": 1, "b": 1, "c": 1, "x": 2, "y": 2, "z": 2, "v": 3, "w": 4, "End": 4}
    found = sorted("xyz", key=lambda name: at[name][1])
    assert found == (list("zxy") if at["b"][1] < at["c"][1] else list("yxz"))
