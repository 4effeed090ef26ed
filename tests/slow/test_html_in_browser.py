"""The page of a report in a real browser: what it shows, what a click does, on a phone and in the dark."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from arq_graph.milestones import Milestone, MilestoneGraph, write_html
from tests.milestones.conversations import called, conversation, user
from tests.milestones.reported import reported, runs
from tests.milestones.sample_report import GRAPH, hostile_report, made, refund_talks
from tests.slow.browser import chromium, opened

pytestmark = pytest.mark.slow

PHONE = {"width": 360, "height": 720}
DESK = {"width": 1400, "height": 900}
WIDTHS = "[document.documentElement.scrollWidth, window.innerWidth]"

# Each visible text with too little contrast (WCAG 2, 1.4.3) to what is behind it.
FAINT = """() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = channels(colour).map((v) => v / 255)
      .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!colour.endsWith(", 0)") && colour !== "transparent") return colour;
    }
  };
  const faint = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const isDrawn = node.closest("svg, script, noscript, button:disabled, option");
    if (!own || isDrawn || !node.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(node).color), light(behind(node))];
    const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (contrast < 4.5) faint.push([node.className, node.textContent.slice(0, 40), contrast]);
  }
  return faint;
}"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    talks = refund_talks()
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(path, made(talks), talks, title="Refunds")
    return path


@pytest.fixture
def desk(browser, file):
    with opened(browser, file, viewport=DESK) as found:
        yield found


