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
from arq_graph.milestones.reports.records import BrokenConversation
from arq_graph.milestones.reports.tables import build_tables
from tests.milestones.conversations import called, conversation, user
from tests.milestones.golden_cases import make_case
from tests.milestones.reported import make_shop_graph, make_talk
from tests.milestones.sample_report import HOSTILE, NAME, hostile_report, make_sample_report, refund_talks


class Page(HTMLParser):
    """A parsed page: its elements, and the text of scripts and styles by id or tag."""

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

    def read_conversation(self, index: int) -> dict[str, Any]:
        return json.loads(self.texts[f"words-{index}"])

    def list_readable(self) -> list[int]:
        return [int(number) for number in re.findall(r'id="words-(\d+)"', self.source)]

    def get_by_milestone(self, key: str) -> dict[str, Any]:
        return {milestone["name"]: milestone[key] for milestone in self.graph["milestones"] if milestone[key]}

    def count_by_edge(self) -> dict[str, int]:
        names = [milestone["name"] for milestone in self.graph["milestones"]]
        counts = {}
        for edge in self.graph["edges"]:
            source, target = edge["ends"]
            counts[f"{names[source]} > {names[target]}"] = edge["count"]
        return counts


def make_page(report: Report, talks: Any = (), **settings: Any) -> Page:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        write_html(file, report, talks, **settings)
        return Page(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page():
    talks = refund_talks()
    return make_page(make_sample_report(talks), talks)


def test_each_milestone_shows_how_many_reached_it_and_stopped_there(page):
    reached = {"Start": 4, "find_by_number": 3, "find_by_mail": 1, "refund": 2, "Comforted": 2}
    assert page.get_by_milestone("reached") == {**reached, "Both": 2, "End": 2}
    # The kettle reached the end, and something forbidden happened.
    assert page.get_by_milestone("stopped") == {"find_by_number": 1, "Start": 1, "End": 1}
    assert page.get_by_milestone("stopped") == page.data["summary"]["overall"]["stops"]
    assert page.get_by_milestone("possibly") == {"Pleased": 2}
    assert (page.graph["conversations"], page.graph["completed"]) == (4, 1)


def test_tables_note_small_means_zeros_and_stops_at_the_end():
    repeating = conversation(user("hi"), called("find"), called("find"), id="0")
    talks = [repeating, *(make_talk(str(number)) for number in range(1, 40))]
    report = score_transcripts(make_shop_graph(), talks).report()
    *others, last = report.conversations
    last = last.model_copy(update={"goal_completed": False, "outcome": {"success": False}})
    report = report.model_copy(update={"conversations": (*others, last)})
    source = make_page(report).source
    assert re.search(r"repeated an earlier one\W[^0-9]*&lt;0\.1<", source)
    assert "0 everywhere: something forbidden." in source
    [stops] = [table for table in build_tables(report) if table.title == "stopped at"]
    assert stops.notes[0].startswith(
        "Those at End reached it, but something forbidden happened, or the world"
    )


def test_each_edge_shows_how_many_went_along_it(page):
    assert page.count_by_edge() == {
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


def test_the_first_of_two_alternatives_is_the_travelled_edge():
    talks = [conversation(called("find_by_mail"), called("find_by_number"), called("refund"))]
    edges = make_page(make_sample_report(talks), talks).count_by_edge()
    assert (edges["find_by_mail > refund"], edges["find_by_number > refund"]) == (1, 0)


def test_a_milestone_that_was_skipped_is_passed_but_not_reached():
    graph = parse_milestones("""
- {name: Start, type: NFC}
- {name: insure, type: FC, optional: true}
- {name: pay, type: FC, dependencies: [insure]}
- {name: End, type: NFC, dependencies: [pay]}
""")
    talks = [conversation(called("pay"))]
    page = make_page(score_transcripts(graph, talks).report(), talks)
    assert page.count_by_edge() == {"Start > insure": 1, "insure > pay": 1, "pay > End": 1}
    assert [milestone["optional"] for milestone in page.graph["milestones"]] == [False, True, False, False]
    assert page.get_by_milestone("reached") == {"Start": 1, "pay": 1, "End": 1}


def test_a_conversation_can_be_read_event_by_event(page):
    message, call, result, *_ = page.read_conversation(0)["events"]
    assert message == {"speaker": "user", "text": "My mug broke, order 17"}
    assert call == {"tool": "find_by_number", "arguments": [["number", "17"]]}
    assert (result["text"], result["call"]) == ('{\n  "order": 17,\n  "status": "delivered"\n}', 2)


def test_each_conversation_shows_its_score(page):
    rows = page.data["conversations"]
    assert [row["status"] for row in rows] == ["completed", "missed", "missed", "missed"]
    mug, lamp, kettle, _ = rows
    assert mug["reached"][1:3] == [{"name": "find_by_number", "step": 2}, {"name": "Comforted", "step": 4}]
    assert (lamp["repeated_calls"], lamp["invented_arguments"]["6"]) == ([4], ["number"])
    assert kettle["forbidden"][0]["step"] == 6


def test_shared_instructions_are_stored_once_and_equal_ids_keep_their_own_words(page):
    assert page.data["instructions"] == {"0": "Be kind."}
    assert [page.read_conversation(index).get("instructions") for index in range(4)] == [0, 0, None, None]
    assert [row["id"] for row in page.data["conversations"]] == ["mug", "lamp", "kettle", "lamp"]
    assert page.read_conversation(3)["events"][0]["text"] == "Are you there?"


def test_transcripts_of_another_report_are_refused_and_leave_the_old_page(tmp_path):
    file, talks = tmp_path / "report.html", refund_talks()
    file.write_text("old")
    with pytest.raises(InputError, match="'mug' with 6 events isn't a conversation of the report"):
        write_html(file, make_sample_report(talks[1:]), talks)
    assert [(path, path.read_text()) for path in tmp_path.iterdir()] == [(file, "old")]


def test_failed_conversations_come_first_where_there_is_no_room_for_all():
    mug, lamp, kettle, _ = (replace(talk, source="talks.jsonl") for talk in refund_talks())
    events = (*mug.events, *user("語" * 4_000) * 160)
    long = replace(mug, events=events, id="long", source="long.jsonl")
    talks = [long] * 12 + [lamp, kettle]
    page = make_page(make_sample_report(talks), talks)
    # A long one, which completes the goal, takes nearly 2 MB, of which there is room for 20.
    assert page.list_readable() == [*range(10), 12, 13]
    assert (page.data["readable"], page.data["elsewhere"]) == (12, ["long.jsonl", "talks.jsonl"])
    assert len(page.data["conversations"]) == 14


def test_only_the_given_transcripts_can_be_read():
    talks = refund_talks()
    page = make_page(make_sample_report(talks), [talks[3], talks[0]])
    assert (page.list_readable(), page.data["elsewhere"]) == ([0, 3], [])


def test_a_long_text_is_cut_and_limits_and_stand_ins_are_noted():
    talks = [conversation(user("x" * 4_100))]
    changes = {"missing": 7, "stopped": "max_calls (40) is reached", "stand_ins": ("the judge",)}
    page = make_page(make_sample_report(talks, **changes), talks)
    assert page.read_conversation(0)["events"][0]["text"].startswith("x" * 4_000 + "… 100 more characters")
    assert (page.data["missing"], page.data["stopped"]) == (7, "max_calls (40) is reached")
    assert "the judge was a fake" in page.data["stand_in"]


def make_visible(text: str) -> str:
    """Return a text as the page shows it: hidden characters as their numbers, lone surrogates as a mark."""
    hidden = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
    plain = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub(hidden, lambda match: f"\\u{ord(match[0]):04x}", plain)


def test_no_words_become_markup():
    page = make_page(*hostile_report(), title=HOSTILE)
    talks = refund_talks()[:1]
    plain = make_page(make_sample_report(talks), talks)
    tags, plain_tags = (Counter(tag for tag, _ in parsed.tags) for parsed in (page, plain))
    assert (tags.keys(), tags["script"]) == (plain_tags.keys(), plain_tags["script"])
    assert "window.harmed" in page.source
    message, call, *_ = page.read_conversation(0)["events"]
    assert call["arguments"][0] == [
        make_visible(HOSTILE),
        make_visible(json.dumps(HOSTILE, ensure_ascii=False)),
    ]
    assert page.graph["name"] == make_visible(NAME)
    assert message["text"] == make_visible(HOSTILE)
    assert "\u202e" not in page.source
    assert not set("<>&\u2028") & set(page.texts["words-0"])


def test_only_the_pages_own_script_and_style_may_run_and_nothing_is_loaded(page):
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
def test_a_layout_has_room_for_each_milestone_and_a_bend_in_each_passed_layer(seed):
    graph = parse_milestones(json.dumps(make_case(seed)[0]))
    assume(not check_milestones(graph).errors)
    drawn = make_page(score_transcripts(graph, []).report()).graph
    points = [milestone["at"] for milestone in drawn["milestones"]]
    rows: dict[int, list[float]] = {}
    for layer, place in points:
        rows.setdefault(layer, []).append(place)
        assert 0 <= layer < drawn["layers"]
        assert -0.001 <= place <= drawn["breadth"]
    for row in rows.values():
        assert all(right - left > 0.99 for left, right in pairwise(sorted(row)))
    for edge in drawn["edges"]:
        first, last = (points[end][0] for end in edge["ends"])
        passed = range(first + 1, last) if first < last else range(first - 1, last, -1)
        assert [layer for layer, _ in edge["bends"]] == list(passed)


def test_layers_run_from_start_to_end_and_no_edges_cross_without_need():
    # The cycle of c and y has an edge that runs back.
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
    points = make_page(score_transcripts(graph, []).report()).get_by_milestone("at")
    layers = {name: layer for name, (layer, _) in points.items()}
    assert layers == {"Start": 0, "a": 1, "b": 1, "c": 1, "x": 2, "y": 2, "z": 2, "v": 3, "w": 4, "End": 4}
    order = sorted("xyz", key=lambda name: points[name][1])
    assert order == (list("zxy") if points["b"][1] < points["c"][1] else list("yxz"))


def test_no_folders_of_this_machine_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    talk = refund_talks()[0]
    report = make_sample_report([talk])
    record = report.conversations[0].model_copy(update={"source": str(tmp_path / "talks" / "today.jsonl")})
    graphs = {
        name: graph.model_copy(update={"file": "/home/me/refund.yaml"})
        for name, graph in report.graphs.items()
    }
    broken = BrokenConversation(source="/home/me/talks.jsonl", error="/home/me/talks.jsonl, line 3: no JSON")
    changes = {"conversations": (record,), "graphs": graphs, "broken": (broken,)}
    page = make_page(report.model_copy(update=changes), [talk])
    assert page.data["conversations"][0]["source"] == "talks/today.jsonl"
    assert page.graph["file"] == "refund.yaml"
    assert page.data["broken"] == ["talks.jsonl, line 3: no JSON"]


def test_tables_that_a_chart_repeats_are_left_out():
    source = make_page(make_sample_report(refund_talks())).source
    assert "<h3>progress rate</h3>" in source
    assert "<h3>goal completion</h3>" not in source
    assert "<h3>stopped at</h3>" not in source
