"""`arq-graph evaluate`: what it prints, stores and writes, and its messages for mistakes."""

import csv
import gzip
import json
from xml.etree import ElementTree

import pytest

from arq_graph.milestones import read_report


@pytest.fixture
def evaluate(cli, shop):
    """Run the shop's suite offline."""
    return lambda arms, *more: cli("evaluate", "suite.yaml", "--model", "offline", "--arms", arms, *more)


def test_two_arms_are_compared(evaluate, folder):
    result = evaluate("direct,desk:echo", "--json", "out.json", "--html", "out.html", "--csv", "out.csv")
    assert result.code == 0
    assert "n customer's goal goal completion progress rate" in result.words
    assert "direct → desk:echo" not in result.words
    assert "without a `world`: their conversations share the agent's own tools" in result.words
    assert "suite.results.jsonl" in result.err
    assert "\x1b[31m" not in result.out
    assert result.words.startswith("No evidence: the agent's model was a fake.")
    report = read_report(folder / "out.json")
    assert len(report.conversations) == 4
    helpful = [record for record in report.conversations if record.user == "helpful"]
    assert {record.arm: record.goal_completed for record in helpful} == {"direct": True, "desk:echo": False}
    assert report.summary.arms["direct"].goal_reached.count == 1
    rows = list(csv.DictReader((folder / "out.csv").open(encoding="utf-8", newline="")))
    assert sorted(row["arm"] for row in rows) == ["desk:echo"] * 2 + ["direct"] * 2
    page = (folder / "out.html").read_text()
    assert "Where is my order?" in page
    assert "in the workshop" in page


def test_the_comparison_comes_first_and_all_tables_on_request(evaluate):
    brief = evaluate("direct,desk:echo").out
    assert brief.index("No difference between direct and desk:echo can be told") < brief.index(
        "goal completion"
    )
    assert "--verbose prints the other tables" in brief
    full = evaluate("direct,desk:echo", "--resume", "--verbose")
    assert "customer's goal n direct desk:echo helpful 1 100% [" in full.words
    assert "direct → desk:echo" in full.words
    assert "seconds of a turn" in full.words
    assert "--verbose" not in full.words


def test_compressed_results_are_scored_but_not_continued(evaluate, cli, folder):
    assert evaluate("direct", "--json", "out.json").code == 0
    plain, packed = folder / "suite.results.jsonl", folder / "suite.results.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert cli("score", packed.name, "--milestones", "milestones.yaml", "--json", "scored.json").code == 0
    reports = [read_report(folder / name).conversations for name in ("out.json", "scored.json")]
    evaluated, scored = [{record.id: record.progress_rate for record in report} for report in reports]
    assert evaluated == scored
    more = evaluate("direct,react", "--results", packed.name, "--resume")
    assert "suite.results.jsonl.gz is compressed: unpack it" in more.words