def until(page, condition):
    """Wait, some frames at most; the page's own policy forbids Playwright's way of waiting."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.evaluate("() => new Promise(requestAnimationFrame)")
    raise AssertionError(f"never true: {condition}")


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
    labels = {
        each.get_attribute("data-milestone"): each.get_attribute("aria-label")
        for each in page.locator(".node").all()
    }
    assert labels["find_by_number"] == "find_by_number, tool call: reached by 3 of 4, 1 stopped here"
    assert labels["Pleased"] == "Pleased, state: reached by 0 of 4, possibly by 2 more"
    assert labels["Both"] == "Both, join: reached by 2 of 4"
    assert len(labels) == 8
    edges = {
        each.get_attribute("data-edge"): each.get_attribute("data-count")
        for each in page.locator(".edge").all()
    }
    assert edges["Start → find_by_number"] == "3"
    assert edges["find_by_mail → refund"] == "0"
    width = "element => parseFloat(getComputedStyle(element).strokeWidth)"
    lines = {name: page.locator(f'[data-edge="{name}"] .line').evaluate(width) for name in edges}
    assert lines["Start → find_by_number"] > lines["refund → Both"] > lines["find_by_mail → refund"]
    # The middle of each node is the node's own: none covers another.
    for each in page.locator(".node").all():
        covering = "([x, y]) => document.elementFromPoint(x, y)?.closest('.node')?.dataset.milestone"
        each.scroll_into_view_if_needed()
        box = each.locator(".frame").bounding_box()
        middle = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        assert page.evaluate(covering, middle) == each.get_attribute("data-milestone")


def test_the_figures_stand_on_top_with_what_to_be_careful_about(browser, tmp_path):
    talks = [replace(talk, extra={"reward": at % 2}) for at, talk in enumerate(refund_talks())]
    result = made(talks)
    graphs = {name: graph.model_copy(update={"reviewed": False}) for name, graph in result.graphs.items()}
    path = tmp_path / "report.html"
    write_html(path, result.model_copy(update={"graphs": graphs}), talks)
    with opened(browser, path, viewport=DESK) as found:
        cards = texts(found.page, ".card")
        assert cards[0].startswith("Goal completion\n\n25%\n\n1 of 4 · 95% interval 5–70%")
        assert cards[1].startswith(f"Progress rate\n\n{result.summary.overall.progress_rate.mean:.0%}")
        assert " ".join(cards[3].split()) == "To look at Something forbidden 1 Undecided 0 Broken records 1"
        assert "k = 2\t" in cards[4]
        assert cards[5].startswith("Agrees with the reward\n\n25%")
        assert "Nobody has reviewed the graph refunds" in found.page.locator("#notices").inner_text()
        rows = texts(found.page, "#use-cases tbody tr")
        assert [row.split()[:3] for row in rows] == [["others", "1", "0%"], ["refunds", "2", "50%"]]
        found.page.locator(".card button", has_text="Something forbidden").click()
        assert texts(found.page, ".row .id") == ["kettle"]
        found.page.locator(".card button", has_text="Broken records").click()
        assert "the conversation is empty" in found.page.locator("#broken").inner_text()


def test_what_pass_hat_k_leaves_out_and_what_a_ceiling_stopped_are_told(browser, tmp_path):
    several = reported(*runs("1", True, False), *runs("2", False, None))
    path = tmp_path / "report.html"
    ceiling = {"missing": 7, "stopped": "max_calls: 40 of 40 model calls are made"}
    write_html(path, several.model_copy(update=ceiling))
    with opened(browser, path, viewport=DESK) as found:
        card = found.page.locator(".card", has_text="pass^k").inner_text()
        assert "k = 2\t" in card
        assert "1 task left out: not every run is decided" in card
        notices = found.page.locator("#notices").inner_text()
        assert "40 of 40 model calls are made. 7 conversations are missing here." in notices
        # One vote agrees with itself, and nothing is told of it.
        assert found.page.locator(".card", has_text="votes").count() == 0
    write_html(path, reported(*runs("1", False, None)))
    with opened(browser, path, viewport=DESK) as found:
        card = found.page.locator(".card", has_text="pass^k").inner_text()
        assert "k = " not in card
        assert "1 task left out: not every run is decided" in card
        assert "are missing here" not in found.page.locator("#notices").inner_text()


@pytest.mark.parametrize(
    ("size", "rows"), [((1280, 900), [3, 3]), ((1700, 900), [6]), ((360, 720), [2, 2, 2])]
)
def test_the_figures_fill_their_rows(browser, tmp_path, size, rows):
    talks = [replace(talk, extra={"reward": at % 2}) for at, talk in enumerate(refund_talks())]
    path = tmp_path / "report.html"
    write_html(path, made(talks), talks)
    tops = "[...document.querySelectorAll('.card')].map((card) => card.getBoundingClientRect().top)"
    with opened(browser, path, viewport=dict(zip(("width", "height"), size, strict=True))) as found:
        assert list(Counter(found.page.evaluate(tops)).values()) == rows
        found.page.set_viewport_size(DESK)
        until(found.page, f"new Set({tops}).size === 1 || new Set({tops}).size === 2")


@pytest.mark.parametrize("how", ["click", "Enter", "Space"])
def test_a_milestone_shows_who_reached_it_and_who_stopped_there(desk, how):
    page = desk.page
    if how == "click":
        node(page, "find_by_number").click()
    else:
        node(page, "find_by_number").focus()
        page.keyboard.press(how)
    page.wait_for_selector("#inspector [data-who=reached]")
    assert texts(page, "#inspector [data-who=reached] li") == ["mug", "lamp", "kettle"]
    assert texts(page, "#inspector [data-who=stopped] li") == ["lamp"]
    assert node(page, "find_by_number").get_attribute("aria-pressed") == "true"
    page.locator("#inspector [data-who=stopped] button", has_text="Show in the list").click()
    assert texts(page, ".row .id") == ["lamp"]
    page.locator("#inspector [data-who=stopped] li button").click()
    page.wait_for_selector("#reader .event")
    assert page.locator("#reader h2").inner_text() == "lamp"


def test_a_conversation_has_its_milestones_at_their_events(desk):
    page = desk.page
    page.locator(".row", has_text="mug").click()
    page.wait_for_selector("#reader .event")
    badges = {
        int(event.get_attribute("data-step")): [
            badge.inner_text() for badge in event.locator(".marks .badge").all()
        ]
        for event in page.locator(".event").all()
    }
    assert {step: names for step, names in badges.items() if names} == {
        2: ["◆ find_by_number"],
        4: ["◆ Comforted"],
        5: ["◆ refund", "◆ Both", "◆ End"],
    }
    assert texts(page, ".event .said") == ["My mug broke, order 17", "I am sorry to hear that."]
    assert page.locator(".node.on").count() == 6
    page.locator(".milestones .badge", has_text="refund").click()
    assert page.evaluate("document.activeElement.dataset.step") == "5"


def test_what_nothing_decides_is_told_where_the_measure_depends_on_it(browser, desk, tmp_path):
    desk.page.locator(".row", has_text="mug").click()
    desk.page.wait_for_selector("#reader .event")
    assert "Nothing decides" not in desk.page.locator("#reader").inner_text()
    graph = MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            Milestone(name="Pleased", type="NFC"),
            Milestone(name="End", type="NFC", dependencies=("Pleased",)),
        ]
    )
    talks = [conversation(user("hello"), id="greeting")]
    path = tmp_path / "report.html"
    write_html(path, made(talks, graph), talks)
    with opened(browser, path, "#c=0", viewport=DESK) as found:
        found.page.wait_for_selector("#reader .event")
        assert "Nothing decides Pleased" in " ".join(found.page.locator("#reader").inner_text().split())


def test_whoever_is_at_end_was_stopped_by_what_is_forbidden(desk):
    page = desk.page
    said = "End, with something forbidden on the way"
    assert said in texts(page, "#inspector .stops th")
    assert "1 of them with something forbidden on the way" in node(page, "End").get_attribute("aria-label")
    assert any(said in row for row in texts(page, "#use-cases tbody tr"))
    node(page, "End").click()
    page.locator("#inspector [data-who=stopped] button", has_text="Show in the list").click()
    assert said in texts(page, "#chips .chip")[0]
    assert f"at {said}" in page.locator(".row", has_text="kettle").inner_text()
    assert "stopped at End" not in page.locator("body").inner_text()


def test_what_went_wrong_is_marked_where_it_happened(desk):
    page = desk.page
    page.locator(".row", has_text="kettle").click()
    page.wait_for_selector(".event.forbidden")
    assert page.locator(".event.forbidden").get_attribute("data-step") == "6"
    assert "guarantee" in page.locator(".event.forbidden .tag.bad").inner_text()
    assert "something forbidden happened" in page.locator(".milestones").inner_text()
    long = page.locator(".event.result details")
    assert not long.locator("pre").is_visible()
    long.locator("summary").click()
    assert len(long.locator("pre").inner_text()) == 900
    page.locator("#reader button", has_text="Previous").click()
    page.wait_for_selector("#event-6 .invented")
    assert "repeats an earlier call" in page.locator("#event-4 .marks").inner_text()
    assert page.locator(".event .tag", has_text="possibly invented").count() == 1


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
    for state, names in {
        "completed": ["mug"],
        "missed": ["lamp", "kettle", "lamp"],
        "forbidden": ["kettle"],
        "all": ["mug", "lamp", "kettle", "lamp"],
    }.items():
        page.locator(f'[data-state="{state}"]').click()
        assert texts(page, ".row .id") == names
    page.locator("#sort").select_option("least")
    assert texts(page, ".row .id")[0] == "lamp"
    assert texts(page, ".row .id")[-2:] == ["mug", "kettle"]
    page.locator("#search").fill("OTHERS")
    assert texts(page, ".row .id") == ["kettle"]
    page.locator("#search").fill("nowhere")
    assert "No conversation" in page.locator("#rows").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_against_what_is_behind_it(browser, file, scheme):
    for link in ("", "#c=1&n=refund", "#c=2&n=End"):
        with opened(browser, file, link, viewport=DESK, color_scheme=scheme) as found:
            assert found.page.evaluate(FAINT) == []


def test_it_follows_the_systems_colours_until_the_reader_chooses(browser, file):
    colour = "getComputedStyle(document.documentElement).backgroundColor"
    with opened(browser, file, viewport=DESK, color_scheme="light") as found:
        light = found.page.evaluate(colour)
        found.page.emulate_media(color_scheme="dark")
        until(found.page, f"{colour} !== {light!r}")
        found.page.locator("#theme").click()
        assert found.page.evaluate(colour) == light


def test_on_a_phone_the_graph_begins_with_start_at_its_left_edge(browser, file):
    place = """() => {
      const canvas = document.getElementById("canvas");
      const frame = canvas.getBoundingClientRect();
      const start = document.querySelector('[data-milestone="Start"] .frame').getBoundingClientRect();
      return [canvas.scrollLeft, start.left - frame.left, frame.right - start.right];
    }"""
    with opened(browser, file, viewport=PHONE, has_touch=True) as found:
        scrolled, left, right = found.page.evaluate(place)
        assert scrolled == 0  # nothing is hidden on the left
        assert 0 <= left < 60
        assert right >= 0


@pytest.mark.parametrize("link", ["", "#n=find_by_number", "#c=1", "#c=2&n=End"])
def test_on_a_phone_nothing_is_wider_than_the_screen(browser, file, link):
    with opened(browser, file, link, viewport=PHONE, has_touch=True) as found:
        width, screen = found.page.evaluate(WIDTHS)
        assert width <= screen
        if "c=" in link:
            assert found.page.locator("#reader").bounding_box()["width"] == screen
            found.page.locator("#close").click()
        assert found.page.locator("#reader").is_hidden()
        assert found.page.locator(".row").count() == 4


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_hostile_words_stay_words(browser, tmp_path, size):
    result, talks = hostile_report()
    path = tmp_path / "report.html"
    write_html(path, result, talks, title="<script>window.harmed=1</script>")
    with opened(browser, path, "#c=0", viewport=size) as found:
        page = found.page
        page.wait_for_selector("#event-5")
        for each in page.locator(".event details").all():
            each.evaluate("element => { element.open = true; }")
        page.locator("#reader .badge").nth(0).click()
        assert page.evaluate("window.harmed") is None
        assert page.locator("img").count() == 0
        assert "<img src=x" in page.locator("#inspector").inner_text()
        assert found.said == []
        assert len(found.asked) == 1
        width, screen = page.evaluate(WIDTHS)
        assert width <= screen


def test_each_of_many_graphs_can_be_found(browser, tmp_path):
    talks = [conversation(user("hello"), called("look", number=at), id=f"talk {at}") for at in range(30)]
    graph = MilestoneGraph.from_actions([{"name": "look", "kwargs": {"number": 7}}])
    result = made(talks, graph)
    records = tuple(
        record.model_copy(update={"graph": f"task {at}"}) for at, record in enumerate(result.conversations)
    )
    graphs = {f"task {at}": result.graphs[GRAPH] for at in range(30)}
    path = tmp_path / "report.html"
    write_html(path, result.model_copy(update={"conversations": records, "graphs": graphs}), talks)
    with opened(browser, path, viewport=DESK) as found:
        page = found.page
        assert page.locator("#graph-select option").count() == 30
        page.locator("#graph-find").fill("task 7")
        page.locator("#inspector h2", has_text="task 7").wait_for()
        assert texts(page, ".row .id") == ["talk 7"]
        node(page, "End").click()
        page.wait_for_selector("#inspector [data-who=reached]")
        assert texts(page, "#inspector [data-who=reached] li") == ["talk 7"]
        page.locator("#chips button").nth(0).click()
        page.locator(".row", has_text="talk 12").click()
        page.wait_for_selector("#reader .event")
        assert page.locator("#graph-select").input_value() in ("12", "")


def test_thousands_of_conversations_are_listed_a_page_at_a_time(browser, tmp_path):
    talks = [conversation(user(f"words of {at}"), id=f"talk {at}") for at in range(3_000)]
    path = tmp_path / "report.html"
    write_html(path, made(talks), talks, max_transcripts=10)
    with opened(browser, path, viewport=DESK) as found:
        page = found.page
        assert "the words of 10 of 3,000 conversations" in page.locator("#notices").inner_text()
        assert page.locator(".row").count() == 100
        page.locator("#pages button", has_text="Next").click()
        assert texts(page, ".row .id")[0] == "talk 100"
        page.locator(".row").nth(0).click()
        page.wait_for_selector("#reader .notice")
        assert page.locator("#reader .event").count() == 0
        page.locator("#search").fill("talk 2999")
        assert texts(page, ".row .id") == ["talk 2999"]
