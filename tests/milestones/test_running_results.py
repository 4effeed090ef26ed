"""Results that are kept as they come: whatever is cut off is scored again, and nothing counts twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones import read_transcripts
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, ForbiddenRecord
from arq_graph.milestones.reports.running import UnansweredConversation
from arq_graph.milestones.reports.running_files import Located, located
from arq_graph.milestones.reports.running_results import KeptResults

OF = {"the transcripts": "t1", "the judge": "none"}
SOURCES = {0: "chats.json"}


def places(count: int) -> list[Located]:
    records = [{"messages": [{"role": "user", "content": "hi"}]}] * count
    return list(located(read_transcripts(records), source="chats.json"))


def scored(number: int) -> ConversationRecord:
    return ConversationRecord(
        id=f"Ünïcode \u2028 {number} \ud800",
        source="chats.json",
        record=number,
        goal_completed=None,
        progress_rate=None,
        progress_range=(1 / 3, 0.1 + 0.2),
        reached=(),
        forbidden=(ForbiddenRecord(step=2, rule="no\nnewline"),),
        invented_arguments={3: ("a.b",)},
        events=1,
        turns=1,
        calls=0,
    )


def broken(number: int) -> BrokenConversation:
    return BrokenConversation(source="chats.json", record=number, error="chats.json: record 1: no JSON")


def results(count: int) -> list[ConversationRecord | BrokenConversation]:
    return [broken(number) if number % 3 == 1 else scored(number) for number in range(count)]


def filled(file: Path, count: int) -> bytes:
    with KeptResults(file, OF, sources=SOURCES) as kept:
        for one, result in zip(places(count), results(count), strict=True):
            kept.keep(one, result)
    return file.read_bytes()


def test_what_is_kept_is_read_again_as_it_was(tmp_path):
    filled(tmp_path / "kept.jsonl", 5)
    with KeptResults(tmp_path / "kept.jsonl", OF, sources=SOURCES) as kept:
        assert [kept.get(one) for one in places(6)] == [*results(5), None]
        assert len(kept) == 5


def test_each_result_is_on_disk_when_it_is_kept(tmp_path):
    file = tmp_path / "kept.jsonl"
    with KeptResults(file, OF) as kept:
        for number, one in enumerate(places(3), start=1):
            kept.keep(one, scored(number))
            assert len(file.read_bytes().splitlines()) == 1 + number


@settings(max_examples=30)
@given(st.data())
def test_a_file_cut_off_anywhere_loses_what_is_cut_and_goes_on(data):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kept.jsonl"
        whole = filled(file, 4)
        cut = data.draw(st.integers(0, len(whole)))
        file.write_bytes(whole[:cut])
        complete = max(whole[:cut].count(b"\n") - 1, 0)
        with KeptResults(file, OF, sources=SOURCES) as kept:
            assert [kept.get(one) for one in places(4)[:complete]] == results(4)[:complete]
            assert [kept.get(one) for one in places(4)[complete:]] == [None] * (4 - complete)
            for one, result in zip(places(4)[complete:], results(4)[complete:], strict=True):
                kept.keep(one, result)
        assert file.read_bytes() == whole


def test_a_line_that_cannot_be_read_is_scored_again(tmp_path):
    file = tmp_path / "kept.jsonl"
    lines = filled(file, 4).splitlines()
    lines[2] = b"\0" * 30
    lines[4] = b'{"file": 0, "record": 3, "scored": {"id": "half of it"}}'
    file.write_bytes(b"\n".join(lines) + b"\n")
    with KeptResults(file, OF, sources=SOURCES) as kept:
        assert [kept.get(one) is not None for one in places(4)] == [True, False, True, False]


def test_a_conversation_that_got_no_answer_is_asked_about_again(tmp_path):
    file = tmp_path / "kept.jsonl"
    [one] = places(1)
    with KeptResults(file, OF) as kept:
        kept.keep(one, UnansweredConversation(record=0, error="no answer"))
    with KeptResults(file, OF) as kept:
        assert kept.get(one) is None


def test_results_of_something_else_are_refused_and_left_as_they_are(tmp_path):
    file = tmp_path / "kept.jsonl"
    whole = filled(file, 2)
    with pytest.raises(InputError, match=r"the judge \(was 'none', now 'gpt'\) changed since.*--fresh"):
        KeptResults(file, {**OF, "the judge": "gpt"})
    with pytest.raises(InputError, match="the transcripts, the tools changed"):
        KeptResults(file, {"the judge": "none", "the tools": "x"})
    assert file.read_bytes() == whole


@pytest.mark.parametrize("content", [b"my notes\n", b"my notes", b'{"some": "json"}\n', b"[1, 2]\n", b"\0\n"])
def test_a_file_that_holds_no_results_is_not_overwritten(tmp_path, content):
    file = tmp_path / "kept.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match="holds no results that this version can go on with"):
        KeptResults(file, OF)
    assert file.read_bytes() == content
    with KeptResults(file, OF, fresh=True) as kept:
        assert len(kept) == 0
    assert json.loads(file.read_bytes())["of"] == OF


def test_a_full_disk_is_said_once_and_leaves_whole_lines(tmp_path):
    pytest.importorskip("resource")
    file = tmp_path / "kept.jsonl"
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from tests.milestones.test_running_results import OF, places, scored\n"
        "from arq_graph.milestones.reports.running_results import KeptResults\n"
        "from arq_graph.errors import InputError\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "try:\n"
        "    with KeptResults(Path(sys.argv[1]), OF) as kept:\n"
        "        for number, one in enumerate(places(50)):\n"
        "            kept.keep(one, scored(number))\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.stderr == ""
    assert "cannot be kept in" in done.stdout
    assert file.read_bytes().endswith(b"}\n")
    whole = len(file.read_bytes().splitlines()) - 1
    with KeptResults(file, OF) as kept:
        assert len(kept) == whole > 0


def test_a_file_that_another_run_writes_is_not_taken_from_it_even_to_begin_again(tmp_path):
    pytest.importorskip("fcntl")
    file = tmp_path / "kept.jsonl"
    with KeptResults(file, OF, sources=SOURCES) as kept:
        kept.keep(places(1)[0], scored(0))
        for fresh in (False, True):
            with pytest.raises(InputError, match="in use by another run"):
                KeptResults(file, OF, fresh=fresh)
    with KeptResults(file, OF, sources=SOURCES) as kept:
        assert len(kept) == 1


def test_a_file_that_was_moved_is_named_as_it_is_now(tmp_path):
    filled(tmp_path / "kept.jsonl", 2)
    with KeptResults(tmp_path / "kept.jsonl", OF, sources={0: "elsewhere/chats.json"}) as kept:
        assert {kept.get(one).source for one in places(2)} == {"elsewhere/chats.json"}


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(InputError, match="cannot be kept"):
        KeptResults(tmp_path, OF)
    with pytest.raises(InputError, match="cannot be kept"):
        KeptResults(tmp_path / "no" / "folder.jsonl", OF)


def test_the_file_is_taken_away_in_the_end(tmp_path):
    with KeptResults(tmp_path / "kept.jsonl", OF) as kept:
        kept.keep(places(1)[0], scored(0))
        kept.remove()
    assert list(tmp_path.iterdir()) == []