def test_existing_results_are_not_overwritten_but_resumed_on_request(evaluate, folder):
    assert evaluate("desk:echo").code == 0
    before = (folder / "suite.results.jsonl").read_bytes()
    refused = evaluate("desk:echo")
    assert refused.code == 1
    assert "--resume" in refused.err
    assert evaluate("desk:echo", "--runs", "2", "--resume").code == 0
    after = (folder / "suite.results.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(after.splitlines()) == 1 + 4


def test_errors_are_named_and_the_other_conversations_are_run(evaluate, folder):
    result = evaluate("desk:kaputt,desk:hostile,desk:echo", "--runs", "2", "--json", "out.json")
    assert result.code == 1
    assert "8 conversations ended in an error" in result.words
    assert "--resume does not repeat a conversation that ended in an error" in result.words
    assert "continues from there" not in result.words
    shown = result.out.splitlines()
    assert any(line.startswith("desk:kaputt: 4: RuntimeError: kaputt") for line in shown)
    assert any(line.startswith("desk:hostile: 4: RuntimeError: \\u001b[2J[bold]gone") for line in shown)
    assert not any(line.startswith("desk:echo: ") for line in shown)
    assert "\x1b" not in result.out
    report = read_report(folder / "out.json")
    assert report.broken == ()
    assert [record.ended for record in report.conversations if record.arm == "desk:echo"] == ["user"] * 4


def test_exceptions_of_tools_are_counted_by_kind(evaluate, cli, shop, folder):
    tools = shop.with_name("desk.py")
    tools.write_text(tools.read_text().replace('    note("get "', '    {}["no such key"]\n    note("get "'))
    result = evaluate("direct", "--html", "out.html")
    assert result.code == 0
    assert (
        "exceptions of tools failed get_order: KeyError 1 of 2 get_order: ValueError 1 of 2" in result.words
    )
    assert "get_order: KeyError" in (folder / "out.html").read_text()
    cli("experiment", "suite.yaml", "--model", "offline", "--arms", "direct", "--record", "record")
    [figures] = (folder / "record").glob("*.json")
    assert json.loads(figures.read_text())["tables"][-1]["title"] == "exceptions of tools"


def test_no_page_is_written_if_nothing_could_be_measured(evaluate, shop, folder):
    tools = shop.with_name("desk.py")
    tools.write_text(tools.read_text() + "\n\ndef unmade(scenario, agent, model):\n    {}['app']\n")
    result = evaluate("desk:unmade", "--html", "out.html")
    assert (result.code, result.err.count("nothing could be measured")) == (1, 1)
    assert "it could not begin: KeyError: 'app' (line" in result.words
    assert not (folder / "out.html").exists()


def test_a_model_out_of_reach_has_an_exit_code_of_its_own_and_the_run_can_be_resumed(evaluate):
    result = evaluate("desk:unreached", "--runs", "3")
    assert result.code == 3
    assert "out of reach" in result.words
    assert "--resume" in result.words
    some = evaluate("desk:unreached,desk:echo", "--results", "some.jsonl")
    assert some.code == 1
    assert "--resume continues from there" in some.words


def test_a_run_at_its_limit_is_resumed_with_a_higher_one(evaluate, folder):
    stopped = evaluate("guided", "--runs", "4", "--max-calls", "10", "--html", "out.html")
    assert (stopped.code, stopped.out, "went wrong" in stopped.err) == (0, "", False)
    assert "No conversation was finished. Missing: 8 conversations." in stopped.words
    assert "--resume and a higher --max-calls continues from there" in stopped.words
    assert not (folder / "out.html").exists()


def test_a_judge_can_be_asked_several_times(evaluate):
    assert "name one with --judge" in evaluate("desk:echo", "--votes", "3").words
    assert evaluate("desk:echo", "--judge", "offline", "--votes", "3").code == 0
    assert "the judge's votes" in evaluate("desk:echo", "--judge", "offline", "--resume").words


def test_a_missed_threshold_has_an_exit_code_of_its_own(evaluate):
    assert evaluate("desk:echo").code == 0
    again = ("--overwrite", "--min-success")
    assert evaluate("direct,desk:echo", *again, "0").code == 0
    missed = evaluate("direct,desk:echo", *again, "0.8")
    assert missed.code == 5
    assert "direct: the goal completion is 50.0% (1 of 2), 30.0 points below 80.0%" in missed.words
    assert "desk:echo: the goal completion is 0.0% (0 of 2), 80.0 points below 80.0%" in missed.words
    assert evaluate("desk:kaputt", *again, "0.8").code == 1


def test_a_guideline_may_be_broken_as_often_as_was_said(evaluate):
    assert evaluate("guided", "--max-broken", "polite=0", "--max-broken", "forbidden=0").code == 0
    missed = evaluate("guided", "--overwrite", "--max-broken", "polit=0")
    assert missed.code == 5
    assert (
        "guided: no reply was checked for the guideline 'polit', so nothing shows that it was" in missed.words
    )
    assert "did you mean `polite`" in missed.words
    assert "NAME=N, such as no-promises=0" in evaluate("guided", "--max-broken", "polite").words


def test_only_results_are_overwritten(evaluate, folder):
    (folder / "notes.jsonl").write_text("my notes\n")
    refused = evaluate("desk:echo", "--results", "notes.jsonl", "--overwrite")
    assert (refused.code, (folder / "notes.jsonl").read_text()) == (1, "my notes\n")
    assert (
        "--resume continues the results that --overwrite deletes"
        in evaluate("desk:echo", "--resume", "--overwrite").words
    )


def test_a_junit_file_has_a_case_for_each_conversation(evaluate, folder):
    assert evaluate("direct,desk:hostile,desk:echo", "--junit", "out.xml").code == 1
    suite = ElementTree.parse(folder / "out.xml").getroot()
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "Desk",
        "6",
        "3",
        "2",
    )
    [failure] = suite.findall("testcase[@classname='direct']/failure")
    assert failure.get("message") == "stopped at Start; next would be get_order"
    error = suite.find("testcase[@classname='desk:hostile']/error")
    assert error.get("message").startswith("RuntimeError: \N{REPLACEMENT CHARACTER}[2J[bold]gone")
