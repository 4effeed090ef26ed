"""`arq-graph evaluate --shard`, and the files it writes: parts of a run, held apart and reported as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from arq_graph.milestones import read_report


@pytest.fixture
def shards(cli, shop):
    """Hold some shards of the shop's suite, and name their results files."""

    def hold(*numbers: str, arms: str = "desk:echo", code: int = 0) -> list[str]:
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
            assert done.code == code, done.err
        return [f"suite.{shard.replace('/', '-of-')}.results.jsonl" for shard in numbers]

    return hold


def report(cli, folder: Path, *more: str, code: int = 0):
    done = cli(
        "evaluate", "suite.yaml", *more, "--model", "offline", "--arms", "desk:echo", "--runs", "4",
        "--json", "out.json", "--html", "out.html",
    )  # fmt: skip
    assert done.code == code, done.err
    times = {"turn_seconds"}
    read = read_report(folder / "out.json")
    assert (folder / "out.html").read_text().count("Where is my order?") > 0
    return done.words, [one.model_dump(exclude=times) for one in read.conversations]


def test_merged_shards_are_reported_as_one_run(cli, shards, folder):
    files = shards("1/3", "2/3", "3/3")
    before = [(folder / file).read_bytes() for file in files]
    _, merged = report(cli, folder, *files)
    more = cli(
        "evaluate", "suite.yaml", *files, "--model", "offline", "--arms", "desk:echo,guided", "--runs", "4"
    )
    assert "not all shards are done. Missing below: 8 conversations." in more.words
    assert [(folder / file).read_bytes() for file in files] == before, "nothing was held"
    assert not (folder / "suite.results.jsonl").exists()
    assert merged == report(cli, folder)[1]


def test_a_missing_shard_is_told_and_what_was_held_twice_counts_once(cli, shards, folder):
    files = shards("1/3", "3/3")
    again = (folder / files[1]).read_text().replace("Where is my order?", "Where has it gone?")
    (folder / "copy.jsonl").write_text(again)
    said, found = report(cli, folder, *files, "copy.jsonl", code=1)
    assert len({one["id"] for one in found}) == len(found) > 0
    assert "Where has it gone?" not in (folder / "out.html").read_text(), "the first counts"
    assert f"shards missing: 2/3. Missing below: {8 - len(found)} conversations." in said
    assert "Continue each part that is not done with its --shard and --resume" in said


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--arms", "desk:echo,desk:kaputt"), "give --runs 4 (in Python, runs=), or more"),
        (("--runs", "4"), "give --arms desk:echo,desk:kaputt, or more"),
    ],
)
def test_runs_and_arms_that_are_not_given_again_are_not_left_out_silently(cli, shards, given, told):
    files = shards("1/2", "2/2", arms="desk:echo,desk:kaputt", code=1)
    for command in (files, ["--results", files[0], "--shard", "1/2", "--resume"]):
        done = cli("evaluate", "suite.yaml", *command, "--model", "offline", *given)
        assert (done.code, "conversations that are kept would be left out" in done.words) == (1, True)
        assert told in done.words


def test_what_is_no_part_of_the_same_run_is_refused(cli, shards, shop, folder):
    (one,) = shards("1/3")
    (folder / "chats.jsonl").write_text('{"messages": []}\n')
    suite = shop.with_name("suite.yaml")
    suite.write_text(suite.read_text().replace("B-1002", "B-1"))
    (other,) = shards("3/3")
    for files, said in (
        (
            (other, one),
            "suite.1-of-3.results.jsonl holds the results of another run: the user",
        ),
        ((other, "chats.jsonl"), "chats.jsonl holds no results of this kind"),
        ((other, "nowhere.jsonl"), "nowhere.jsonl cannot be read"),
    ):
        done = cli(
            "evaluate", "suite.yaml", *files, "--model", "offline", "--arms", "desk:echo", "--runs", "4"
        )
        assert (done.code, said in done.words) == (1, True), done.words
        assert not (folder / "nowhere.jsonl").exists()


def test_a_shard_that_is_none_is_wrong_usage(cli, shop):
    for shard in ("0/3", "4/3", "half"):
        done = cli("evaluate", "suite.yaml", "--model", "offline", "--shard", shard)
        assert (done.code, "write 2/5 for the second of five parts" in done.words) == (2, True)
