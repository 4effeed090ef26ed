"""The page of a report in a real browser: what it shows, what a click does, on a phone and in the dark."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

from arq_graph.milestones import MilestoneGraph, evaluate, write_html
from tests.milestones.conversations import called, conversation, user
from tests.milestones.sample_report import GRAPH, hostile_report, made, refund_talks
from tests.slow.browser import chromium, opened
from tests.slow.killed import Shop, lamps

pytestmark = pytest.mark.slow

PHONE = {"width": 360, "height": 720}
DESK = {"width": 1400, "height": 900}
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"

# Each visible text with too little contrast (WCAG 2, 1.4.3) to what is behind it.
FAINT = """() => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => v / 255)
      .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (node) => {
    const colour = getComputedStyle(node).backgroundColor;
    return colour.endsWith(", 0)") || colour === "transparent" ? behind(node.parentElement) : colour;
  };
  return [...document.querySelectorAll("body *")].filter((node) => {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const isDrawn = node.closest("svg, script, noscript, button:disabled, option");
    if (!own || isDrawn || !node.checkVisibility()) return false;
    const [a, b] = [light(getComputedStyle(node).color), light(behind(node))];
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) < 4.5;
  }).map((node) => node.className + ": " + node.textContent.slice(0, 40));
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    talks = [replace(talk, extra={"reward": at % 2}) for at, talk in enumerate(refund_talks())]
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(path, made(talks), talks, title="Refunds")
    return path


@pytest.fixture
def desk(browser, file):
    with opened(browser, file, viewport=DESK) as found:
        yield found


def node(page, name):
    return page.locator(f'[data-milestone="{name}"]')


def texts(page, selector):
    return [text.strip() for text in page.locator(selector).all_inner_texts()]


def test_the_page_opens_without_an_error_and_asks_for_nothing(desk, file):
    assert desk.page.title() == "Refunds"
    desk.page.locator(".row").nth(0).click()
    node(desk.page, "refund").click()
    desk.page.locator("#theme").click()
    assert desk.said == []
    assert desk.asked == [file.as_uri()]


def test_the_graph_shows_each_milestone_with_its_numbers(desk):
    page = desk.page
    nodes, edges = page.locator(".node").all(), page.locator(".edge").all()
    labels = [each.get_attribute("aria-label") for each in nodes]
    assert len(labels) == 8
    assert "find_by_number, tool call: reached by 3 of 4, 1 stopped here" in labels
    assert "Pleased, state: reached by 0 of 4, possibly by 2 more" in labels
    counts = {each.get_attribute("data-edge"): each.get_attribute("data-count") for each in edges}
    assert (counts["Start → find_by_number"], counts["find_by_mail → refund"]) == ("3", "0")
    # The middle of each node is the node's own: none covers another.
    covering = "([x, y]) => document.elementFromPoint(x, y)?.closest('.node')?.dataset.milestone"
    for each in nodes:
        each.scroll_into_view_if_needed()
        box = each.locator(".frame").bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        assert page.evaluate(covering, middle) == each.get_attribute("data-milestone")


def test_the_figures_lead_to_the_conversations_to_look_at(desk):
    page = desk.page
    cards = texts(page, ".card")
    assert cards[0].startswith("Goal completion\n\n25%\n\n1 of 4 · 95% interval 5–70%")
    assert " ".join(cards[3].split()) == "To look at Something forbidden 1 Undecided 0 Broken records 1"
    assert "k = 2\t" in cards[4]
    assert cards[5].startswith("Agrees with the reward\n\n25%")
    page.locator(".card button", has_text="Something forbidden").click()
    assert texts(page, ".row .id") == ["kettle"]
    page.locator(".card button", has_text="Broken records").click()
    assert "the conversation is empty" in page.locator("#broken").inner_text()


def test_the_customers_own_goal_is_shown_over_all_and_for_each_arm(browser, tmp_path):
    arms = {"shop": Shop(), "closed": RunnableLambda(lambda _: "We are closed.")}
    path = tmp_path / "report.html"
    with ThreadPoolExecutor() as aside:  # in this thread runs the browser's event loop
        write_html(path, aside.submit(evaluate, lamps(2, goal="buy"), arms, runs=2).result())
    with opened(browser, path, viewport=DESK) as found:
        card = found.page.locator(".card", has_text="Customer's goal reached").inner_text()
        assert card.split("\n\n")[1:] == ["25%", "2 of 8 · 95% interval 7–59%"]
        heads = texts(found.page, "#arms thead th")
        rows = [row.locator("th, td").all_inner_texts() for row in found.page.locator("#arms tbody tr").all()]
        column = heads.index("Customer's goal reached")
        reached = {row[0].strip(): " ".join(row[column].split()) for row in rows}
        assert (reached["shop"], reached["closed"]) == ("50% 2 of 4", "0% 0 of 4")
        assert found.said == []


@pytest.mark.parametrize("how", ["click", "Enter"])
def test_a_milestone_shows_who_reached_it_and_who_stopped_there(desk, how):
    page = desk.page
    if how == "click":
        node(page, "find_by_number").click()
    else:
        node(page, "find_by_number").focus()
        page.keyboard.press(how)
    page.wait_for_selector("#inspector [data-who=reached]")
    assert texts(page, "#inspector [data-who=reached] li") == ["mug", "lamp", "kettle"]
    page.locator("#inspector [data-who=stopped] button", has_text="Show in the list").click()
    assert texts(page, ".row .id") == ["lamp"]
    page.locator("#inspector [data-who=stopped] li button").click()
    page.wait_for_selector("#reader .event")
    assert page.locator("#reader h2").inner_text() == "lamp"


