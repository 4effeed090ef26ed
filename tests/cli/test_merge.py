"""`arq-graph evaluate --shard` and `arq-graph merge`: parts of a run, held apart and reported as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arq_graph.milestones import read_report


@pytest.fixture
def shards(cli, shop):
    """Hold some shards of the shop's suite, and name their results files."""

    def hold(*numbers: str, arms: str = "desk:echo") -> list[str]:
        for shard in numbers:
            done = cli(
                "evaluate",
                "suite.yaml",
                "--model",
                "offline",
                "--arms",
                arms,
                "--runs",
                "4",
                "--shard",
                shard,
            )
            assert done.code == 0, done.err
        return [f"suite.{shard.replace('/', '-of-')}.results.jsonl" for shard in numbers]

    return hold


def report_of(cli, folder: Path, *settings: str):
    done = cli(
        "evaluate", "suite.yaml", "--model", "offline", "--arms", "desk:echo", "--runs", "4", "--json", "out.json",
        *settings,
    )  # fmt: skip
    assert done.code == 0, done.err
    times = {"seconds", "turn_seconds"}
    return [one.model_dump(exclude=times) for one in read_report(folder / "out.json").conversations]


def test_merged_shards_are_one_run_that_is_gone_on_with(cli, shards, folder):
    files = shards("1/3", "2/3", "3/3")
    done = cli("merge", *files, "--results", "all.jsonl")
    assert (done.code, "8 conversations in all.jsonl" in done.words) == (0, True)
    before = (folder / "all.jsonl").read_bytes()
    merged = report_of(cli, folder, "--results", "all.jsonl", "--resume")
    assert (folder / "all.jsonl").read_bytes() == before, "nothing was held again"
    assert merged == report_of(cli, folder)


def test_a_missing_shard_and_what_was_held_twice_are_told(cli, shards, folder):
    files = shards("1/3", "3/3")
    again = folder / "copy.jsonl"
    again.write_bytes((folder / files[1]).read_bytes())
    done = cli("merge", *files, "copy.jsonl", "--results", "all.jsonl")
    assert done.code == 1
    assert "1 shard missing: 2/3" in done.words
    assert "held twice, of which the first is kept: order (" in done.words
    assert len(report_of(cli, folder, "--results", "all.jsonl", "--resume")) == 8


def test_what_is_no_part_of_the_same_run_is_refused(cli, shards, shop, folder):
    one, two, half = shards("1/3", "2/3", "1/2")
    (folder / "chats.jsonl").write_text('{"messages": []}\n')
    suite = shop.with_name("suite.yaml")
    suite.write_text(suite.read_text().replace("B-1002", "B-1"))
    (other,) = shards("3/3")
    for files, said in (
        (
            (one, other),
            "suite.3-of-3.results.jsonl is of another run than suite.1-of-3.results.jsonl: the user of",
        ),
        ((one, half), "parts of different splits: of 2 and of 3"),
        ((one, "chats.jsonl"), "chats.jsonl holds no results of this kind"),
        ((one, "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
    ):
        done = cli("merge", *files, "--results", "all.jsonl")
        assert (done.code, said in done.words) == (1, True), done.words
        assert not (folder / "all.jsonl").exists()
    assert cli("merge", one, two, "--results", one).code == 1


def test_a_shard_that_is_none_is_wrong_usage(cli, shop):
    for shard in ("0/3", "4/3", "half"):
        done = cli("evaluate", "suite.yaml", "--model", "offline", "--shard", shard)
        assert (done.code, "write 2/5 for the second of five parts" in done.words) == (2, True)


def test_the_calls_of_all_shards_count(cli, shards, folder):
    files = shards("1/2", "2/2", arms="guided:direct")
    cli("merge", *files, "--results", "all.jsonl")
    done = cli(
        "evaluate", "suite.yaml", "--model", "offline", "--arms", "guided:direct", "--runs", "5", "--resume",
        "--results", "all.jsonl", "--max-calls", "5",
    )  # fmt: skip
    kept = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()][1:]
    calls = sum(one["arq_graph"]["calls"] for one in kept)
    assert f"max_calls: {calls} of 5 model calls are made: 2 conversations of the run missing" in done.words
