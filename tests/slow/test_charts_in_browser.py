"""The charts, the guidelines and the graph of a report's page in a headless Chromium."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Suite, evaluate, parse_milestones, read_transcripts, score_transcripts
from examples import order_desk
from tests.milestones.conversations import called, conversation, user
from tests.milestones.reported import make_chain, make_talk, repeat_with_each_user, report_on
from tests.milestones.test_guidelines_in_reports import run_desk
from tests.slow.report_pages import DESK, PHONE, WIDTHS, find_node, get_texts, list_violations, open_graph

pytestmark = pytest.mark.slow


def test_the_graph_shows_each_milestone_with_its_numbers(open_refunds):
    page = open_refunds()
    open_graph(page)
    assert page.title() == "Refunds"
    nodes, edges = page.locator(".node").all(), page.locator(".edge").all()
    labels = [node.get_attribute("aria-label") for node in nodes]
    assert len(labels) == 8
    assert "find_by_number, tool call: reached by 3 of 4, 1 stopped here" in labels
    assert "Pleased, state: reached by 0 of 4, possibly by 2 more" in labels
    counts = {edge.get_attribute("data-edge"): edge.get_attribute("data-count") for edge in edges}
    assert (counts["Start → find_by_number"], counts["find_by_mail → refund"]) == ("3", "0")
    # The middle of each node is the node's own: none covers another.
    covering = "([x, y]) => document.elementFromPoint(x, y)?.closest('.node')?.dataset.milestone"
    for node in nodes:
        node.scroll_into_view_if_needed()
        box = node.locator(".frame").bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        assert page.evaluate(covering, middle) == node.get_attribute("data-milestone")


def is_inside(inner, outer):
    return all(
        (
            inner["x"] >= outer["x"] - 1,
            inner["y"] >= outer["y"] - 1,
            inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1,
            inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1,
        )
    )


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_all_of_the_graph_is_in_view_when_opened_and_when_fitted_again(open_refunds, viewport):
    page = open_refunds(viewport=viewport)
    open_graph(page)
    canvas, end = page.locator("#canvas"), find_node(page, "End").locator(".frame")
    assert is_inside(page.locator("#canvas svg").bounding_box(), canvas.bounding_box())
    for _ in range(5):
        page.locator("#larger").click()
    assert not is_inside(page.locator("#canvas svg").bounding_box(), canvas.bounding_box())
    page.locator("#fit").click()
    assert is_inside(end.bounding_box(), canvas.bounding_box())


def test_optional_milestones_end_states_and_calls_of_users_are_marked(open_report):
    graph = parse_milestones("""
