"""The report in the terminal: every figure is there, at any width, in any encoding."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from arq_graph.cli.report_table import show_report
from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.reports.records import BrokenConversation, ForbiddenRecord, graph_record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.reports.summary import report, summarize
from tests.milestones.report_records import measured, runs


def shown(written: Report, width: int = 80) -> str:
    console = Console(
        width=width, file=io.StringIO(), record=True, highlight=False, emoji=False, markup=False
    )
    show_report(written, console)
    return console.export_text()


def row(text: str, name: str, *, after: str = "") -> str:
    """The first line that begins with this name, below another."""
    lines = text[text.index(after) :].splitlines()
    return " ".join(next(line for line in lines if line.startswith(name)).split())


def test_rates_stand_with_their_intervals_for_all_and_by_use_case() -> None:
    records = [measured(str(n), n < 8, use_case="refund") for n in range(10)]
    text = shown(report([*records, measured("x", False, use_case="exchange")]))
    assert text.startswith("11 conversations\n")
    # Wilson for 8 of 10 is 0.490 to 0.943; the mean of eight 1 and two 0.5 is 0.9.
    assert row(text, "refund").startswith("refund 10 8 of 10 80% [49, 94] 0.90 [0.")
    assert row(text, "exchange") == "exchange 1 0 of 1 0% [0, 79] 0.50"
    assert row(text, "all").startswith("all 11 8 of 11 73% [")


def test_a_use_case_that_all_belong_to_is_not_said_twice() -> None:
    text = shown(report([measured("a", use_case="refund"), measured("b", use_case="refund")]))
    assert "refund" not in text


def test_what_is_undecided_is_counted_and_shown_as_a_range() -> None:
    text = shown(report([measured("a"), measured("b", None)]))
    assert row(text, "all") == "all 2 1 to 2 of 2 50% to 100% 0.62 to 0.88"
    assert "Undecided: nothing says of 1 conversation whether the goal was completed." in text
    assert "Undecided" not in shown(report([measured("a")]))


def test_turns_calls_and_what_was_forbidden() -> None:
    rule = ForbiddenRecord(step=3, rule="no refunds")
    records = [
        measured("a", calls=4, wasted_calls=(2, 4), repeated_calls=(4,), forbidden=(rule,)),
        measured("b"),
    ]
    text = shown(report(records))
    assert row(text, "mean of each") == "mean of each turns calls wasted repeated forbidden"
    assert row(text, "all", after="mean of each") == "all 2.0 2.5 1.0 0.5 1 (50%)"


def test_pass_hat_k_stands_where_tasks_were_run_several_times() -> None:
    text = shown(report([*runs("a", True, True, False, False), *runs("b", True, True, True)]))
    assert row(text, "all", after="pass^k") == "all 75% 58% 50% 0%"
    assert "over 2 tasks (1 for k = 4)" in " ".join(text.split())
    assert "pass^k" not in shown(report([measured("a", task="a")]))


def test_tasks_that_pass_hat_k_leaves_out_are_counted() -> None:
    records = [*runs("a", True, False), *runs("b", False, None), *runs("c", None, None)]
    text = shown(report(records))
    assert row(text, "all", after="pass^k") == "all 50% 0%"
    assert "over 1 task." in " ".join(text.split())
    assert "pass^k leaves out 2 tasks: not every run is decided" in " ".join(text.split())
    assert "leaves out" not in shown(report(runs("a", True, False)))


def test_without_a_decided_task_there_is_no_pass_hat_k_and_the_reason_is_told() -> None:
    text = shown(report(runs("a", False, False, *[None] * 8)))
    assert "\npass^k " not in text
    assert "No pass^k: of 1 task not every run is decided" in " ".join(text.split())


def test_each_arm_tells_what_its_pass_hat_k_leaves_out() -> None:
    one = [*runs("a", True, False, arm="one"), *runs("b", True, None, arm="one")]
    two = runs("a", False, None, arm="two")
    made = report([*one, *two])
    arms = {"one": summarize(one), "two": summarize(two)}
    made = made.model_copy(update={"summary": made.summary.model_copy(update={"arms": arms})})
    text = " ".join(shown(made).split())
    assert "pass^k of one leaves out 1 task:" in text
    assert "No pass^k of two: of 1 task" in text


def test_where_conversations_stop_and_how_many_more_there_are() -> None:
    stops = [
        measured(f"{n}-{i}", False, path_taken=("Start", f"step_{n:02}"))
        for n in range(11)
        for i in range(n + 1)
    ]
    text = shown(report(stops))
    assert row(text, "step_10") == "step_10 11 17%"
    assert row(text, "3 others") == "3 others 6 9%"
    assert "step_02" not in text


def test_the_judge_and_the_recorded_reward() -> None:
    records = [measured("a", agreement={"x": 1.0, "y": 0.5}, reward=1.0), measured("b", False, reward=1.0)]
    text = " ".join(shown(report(records)).split())
    assert "Judge: 75% of the votes agree with the verdict, over 2 verdicts." in text
    assert (
        "agrees with the goal in 50% of 2 conversations (both 1, neither 0, goal alone 0, reward alone 1)"
        in text
    )
    # One vote agrees with itself: no share is kept, and none is told.
    text = shown(report([measured("a", reasons={"x": "It says so."})]))
    assert "Judge" not in text
    assert "reward" not in text


def test_a_graph_that_nobody_reviewed_is_named() -> None:
    graph = graph_record(MilestoneGraph.from_actions([{"name": "find", "arguments": {}}]))
    graphs = {
        "refund": graph.model_copy(update={"reviewed": False, "file": "graphs/refund.yaml"}),
        "exchange": graph.model_copy(update={"reviewed": True, "file": "graphs/exchange.yaml"}),
        "gold": graph,
    }
    text = shown(report([measured("a")], graphs=graphs))
    assert "warning: graphs/refund.yaml: generated, and reviewed by nobody" in text
    assert "look over graphs/refund.yaml" in " ".join(text.split())
    assert "exchange.yaml" not in text


def test_what_could_not_be_scored_is_counted_even_if_nothing_could() -> None:
    lost = [BrokenConversation(error="cut off")]
    assert shown(report([measured("a")], lost)).startswith("1 conversation, 1 record could not be scored\n")
    assert shown(report([], lost * 2)).strip() == "0 conversations, 2 records could not be scored"


def large() -> Report:
    return report(
        [
            measured(
                f"{n}-{name}",
                (True, False, None)[n % 3],
                use_case=name,
                task=str(n % 4),
                path_taken=("Start", f"a_tool_with_a_name_that_is_long_indeed_{n % 12}"),
                reward=1.0,
                agreement={"x": 0.5},
            )
            for n in range(48)
            for name in ("all", "return of a gift that was bought abroad", "\x1b[2J\u202e[red]", "订单")
        ]
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_line_is_wider_than_the_terminal_and_no_figure_breaks(width: int) -> None:
    text = shown(large(), width)
    assert max(map(len, text.splitlines())) <= width
    assert row(text, "all").startswith("all 192 64 to 128 of 192 33% to 67% 0.")
    assert row(text, "all (use case)").startswith("all (use case) 48 16 to 32 of 48 33% to 67% 0.")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]" in text


def test_a_narrow_terminal_breaks_lines_and_loses_nothing() -> None:
    text = shown(large(), 40)
    assert max(map(len, text.splitlines())) <= 40
    assert "".join(text.split()).count("%") == "".join(shown(large()).split()).count("%")


def test_an_old_terminal_without_colour_gets_the_same_figures() -> None:
    code = (
        "from arq_graph.cli.screen import output, tolerate_any_text\ntolerate_any_text()\n"
        "from arq_graph.cli.report_table import show_report\n"
        "from tests.cli.test_report_table import large\n"
        "show_report(large(), output())"
    )
    environment = {
        **os.environ,
        "PYTHONIOENCODING": "ascii",
        "PYTHONUTF8": "0",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=True)
    text = done.stdout.decode("ascii")
    assert row(text, "all").startswith("all 192 64 to 128 of 192 33% to 67% 0.")
    assert "[...] are 95% intervals" in text
