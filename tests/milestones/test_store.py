"""Stored results: what is cut off is done again, nothing is done twice, and runs are not mixed."""

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arq_graph import ScriptedChatModel
from arq_graph.errors import InputError
from arq_graph.milestones import Report, evaluate, evaluate_turns, read_transcripts, score_transcripts
from tests.milestones.evaluated import Answers, suite, talker
from tests.milestones.reported import judge_by_label, make_chain, make_shop_graph, make_talk

TALKS = [make_talk(f"Ünïcode \u2028 {number} \ud800", [True, False, None][number % 3]) for number in range(5)]
BROKEN = list(read_transcripts([{"messages": []}]))


def score(file: Path, graph=None, **depends_on: str) -> tuple[Report, list[str]]:
    """Return the report of a run that is stored in a file, and the ids of the conversations that were judged for it."""
    asked: list[str] = []

    def ask(graph, transcript, observations):
        asked.append(transcript.id)
        return judge_by_label(graph, transcript, observations)

    shaping = {"the judge": "j", **depends_on}
    run = score_transcripts(
        graph or make_shop_graph(), [*TALKS, *BROKEN], judge=ask, results=file, depends_on=shaping
    )
    return run.report(), asked


@pytest.fixture
def file(tmp_path):
    return tmp_path / "kept.jsonl"


def test_each_result_is_on_disk_when_it_is_reported_and_no_other_run_can_use_the_file(file):
    pytest.importorskip("fcntl")
    lines = []

    def look(_):
        lines.append(len(file.read_bytes().splitlines()))
        with pytest.raises(InputError, match="in use by another run"):
            score_transcripts(make_chain("find"), TALKS, results=file)

    score_transcripts(make_chain("find"), TALKS, results=file).report(on_outcome=look)
    assert lines == [2, 3, 4, 5, 6]
    assert len(score_transcripts(make_chain("find"), TALKS, results=file).report().conversations) == 5


@settings(max_examples=15, deadline=None)
@given(st.floats(0, 1))
@example(1)
def test_a_file_that_is_cut_off_anywhere_is_resumed(share):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "kept.jsonl"
        report, asked = score(file)
        assert (len(asked), len(report.broken)) == (5, 1)
        whole = file.read_bytes()
        left = whole[: int(share * len(whole))]
        file.write_bytes(left)
        again, asked = score(file)
        assert again == report
        assert file.read_bytes() == whole
        assert len(asked) == max(0, 5 - max(0, left.count(b"\n") - 1))


def test_an_unreadable_line_is_scored_again(file):
    report, _ = score(file)
    lines = file.read_bytes().splitlines()
    lines[2] = b"\0" * 30
    lines[4] = b'{"at": 3, "scored": {"id": "half of it"}}'
    file.write_bytes(b"\n".join(lines) + b"\n")
    again, asked = score(file)
    assert asked == [TALKS[1].id, TALKS[3].id]
    assert again == report


def test_another_run_is_refused_with_what_has_changed_and_what_to_do(file):
    score(file)
    whole = file.read_bytes()
    for change, message in (
        ({"the judge": "k"}, r"the judge \(was 'j', now 'k'\) changed since.*name another file"),
        ({"graph": make_chain("find")}, "the results of another run: the milestones changed since"),
        ({"the world": "calm"}, "the results of another run: the world changed since"),
    ):
        with pytest.raises(InputError, match=message):
            score(file, **change)
    assert file.read_bytes() == whole


@pytest.mark.parametrize(
    "content",
    [b"my notes\n", b"my notes", b'{"some": "json"}\n', b'{"arq_graph": "score", "version": 1, "of": {}}\n'],
)
def test_a_file_that_holds_something_else_is_left_as_it_is(file, content):
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"holds no results|of another version"):
        score(file)
    assert file.read_bytes() == content


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    for place in (tmp_path, tmp_path / "no" / "folder.jsonl"):
        with pytest.raises(InputError, match="results cannot be saved in"):
            score(place)


def test_a_full_disk_is_an_error_and_leaves_whole_lines(file):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(InputError, match=r"results cannot be saved in .*: File too large"):
            score(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes().endswith(b"}\n")
    whole = len(file.read_bytes().splitlines()) - 1
    _, asked = score(file)
    assert 0 < len(asked) == 5 - whole


def compress(file: Path, line_count: int | None = None) -> Path:
    """Replace a file by a compressed one with its first lines, or all of them."""
    packed = file.with_name(f"{file.name}.gz")
    lines = file.read_bytes().splitlines(keepends=True)
    packed.write_bytes(gzip.compress(b"".join(lines[:line_count])))
    file.unlink()
    return packed


def test_a_compressed_file_can_be_read_but_is_not_continued_and_nothing_is_paid_for(file):
    app, model = Answers(talker), ScriptedChatModel(["a"] * 9)
    evaluate(suite(), {"app": app}, runs=3, results=file)
    packed, calls = compress(file, 2), len(app.threads)
    for _ in range(2):  # the first error leaves the file unlocked
        with pytest.raises(InputError, match="is compressed: unpack it"):
            evaluate(suite(), {"app": app}, runs=3, results=packed, resume=True)
    assert len(app.threads) == calls
    evaluate_turns(model, TALKS[:1], results=file)
    packed, calls = compress(file, 1), len(model.calls)
    with pytest.raises(InputError, match="is compressed: unpack it"):
        evaluate_turns(model, TALKS[:1], results=packed)
    assert len(model.calls) == calls
    score(file)
    packed = compress(file)
    assert score(packed)[1] == []
    lines = gzip.decompress(packed.read_bytes()).splitlines(keepends=True)
    packed.write_bytes(gzip.compress(b"".join(lines[:-1])))
    asked: list[str] = []

    def ask(graph, transcript, observations):
        asked.append(transcript.id)
        return {}

    run = score_transcripts(
        make_shop_graph(), TALKS, judge=ask, results=packed, depends_on={"the judge": "j"}
    )
    with pytest.raises(InputError, match="is compressed: unpack it"):
        run.report()
    assert not asked


def test_a_run_that_cannot_begin_leaves_its_file_to_others(file):
    packed = file.with_name("kept.jsonl.gz")
    errors = []
    for _ in range(2):
        with pytest.raises(InputError, match="is compressed: unpack it") as error:
            score_transcripts(make_chain("find"), TALKS, results=packed).report()
        errors.append(error)  # and what refers to the first run


def test_a_file_that_another_run_uses_by_now_is_not_deleted(file):
    pytest.importorskip("fcntl")
    first = score_transcripts(make_chain("find"), TALKS, results=file)
    first.report()
    second = score_transcripts(make_chain("find"), TALKS, results=file)
    first.store.remove()
    assert file.exists()
    second.report()
    second.store.remove()
    assert not file.exists()