- {name: Start, type: NFC}
- {name: insure, type: FC, optional: true}
- {name: unlock, type: FC, by: user}
- {name: Paid, type: NFC, state: "tests.milestones.end_states:was_paid", dependencies: [insure, unlock]}
- {name: End, type: NFC, dependencies: [Paid]}
""")
    page = open_report(score_transcripts(graph, []).report())
    open_graph(page)
    assert get_texts(page, ".node .special:not(:empty)") == ["optional", "user's call", "end state"]


def test_a_click_on_where_conversations_stop_lists_them(open_refunds):
    page = open_refunds()
    page.get_by_role("button", name="find_by_number, recorded: 1 stopped here").click()
    assert get_texts(page, ".row .id") == ["lamp"]
    assert get_texts(page, ".chip") == ["stopped at find_by_number ✕"]
    page.get_by_role("button", name="End, recorded: 2 of 4 reached it").click()
    assert get_texts(page, ".row .id") == ["mug", "kettle"]
    page.locator("#broken summary", has_text="1 broken record").click()
    assert "the conversation is empty" in page.locator("#broken").inner_text()


def make_arms(count, arms=("shop", "closed")):
    """Return runs of so many scenarios, of which the second arm fails in the last one alone."""
    for number in range(count):
        for arm in arms:
            about = {"arm": arm, "scenario": f"case {number}", "run": 1}
            goal = arm != arms[-1] or number < count - 1
            yield make_talk(f"{number} {arm}", goal, task=f"case {number}", about=about)


def test_scenarios_in_which_arms_differ_come_first_and_a_cell_lists_its_runs(open_report):
    page = open_report(report_on(*make_arms(300)))
    assert "Arms differ in 1 of 300" in page.locator("#heat").inner_text()
    rows = page.locator("#heat tbody tr:visible")
    assert (rows.count(), rows.first.inner_text().split("\t")) == (12, ["case 299", "1/1", "0/1"])
    page.locator("#heat .more").click()
    assert rows.count() == 300
    page.get_by_role("button", name="case 299, closed: 0 of 1 completed").click()
    assert get_texts(page, ".case .id") == ["case 299"]
    assert page.evaluate("location.hash") == "#arm=closed&scenario=case+299"


def test_arms_are_compared_by_kind_of_user_on_an_axis_from_0_to_100(open_report):
    talks = []
    for arm, goals in (("shop", (True, True, False)), ("closed", (True, False, False))):
        for task in "abc":
            talks += repeat_with_each_user(task, *goals, arm=arm)
    page = open_report(report_on(*talks))
    assert get_texts(page, ".axis i") == ["0%", "25%", "50%", "75%", "100%"]
    assert [text.split() for text in get_texts(page, "#whiskers h3")] == [
        ["all", "users", "9", "conversations", "each"],
        ["helpful", "users", "3", "conversations", "each"],
        ["perturbed", "users", "3", "conversations", "each"],
        ["unhelpful", "users", "3", "conversations", "each"],
    ]
    row = page.get_by_role("button", name="closed, all users: 33%").first
    track, dot = (row.locator(part).bounding_box() for part in (".track", ".dot"))
    assert abs((dot["x"] + dot["width"] / 2 - track["x"]) / track["width"] - 1 / 3) < 0.01
    page.get_by_role("button", name="shop, unhelpful users: 0%").click()
    assert page.evaluate("location.hash") == "#arm=shop&user=unhelpful"
    assert page.locator("#rows > li").count() == 3


def test_where_some_are_undecided_a_range_without_a_dot_is_drawn(open_report):
    page = open_report(report_on(*(make_talk(str(number), goal) for number, goal in enumerate([True, None]))))
    assert page.locator(".whisker .dot").count() == 0
    assert get_texts(page, ".whisker.ranged .figure") == ["50–100%"]


def test_a_broken_guideline_says_why_and_leads_to_where_it_was_broken(open_report, tmp_path):
    results = tmp_path / "results.jsonl"
    with ThreadPoolExecutor() as pool:  # in this thread, Playwright's event loop runs
        report = pool.submit(run_desk, results).result()
    page = open_report(report, read_transcripts(results))
    first = page.locator("#guidelines tbody tr").first
    assert get_texts(first, "th, td") == ["no-promises", "2", "0", "2", "8.0", "named a day ×2"]
    page.get_by_role("button", name="Guideline", exact=True).click()
    assert first.inner_text().startswith("look-up")
    assert page.evaluate("document.activeElement.textContent") == "Guideline"
    page.get_by_role("button", name="no-promises, desk: broken in 2 turns").click()
    assert get_texts(page, ".chip") == ["broke no-promises ✕"]
    page.locator("#rows button").first.click()
    turn = page.locator(".event.agent .turn").first
    line = "2 of 3 guidelines active · 1 tool unlocked · 1 call refused · 2 drafts broken: no-promises"
    assert get_texts(turn, "summary") == [line]
    turn.locator("summary").click()
    words = turn.inner_text()
    for part in ("no-promises · broken · score 8", "named a day", "Unlocked get_order", "get_order ran"):
        assert part in words


def test_a_call_that_came_too_early_says_what_was_missing(open_report):
    talks = [conversation(user("pay, please"), called("pay"), id="hasty")]
    page = open_report(score_transcripts(make_chain("find", "pay"), talks).report(), talks, "#c=0")
    assert get_texts(page, "#event-2 .marks .tag") == ["too early: find was not reached"]


def test_the_page_of_an_evaluation_is_readable_and_is_the_picture_of_the_documentation(open_report, tmp_path):
    """`ARQ_GRAPH_PICTURES=docs/images` makes the picture anew."""
    suite = Path(order_desk.__file__).with_name("suite.yaml")
    arms = load_arms(["guided", "pre-act", "react"])
    results = tmp_path / "results.jsonl"
    with ThreadPoolExecutor() as pool:
        run = pool.submit(evaluate, Suite.from_yaml(suite), arms, model="offline", results=results)
        report = run.result()
    talks = list(read_transcripts(results))
    page = open_report(report, talks, title="Order desk", viewport={"width": 1280, "height": 880})
    folder = Path(os.environ.get("ARQ_GRAPH_PICTURES", tmp_path))
    page.screenshot(path=folder / "report.png")
    assert (folder / "report.png").stat().st_size < 200_000
    for size in (DESK, PHONE):
        page = open_report(link="#c=6", viewport=size)
        page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
        assert list_violations(page) == []
        width, screen = page.evaluate(WIDTHS)
        assert width <= screen