def test_a_conversation_has_its_milestones_and_faults_at_their_events(desk):
    page = desk.page
    page.locator(".row", has_text="mug").click()
    page.wait_for_selector("#reader .event")
    marks = {step: texts(page, f"#event-{step} .marks .badge") for step in range(1, 7)}
    assert {step: names for step, names in marks.items() if names} == {
        2: ["◆ find_by_number"],
        4: ["◆ Comforted"],
        5: ["◆ refund", "◆ Both", "◆ End"],
    }
    page.locator("#reader button", has_text="Next").click()
    page.wait_for_selector("#event-6 .invented")
    assert "repeats an earlier call" in page.locator("#event-4 .marks").inner_text()
    page.locator("#reader button", has_text="Next").click()
    page.wait_for_selector("#event-6.forbidden")
    assert "guarantee" in page.locator("#event-6 .tag.bad").inner_text()
    long = page.locator(".event.result details")
    assert not long.locator("pre").is_visible()
    long.locator("summary").click()
    assert len(long.locator("pre").inner_text()) == 900


def test_a_link_leads_to_a_conversation_and_a_milestone(browser, file):
    with opened(browser, file, "#c=2&n=refund", viewport=DESK) as found:
        assert found.page.locator("#reader h2").inner_text() == "kettle"
        assert found.page.locator("#inspector h2").inner_text() == "refund"
    for wrong in ("#c=99&n=nothing", "#c=-1", "#c=%FF&n", "#g=x"):
        with opened(browser, file, wrong, viewport=DESK) as found:
            assert found.page.locator(".row").count() == 4
            assert found.said == []


def test_the_list_is_filtered_searched_and_sorted(desk):
    page = desk.page
    for state, names in (
        ("completed", ["mug"]),
        ("forbidden", ["kettle"]),
        ("missed", ["lamp", "kettle", "lamp"]),
    ):
        page.locator(f'[data-state="{state}"]').click()
        assert texts(page, ".row .id") == names
    page.locator('[data-state="all"]').click()
    page.locator("#sort").select_option("least")
    assert texts(page, ".row .id")[-2:] == ["mug", "kettle"]
    page.locator("#search").fill("OTHERS")
    assert texts(page, ".row .id") == ["kettle"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_against_what_is_behind_it(browser, file, scheme):
    for link in ("", "#c=1&n=refund", "#c=2&n=End"):
        with opened(browser, file, link, viewport=DESK, color_scheme=scheme) as found:
            assert found.page.evaluate(FAINT) == []


@pytest.mark.parametrize("link", ["", "#n=find_by_number", "#c=2&n=End"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser, file, link):
    with opened(browser, file, link, viewport=PHONE, has_touch=True) as found:
        width, screen = found.page.evaluate(WIDTHS)
        assert width <= screen
        if "c=" in link:
            assert found.page.locator("#reader").bounding_box()["width"] == screen
            found.page.locator("#close").click()
        assert found.page.locator("#reader").is_hidden()


def test_hostile_words_stay_words(browser, tmp_path):
    result, talks = hostile_report()
    path = tmp_path / "report.html"
    write_html(path, result, talks, title="<script>window.harmed=1</script>")
    with opened(browser, path, "#c=0", viewport=PHONE) as found:
        page = found.page
        page.wait_for_selector("#event-5")
        for each in page.locator(".event details").all():
            each.evaluate("element => { element.open = true; }")
        page.locator("#reader .badge").nth(0).click()
        assert page.evaluate("window.harmed") is None
        assert page.locator("img").count() == 0
        assert "<img src=x" in page.locator("#inspector").inner_text()
        assert (found.said, len(found.asked)) == ([], 1)
        width, screen = page.evaluate(WIDTHS)
        assert width <= screen


def test_each_of_many_graphs_can_be_found(browser, tmp_path):
    talks = [conversation(user("hello"), called("look", number=at), id=f"talk {at}") for at in range(30)]
    result = made(talks, MilestoneGraph.from_actions([{"name": "look", "kwargs": {"number": 7}}]))
    records = [one.model_copy(update={"graph": f"task {at}"}) for at, one in enumerate(result.conversations)]
    graphs = {f"task {at}": result.graphs[GRAPH] for at in range(30)}
    path = tmp_path / "report.html"
    write_html(path, result.model_copy(update={"conversations": tuple(records), "graphs": graphs}), talks)
    with opened(browser, path, viewport=DESK) as found:
        assert found.page.locator("#graph-select option").count() == 30
        found.page.locator("#graph-find").fill("task 7")
        found.page.locator("#inspector h2", has_text="task 7").wait_for()
        assert texts(found.page, ".row .id") == ["talk 7"]


def test_thousands_of_conversations_are_listed_a_page_at_a_time(browser, tmp_path):
    talks = [conversation(user(f"words of {at}"), id=f"talk {at}") for at in range(3_000)]
    path = tmp_path / "report.html"
    write_html(path, made(talks), talks)
    with opened(browser, path, viewport=DESK) as found:
        page = found.page
        assert "the words of 500 of 3,000 conversations" in page.locator("#notices").inner_text()
        assert page.locator(".row").count() == 100
        page.locator("#pages button", has_text="Next").click()
        assert texts(page, ".row .id")[0] == "talk 100"
        page.locator("#search").fill("talk 2999")
        assert texts(page, ".row .id") == ["talk 2999"]
